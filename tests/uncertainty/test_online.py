"""Intervals of series: adaptive conformal inference against a plain loop, its bound, drifting series, files, input."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import kstonet
from kstonet import KStoNetRegressor
from kstonet.uncertainty.conformal import ConformalFactor, SkewedFactor
from kstonet.uncertainty.online import MISSES, STEPS, WINDOW, AdaptiveLevels, OnlineFactor

FAST = {"tuning": "none", "max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "random_state": 0}
LEVEL = np.array([0.9])


def reach(factor, side=1):
    return float(factor.tails(LEVEL)[side][0, 0])


def calibration(n, seed=0):
    return np.sort(np.abs(np.random.default_rng(seed).normal(size=(n, 1))), axis=0)


@pytest.mark.parametrize("step", [0.02, 0.3])
def test_plain_adaptive_inference_is_that_of_a_loop(step):
    """Algorithm of Gibbs and Candès (2021) with a sliding window, in their own words."""
    rng = np.random.default_rng(1)
    factor = OnlineFactor.of(ConformalFactor(calibration(480)), step)
    scores, level = factor.scores[:, 0].tolist(), 0.1
    for t in range(200):
        rank = int(np.ceil((len(scores) + 1) * (1.0 - level) - 1e-9))
        q = np.inf if rank > len(scores) else sorted(scores)[max(rank, 1) - 1]
        if level <= 0.0:
            q = np.inf
        own = factor.adaptive.levels[MISSES == 0.1, 0, 0]
        assert own == pytest.approx(level, abs=1e-12)
        assert factor._reach(0, own) == q
        new = abs(rng.normal()) * (1 + t / 50)
        factor = factor.seen(np.array([[new]]))
        level += step * (0.1 - (new > q))
        scores = [*scores, new][-WINDOW:]
    assert factor.n_seen == 200


@pytest.mark.parametrize("skewed", [False, True])
@pytest.mark.parametrize("step", [0.05, "auto"])
def test_the_share_of_misses_is_bounded_whatever_comes(step, skewed):
    """|share - α| ≤ (1 + step)/(step·T) for one step, on scores that grow, jump and fall; about as well for competing ones."""
    rng = np.random.default_rng(2)
    T = 1500
    errors = rng.normal(size=T) * np.exp(np.cumsum(0.05 * rng.normal(size=T))) + np.where(np.arange(T) % 700 > 500, 6.0, 0.0)
    signed = np.sort(rng.normal(size=(100, 1)), axis=0)
    factor = OnlineFactor.of(SkewedFactor(signed) if skewed else ConformalFactor(calibration(100)), step)
    missed = 0
    for error in errors:
        below, above = (float(tail[0, 0]) for tail in factor.tails(LEVEL))
        missed += not -below <= error <= above
        factor = factor.seen(np.array([[error]]))
    bound = 0.025 if step == "auto" else 2 * 1.05 / (0.05 * T)
    assert abs(missed / T - 0.1) < bound


def test_levels_stay_where_rows_are_exchangeable():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=(2000, 1))
    levels = AdaptiveLevels.start(1, STEPS)
    seen = []
    for row in p:
        levels = levels.after(row)
        seen.append(levels.at(np.array([0.1, 0.5]))[0])
    np.testing.assert_allclose(np.mean(seen, axis=0), [0.1, 0.5], atol=0.03)
    np.testing.assert_allclose(levels.weights.sum(axis=1), 1.0)


def test_intervals_are_nested_and_the_usual_levels_are_followed():
    factor = OnlineFactor.of(ConformalFactor(calibration(300))).seen(np.random.default_rng(4).standard_t(2, size=(400, 1)))
    reaches = factor.tails(np.linspace(0.02, 0.98, 60))[1][:, 0]
    assert (np.diff(reaches) >= 0).all()
    for coverage in (0.5, 0.8, 0.9, 0.95, 0.99):
        assert np.isclose(MISSES, 1 - coverage).any()
        assert np.isclose(MISSES, (1 - coverage) / 2).any()


def test_beyond_the_scores_students_t_goes_on():
    few = ConformalFactor(calibration(9))
    assert np.isinf(OnlineFactor.of(few).tails(np.array([0.99]))[1]).all()
    finite = OnlineFactor.of(ConformalFactor(few.scores, df=5.0)).tails(np.array([0.99]))[1]
    np.testing.assert_allclose(finite, ConformalFactor(few.scores, df=5.0)(np.array([0.99])))


# -- the estimator -----------------------------------------------------------------------------------------------------------


def drifting(n, seed):
    """The noise grows to four times its size, and the mean moves."""
    rng = np.random.default_rng(seed)
    x, time = rng.uniform(-2, 2, size=(n, 1)), np.arange(n) / n
    return x, np.sin(2 * x[:, 0]) + 0.3 * time + (0.2 + 0.6 * time**2) * rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return KStoNetRegressor(**FAST).fit(*[part[:200] for part in drifting(1000, 0)])


def test_a_series_that_drifts_is_covered(model):
    """The last 800 rows: a standard error of 0.011; without updates far fewer are covered."""
    X, y = drifting(1000, 0)
    model = copy.copy(model)
    bounds = []
    for t in range(200, 1000, 4):
        rows = slice(t, t + 4)
        bounds.extend(model.predict_interval(X[rows], 0.9))
        model.update(X[rows], y[rows])
    low, high = np.array(bounds).T
    covered = (low <= y[200:]) & (y[200:] <= high)
    fixed = model.calibrate().predict_interval(X[200:], 0.9)
    before = (fixed[:, 0] <= y[200:]) & (y[200:] <= fixed[:, 1])
    assert before.mean() < 0.8
    assert abs(covered.mean() - 0.9) < 0.04
    assert covered[400:].mean() > before[400:].mean() + 0.1
    assert np.isfinite(np.array(bounds)).all()


def test_rows_together_or_one_by_one(model, tmp_path):
    X, y = drifting(1000, 0)
    together = copy.copy(model).update(X[200:260], y[200:260])
    single = copy.copy(model)
    for t in range(200, 260):
        if t == 230:
            kstonet.save(single, tmp_path / "m.kstonet")
            single = kstonet.load(tmp_path / "m.kstonet")
        single.update(X[[t]], y[[t]])
    np.testing.assert_array_equal(single.predict_interval(X[260:], [0.5, 0.9]), together.predict_interval(X[260:], [0.5, 0.9]))
    assert single.trained_.calibration.factor.n_seen == 60
    kstonet.save(together, tmp_path / "n.kstonet")
    again = kstonet.load(tmp_path / "n.kstonet")
    np.testing.assert_array_equal(again.predict_quantiles(X[260:]), together.predict_quantiles(X[260:]))


def test_the_fit_comes_back_and_means_stay(model):
    X, y = drifting(1000, 0)
    other = copy.copy(model)
    before = other.predict_interval(X, 0.9)
    other.update(X[200:400], 5 * y[200:400])
    assert (np.diff(other.predict_interval(X, 0.9)) > np.diff(before)).all()
    np.testing.assert_array_equal(other.predict(X), model.predict(X))
    np.testing.assert_array_equal(other.calibrate().predict_interval(X, 0.9), before)


def test_several_targets_and_their_regions_adapt():
    X, y = drifting(400, 1)
    Y = np.column_stack([y, -2 * y + np.random.default_rng(0).normal(size=400)])
    model = KStoNetRegressor(**FAST).fit(X[:200], Y[:200])
    before, volume = model.predict_interval(X[300:], 0.9), model.predict_region(X[300:], 0.9).volume
    model.update(X[200:300], Y[200:300] * [1, 4])
    after = model.predict_interval(X[300:], 0.9)
    grown = np.diff(after, axis=2) / np.diff(before, axis=2)
    assert (grown[:, 1] > 2 * grown[:, 0]).all()
    assert (model.predict_region(X[300:], 0.9).volume > 2 * volume).all()
    assert after.shape == (100, 2, 2)


def test_input_is_checked(model):
    X, y = drifting(1000, 0)
    with pytest.raises(ValueError, match="step=0 must be 'auto' or a number"):
        model.update(X[:1], y[:1], step=0)
    with pytest.raises(ValueError, match="step='fast'"):
        model.update(X[:1], y[:1], step="fast")
    with pytest.raises(ValueError, match="NaN"):
        model.update(X[:1], [np.nan])
    with pytest.raises(ValueError, match="inconsistent numbers"):
        model.update(X[:2], y[:1])
    with pytest.raises(ValueError, match=r"y has shape \(2, 2\)"):
        model.update(X[:2], np.ones((2, 2)))
    with pytest.raises(ValueError, match="update: 100% of the rows"):
        model.update(X[:200], y[:200])
    with pytest.raises(ValueError, match="update needs scores"):
        KStoNetRegressor(residuals="training", **FAST).fit(X[:50], y[:50]).update(X[50:60], y[50:60])
