"""Scores and calibration of predictions. They read plain arrays and work with the predictions of any model.

Gaussian predictions are given by mean and standard deviation, Student's t also by its degrees of freedom, intervals by two
bounds, other distributions by quantiles or draws, and classifiers by probabilities. Every score is a loss: lower is better.

All functions use one layout: ``y_true`` is (n,) or (n, k), and bounds, quantiles or draws are along one more, last axis.
"""

from kstonet.metrics.classification import (
    ReliabilityCurve,
    brier_score,
    classwise_ece,
    expected_calibration_error,
    reliability_curve,
)
from kstonet.metrics.conditional import PartialCoverage, coverage_by_group, coverage_by_quantile, worst_slab_coverage
from kstonet.metrics.ert import conditional_coverage_error
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
    "PartialCoverage",
    "ReliabilityCurve",
    "brier_score",
    "calibration_curve",
    "calibration_error",
    "classwise_ece",
    "conditional_coverage_error",
    "coverage",
    "coverage_by_group",
    "coverage_by_quantile",
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
    "worst_slab_coverage",
]
