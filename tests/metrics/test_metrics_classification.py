"""Probabilities of classes, against loops and scikit-learn."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_data import (
    Z,
    properties,
)
from sklearn.calibration import calibration_curve as sklearn_calibration_curve
from sklearn.metrics import brier_score_loss

from kstonet.metrics import (
    brier_score,
    classwise_ece,
    expected_calibration_error,
    reliability_curve,
)


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
