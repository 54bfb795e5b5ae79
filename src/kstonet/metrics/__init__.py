"""Scores and calibration of predictions, from plain arrays: they know nothing of the estimators and work with anybody's.

Gaussian predictions are given by mean and standard deviation, Student's t by its degrees of freedom, too; intervals by their
two bounds, other distributions by quantiles or draws, classifiers by probabilities. Every score is a loss: lower is better.

One layout for all: ``y_true`` is (n,) or (n, k), and bounds, quantiles or draws lie along one more axis, the last.
"""

from kstonet.metrics.classification import (
    ReliabilityCurve,
    brier_score,
    classwise_ece,
    expected_calibration_error,
    reliability_curve,
)
from kstonet.metrics.gaussian import (
    CalibrationCurve,
    calibration_curve,
    calibration_error,
    crps_gaussian,
    nll_gaussian,
    pit_values,
)
from kstonet.metrics.intervals import coverage, mean_width, winkler_score
from kstonet.metrics.samples import crps_samples, pinball_loss
from kstonet.metrics.student import crps_student, nll_student

__all__ = [
    "CalibrationCurve",
    "ReliabilityCurve",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "classwise_ece",
    "coverage",
    "crps_gaussian",
    "crps_samples",
    "crps_student",
    "expected_calibration_error",
    "mean_width",
    "nll_gaussian",
    "nll_student",
    "pinball_loss",
    "pit_values",
    "reliability_curve",
    "winkler_score",
]
