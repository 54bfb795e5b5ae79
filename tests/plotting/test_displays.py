"""The displays: what their artists hold, where they are drawn, what they refuse."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, binomtest
from sklearn.datasets import load_breast_cancer, load_linnerud
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.baselines import DNNRegressor
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.metrics import calibration_curve, coverage, expected_calibration_error, reliability_curve
from kstonet.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    ReliabilityDisplay,
    TrainingPathDisplay,
    VarianceSourcesDisplay,
    WidthErrorDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.colors import to_hex  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")
FAST = {"max_iter": 6, "n_average": 3, "n_imputation_steps": 5, "random_state": 0}
PREDICTIVE = [IntervalDisplay, CoverageDisplay, WidthErrorDisplay, VarianceSourcesDisplay]


@pytest.fixture(autouse=True)
def _no_figure_survives():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = make_measurement_error(400, random_state=0)
    return X[:150], y[:150], X[150:], y[150:]


@pytest.fixture(scope="module")
def model(data):
    X, y, X_test, y_test = data
    return KStoNetRegressor(**FAST).fit(X, y, X_val=X_test, y_val=y_test)


@pytest.fixture(scope="module")
def several():
    X, Y = load_linnerud(return_X_y=True)
    return KStoNetRegressor(**FAST).fit(X, Y), X, Y


@pytest.fixture(scope="module")
def classifier():
    X, y = load_breast_cancer(return_X_y=True)
    return KStoNetClassifier(**FAST).fit(X[:150], y[:150]), X[150:], y[150:]


@pytest.fixture(scope="module")
def dnn(data):
    X, y, X_test, y_test = data
    return DNNRegressor((4,), max_epochs=8, random_state=0).fit(X, y, X_val=X_test, y_val=y_test)


def axes():
    return Figure().subplots()


def bars(container):
    """Lower and upper ends of bars, (n, 2)."""
    return np.array([[patch.get_y(), patch.get_y() + patch.get_height()] for patch in container.patches])


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


# -- intervals -----------------------------------------------------------------------------------------------------------------


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
    named = KStoNetRegressor(**FAST).fit(frame, y)
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
    model = KStoNetRegressor(**FAST).fit(X, y)
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


# -- training ------------------------------------------------------------------------------------------------------------------


def test_the_path_is_the_history(model):
    display = TrainingPathDisplay.from_estimator(model, ax=axes())
    np.testing.assert_array_equal(display.train_.get_ydata(), [record["loss"] for record in model.history_])
    np.testing.assert_array_equal(display.validation_.get_ydata(), [record["validation_loss"] for record in model.history_])
    np.testing.assert_array_equal(display.train_.get_xdata(), np.arange(1, 7))
    score = TrainingPathDisplay.from_estimator(model, metric="score", against="seconds", log=True, ax=axes())
    np.testing.assert_array_equal(score.train_.get_ydata(), [record["score"] for record in model.history_])
    spent = [sum(value for key, value in record.items() if key.startswith("seconds")) for record in model.history_]
    np.testing.assert_allclose(score.train_.get_xdata(), np.cumsum(spent))
    assert (score.ax_.get_ylabel(), score.ax_.get_yscale()) == ("score", "log")


def test_several_trainings_with_their_seconds(model, dnn, data):
    X, y, *_ = data
    without = KStoNetRegressor(**FAST).fit(X, y)
    first = TrainingPathDisplay.from_estimator(model, parts=True)
    second = TrainingPathDisplay.from_estimator(without, parts=True, name="unwatched", ax=first.axes_)
    third = TrainingPathDisplay.from_estimator(dnn, parts=True, ax=first.axes_)
    assert second.validation_ is None
    assert labels(first.ax_) == ["KStoNetRegressor", "unwatched", "DNNRegressor", "training rows", "validation rows"]
    np.testing.assert_array_equal(third.validation_.get_ydata(), [record["val_loss"] for record in dnn.history_])
    assert labels(first.axes_[1]) == ["impute", "first layer", "regressions", "training"]
    assert [text.get_text() for text in first.axes_[1].get_yticklabels()] == ["KStoNetRegressor", "unwatched", "DNNRegressor"]
    for row, (display, fitted) in enumerate([(first, model), (second, without), (third, dnn)]):
        end = 0.0
        for part, container in display.bars_.items():
            key = "seconds" if part == "training" else f"seconds_{part.replace(' ', '_')}"
            (patch,) = container.patches
            assert patch.get_width() == pytest.approx(sum(record[key] for record in fitted.history_))
            assert patch.get_x() == pytest.approx(end)
            assert patch.get_y() + patch.get_height() / 2 == pytest.approx(row)
            end += patch.get_width()
        assert end == pytest.approx(display.seconds[-1])
    same = [display.bars_["impute"].patches[0].get_facecolor() for display in (first, second)]
    assert same[0] == same[1]
    assert len({to_hex(display.train_.get_color()) for display in (first, second, third)}) == 3


# -- variance ------------------------------------------------------------------------------------------------------------------


def test_sources_stack_to_the_variance(model, data):
    _, _, X, y = data
    display = VarianceSourcesDisplay.from_estimator(model, X, y, ax=axes())
    total = np.sort(model.predict_var(X))
    sources = model.predict_dist(X).variance_by_source
    below = np.zeros(len(X))
    for source, area in display.areas_.items():
        step = area.get_data()
        np.testing.assert_array_equal(step.baseline, below)
        np.testing.assert_allclose(step.values - step.baseline, sources[source][display.rows_], atol=1e-9)
        below = step.values
    np.testing.assert_allclose(below, total)
    shares = VarianceSourcesDisplay.from_estimator(model, X, shares=True, n_points=11, ax=axes())
    np.testing.assert_allclose(list(shares.areas_.values())[-1].get_data().values, np.ones(11))
    np.testing.assert_allclose(model.predict_var(X[shares.rows_]), total[np.linspace(0, 249, 11).round().astype(int)])
    assert f"noise ({100 * sources['noise'].sum() / total.sum():.0f} %)" in labels(display.ax_)


def test_no_variance_has_no_shares():
    display = VarianceSourcesDisplay.from_sources({"a": [0.0, 0.0], "b": [0.0, 3.0]}, shares=True, ax=axes())
    np.testing.assert_array_equal(display.areas_["b"].get_data().values, [0.0, 1.0])


# -- what all share ------------------------------------------------------------------------------------------------------------


def test_one_target_of_several(several):
    model, X, Y = several
    mean, std = model.predict(X, return_std=True)
    for target in (1, -2):
        display = IntervalDisplay.from_estimator(model, X, Y, target=target, ax=axes())
        np.testing.assert_allclose(bars(display.intervals_[0]), model.predict_interval(X)[:, 1])
        curve = CoverageDisplay.from_predictions(Y, mean, std, target=target, ax=axes())
        np.testing.assert_allclose(curve.observed, calibration_curve(Y[:, 1], mean[:, 1], std[:, 1]).observed)
        bounds = model.predict_interval(X, curve.nominal)[:, 1]
        inside = (bounds[:, 0] <= Y[:, 1:2]) & (Y[:, 1:2] <= bounds[:, 1])
        own = CoverageDisplay.from_estimator(model, X, Y, target=target, ax=axes())
        np.testing.assert_allclose(own.observed, inside.mean(axis=0))
        errors = WidthErrorDisplay.from_estimator(model, X, Y, target=target, against="std", ax=axes())
        np.testing.assert_allclose(errors.error, np.abs(Y - mean)[:, 1])
        np.testing.assert_allclose(errors.width, std[:, 1])
        parts = VarianceSourcesDisplay.from_estimator(model, X, target=target, ax=axes())
        np.testing.assert_allclose(sum(parts.sources.values()), std[:, 1] ** 2)
    frame = pd.DataFrame(Y, columns=["chins", "situps", "jumps"])
    assert IntervalDisplay.from_estimator(model, X, frame, target=1, ax=axes()).ax_.get_ylabel() == "situps"


@pytest.mark.parametrize("kind", PREDICTIVE)
def test_several_targets_need_a_choice(several, kind):
    with pytest.raises(ValueError, match=r"target=None, but there are 3 targets; choose .* target=0 to target=2"):
        kind.from_estimator(*several)
    with pytest.raises(ValueError, match=r"target=3 must be the index of one of the 3 targets"):
        kind.from_estimator(*several, target=3)
    with pytest.raises(ValueError, match=r"target='chins' must be the index"):
        kind.from_estimator(*several, target="chins")


def test_models_inside_pipelines_and_searches(data):
    X, y, X_test, y_test = data
    pipeline = make_pipeline(StandardScaler(), KStoNetRegressor(**FAST)).fit(X, y)
    search = GridSearchCV(pipeline, {"kstonetregressor__C": [1.0]}, cv=2).fit(X, y)
    inner = search.best_estimator_[-1]
    display = CoverageDisplay.from_estimator(search, X_test, y_test, ax=axes())
    expected = CoverageDisplay.from_estimator(inner, search.best_estimator_[0].transform(X_test), y_test, ax=axes())
    np.testing.assert_array_equal(display.observed, expected.observed)
    assert labels(display.ax_)[0] == "KStoNetRegressor"
    feature = IntervalDisplay.from_estimator(pipeline, X_test, y_test, feature=0, ax=axes())
    np.testing.assert_array_equal(feature.mean_.get_xdata(), X_test[feature.rows_, 0])  # as the user knows it
    assert len(TrainingPathDisplay.from_estimator(search, ax=axes()).train) == 6
    alone = make_pipeline(KStoNetRegressor(**FAST)).fit(X, y)
    assert VarianceSourcesDisplay.from_estimator(alone, X_test, ax=axes()).areas_


def test_any_regressor_with_standard_deviations(data):
    X, y, X_test, y_test = data
    model = BayesianRidge().fit(X, y)
    mean, std = model.predict(X_test, return_std=True)
    display = CoverageDisplay.from_estimator(model, X_test, y_test, ax=axes())
    np.testing.assert_allclose(display.observed, calibration_curve(y_test, mean, std).observed)
    for kind in PREDICTIVE[:3]:
        with pytest.raises(TypeError, match=r"model=LinearRegression has neither predict_dist\(X\) nor predict\(X, return_std"):
            kind.from_estimator(LinearRegression().fit(X, y), X_test, y_test)
    with pytest.raises(TypeError, match="model=BayesianRidge has no predict_dist"):
        VarianceSourcesDisplay.from_estimator(model, X_test)


def drawn(display_of, ax):
    """Draw the display on the axes, and the figure; return the display."""
    display = display_of(ax)
    ax.figure.figure.draw_without_rendering()
    return display


EVERY = {
    "intervals": lambda model, X, y, ax: IntervalDisplay.from_estimator(model, X, y, coverage=(0.5, 0.95), ax=ax),
    "feature": lambda model, X, y, ax: IntervalDisplay.from_estimator(model, X, y, feature=1, ax=ax),
    "coverage": lambda model, X, y, ax: CoverageDisplay.from_estimator(model, X, y, ax=ax),
    "reliability": lambda model, X, y, ax: ReliabilityDisplay.from_predictions(
        y > 0, np.linspace(0, 1, len(y)), label=True, ax=ax
    ),
    "widths": lambda model, X, y, ax: WidthErrorDisplay.from_estimator(model, X, y, ax=ax),
    "training": lambda model, X, y, ax: TrainingPathDisplay.from_estimator(model, X, y, ax=ax),
    "log": lambda model, X, y, ax: TrainingPathDisplay.from_estimator(model, log=True, ax=ax),
    "sources": lambda model, X, y, ax: VarianceSourcesDisplay.from_estimator(model, X, y, ax=ax),
    "shares": lambda model, X, y, ax: VarianceSourcesDisplay.from_estimator(model, X, y, shares=True, ax=ax),
}


@pytest.mark.parametrize("size", [(6.4, 4.8), (3.2, 2.6)])
@pytest.mark.parametrize("name", EVERY)
def test_the_legend_hides_no_data(model, data, name, size):
    _, _, X, y = data
    ax = Figure(figsize=size, layout="constrained").subplots()
    drawn(lambda ax: EVERY[name](model, X, y, ax), ax)
    box = ax.get_legend().get_window_extent()
    points = [np.column_stack(line.get_data()) for line in ax.lines if len(line.get_xdata()) and not hasattr(line, "get_slope")]
    for patch in ax.patches:
        corners = patch.get_path().vertices
        points.append(patch.get_patch_transform().transform(corners))
    for collection in ax.collections:
        points += [path.vertices for path in collection.get_paths()]
    heights = ax.transData.transform(np.concatenate(points))[:, 1]
    assert np.nanmax(heights) <= box.y0 + 1  # pixel
    assert box.x1 <= ax.bbox.x1


@pytest.mark.parametrize("name", EVERY)
def test_given_axes_leave_pyplot_alone(model, data, name):
    _, _, X, y = data
    settings = dict(plt.rcParams)
    ax = Figure().subplots()
    display = EVERY[name](model, X, y, ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    assert plt.get_fignums() == []
    assert dict(plt.rcParams) == settings


def test_without_axes_there_is_a_new_figure():
    other = plt.figure()
    display = CoverageDisplay.from_predictions([1.0, 2.0], 0.0, 1.0)
    assert display.figure_ is plt.gcf()
    assert display.figure_ is not other
    display.plot()
    assert len(plt.get_fignums()) == 3


@pytest.mark.parametrize("n", [1, 2])
def test_hardly_any_rows(model, data, n):
    _, _, X, y = data
    for name in EVERY:
        drawn(lambda ax, name=name: EVERY[name](model, X[:n], y[:n], ax), axes())
    lone = drawn(lambda ax: TrainingPathDisplay.from_history([{"loss": 1.0}], ax=ax), axes())
    assert lone.train_.get_marker() == "o"


def test_subfigures_and_no_legend(model, data):
    _, _, X, y = data
    left, right = plt.figure(figsize=(8, 3), layout="constrained").subfigures(1, 2)
    display = drawn(lambda ax: CoverageDisplay.from_estimator(model, X, y, ax=ax), left.subplots())
    assert display.figure_ is left
    ax = right.subplots()
    for kind in PREDICTIVE:
        assert kind.from_estimator(model, X, y, legend=False, ax=ax).ax_.get_legend() is None


def test_importing_the_displays_imports_no_matplotlib():
    code = "import sys, kstonet.plotting; print('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "False"


@pytest.mark.parametrize("name", EVERY)
def test_without_matplotlib_the_error_says_what_to_install(model, data, name, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"Display\.from_\w+ needs matplotlib.*pip install kstonet\[plot\]"):
        EVERY[name](model, data[2], data[3], None)
    with pytest.raises(ImportError, match=r"CoverageDisplay\.plot needs matplotlib"):
        CoverageDisplay([0.5], [0.5], 10).plot()


Y = [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: IntervalDisplay.from_predictions(Y, Y, -1.0), r"std holds -1.0 at \[0, 0\].*cannot be negative"),
        (lambda: IntervalDisplay.from_predictions(Y, [1.0], 1.0), r"mean has shape \(1,\), y_true needs \(3,\)"),
        (lambda: IntervalDisplay.from_predictions([1.0, np.nan, 3.0], Y, 1.0), "y_true holds nan at"),
        (lambda: IntervalDisplay.from_predictions([], [], 1.0), r"y_true has shape \(0,\)"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, coverage=95), "coverage=95 must lie strictly between 0 and 1"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, sort="name"), "sort='name' must be one of"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, style="dots"), "style='dots' must be one of"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, n_points=0), "n_points=0 must be a whole number of at least 1"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, n_points=2.5), "n_points=2.5 must be a whole number"),
        (lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, x=[1.0]), r"x has shape \(1,\); it must be \(3,\)"),
        (
            lambda: IntervalDisplay.from_predictions(Y, Y, 1.0, x=Y, sort="width"),
            "sort='width' needs a horizontal axis that counts",
        ),
        (lambda: IntervalDisplay.from_intervals(Y, [[0, 1]]), r"intervals has shape \(1, 2\);.*need \(3, 2\)"),
        (lambda: IntervalDisplay.from_intervals([1.0], [[2.0, 1.0]]), "lower bounds above the upper"),
        (lambda: CoverageDisplay.from_predictions(Y, Y, 1.0, levels=[0.5, 1.0]), r"levels=\[0.5, 1.0\] must lie strictly"),
        (lambda: CoverageDisplay.from_intervals(Y, [[0, 1]], [0.9]), r"levels=\[0.9\] need \(3, 2, 1\)"),
        (lambda: ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.9], label=2), "label=2 is not among the labels"),
        (lambda: ReliabilityDisplay.from_predictions([0, 1], [0.1, 0.9], n_bins=0), "n_bins=0 must be a whole number"),
        (lambda: WidthErrorDisplay.from_predictions(Y, Y, 1.0, against="range"), "against='range' must be one of"),
        (
            lambda: WidthErrorDisplay.from_predictions(Y, Y, 1.0, coverage=[0.5, 0.9]),
            r"coverage=\[0.5, 0.9\] must be one number",
        ),
        (lambda: WidthErrorDisplay.from_predictions(Y, Y, 1.0, n_bins=0), "n_bins=0 must be a whole number"),
        (lambda: TrainingPathDisplay.from_history([]), "history is empty"),
        (lambda: TrainingPathDisplay.from_history([{"loss": 1.0}], metric="mse"), "metric='mse' is not in every record.*loss"),
        (lambda: TrainingPathDisplay.from_history([{"loss": 1.0}], parts=True), "parts=True needs seconds in the history"),
        (
            lambda: TrainingPathDisplay.from_history([{"loss": 1.0}], against="seconds"),
            "against='seconds' needs seconds in the history",
        ),
        (
            lambda: TrainingPathDisplay.from_history([{"loss": 1.0, "seconds": 1.0}], parts=True, ax=axes()),
            "parts=True draws two panels, ax holds 1",
        ),
        (lambda: VarianceSourcesDisplay.from_sources({}), "sources is empty"),
        (lambda: VarianceSourcesDisplay.from_sources({"a": []}), "sources holds no rows"),
        (lambda: VarianceSourcesDisplay.from_sources({"a": [-1.0]}), r"sources\['a'\] holds -1.0 at \[0\].*cannot be negative"),
        (
            lambda: VarianceSourcesDisplay.from_sources({"a": Y, "b": [1.0]}),
            r"sources\['b'\] has shape \(1,\); it must be \(3,\)",
        ),
    ],
)
def test_errors_name_the_argument(call, message):
    with pytest.raises(ValueError, match=message):
        call()
    assert plt.get_fignums() == []  # nothing half drawn


def test_errors_of_models(model, data, classifier):
    _, _, X, y = data
    with pytest.raises(ValueError, match=r"y holds 10 rows and 1 targets, the predictions 250 rows and 1 targets"):
        CoverageDisplay.from_estimator(model, X, y[:10])
    with pytest.raises(ValueError, match=r"feature='a' is a name, but X has no column names; .* 0 to 4"):
        IntervalDisplay.from_estimator(model, X, y, feature="a")
    with pytest.raises(ValueError, match="feature=5 must be the name of a column of X or its index, 0 to 4"):
        IntervalDisplay.from_estimator(model, X, y, feature=5)
    frame = pd.DataFrame(X, columns=list("abcde"))
    with pytest.raises(ValueError, match="feature='f' is not among the columns of X: a, b, c, d, e"):
        IntervalDisplay.from_estimator(model, frame, y, feature="f")
    with pytest.raises(TypeError, match="model=KStoNetRegressor has no predict_proba"):
        ReliabilityDisplay.from_estimator(model, X, y)
    with pytest.raises(TypeError, match="model=KStoNetClassifier has neither predict_dist"):
        IntervalDisplay.from_estimator(*classifier)
    with pytest.raises(TypeError, match="model=KStoNetRegressor has no history_; fit it first"):
        TrainingPathDisplay.from_estimator(KStoNetRegressor())


def test_widths_without_bounds_are_refused(data):
    X, y, X_test, y_test = data
    model = KStoNetRegressor(**FAST).fit(X, y).calibrate(X_test[:5], y_test[:5])
    with pytest.raises(ValueError, match=r"coverage=0.95 gives intervals without bounds.*against='std'"):
        WidthErrorDisplay.from_estimator(model, X_test, y_test)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = drawn(lambda ax: IntervalDisplay.from_estimator(model, X_test, y_test, ax=ax), axes())
    assert "unbounded" in labels(display.ax_)[0]
