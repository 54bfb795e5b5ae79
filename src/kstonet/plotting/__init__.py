"""Pictures of predictions, their uncertainty and the training, in scikit-learn's manner.

Every display has ``from_estimator``, a constructor from plain arrays, and ``plot``; all accept ``ax`` to draw into a figure of
yours. Needs matplotlib, the extra ``kstonet[plot]``, which is imported when something is drawn and not before.
"""

from kstonet.plotting.coverage import CoverageDisplay
from kstonet.plotting.intervals import IntervalDisplay
from kstonet.plotting.reliability import ReliabilityDisplay
from kstonet.plotting.training import TrainingPathDisplay
from kstonet.plotting.variance import VarianceSourcesDisplay
from kstonet.plotting.width_error import WidthErrorDisplay

__all__ = [
    "CoverageDisplay",
    "IntervalDisplay",
    "ReliabilityDisplay",
    "TrainingPathDisplay",
    "VarianceSourcesDisplay",
    "WidthErrorDisplay",
]
