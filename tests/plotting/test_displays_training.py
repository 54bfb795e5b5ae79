"""Displays of the training and of the sources of variance: what their artists hold."""

import numpy as np
import pytest
from drawing import FAST, axes, labels

from kstonet import KStoNetRegressor
from kstonet.plotting import (
    TrainingPathDisplay,
    VarianceSourcesDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.colors import to_hex  # noqa: E402

pytestmark = pytest.mark.filterwarnings("error")


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
    without = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    first = TrainingPathDisplay.from_estimator(model, parts=True)
    second = TrainingPathDisplay.from_estimator(without, parts=True, name="unwatched", ax=first.axes_)
    third = TrainingPathDisplay.from_estimator(dnn, parts=True, ax=first.axes_)
    assert second.validation_ is None
    assert labels(first.ax_) == ["KStoNetRegressor", "unwatched", "DNNRegressor", "training rows", "validation rows"]
    np.testing.assert_array_equal(third.validation_.get_ydata(), [record["val_loss"] for record in dnn.history_])
    assert labels(first.axes_[1]) == ["impute", "first layer", "regressions", "intervals", "training"]
    assert [text.get_text() for text in first.axes_[1].get_yticklabels()] == ["KStoNetRegressor", "unwatched", "DNNRegressor"]
    for row, (display, fitted) in enumerate([(first, model), (second, without), (third, dnn)]):
        end = 0.0
        for part, container in display.bars_.items():
            key = "seconds" if part == "training" else f"seconds_{part.replace(' ', '_')}"
            (patch,) = container.patches
            assert patch.get_width() == pytest.approx(sum(record.get(key, 0.0) for record in fitted.history_))
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
