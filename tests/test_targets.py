"""What is predicted: numbers with their scale, classes with their codes, each with the scores of scikit-learn."""

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.metrics import accuracy_score, log_loss, r2_score

from kstonet.layers.activations import get_activation
from kstonet.layers.heads import CategoricalHead
from kstonet.targets import ClassTargets, MappedTargets, NumericTargets
from kstonet.uncertainty.tempering import Tempering

RNG = np.random.default_rng(0)
Y = RNG.normal(loc=5.0, scale=[1.0, 100.0], size=(30, 2))
LABELS = RNG.choice(["no", "perhaps", "yes"], size=30)


def test_numbers_come_back_in_their_units():
    weights = RNG.uniform(size=30)
    targets = NumericTargets.of(Y, weights)
    outputs = targets.outputs(Y)
    np.testing.assert_allclose(np.average(outputs, axis=0, weights=weights), 0.0, atol=1e-12)
    np.testing.assert_allclose(targets.in_units(outputs), Y)
    assert (targets.n_outputs, targets.single) == (2, False)
    single = NumericTargets.of(Y[:, 0])
    np.testing.assert_allclose(single.in_units(single.outputs(Y[:, 0])), Y[:, 0])
    assert single.in_units(single.outputs(Y[:, 0])).shape == (30,)
    plain = NumericTargets.of(Y, standardize=False)
    np.testing.assert_array_equal(plain.outputs(Y), Y)


def test_what_rounding_leaves_of_a_constant_target_is_small():
    targets = NumericTargets.of(np.full(14, -0.1e99), RNG.uniform(size=14))
    assert np.abs(targets.outputs(np.full(14, -0.1e99))).max() < 1.0
    np.testing.assert_allclose(NumericTargets.of(np.full(14, 3.0)).outputs(np.full(14, 5.0)), 2.0)  # in its own units


def test_scores_and_losses_of_numbers():
    targets = NumericTargets.of(Y)
    outputs = targets.outputs(Y)
    predictions = outputs + RNG.normal(size=(4, 30, 2))
    assert targets.score(predictions[0], outputs) == pytest.approx(r2_score(outputs, predictions[0]))
    losses = targets.losses(predictions, outputs)
    for i in range(30):
        mean = predictions[:, i].mean(axis=0)
        assert losses[i] == pytest.approx(np.mean((mean - outputs[i]) ** 2))
    assert np.isfinite(targets.score(np.zeros((3, 1)), np.ones((3, 1))))  # a constant target


def test_classes_are_codes_and_indicators():
    targets = ClassTargets.of(LABELS)
    codes = targets.outputs(LABELS)
    np.testing.assert_array_equal(targets.classes[codes], LABELS)
    assert targets.n_outputs == 3
    columns = targets.columns(codes)
    np.testing.assert_array_equal(columns.argmax(axis=1), codes)
    np.testing.assert_array_equal(columns.sum(axis=1), 1.0)
    assert list(targets.unknown(np.array(["yes", "maybe", "zzz", "no"]))) == ["maybe", "zzz"]
    assert isinstance(targets.new_head("dense", 4, get_activation("tanh"), "lasso", 0.1), CategoricalHead)


def test_scores_losses_and_probabilities_of_classes():
    targets = ClassTargets.of(LABELS)
    codes = targets.outputs(LABELS)
    logits = RNG.normal(size=(4, 30, 3))
    assert targets.score(logits[0], codes) == accuracy_score(codes, logits[0].argmax(axis=1))
    p = targets.probabilities(logits)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(p, softmax(logits, axis=2).mean(axis=0))
    assert targets.losses(logits, codes).mean() == pytest.approx(log_loss(codes, p))


def test_temperatures_of_probabilities():
    """One iterate is softmax(logits/T); any temperature keeps the order, and a hot one says nothing."""
    targets = ClassTargets.of(LABELS)
    logits = RNG.normal(size=(1, 30, 3))
    np.testing.assert_allclose(targets.probabilities(logits, Tempering(2.5)), softmax(logits[0] / 2.5, axis=1))
    several = RNG.normal(size=(4, 30, 3))
    order = targets.probabilities(several).argsort(axis=1)
    np.testing.assert_array_equal(targets.probabilities(several, Tempering(3.0)).argsort(axis=1), order)
    np.testing.assert_allclose(targets.probabilities(several, Tempering(1e9)), 1 / 3, atol=1e-6)
    extreme = targets.probabilities(1e4 * several, Tempering(0.5))
    assert np.isfinite(extreme).all()


def test_predictions_are_held_within_their_limits():
    y = np.array([1.0, 2.0, 5.0])
    for targets, range_ in ((NumericTargets.of(y), (0.0, 6.0)), (MappedTargets("log").of(y), (0.0, 6.0))):
        limited = targets.with_limits(y)
        np.testing.assert_allclose(limited.in_units(targets.outputs(np.array([3.0, 5.5]))), [3.0, 5.5])
        far = np.array([[-50.0], [50.0]])
        np.testing.assert_allclose(limited.in_units(far), range_, atol=1e-12)
        assert not np.allclose(targets.in_units(far), range_, atol=1.0)
        slopes = limited.derivatives(np.array([[[-50.0], [0.0], [50.0]]]))[0, :, 0, 0]
        assert slopes[0] == slopes[2] == 0.0
        assert slopes[1] > 0.0
    both = NumericTargets.of(Y).with_limits(Y)
    assert both.limits.shape == (2, 2)
    assert ((both.limits[0] < Y.min(axis=0)) & (both.limits[1] > Y.max(axis=0))).all()
