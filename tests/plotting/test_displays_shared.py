"""What all displays share: models they take, where they are drawn, what they refuse."""

import subprocess
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from drawing import FAST, PREDICTIVE, axes, bars, labels
from sklearn.linear_model import BayesianRidge, LinearRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import KStoNetRegressor
from kstonet.metrics import calibration_curve
from kstonet.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    PartialCoverageDisplay,
    ReliabilityDisplay,
    TrainingPathDisplay,
    VarianceSourcesDisplay,
    WidthErrorDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")


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
    pipeline = make_pipeline(StandardScaler(), KStoNetRegressor(tuning="none", **FAST)).fit(X, y)
    search = GridSearchCV(pipeline, {"kstonetregressor__C": [1.0]}, cv=2).fit(X, y)
    inner = search.best_estimator_[-1]
    display = CoverageDisplay.from_estimator(search, X_test, y_test, ax=axes())
    expected = CoverageDisplay.from_estimator(inner, search.best_estimator_[0].transform(X_test), y_test, ax=axes())
    np.testing.assert_array_equal(display.observed, expected.observed)
    assert labels(display.ax_)[0] == "KStoNetRegressor"
    feature = IntervalDisplay.from_estimator(pipeline, X_test, y_test, feature=0, ax=axes())
    np.testing.assert_array_equal(feature.mean_.get_xdata(), X_test[feature.rows_, 0])  # as the user knows it
    assert len(TrainingPathDisplay.from_estimator(search, ax=axes()).train) == 6
    alone = make_pipeline(KStoNetRegressor(tuning="none", **FAST)).fit(X, y)
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
    "parts": lambda model, X, y, ax: PartialCoverageDisplay.from_estimator(model, X, y, by=1, n_parts=3, ax=ax),
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
        (lambda: IntervalDisplay.from_predictions(Y, [1.0], 1.0), r"mean has shape \(1,\), y_true asks for \(3,\)"),
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
        TrainingPathDisplay.from_estimator(KStoNetRegressor(tuning="none"))


def test_widths_without_bounds_are_refused(data):
    X, y, X_test, y_test = data
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    with pytest.warns(UserWarning, match="5 rows cannot tell more than 83% intervals"):
        model.calibrate(X_test[:5], y_test[:5])
    with pytest.raises(ValueError, match=r"coverage=0.95 gives intervals without bounds.*against='std'"):
        WidthErrorDisplay.from_estimator(model, X_test, y_test)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = drawn(lambda ax: IntervalDisplay.from_estimator(model, X_test, y_test, ax=ax), axes())
    assert "unbounded" in labels(display.ax_)[0]
