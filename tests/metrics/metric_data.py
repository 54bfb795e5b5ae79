"""What the tests of the metrics share: nodes of expectations, strategies, and every metric with its arguments.

Statistical checks have a fixed seed; ``Z`` is the number of standard errors they allow, a false alarm in 150,000.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from scipy import stats

from kstonet.metrics import (
    brier_score,
    calibration_curve,
    calibration_error,
    classwise_ece,
    coverage,
    crps_gaussian,
    crps_samples,
    expected_calibration_error,
    mean_width,
    nll_gaussian,
    pinball_loss,
    reliability_curve,
    winkler_score,
)

Z = 4.5
LEVELS = [0.1, 0.5, 0.75]
properties = settings(deadline=None, derandomize=True, max_examples=60)
locations = st.floats(-3, 3)
scales = st.floats(0.2, 4)

# Nodes and weights under which a sum is the expectation over y ~ N(0, 1): scores become expected scores, without chance.
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
EVEN = stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000)  # the same for scores with a kink


REGRESSION = {
    "crps_gaussian": (crps_gaussian, ("y", "mean", "std"), {}),
    "nll_gaussian": (nll_gaussian, ("y", "mean", "std"), {}),
    "calibration_curve": (lambda *a, **k: calibration_curve(*a, **k).observed.T, ("y", "mean", "std"), {"levels": [0.6]}),
    "calibration_error": (calibration_error, ("y", "mean", "std"), {}),
    "calibration_error l2": (calibration_error, ("y", "mean", "std"), {"norm": "l2"}),
    "calibration_error max": (calibration_error, ("y", "mean", "std"), {"norm": "max"}),
    "coverage": (coverage, ("y", "interval"), {}),
    "mean_width": (mean_width, ("interval",), {}),
    "winkler_score": (winkler_score, ("y", "interval"), {"coverage": 0.7}),
    "pinball_loss": (pinball_loss, ("y", "quantiles"), {"levels": LEVELS}),
    "crps_samples": (crps_samples, ("y", "samples"), {}),
    "crps_samples fair": (crps_samples, ("y", "samples"), {"fair": True}),
}
CLASSIFICATION = {
    "brier_score": (brier_score, {}),
    "ece": (expected_calibration_error, {"n_bins": 5}),
    "ece by mass": (expected_calibration_error, {"n_bins": 5, "strategy": "quantile", "norm": "l2"}),
    "classwise": (classwise_ece, {"n_bins": 4, "norm": "max"}),
    "classwise by mass": (classwise_ece, {"n_bins": 4, "strategy": "quantile"}),
    "reliability": (
        lambda *a, **k: np.sum(reliability_curve(*a, **k)[:2]),
        {"n_bins": 6, "strategy": "quantile", "label": "bee"},
    ),
}
regression = pytest.mark.parametrize("name", REGRESSION)
classification = pytest.mark.parametrize("name", CLASSIFICATION)
