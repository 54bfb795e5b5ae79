"""What all metrics promise."""

from __future__ import annotations

import numpy as np
import pytest
from metric_data import (
    CLASSIFICATION,
    REGRESSION,
    classification,
    regression,
)

from kstonet import metrics
from kstonet.metrics import (
    brier_score,
    crps_gaussian,
)


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
