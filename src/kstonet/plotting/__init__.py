"""Displays of predictions, their uncertainty and the training, following scikit-learn's display API.

Every display has ``from_estimator``, a constructor from plain arrays, and ``plot``. All accept ``ax`` to draw into an existing
figure. They need matplotlib (extra ``kstonet[plot]``), which is imported only when something is drawn.
"""

from kstonet.plotting.coverage import CoverageDisplay
from kstonet.plotting.intervals import IntervalDisplay
from kstonet.plotting.partial_coverage import PartialCoverageDisplay
from kstonet.plotting.reliability import ReliabilityDisplay
from kstonet.plotting.training import TrainingPathDisplay
from kstonet.plotting.variance import VarianceSourcesDisplay
from kstonet.plotting.width_error import WidthErrorDisplay

__all__ = [
    "CoverageDisplay",
    "IntervalDisplay",
    "PartialCoverageDisplay",
    "ReliabilityDisplay",
    "TrainingPathDisplay",
    "VarianceSourcesDisplay",
    "WidthErrorDisplay",
]
