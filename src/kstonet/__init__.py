"""kstonet: kernel-expanded stochastic neural networks."""

from kstonet.estimators import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)
from kstonet.gram.memory import GramTooLargeError
from kstonet.onnx_export import to_onnx
from kstonet.persistence import load, save

__version__ = "0.1.0.dev0"

__all__ = [
    "GramTooLargeError",
    "KStoNetClassifier",
    "KStoNetClassifierCV",
    "KStoNetRegressor",
    "KStoNetRegressorCV",
    "MultiTargetSVR",
    "StoNetClassifier",
    "StoNetRegressor",
    "__version__",
    "load",
    "save",
    "to_onnx",
]
