"""The same numbers from other people's packages, where they are installed."""

from __future__ import annotations

import numpy as np
import pytest
from metric_data import (
    LEVELS,
)
from scipy import stats

from kstonet.metrics import (
    brier_score,
    calibration_curve,
    calibration_error,
    crps_gaussian,
    crps_samples,
    crps_student,
    nll_gaussian,
    nll_student,
    pinball_loss,
    winkler_score,
)


def test_scoringrules_agrees(data):
    sr = pytest.importorskip("scoringrules")
    y, mean, std = (data[key][:, 0] for key in ("y", "mean", "std"))
    interval, quantiles, samples = (data[key][:, 0] for key in ("interval", "quantiles", "samples"))
    assert crps_gaussian(y, mean, std) == pytest.approx(sr.crps_normal(y, mean, std).mean(), rel=1e-10)
    assert nll_gaussian(y, mean, std) == pytest.approx(sr.logs_normal(y, mean, std).mean(), rel=1e-10)
    shape = (5.0, mean, std * np.sqrt(3.0 / 5.0))
    assert crps_student(y, mean, std, 5.0) == pytest.approx(sr.crps_t(y, *shape).mean(), rel=1e-10)
    assert nll_student(y, mean, std, 5.0) == pytest.approx(sr.logs_t(y, *shape).mean(), rel=1e-10)
    theirs = sr.interval_score(y, interval[:, 0], interval[:, 1], 0.3)
    assert winkler_score(y, interval, coverage=0.7) == pytest.approx(theirs.mean(), rel=1e-10)
    theirs = sr.quantile_score(y[:, None], quantiles, np.array(LEVELS)[None])
    assert pinball_loss(y, quantiles, LEVELS) == pytest.approx(theirs.mean(), rel=1e-10)
    for fair, estimators in {False: ("qd", "nrg"), True: ("fair",)}.items():
        for estimator in estimators:
            theirs = sr.crps_ensemble(y, samples, estimator=estimator)
            assert crps_samples(y, samples, fair=fair) == pytest.approx(theirs.mean(), rel=1e-10)
    right, p = (data["classes"] == "bee").astype(float), data["proba"][:, 1]
    assert brier_score(right, p) == pytest.approx(sr.brier_score(right, p).mean(), rel=1e-10)


def test_uncertainty_toolbox_agrees(data):
    ut = pytest.importorskip("uncertainty_toolbox")
    y, mean, std = (data[key][:, 0] for key in ("y", "mean", "std"))
    assert crps_gaussian(y, mean, std) == pytest.approx(ut.crps_gaussian(mean, std, y), rel=1e-10)
    assert nll_gaussian(y, mean, std) == pytest.approx(ut.nll_gaussian(mean, std, y), rel=1e-10)
    levels = np.linspace(0, 1, 100)  # theirs
    expected, observed = ut.get_proportion_lists(mean, std, y, num_bins=100)
    nominal, ours = calibration_curve(y, mean, std, levels=levels)
    np.testing.assert_allclose((nominal, ours), (expected, observed), rtol=1e-12)
    theirs = ut.mean_absolute_calibration_error(mean, std, y)
    assert calibration_error(y, mean, std, levels=levels) == pytest.approx(theirs, rel=1e-10)
    theirs = ut.root_mean_squared_calibration_error(mean, std, y)
    assert calibration_error(y, mean, std, levels=levels, norm="l2") == pytest.approx(theirs, rel=1e-10)
    levels = np.linspace(0.01, 0.99, 99)
    quantiles = mean[:, None] + std[:, None] * stats.norm.ppf(levels)
    assert pinball_loss(y, quantiles, levels) == pytest.approx(ut.check_score(mean, std, y), rel=1e-10)
    scores = [winkler_score(y, np.stack(stats.norm(mean, std).interval(level), axis=-1), level) for level in levels]
    assert np.mean(scores) == pytest.approx(ut.interval_score(mean, std, y), rel=1e-10)
