"""The estimators: validation, defaults, scikit-learn's conventions."""

from kstonet.estimators.cv import KStoNetClassifierCV, KStoNetRegressorCV
from kstonet.estimators.kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.estimators.multi_target_svr import MultiTargetSVR
from kstonet.estimators.stonet import StoNetClassifier, StoNetRegressor

__all__ = [
    "KStoNetClassifier",
    "KStoNetClassifierCV",
    "KStoNetRegressor",
    "KStoNetRegressorCV",
    "MultiTargetSVR",
    "StoNetClassifier",
    "StoNetRegressor",
]
