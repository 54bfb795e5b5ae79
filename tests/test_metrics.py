"""Metrics against integrals, closed forms, loops, scikit-learn and, where installed, scoringrules and uncertainty-toolbox.

Statistical checks have a fixed seed; ``Z`` is the number of standard errors they allow, a false alarm in 150,000.
"""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.integrate import quad
from sklearn.calibration import calibration_curve as sklearn_calibration_curve
from sklearn.metrics import brier_score_loss, d2_pinball_score, mean_absolute_error, mean_pinball_loss

from kstonet import metrics
from kstonet.metrics import (
    brier_score,
    calibration_curve,
    calibration_error,
    classwise_ece,
    coverage,
    crps_gaussian,
    crps_samples,
    crps_student,
    expected_calibration_error,
    mean_width,
    nll_gaussian,
    nll_student,
    pinball_loss,
    pit_values,
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


@pytest.fixture
def data():
    """Two outputs of 40 rows, predicted in every form there is."""
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), rng.uniform(0.3, 2.0, size=(40, 2))
    proba = rng.dirichlet(np.ones(3), size=40)
    return {
        "y": y,
        "mean": mean,
        "std": std,
        "interval": np.stack([mean - std, mean + 0.7 * std], axis=-1),
        "quantiles": mean[..., None] + std[..., None] * stats.norm.ppf(LEVELS),
        "samples": mean[..., None] + std[..., None] * rng.normal(size=(40, 2, 9)),
        "weights": rng.integers(0, 4, size=40),
        "proba": proba,
        "classes": np.array(["ant", "bee", "cow"])[[rng.choice(3, p=p) for p in proba]],
    }


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


# What all metrics promise


@regression
def test_outputs_are_scored_one_by_one(name, data):
    metric, names, options = REGRESSION[name]
    options = {**options, "sample_weight": data["weights"]}
    arrays = [data[key] for key in names]
    raw = np.ravel(metric(*arrays, multioutput="raw_values", **options))
    alone = [metric(*(array[:, j] for array in arrays), **options) for j in range(2)]
    np.testing.assert_allclose(raw, np.ravel(alone), rtol=1e-14)
    np.testing.assert_allclose(metric(*arrays, **options), raw.mean(), rtol=1e-14)
    if name != "calibration_curve":
        assert type(metric(*arrays, **options)) is float
        assert metric(*(array[:, 0] for array in arrays), multioutput="raw_values", **options).shape == (1,)


@regression
def test_a_weight_is_a_count(name, data):
    metric, names, options = REGRESSION[name]
    repeated = [np.repeat(data[key], data["weights"], axis=0) for key in names]
    weighted = metric(*(data[key] for key in names), sample_weight=1e308 / 4 * data["weights"], **options)
    np.testing.assert_allclose(weighted, metric(*repeated, **options), rtol=1e-12)


@classification
def test_a_weight_is_a_count_of_labels(name, data):
    metric, options = CLASSIFICATION[name]
    y, proba, w = data["classes"], data["proba"].round(1), data["weights"]  # ties between probabilities
    proba[:, 2] = 1.0 - proba[:, 0] - proba[:, 1]
    weighted = metric(y, proba, sample_weight=0.3 * w, **options)
    np.testing.assert_allclose(weighted, metric(np.repeat(y, w), np.repeat(proba, w, axis=0), **options), rtol=1e-12)


@regression
def test_order_and_container_do_not_matter_and_nothing_is_changed(name, data):
    metric, names, options = REGRESSION[name]
    arrays = [data[key] for key in names]
    for array in arrays:
        array.setflags(write=False)
    expected = metric(*arrays, **options)
    np.testing.assert_allclose(metric(*(array[::-1] for array in arrays), **options), expected, rtol=1e-12)
    np.testing.assert_array_equal(metric(*(array.tolist() for array in arrays), **options), expected)
    single = metric(*(array.astype(np.float32) for array in arrays), **options)
    np.testing.assert_allclose(single, expected, rtol=1e-5)


@classification
def test_names_of_the_classes_do_not_matter(name, data):
    metric, options = CLASSIFICATION[name]
    y, proba = data["classes"], data["proba"]
    proba.setflags(write=False)
    expected = metric(y, proba, **options)
    order = [2, 0, 1]
    labels = np.array(["ant", "bee", "cow"])[order]
    np.testing.assert_allclose(metric(y[::-1], proba[::-1, order], labels=labels, **options), expected, rtol=1e-12)
    np.testing.assert_array_equal(metric(y.astype(object), proba.tolist(), **options), expected)
    if "label" not in options:
        numbers = np.searchsorted(["ant", "bee", "cow"], y)
        np.testing.assert_array_equal(metric(numbers, proba, **options), expected)
        np.testing.assert_array_equal(metric(7.5 - numbers, proba, labels=[7.5, 6.5, 5.5], **options), expected)


def test_pandas_is_welcome(data):
    pd = pytest.importorskip("pandas")
    index = range(100, 140)  # never to be aligned by
    y, mean, std = (pd.Series(data[key][:, 0], index=index) for key in ("y", "mean", "std"))
    expected = crps_gaussian(y.to_numpy(), mean.to_numpy(), std.to_numpy())
    assert crps_gaussian(y[::-1], mean.to_numpy()[::-1], std[::-1].sort_index(ascending=False)) == pytest.approx(expected)
    classes = pd.Series(data["classes"], dtype="category", index=index)
    assert brier_score(classes, pd.DataFrame(data["proba"])) == brier_score(data["classes"], data["proba"])


@regression
def test_a_nan_is_named(name, data):
    metric, names, options = REGRESSION[name]
    for key in names:
        bad = {**data, key: data[key].copy()}
        bad[key][3] = np.nan
        argument = {"y": "y_true"}.get(key, key)
        with pytest.raises(ValueError, match=rf"^{argument} holds nan at \[3, 0"):
            metric(*(bad[k] for k in names), **options)


@regression
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"multioutput": "mean"}, r"multioutput='mean' must be one of 'uniform_average', 'raw_values'"),
        ({"multioutput": np.ones(2)}, r"multioutput=array"),
        ({"sample_weight": np.ones(39)}, r"sample_weight has shape \(39,\); it must be \(40,\)"),
        ({"sample_weight": -np.ones(40)}, r"sample_weight holds -1.0 at \[0\]"),
        ({"sample_weight": np.zeros(40)}, r"sample_weight is zero everywhere"),
        ({"sample_weight": ["a"] * 40}, r"sample_weight must be an array of real numbers"),
    ],
)
def test_bad_options_are_named(name, options, message, data):
    metric, names, fixed = REGRESSION[name]
    with pytest.raises(ValueError, match=message):
        metric(*(data[key] for key in names), **fixed, **options)


@pytest.mark.parametrize("y", [1.0, [], np.ones((2, 2, 2)), np.ones((3, 0))], ids=["scalar", "empty", "3-D", "no columns"])
def test_bad_shapes_of_y(y):
    with pytest.raises(ValueError, match="y_true has shape"):
        crps_gaussian(y, 0.0, 1.0)


def test_public_names_are_complete():
    assert sorted(metrics.__all__) == metrics.__all__
    for name in metrics.__all__:
        assert ">>> " in getattr(metrics, name).__doc__


# Gaussian predictions


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
    with pytest.raises(ValueError, match=r"mean has shape \(4, 1\), y_true needs \(4,\)"):
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


# Intervals


def test_interval_metrics_by_hand(data):
    y, interval = data["y"], data["interval"]
    inside, width, score = [], [], []
    for value, (low, high) in zip(y.ravel(), interval.reshape(-1, 2), strict=True):
        inside.append(low <= value <= high)
        width.append(high - low)
        penalty = low - value if value < low else value - high if value > high else 0.0
        score.append(high - low + 2 / 0.3 * penalty)
    assert coverage(y, interval) == pytest.approx(np.mean(inside))
    assert mean_width(interval) == pytest.approx(np.mean(width))
    assert winkler_score(y, interval, coverage=0.7) == pytest.approx(np.mean(score))


def test_winkler_is_two_pinball_losses(data):
    y, interval = data["y"], data["interval"]
    assert winkler_score(y, interval, 0.8) == pytest.approx(2 / 0.2 * 2 * pinball_loss(y, interval, [0.1, 0.9]))


def test_bounds_belong_to_the_interval():
    assert coverage([1.0, 2.0], [[1.0, 1.0], [0.0, 2.0]]) == 1.0
    assert winkler_score([1.0, 2.0], [[1.0, 1.0], [0.0, 2.0]], 0.9) == 1.0


def test_coverage_of_the_truth():
    """Binomial, 20,000 draws; and the closed form 2·φ(q)·2/(1 - c) of the expected score of the true interval."""
    y, level = np.random.default_rng(5).normal(size=20_000), 0.9
    q = stats.norm.ppf(0.95)
    interval = np.broadcast_to([-q, q], (20_000, 2))
    assert coverage(y, interval) == pytest.approx(level, abs=Z * math.sqrt(level * (1 - level) / 20_000))
    assert winkler_score(EVEN, interval, level) == pytest.approx(4 / (1 - level) * stats.norm.pdf(q), rel=1e-4)


@properties
@given(low=st.floats(-3, 0), high=st.floats(0, 3), level=st.floats(0.05, 0.95))
def test_interval_and_quantile_scores_are_proper(low, high, level):
    tails = [(1 - level) / 2, (1 + level) / 2]
    best, other = (np.broadcast_to(bounds, (len(EVEN), 2)) for bounds in (stats.norm.ppf(tails), [low, high]))
    assert winkler_score(EVEN, best, level) <= winkler_score(EVEN, other, level) + 1e-6
    assert pinball_loss(EVEN, best, tails) <= pinball_loss(EVEN, other, tails) + 1e-6


def test_infinite_intervals_are_honest():
    interval = [[-np.inf, np.inf], [0.0, 1.0]]
    assert coverage([5.0, 5.0], interval) == 0.5
    assert mean_width(interval) == winkler_score([5.0, 0.5], interval, 0.9) == np.inf
    assert mean_width(interval, sample_weight=[0, 1]) == winkler_score([5.0, 0.5], interval, 0.9, sample_weight=[0, 1]) == 1.0


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        (np.zeros((2, 4)), r"interval has shape \(2, 4\); it must be \(4, 2\) to match y_true.*numpy.stack"),
        (np.zeros((4, 1, 2)), r"interval has shape \(4, 1, 2\); it must be \(4, 2\)"),
        ([[0, 1], [0, 1], [3, 1], [0, 1]], r"lower bound of 3.0 at \[2\] .* upper bound of 1.0.*numpy.sort"),
        ([[0, 1], [np.inf, np.inf], [0, 1], [0, 1]], r"lower bound of inf at \[1\]"),
        ([[0, 1], [-np.inf, -np.inf], [0, 1], [0, 1]], r"lower bound of -inf at \[1\] .* upper bound of -inf"),
    ],
)
def test_bad_intervals_are_named(interval, message):
    with pytest.raises(ValueError, match=message):
        coverage(np.zeros(4), interval)
    with pytest.raises(ValueError, match=message):
        winkler_score(np.zeros(4), interval, 0.9)


def test_bad_intervals_without_y():
    with pytest.raises(ValueError, match=r"interval has shape \(3,\); it must be \(n, 2\) or \(n, k, 2\)"):
        mean_width([1.0, 2.0, 3.0])


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1])
def test_bad_nominal_coverage_is_named(level):
    with pytest.raises(ValueError, match=f"coverage={level!r} must lie strictly between 0 and 1"):
        winkler_score([0.0], [[0.0, 1.0]], level)
    with pytest.raises(ValueError, match=r"coverage=\[0.5, 0.9\] must be a single number"):
        winkler_score([0.0], [[0.0, 1.0]], [0.5, 0.9])


# Quantiles and draws


def test_pinball_loss_is_that_of_scikit_learn(data):
    y, quantiles, w = data["y"], data["quantiles"], data["weights"]
    options = {"sample_weight": w, "multioutput": "raw_values"}
    losses = [mean_pinball_loss(y, quantiles[..., i], alpha=level, **options) for i, level in enumerate(LEVELS)]
    np.testing.assert_allclose(pinball_loss(y, quantiles, LEVELS, **options), np.mean(losses, axis=0))
    for i, level in enumerate(LEVELS):
        np.testing.assert_allclose(pinball_loss(y, quantiles[..., i], level, **options), losses[i])
        np.testing.assert_allclose(pinball_loss(y, quantiles[..., i : i + 1], [level], **options), losses[i])
        constant = np.broadcast_to(np.quantile(y[:, 0], level), len(y))
        skill = 1 - pinball_loss(y[:, 0], quantiles[:, 0, i], level) / pinball_loss(y[:, 0], constant, level)
        assert skill == pytest.approx(d2_pinball_score(y[:, 0], quantiles[:, 0, i], alpha=level))


def test_pinball_loss_at_many_levels_is_half_the_crps(data):
    y, mean, std = (data[key][:, 0] for key in ("y", "mean", "std"))
    levels = (np.arange(4000) + 0.5) / 4000
    quantiles = mean[:, None] + std[:, None] * stats.norm.ppf(levels)
    assert 2 * pinball_loss(y, quantiles, levels) == pytest.approx(crps_gaussian(y, mean, std), rel=1e-4)


@pytest.mark.parametrize("fair", [False, True])
def test_crps_of_draws_by_brute_force(fair, data):
    y, samples = data["y"], data["samples"]
    m = samples.shape[-1]
    pairs = np.abs(samples[..., :, None] - samples[..., None, :]).sum(axis=(-1, -2)) / (m * (m - fair))
    expected = (np.abs(samples - y[..., None]).mean(axis=-1) - 0.5 * pairs).mean(axis=0)
    np.testing.assert_allclose(crps_samples(y, samples, fair=fair, multioutput="raw_values"), expected, rtol=1e-12)
    np.testing.assert_allclose(crps_samples(y + 1e9, samples + 1e9, fair=fair), expected.mean(), rtol=1e-6)


def test_crps_of_draws_is_the_integral_over_their_steps(data):
    y, samples = data["y"][0, 0], np.sort(data["samples"][0, 0])
    knots = np.sort(np.append(samples, y))
    heights = np.searchsorted(samples, knots[:-1], side="right") / len(samples) - (knots[:-1] >= y)
    assert crps_samples([y], [samples]) == pytest.approx(np.sum(heights**2 * np.diff(knots)))


def test_fair_crps_is_unbiased_and_the_other_is_not():
    """Three draws each: the mean over 40,000 observations, against the exact scores; the bias is std/(√π·m)."""
    rng = np.random.default_rng(6)
    y, draws = rng.normal(size=40_000), 0.5 + 2 * rng.normal(size=(40_000, 3))
    exact, bias = crps_gaussian(y, 0.5, 2.0), 2 / math.sqrt(math.pi) / 3
    error = Z * 2.0 / math.sqrt(40_000)  # one score varies by less than 2
    assert crps_samples(y, draws, fair=True) == pytest.approx(exact, abs=error)
    assert crps_samples(y, draws) == pytest.approx(exact + bias, abs=error)
    assert bias > 3 * error


def test_one_draw_is_the_absolute_error(data):
    y, samples = data["y"], data["samples"][..., :1]
    assert crps_samples(y, samples) == pytest.approx(mean_absolute_error(y, samples[..., 0]))
    with pytest.raises(ValueError, match="samples holds one draw per observation, fair=True needs at least two"):
        crps_samples(y, samples, fair=True)


@pytest.mark.parametrize(
    ("quantiles", "levels", "message"),
    [
        (np.zeros((3, 2)), [0.1, 1.5], r"levels=\[0.1, 1.5\] must lie strictly between 0 and 1"),
        (np.zeros((3, 2)), [0.1], r"quantiles has shape \(3, 2\); .* ask for \(3, 1\)"),
        (np.zeros((3, 1)), 0.1, r"quantiles has shape \(3, 1\); .* ask for \(3,\)"),
        (np.zeros((3, 0)), [], r"levels has shape \(0,\)"),
        (np.zeros((3, 1, 1)), [[0.1]], r"levels has shape \(1, 1\)"),
    ],
)
def test_bad_quantiles_are_named(quantiles, levels, message):
    with pytest.raises(ValueError, match=message):
        pinball_loss(np.zeros(3), quantiles, levels)


@pytest.mark.parametrize("samples", [np.zeros(3), np.zeros((2, 3)), np.zeros((3, 0)), np.zeros((3, 2, 2))])
def test_bad_draws_are_named(samples):
    with pytest.raises(ValueError, match=r"samples has shape .*; it must be \(3, m\)"):
        crps_samples(np.zeros(3), samples)


# Probabilities of classes


def calibration_error_by_loops(p, right, n_bins, w):
    """The definition, bins of equal width, as written in the paper."""
    error = 0.0
    for b in range(n_bins):
        inside = [i for i in range(len(p)) if b / n_bins < p[i] <= (b + 1) / n_bins]
        mass = sum(w[i] for i in inside)
        if mass > 0:
            accuracy = sum(w[i] * right[i] for i in inside) / mass
            confidence = sum(w[i] * p[i] for i in inside) / mass
            error += mass / sum(w) * abs(accuracy - confidence)
    return error


@pytest.mark.parametrize("weighted", [False, True])
def test_calibration_errors_by_loops(weighted, data):
    y, proba = data["classes"], data["proba"]
    w = data["weights"] if weighted else np.ones(40)
    options = {"n_bins": 7, "sample_weight": w if weighted else None}
    names = np.array(["ant", "bee", "cow"])
    top = calibration_error_by_loops(proba.max(1), names[proba.argmax(1)] == y, 7, w)
    assert expected_calibration_error(y, proba, **options) == pytest.approx(top)
    each = [calibration_error_by_loops(proba[:, c], names[c] == y, 7, w) for c in range(3)]
    np.testing.assert_allclose(classwise_ece(y, proba, average=None, **options), each)
    assert classwise_ece(y, proba, **options) == pytest.approx(np.mean(each))


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_reliability_curve_is_that_of_scikit_learn(strategy):
    rng = np.random.default_rng(7)
    p = rng.beta(0.6, 0.9, size=600)
    y = rng.random(600) < p
    observed, predicted = sklearn_calibration_curve(y, p, n_bins=12, strategy=strategy)
    curve = reliability_curve(y, p, label=True, n_bins=12, strategy=strategy)
    np.testing.assert_allclose(curve.observed, observed)
    np.testing.assert_allclose(curve.predicted, predicted)
    assert curve.weight.sum() == pytest.approx(1.0)
    if strategy == "quantile":
        np.testing.assert_allclose(curve.weight, 1 / 12)


@pytest.mark.parametrize("norm", ["l1", "l2", "max"])
@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
def test_calibration_error_is_read_off_the_curve(norm, strategy, data):
    y, proba = data["classes"], data["proba"]
    options = {"n_bins": 6, "strategy": strategy, "sample_weight": data["weights"]}
    curve = reliability_curve(y, proba, **options)
    gap = np.abs(curve.observed - curve.predicted)
    expected = {"l1": curve.weight @ gap, "l2": math.sqrt(curve.weight @ gap**2), "max": gap.max()}[norm]
    assert expected_calibration_error(y, proba, norm=norm, **options) == pytest.approx(expected)


def test_edges_and_ties_of_the_bins():
    p = np.array([0.0, 0.25, 0.5, 0.5, 0.75, 1.0])
    uniform = reliability_curve([0, 0, 0, 1, 1, 1], p, label=1, n_bins=4)  # closed on the right, the first on both sides
    np.testing.assert_allclose(uniform.weight, np.array([2, 2, 1, 1]) / 6)
    np.testing.assert_allclose(uniform.predicted, [0.125, 0.5, 0.75, 1.0])
    for strategy in ("uniform", "quantile"):
        alike = reliability_curve([0, 1, 1, 0], [0.3] * 4, label=1, n_bins=4, strategy=strategy)
        np.testing.assert_allclose(alike, [[0.3], [0.5], [1.0]])
    one = reliability_curve([0, 1, 1], [0.1, 0.2, 0.6], label=1, n_bins=1, strategy="quantile")
    np.testing.assert_allclose(one, [[0.3], [2 / 3], [1.0]])
    light = reliability_curve([0, 1], [0.2, 0.7], label=1, n_bins=1, strategy="quantile", sample_weight=[1, 1e-14])
    np.testing.assert_allclose(light, [[0.2], [0.0], [1.0]], atol=1e-12)  # no bin beyond the last


def test_the_scale_of_the_weights_moves_nobody_to_another_bin():
    y, p, w = np.array([0, 1, 0, 1]), np.array([0.1, 0.4, 0.6, 0.9]), np.array([5, 5, 4, 1])  # the third lies on an edge
    options = {"label": 1, "n_bins": 5, "strategy": "quantile"}
    expected = reliability_curve(np.repeat(y, w), np.repeat(p, w), **options)
    for scale in (1.0, 0.2, 1e-7, 3e9):
        np.testing.assert_allclose(reliability_curve(y, p, sample_weight=scale * w, **options), expected)


def test_labels_drawn_from_the_probabilities_are_calibrated():
    """Each of ten bins is binomial; the truth stays within Z standard errors and a sharpened forecast does not."""
    rng = np.random.default_rng(8)
    p = rng.random(20_000)
    y = rng.random(20_000) < p
    for strategy in ("uniform", "quantile"):
        curve = reliability_curve(y, p, label=True, n_bins=10, strategy=strategy)
        error = np.sqrt(curve.predicted * (1 - curve.predicted) / (20_000 * curve.weight))
        assert (np.abs(curve.observed - curve.predicted) < Z * error).all()
        assert expected_calibration_error(y, p, n_bins=10, strategy=strategy) < 0.02
        sharp = p**2 / (p**2 + (1 - p) ** 2)
        assert expected_calibration_error(y, sharp, n_bins=10, strategy=strategy) > 0.05
        assert classwise_ece(y, sharp, n_bins=10, strategy=strategy) > 0.05


@pytest.mark.parametrize("weighted", [False, True])
def test_brier_score_is_that_of_scikit_learn(weighted, data):
    w = data["weights"] if weighted else None
    p = data["proba"][:, 0]
    words = np.where(data["classes"] == "ant", "yes", "no")
    expected = brier_score_loss(words, p, sample_weight=w, pos_label="yes")
    assert brier_score(words, p, sample_weight=w) == pytest.approx(expected)
    assert brier_score(words, np.column_stack([1 - p, p]), sample_weight=w) == pytest.approx(expected)
    assert brier_score(words, 1 - p, labels=["yes", "no"], sample_weight=w) == pytest.approx(expected)
    try:
        multiclass = brier_score_loss(data["classes"], data["proba"], sample_weight=w, labels=["ant", "bee", "cow"])
    except (TypeError, ValueError):
        pytest.skip("scikit-learn 1.6 has no Brier score for more than two classes")
    assert brier_score(data["classes"], data["proba"], sample_weight=w) == pytest.approx(multiclass)


@properties
@given(truth=st.lists(st.floats(0.01, 1), min_size=3, max_size=3), other=st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
def test_brier_score_is_proper(truth, other):
    p, q = np.divide(truth, sum(truth)), np.divide(other, sum(other))
    expected = [brier_score([0, 1, 2], np.tile(forecast, (3, 1)), sample_weight=p) for forecast in (p, q)]
    assert expected[1] - expected[0] == pytest.approx(np.sum((p - q) ** 2), abs=1e-12)


def test_extremes_of_the_brier_score():
    assert brier_score([0, 1, 2], np.eye(3)) == 0.0
    assert brier_score([1, 2, 0], np.eye(3)) == 2.0
    assert brier_score([1, 0], [0.0, 1.0]) == 1.0


def test_a_class_may_be_absent():
    assert brier_score([1, 1], [0.9, 0.8]) == brier_score([True, True], [0.9, 0.8]) == pytest.approx(0.025)
    assert brier_score(["b", "b"], [[0.1, 0.9], [0.2, 0.8]], labels=["a", "b"]) == pytest.approx(0.025)
    np.testing.assert_allclose(classwise_ece([1, 1], [0.9, 0.8], n_bins=1, average=None), [0.15, 0.15])


def test_low_precision_probabilities_are_welcome():
    logits = np.random.default_rng(9).normal(size=(50, 300)).astype(np.float32)
    proba = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert 0 < brier_score(np.zeros(50), proba, labels=range(300)) < 2
    assert brier_score([0, 1], [-1e-9, 1 + 1e-7]) == 0.0


@pytest.mark.parametrize("metric", [brier_score, expected_calibration_error, classwise_ece, reliability_curve])
@pytest.mark.parametrize(
    ("y", "proba", "labels", "message"),
    [
        ([0, 1], [0.2, 1.2], None, r"proba holds 1.2 at \[1\].*predict_proba"),
        ([0, 1], [0.2, np.nan], None, r"proba holds nan at \[1\]"),
        ([0, 1], [[0.2], [0.3]], None, r"proba has shape \(2, 1\)"),
        ([0, 1], [[0.2, 0.8], [0.3, 0.3]], None, r"proba has a row sum of 0.6 at \[1\]"),
        ([0, 1, 1], [0.2, 0.3], None, r"y_true has shape \(3,\); it must be \(2,\)"),
        ([[1, 0], [0, 1]], [[0.2, 0.8], [0.3, 0.7]], None, r"y_true has shape \(2, 2\)"),
        (["a", "a"], [0.2, 0.3], None, r"y_true shows 1 classes, proba has 2.*labels=model.classes_"),
        ([0, 1], [[0.2, 0.8, 0.0]] * 2, None, r"y_true shows 2 classes, proba has 3"),
        ([0, 1], [0.2, 0.3], ["a", "b"], r"y_true holds \[0, 1\], not among the labels \['a', 'b'\]"),
        ([0, 1], [0.2, 0.3], [0, 1, 2], r"labels=\[0, 1, 2\] must name each of the 2 columns"),
        ([0, 1], [0.2, 0.3], [1, 1], r"labels=\[1, 1\] must name"),
        ([0, 1], [0.2, 0.3], [[0, 1]], r"labels=\[\[0, 1\]\] must name"),
        ([0, np.nan], [0.2, 0.3], None, r"y_true holds nan"),
        (np.array(["a", None]), [0.2, 0.3], None, r"y_true mixes labels"),
    ],
)
def test_bad_probabilities_are_named(metric, y, proba, labels, message):
    with pytest.raises(ValueError, match=message):
        metric(y, proba, labels=labels)


@pytest.mark.parametrize("metric", [expected_calibration_error, classwise_ece, reliability_curve])
@pytest.mark.parametrize("options", [{"n_bins": 0}, {"n_bins": 2.5}, {"n_bins": "auto"}, {"strategy": "kmeans"}])
def test_bad_bins_are_named(metric, options):
    (name,) = options
    with pytest.raises(ValueError, match=f"{name}={options[name]!r} must be"):
        metric([0, 1], [0.2, 0.7], **options)


def test_other_bad_options_of_the_classifiers():
    with pytest.raises(ValueError, match=r"average='micro' must be one of 'macro', None"):
        classwise_ece([0, 1], [0.2, 0.7], average="micro")
    with pytest.raises(ValueError, match=r"label='x' is not among the labels \[0, 1\]"):
        reliability_curve([0, 1], [0.2, 0.7], label="x")
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\); it must be \(2,\)"):
        expected_calibration_error([0, 1], [0.2, 0.7], sample_weight=[1, 1, 1])


# Student's t


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


# Other people's packages


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
