"""The uncertainty of a head of many classes against the exact one, and the memory and time of very many classes."""

import numpy as np
import pytest
from scipy.special import softmax

import kstonet.layers.heads as heads
from kstonet.layers.activations import get_activation
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.log_odds import OneVsRestUncertainty, contrast_variance, log_odds, log_odds_variance
from kstonet.layers.moments import FIRST_LAYER, REGRESSION, Moments
from kstonet.layers.regression import RegressionUncertainty


def head_of(classes, units=4, n=600, seed=0):
    """A fitted head with what it was fitted on."""
    rng = np.random.default_rng(seed)
    inputs = rng.normal(size=(n, units))
    logits = inputs @ rng.normal(size=(units, classes))
    labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    labels[:classes] = np.arange(classes)
    head = CategoricalHead.new(units, classes, get_activation("tanh"), "ridge", 1e-4)
    return head.refit(inputs, labels), inputs, labels


def moments_at(n, units, seed=1):
    rng = np.random.default_rng(seed)
    roots = 0.2 * rng.normal(size=(n, units, units))
    return Moments(rng.normal(size=(n, units)), {FIRST_LAYER: roots @ roots.transpose(0, 2, 1)})


@pytest.mark.parametrize("classes", [3, 8, 20])
def test_one_regression_against_the_rest_is_near_the_exact_covariance(monkeypatch, classes):
    head, inputs, labels = head_of(classes)
    exact = head.uncertainty(inputs, labels)
    monkeypatch.setattr(heads, "LARGEST_INFORMATION", 0)
    simple = head.uncertainty(inputs, labels)
    assert isinstance(exact, RegressionUncertainty)
    assert isinstance(simple, OneVsRestUncertainty)
    moments = moments_at(50, 4)
    logits = exact.propagate(moments).mean
    expected, found = (layer.log_odds_variances(moments, logits) for layer in (exact, simple))
    np.testing.assert_allclose(found[FIRST_LAYER], expected[FIRST_LAYER], rtol=1e-8)
    ratio = np.sqrt(found[REGRESSION] / expected[REGRESSION])
    assert 0.9 < np.median(ratio) < 1.0
    assert (ratio > 0.7).all()
    assert (ratio < 1.05).all()


def test_variances_of_log_odds_without_a_matrix():
    """Against the gradient of every class written out; rows that are sure of a class included."""
    rng = np.random.default_rng(0)
    logits = np.vstack([rng.normal(size=(20, 5)), 60.0 * rng.normal(size=(5, 5))])
    roots = rng.normal(size=(25, 5, 5))
    covariance = roots @ roots.transpose(0, 2, 1)
    expected = np.empty_like(logits)
    for k in range(5):
        others = np.delete(np.arange(5), k)
        gradient = np.zeros_like(logits)
        gradient[:, k] = 1.0
        gradient[:, others] = -softmax(logits[:, others], axis=1)
        expected[:, k] = np.einsum("na,nab,nb->n", gradient, covariance, gradient)
    np.testing.assert_allclose(log_odds_variance(logits, covariance), expected, rtol=1e-8)
    diagonal = np.ones_like(logits)
    np.testing.assert_allclose(
        contrast_variance(logits, diagonal, lambda v: v), log_odds_variance(logits, np.tile(np.eye(5), (25, 1, 1))), rtol=1e-8
    )
    assert np.isfinite(log_odds(1e5 * logits)).all()
