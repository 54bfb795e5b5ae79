"""Gaussian and Student's t predictions, against integrals and closed forms."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_data import (
    NODE_WEIGHTS,
    NODES,
    Z,
    locations,
    properties,
    scales,
)
from scipy import stats
from scipy.integrate import quad
from sklearn.metrics import mean_absolute_error

from kstonet.metrics import (
    calibration_curve,
    calibration_error,
    coverage,
    crps_gaussian,
    crps_samples,
    crps_student,
    mean_width,
    nll_gaussian,
    nll_student,
    pinball_loss,
    pit_values,
    winkler_score,
)


def crps_by_integration(y, mean, std):
    cdf = stats.norm(mean, std).cdf
    left, right = min(y, mean - 12 * std), max(y, mean + 12 * std)
    centre = [mean] if left < mean < right else []
    below = quad(lambda x: cdf(x) ** 2, left, y, points=[p for p in centre if p < y], epsabs=1e-12, limit=200)[0]
    return below + quad(lambda x: (1 - cdf(x)) ** 2, y, right, points=[p for p in centre if p > y], epsabs=1e-12, limit=200)[0]


@pytest.mark.parametrize("y", [-7.0, -1.0, 0.3, 0.5, 4.0])
@pytest.mark.parametrize("std", [0.05, 1.0, 3.0])
def test_crps_is_the_integral_that_defines_it(y, std):
    assert crps_gaussian([y], 0.3, std) == pytest.approx(crps_by_integration(y, 0.3, std), abs=1e-9)


@properties
@given(mean=locations, std=st.floats(0.7, 4))  # a smaller one is too steep for the nodes
def test_expected_crps_has_a_closed_form(mean, std):
    spread = math.hypot(1.0, std)  # X - Y is Gaussian, and its absolute value has a known mean
    distance = math.sqrt(2 / math.pi) * spread * math.exp(-0.5 * (mean / spread) ** 2) + mean * math.erf(mean / spread / 2**0.5)
    expected = crps_gaussian(NODES, mean, std, sample_weight=NODE_WEIGHTS)
    assert expected == pytest.approx(distance - std / math.sqrt(math.pi), rel=1e-8)


def test_crps_by_monte_carlo(data):
    y, mean, std = data["y"][:, 0], data["mean"][:, 0], data["std"][:, 0]
    draws = mean[:, None] + std[:, None] * np.random.default_rng(1).normal(size=(40, 20_000))
    error = np.abs(draws - y[:, None]).std(axis=1) / math.sqrt(20_000)  # the spread term has less than this
    assert crps_samples(y, draws, fair=True) == pytest.approx(
        crps_gaussian(y, mean, std), abs=2 * Z * np.sqrt(np.mean(error**2) / 40)
    )


def test_no_spread_is_the_absolute_error(data):
    y, mean = data["y"], data["mean"]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert crps_gaussian(y, mean, 0.0) == mean_absolute_error(y, mean)
        assert crps_gaussian(y, y, 0.0) == 0.0
        for tiny in (1e-12, 1e-200, 5e-324):
            assert crps_gaussian(y, mean, tiny) == pytest.approx(mean_absolute_error(y, mean), rel=1e-11)
        np.testing.assert_array_equal(pit_values([1.0, 2.0, 3.0], 2.0, 0.0), [0.0, 0.5, 1.0])
        np.testing.assert_array_equal(calibration_curve([1.0, 2.0, 2.0, 2.0], 2.0, 0.0, levels=[0.0, 0.5]).observed, 0.75)
        assert crps_gaussian([1e200], 0.0, 1.0) == 1e200
        assert nll_gaussian([1e200], 0.0, 1.0) == np.inf
    assert crps_gaussian([3.0], 3.0, 2.0) == pytest.approx(2.0 * (math.sqrt(2) - 1) / math.sqrt(math.pi))


def test_nll_is_the_log_density(data):
    y, mean, std = data["y"], data["mean"], data["std"]
    np.testing.assert_allclose(
        nll_gaussian(y, mean, std, multioutput="raw_values"), -stats.norm(mean, std).logpdf(y).mean(axis=0), rtol=1e-13
    )


def test_pit_is_uniform_only_for_the_truth():
    """The Kolmogorov-Smirnov test of level 1e-5 keeps the truth and rejects what is too narrow, too wide or shifted."""
    y = np.random.default_rng(2).normal(3.0, 2.0, size=2000)
    np.testing.assert_allclose(pit_values(y, 3.0, 2.0), stats.norm(3.0, 2.0).cdf(y), rtol=1e-12)
    assert pit_values(y.reshape(-1, 4), 3.0, 2.0).shape == (500, 4)
    assert stats.kstest(pit_values(y, 3.0, 2.0), "uniform").pvalue > 1e-5
    for mean, std in [(3.0, 1.5), (3.0, 2.7), (3.5, 2.0)]:
        assert stats.kstest(pit_values(y, mean, std), "uniform").pvalue < 1e-5


def test_calibration_curve_counts_what_the_intervals_hold(data):
    y, mean, std, w = data["y"], data["mean"], data["std"], data["weights"]
    nominal, observed = calibration_curve(y, mean, std, sample_weight=w, multioutput="raw_values")
    np.testing.assert_allclose(nominal, np.arange(1, 20) / 20)
    for level, share in zip(nominal, observed, strict=True):
        lower, upper = stats.norm(mean, std).interval(level)
        inside = np.average((lower <= y) & (y <= upper), axis=0, weights=w)
        np.testing.assert_allclose(share, inside)
        np.testing.assert_allclose(share, coverage(y, np.stack([lower, upper], -1), sample_weight=w, multioutput="raw_values"))
    pooled = calibration_curve(y, mean, std, sample_weight=w)
    np.testing.assert_allclose(pooled.observed, observed.mean(axis=1))
    for norm, size in {"l1": np.abs, "l2": np.square}.items():
        expected = size(observed - nominal[:, None]).mean(axis=0) ** {"l1": 1, "l2": 0.5}[norm]
        actual = calibration_error(y, mean, std, norm=norm, sample_weight=w, multioutput="raw_values")
        np.testing.assert_allclose(actual, expected)
    largest = np.abs(observed - nominal[:, None]).max(axis=0).mean()
    assert calibration_error(y, mean, std, norm="max", sample_weight=w) == pytest.approx(largest)


def test_opposite_errors_of_two_outputs_cancel_in_the_curve_only():
    y = np.random.default_rng(3).normal(size=(4000, 2))
    std = np.broadcast_to([0.5, 2.0], y.shape)
    nominal, observed = calibration_curve(y, 0.0, std)
    assert np.abs(observed - nominal).mean() < 0.5 * calibration_error(y, 0.0, std)


def test_calibration_error_of_the_truth_is_chance():
    """The docstring says 0.33/√n: the mean of 600 replications, of which the standard error is 0.008/√n."""
    y = np.random.default_rng(4).normal(size=(200, 600))
    errors = calibration_error(y, 0.0, 1.0, multioutput="raw_values") * math.sqrt(200)
    assert errors.mean() == pytest.approx(0.33, abs=0.005 + Z * errors.std() / math.sqrt(600))


@pytest.mark.parametrize("score", [crps_gaussian, nll_gaussian])
@properties
@given(mean=locations, std=scales)
def test_gaussian_scores_are_proper(score, mean, std):
    truth = score(NODES, 0.0, 1.0, sample_weight=NODE_WEIGHTS)
    assert truth <= score(NODES, mean, std, sample_weight=NODE_WEIGHTS) + 1e-4
    if abs(mean) > 0.1 or abs(std - 1) > 0.1:
        assert truth < score(NODES, mean, std, sample_weight=NODE_WEIGHTS)


@properties
@given(shift=st.floats(-100, 100), scale=st.floats(0.01, 100), sign=st.sampled_from([-1.0, 1.0]), seed=st.integers(0, 1000))
def test_scores_follow_a_change_of_unit(shift, scale, sign, seed):
    rng = np.random.default_rng(seed)
    y, mean, std, draws = rng.normal(size=7), rng.normal(size=7), rng.exponential(size=7) + 0.01, rng.normal(size=(7, 5))
    a, close = sign * scale, {"rtol": 1e-7, "atol": 1e-9 * scale}
    moved = (a * y + shift, a * mean + shift, scale * std)
    np.testing.assert_allclose(crps_gaussian(*moved), scale * crps_gaussian(y, mean, std), **close)
    np.testing.assert_allclose(nll_gaussian(*moved), nll_gaussian(y, mean, std) + math.log(scale), rtol=1e-7, atol=1e-7)
    pit = pit_values(y, mean, std)
    np.testing.assert_allclose(pit_values(*moved), pit if sign > 0 else 1 - pit, atol=1e-7)
    for fair in (False, True):
        before = crps_samples(y, draws, fair=fair)
        np.testing.assert_allclose(crps_samples(moved[0], a * draws + shift, fair=fair), scale * before, **close)
    interval = np.sort(draws[:, :2], axis=1)
    there = np.sort(a * interval + shift, axis=1)
    np.testing.assert_allclose(mean_width(there), scale * mean_width(interval), **close)
    np.testing.assert_allclose(winkler_score(moved[0], there, 0.8), scale * winkler_score(y, interval, 0.8), **close)
    level = 0.3 if sign > 0 else 0.7  # turned round, a quantile is the opposite one
    before = pinball_loss(y, draws[:, 0], 0.3)
    np.testing.assert_allclose(pinball_loss(moved[0], a * draws[:, 0] + shift, level), scale * before, **close)


@pytest.mark.parametrize("metric", [crps_gaussian, nll_gaussian, pit_values, calibration_curve, calibration_error])
def test_bad_gaussians_are_named(metric):
    y = np.zeros(4)
    with pytest.raises(ValueError, match=r"std holds -0.5 at \[1\] \(1 of 4.*cannot be negative"):
        metric(y, 0.0, [1, -0.5, 1, 1])
    with pytest.raises(ValueError, match=r"mean has shape \(4, 1\), y_true asks for \(4,\)"):
        metric(y, np.zeros((4, 1)), 1.0)
    with pytest.raises(ValueError, match=r"std has shape \(1,\)"):
        metric(y, y, [1.0])
    with pytest.raises(ValueError, match=r"std holds inf at \[\]"):
        metric(y, y, np.inf)
    with pytest.raises(ValueError, match=r"mean must be an array of real numbers"):
        metric(y, "zero", 1.0)


def test_a_gaussian_without_spread_has_no_likelihood():
    with pytest.raises(ValueError, match=r"std holds 0.0 at \[1\].*numpy.maximum"):
        nll_gaussian([0.0, 1.0], [0.0, 1.0], [1.0, 0.0])


@pytest.mark.parametrize("levels", [0.5, [], [1.2], [[0.5]], [95]])
def test_bad_levels_of_the_curve(levels):
    with pytest.raises(ValueError, match="levels="):
        calibration_error([0.0], 0.0, 1.0, levels=levels)
    with pytest.raises(ValueError, match=r"norm='mae' must be one of 'l1', 'l2', 'max'"):
        calibration_error([0.0], 0.0, 1.0, norm="mae")


@pytest.mark.parametrize("df", [2.5, 4.0, 30.0])
def test_scores_of_students_t_are_the_integral_and_the_density(df):
    y, mean, std = 0.7, -0.2, 1.3
    law = stats.t(df, mean, std * np.sqrt((df - 2) / df))
    below, above = quad(lambda x: law.cdf(x) ** 2, -np.inf, y)[0], quad(lambda x: law.sf(x) ** 2, y, np.inf)[0]
    assert crps_student([y], mean, std, df) == pytest.approx(below + above, rel=1e-6)
    assert nll_student([y], mean, std, df) == pytest.approx(-law.logpdf(y), rel=1e-12)


def test_students_t_goes_over_into_the_gaussian(data):
    y, mean, std = data["y"], data["mean"], data["std"]
    for student, gaussian in ((crps_student, crps_gaussian), (nll_student, nll_gaussian)):
        np.testing.assert_allclose(student(y, mean, std, 1e7), gaussian(y, mean, std), rtol=1e-5)
        assert student(y, mean, std, np.inf) == gaussian(y, mean, std)
        raw = student(y, mean, std, 5.0, multioutput="raw_values")
        np.testing.assert_allclose(raw.mean(), student(y, mean, std, 5.0))


def test_students_t_without_spread():
    assert crps_student([0.0, 1.0], [0.0, 3.0], 0.0, 3.0) == 1.0
    with pytest.raises(ValueError, match="no density"):
        nll_student([0.0], 0.0, 0.0, 3.0)
    for score in (crps_student, nll_student):
        with pytest.raises(ValueError, match=r"df=2 must be a number above 2"):
            score([0.0], 0.0, 1.0, 2)
