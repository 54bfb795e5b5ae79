"""Displays of intervals, coverage, reliability and widths: what their artists hold."""

import numpy as np
import pandas as pd
import pytest
from drawing import FAST, axes, bars, labels
from scipy.stats import binom, binomtest
from sklearn.linear_model import BayesianRidge

from kstonet import KStoNetRegressor
from kstonet.metrics import calibration_curve, coverage, coverage_by_quantile, expected_calibration_error, reliability_curve
from kstonet.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    PartialCoverageDisplay,
    ReliabilityDisplay,
    WidthErrorDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")

pytestmark = pytest.mark.filterwarnings("error")


def test_bars_are_the_models_intervals_at_twenty_points(model, data):
    _, _, X, y = data
    display = IntervalDisplay.from_estimator(model, X, y, ax=axes())
    rows = display.rows_
    assert len(rows) == 20
    assert rows[0] == 0
    assert rows[-1] == len(X) - 1
    np.testing.assert_allclose(bars(display.intervals_[0]), model.predict_interval(X[rows]))
    np.testing.assert_allclose(display.mean_.get_ydata(), model.predict(X[rows]))
    np.testing.assert_array_equal(display.mean_.get_xdata(), np.arange(1, 21))
    inside = display.covered_.get_xydata()
    np.testing.assert_array_equal(y[rows][inside[:, 0].astype(int) - 1], inside[:, 1])
    assert len(inside) == round(20 * coverage(y[rows], model.predict_interval(X[rows])))
    assert len(inside) + len(display.missed_.get_xdata()) == 20
    assert display.covered_.get_marker() == "*"
    assert f"observed, inside ({len(inside)})" in labels(display.ax_)
    assert display.ax_.get_xlabel() == "test point (20 of 250)"


def test_levels_are_shades_from_wide_and_light_to_narrow_and_dark(model, data):
    _, _, X, y = data
    display = IntervalDisplay.from_estimator(model, X, y, coverage=(0.5, 0.95, 0.8), n_points=7, ax=axes())
    np.testing.assert_array_equal(display.coverage, [0.95, 0.8, 0.5])
    for level, artist in zip(display.coverage, display.intervals_, strict=True):
        np.testing.assert_allclose(bars(artist), model.predict_interval(X[display.rows_], level))
    darkness = [np.mean(artist.patches[0].get_facecolor()[:3]) for artist in display.intervals_]
    assert darkness == sorted(darkness, reverse=True)
    assert labels(display.ax_)[:3] == ["95 % interval", "80 % interval", "50 % interval"]


@pytest.mark.parametrize("sort", ["prediction", "width"])
def test_points_can_be_sorted(model, data, sort):
    _, _, X, y = data
    display = IntervalDisplay.from_estimator(model, X, y, sort=sort, ax=axes())
    bounds = bars(display.intervals_[0])
    key = display.mean_.get_ydata() if sort == "prediction" else bounds[:, 1] - bounds[:, 0]
    assert (np.diff(key) >= -1e-9).all()
    np.testing.assert_allclose(bounds, model.predict_interval(X[display.rows_]))


def test_many_points_are_steps():
    y = np.arange(100.0)
    display = IntervalDisplay.from_predictions(y, y, 1.0, n_points=100, ax=axes())
    data = display.intervals_[0].get_data()
    np.testing.assert_allclose(data.values - data.baseline, 2 * 1.959964, rtol=1e-6)
    np.testing.assert_array_equal(data.edges, np.arange(101) + 0.5)


def test_the_only_feature_makes_a_band(data):
    X, y, *_ = data
    one = BayesianRidge().fit(X[:, :1], y)
    display = IntervalDisplay.from_estimator(one, X[:, :1], y, feature=0, ax=axes())
    assert (np.diff(X[display.rows_, 0]) >= 0).all()
    assert len(display.rows_) == len(X)
    mean, std = one.predict(X[display.rows_, :1], return_std=True)
    np.testing.assert_array_equal(display.mean_.get_xdata(), X[display.rows_, 0])
    np.testing.assert_allclose(display.mean_.get_ydata(), mean)
    corners = display.intervals_[0].get_paths()[0].vertices
    for bound in (mean - 1.959964 * std, mean + 1.959964 * std):
        assert all(
            np.isclose(corners, point, atol=1e-5).all(axis=1).any() for point in zip(X[display.rows_, 0], bound, strict=True)
        )
    assert display.ax_.get_xlabel() == "feature 0"


def test_one_of_several_features_by_index_or_name(model, data):
    _, _, X, y = data
    frame = pd.DataFrame(X, columns=list("abcde"))
    named = KStoNetRegressor(tuning="none", **FAST).fit(frame, y)
    by_name = IntervalDisplay.from_estimator(named, frame, pd.Series(y, name="yield"), feature="c", ax=axes())
    by_index = IntervalDisplay.from_estimator(named, frame, y, feature=-3, ax=axes())
    np.testing.assert_array_equal(by_name.rows_, by_index.rows_)
    assert (by_name.ax_.get_xlabel(), by_name.ax_.get_ylabel()) == ("c", "yield")
    segments = np.array(by_name.intervals_[0].get_segments())  # one line per point: between points nothing is known
    np.testing.assert_array_equal(segments[:, 0, 0], X[by_name.rows_, 2])
    np.testing.assert_allclose(segments[:, :, 1], named.predict_interval(frame.iloc[by_name.rows_]))
    assert len(by_name.rows_) == 60
    band = IntervalDisplay.from_estimator(named, frame, y, feature="c", style="band", ax=axes())
    assert len(band.rows_) == len(X)
    assert band.mean_.get_linestyle() == "None"


def test_intervals_as_given_may_have_no_bounds():
    bounds = np.array([[[-np.inf, 0], [np.inf, 3]], [[-np.inf, 1], [np.inf, 3]]])
    display = IntervalDisplay.from_intervals([1.0, 9.0], bounds, coverage=(0.99, 0.8), ax=axes())
    assert len(display.missed_.get_xdata()) == 0
    np.testing.assert_array_equal(display.mean_.get_ydata(), [1.5, 2.0])
    low, high = display.ax_.get_ylim()
    assert (bars(display.intervals_[0])[:, 0] < low).all()
    assert (bars(display.intervals_[0])[:, 1] > high).all()
    assert -10 < low < 0 < 9 < high < 20
    assert labels(display.ax_)[0] == "99 % interval (unbounded)"
    unknown = IntervalDisplay.from_intervals([1.0], [[-np.inf, np.inf]], ax=axes())
    assert np.isnan(unknown.mean_.get_ydata()).all()


def test_intervals_of_one_target_as_given():
    bounds = np.arange(12.0).reshape(2, 3, 2)
    display = IntervalDisplay.from_intervals(bounds.mean(axis=2), bounds, mean=bounds[..., 0], target=1, ax=axes())
    np.testing.assert_array_equal(bars(display.intervals_[0]), bounds[:, 1])
    np.testing.assert_array_equal(display.mean_.get_ydata(), bounds[:, 1, 0])


# -- coverage ------------------------------------------------------------------------------------------------------------------


def test_coverage_is_the_calibration_curve(model, data):
    """Of a mean and a standard deviation the Gaussian's, of an estimator that of its own intervals."""
    _, _, X, y = data
    mean, std = model.predict(X, return_std=True)
    gaussian = calibration_curve(y, mean, std)
    bounds = model.predict_interval(X, gaussian.nominal)
    own = ((bounds[:, 0] <= y[:, None]) & (y[:, None] <= bounds[:, 1])).mean(axis=0)
    for display, observed in (
        (CoverageDisplay.from_predictions(y, mean, std, ax=axes()), gaussian.observed),
        (CoverageDisplay.from_estimator(model, X, y, ax=axes()), own),
        (CoverageDisplay.from_intervals(y, bounds, gaussian.nominal, ax=axes()), own),
    ):
        np.testing.assert_array_equal(display.line_.get_xdata(), gaussian.nominal)
        np.testing.assert_allclose(display.line_.get_ydata(), observed)
    assert display.n_samples == len(y)


def test_coverage_sees_the_conformal_calibration(data):
    X, y, X_test, y_test = data
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    before = CoverageDisplay.from_estimator(model, X_test, y_test, ax=axes()).observed
    model.calibrate(X_test, y_test)
    display = CoverageDisplay.from_estimator(model, X_test, y_test, levels=[0.9, 0.5], ax=axes())
    np.testing.assert_array_equal(display.nominal, [0.5, 0.9])
    expected = [coverage(y_test, model.predict_interval(X_test, level)) for level in (0.5, 0.9)]
    np.testing.assert_allclose(display.observed, expected)
    assert not np.allclose(before[[9, 17]], expected)


@pytest.mark.parametrize("n", [1, 20, 500])
def test_the_band_holds_95_percent_of_binomial_shares(n):
    display = CoverageDisplay([0.5], [0.5], n).plot(axes())
    corners = display.band_.get_paths()[0].vertices
    for p in (0.05, 0.3, 0.95):
        here = corners[np.isclose(corners[:, 0], p), 1]
        low, high = round(n * here.min()), round(n * here.max())
        mass = binom.cdf(high, n, p) - binom.cdf(low - 1, n, p)
        assert mass >= 0.95
        assert binom.cdf(low, n, p) > 0.025  # no wider than needed
        assert binom.sf(high - 1, n, p) > 0.025


def test_models_share_axes_diagonal_and_band(model, data):
    _, _, X, y = data
    first = CoverageDisplay.from_estimator(model, X, y, name="ours", ax=axes())
    second = CoverageDisplay.from_predictions(y, y.mean(), y.std(), name="mean only", ax=first.ax_)
    third = CoverageDisplay.from_predictions(y[:50], 0.0, 1.0, ax=first.ax_)
    assert second.ax_ is first.ax_
    assert second.band_ is None
    assert third.band_ is not None  # of other n
    assert len({display.line_.get_color() for display in (first, second, third)}) == 3
    wanted = ["ours", "mean only", "observed", "binomial 95 % band (n = 250)", "ideal", "binomial 95 % band (n = 50)"]
    assert sorted(labels(first.ax_)) == sorted(wanted)
    assert labels(first.ax_)[:3] == wanted[:3]
    plain = CoverageDisplay.from_predictions(y, 0.0, 1.0, band=False, ref_line=False, color="black", ax=axes())
    assert len(plain.ax_.lines) == 1
    assert plain.line_.get_color() == "black"


# -- reliability ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("label", [None, 1])
def test_reliability_is_the_metrics_curve(classifier, label):
    model, X, y = classifier
    proba = model.predict_proba(X)
    display = ReliabilityDisplay.from_estimator(model, X, y, label=label, n_bins=4, ax=axes())
    curve = reliability_curve(y, proba, label=label, n_bins=4)
    np.testing.assert_allclose(display.line_.get_xydata(), np.column_stack([curve.predicted, curve.observed]))
    for segment, share, observed in zip(display.bars_.get_segments(), curve.weight, curve.observed, strict=True):
        count = round(share * len(y))
        exact = binomtest(round(observed * count), count).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose(segment[:, 1], exact, atol=1e-9)
    if label is None:
        assert display.error == pytest.approx(expected_calibration_error(y, proba, n_bins=4))
    assert ("top class" if label is None else "class 1") in display.ax_.get_xlabel()


def test_reliability_of_several_models(classifier):
    model, X, y = classifier
    first = ReliabilityDisplay.from_estimator(model, X, y, label=0, name="a", ax=axes())
    second = ReliabilityDisplay.from_predictions(y, np.full(len(y), 0.5), label=0, name="b", ax=first.ax_, bars=False)
    assert second.bars_ is None
    assert [text.split(" (")[0] for text in labels(first.ax_)] == ["a", "b", "ideal"]
    assert first.line_.get_color() != second.line_.get_color()


# -- width and error -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("against", ["half-width", "std"])
def test_width_and_error(model, data, against):
    _, _, X, y = data
    display = WidthErrorDisplay.from_estimator(model, X, y, against=against, coverage=0.8, n_bins=5, ax=axes())
    mean, std = model.predict(X, return_std=True)
    bounds = model.predict_interval(X, 0.8)
    width = std if against == "std" else (bounds[:, 1] - bounds[:, 0]) / 2
    np.testing.assert_allclose(display.points_.get_xdata(), width)
    np.testing.assert_allclose(display.points_.get_ydata(), np.abs(y - mean))
    frame = pd.DataFrame({"width": width, "error": np.abs(y - mean)}).sort_values("width")
    groups = frame.groupby(np.arange(len(y)) // 50)["error"]
    np.testing.assert_allclose(display.means_.get_ydata(), groups.mean())
    ends = np.array(display.bars_.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends[:, 1] - ends[:, 0], 2 * 1.959964 * groups.sem(), rtol=1e-6)


@pytest.mark.parametrize("against", ["half-width", "std"])
def test_the_line_of_expectation_is_that_of_gaussian_errors(against):
    rng = np.random.default_rng(0)
    std = rng.uniform(0.5, 2.0, size=20_000)
    y = std * rng.normal(size=len(std))
    display = WidthErrorDisplay.from_predictions(y, 0.0, std, against=against, coverage=0.9, ax=axes())
    ratio = display.means_.get_ydata() / display.means_.get_xdata()
    # The relative standard error of a mean of 2,000 half-normal errors is 0.017; 4.5 of them.
    np.testing.assert_allclose(ratio, display.slope, rtol=0.076)
    for line in display.ax_.lines:
        if line.get_label() == "expected (Gaussian)":
            assert line.get_slope() == pytest.approx(display.slope)
            assert line.get_xy1()[1] == pytest.approx(display.slope * line.get_xy1()[0])  # through the origin
            break
    else:
        pytest.fail("no line of expectation")
    assert ("edge of the 90 % interval" in labels(display.ax_)) == (against == "half-width")


def test_equal_widths_make_one_bin():
    display = WidthErrorDisplay.from_predictions(np.arange(40.0), 0.0, 1.0, ax=axes())
    assert len(display.means_.get_xdata()) == 1
    other = WidthErrorDisplay.from_predictions(np.arange(40.0), 0.0, np.arange(40.0), name="b", ax=display.ax_)
    assert len(other.means_.get_xdata()) == 8  # five rows each
    assert labels(display.ax_) == ["mean of a bin", "b, mean of a bin", "expected (Gaussian)", "edge of the 95 % interval"]


# -- parts of the rows -------------------------------------------------------------------------------------------------------


def test_points_are_the_coverage_of_parts(model, data):
    _, _, X, y = data
    bounds = model.predict_interval(X, 0.8)
    display = PartialCoverageDisplay.from_estimator(model, X, y, by=1, coverage=0.8, n_parts=4, ax=axes())
    expected = coverage_by_quantile(y, bounds, X[:, 1], n_parts=4)
    np.testing.assert_allclose(display.points_.get_ydata(), expected.coverage)
    low, high = bars(display.boxes_)[0]
    n = int(expected.count[0])
    np.testing.assert_allclose([low, high], binom.ppf([0.025, 0.975], n, 0.8) / n)
    assert display.ax_.get_xlabel() == "feature 1"
    assert display.ax_.get_xticklabels()[0].get_text() == f"≤ {expected.parts[0]:.3g}"
    by_mean = PartialCoverageDisplay.from_estimator(model, X, y, coverage=0.8, n_parts=4, ax=axes())
    np.testing.assert_allclose(
        by_mean.points_.get_ydata(), coverage_by_quantile(y, bounds, model.predict(X), n_parts=4).coverage
    )


def test_groups_and_two_models_in_one_picture(model, data):
    _, _, X, y = data
    groups = np.where(X[:, 0] > 0, "b", "a")
    first = PartialCoverageDisplay.from_estimator(model, X, y, groups=groups, name="own", ax=axes())
    wide = np.tile([-1e6, 1e6], (len(y), 1))
    second = PartialCoverageDisplay.from_intervals(y, wide, 0.9, groups=groups, name="wide", ax=first.ax_)
    assert second.boxes_ is None
    assert second.points_.get_ydata().tolist() == [1.0, 1.0]
    assert (second.points_.get_xdata() > first.points_.get_xdata()).all()
    assert labels(first.ax_)[:2] == ["own", "wide"]
    assert [tick.get_text() for tick in first.ax_.get_xticklabels()] == ["a", "b"]
    with pytest.raises(ValueError, match="either values"):
        PartialCoverageDisplay.from_intervals(y, wide, 0.9)
