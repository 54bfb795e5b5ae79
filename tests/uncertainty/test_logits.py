"""Log-odds and drawn labels, each against an independent answer."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax

from kstonet.layers.log_odds import log_odds, log_odds_variance
from kstonet.uncertainty.logits import drawn_labels


def test_log_odds_are_those_of_the_probabilities():
    logits = np.random.default_rng(0).normal(scale=3.0, size=(50, 4))
    np.testing.assert_allclose(log_odds(logits), logit(softmax(logits, axis=1)), rtol=1e-9)
    assert np.isfinite(log_odds(1e4 * logits)).all()


@pytest.mark.parametrize("classes", [2, 4])
def test_the_variance_of_log_odds_by_monte_carlo(classes):
    """100,000 draws: a variance has a relative standard error of 0.0045; five of them, and the curvature of log-odds."""
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(3, classes))
    roots = 0.05 * rng.normal(size=(3, classes, classes))
    covariance = roots @ roots.transpose(0, 2, 1)
    expected = log_odds_variance(logits, covariance)
    for i in range(3):
        draws = rng.multivariate_normal(logits[i], covariance[i], size=100_000)
        np.testing.assert_allclose(log_odds(draws).var(axis=0), expected[i], rtol=0.03)
    np.testing.assert_allclose(log_odds_variance(logits, 3.0 * covariance), 3.0 * expected)


def test_drawn_labels_have_their_probabilities():
    """40,000 draws per row kind: five standard errors of a share, 0.0025 at most."""
    p = np.repeat([[0.2, 0.5, 0.3], [0.9, 0.05, 0.05]], 40_000, axis=0)
    drawn = drawn_labels(np.random.default_rng(0), p, None)
    for block, expected in ((drawn[:40_000], p[0]), (drawn[40_000:], p[-1])):
        np.testing.assert_allclose(np.bincount(block, minlength=3) / 40_000, expected, atol=5 * 0.0025)


@pytest.mark.parametrize("n", [2, 3, 40])
def test_every_class_is_drawn_among_the_rows_that_count(n):
    logits = np.column_stack([np.full(n, 400.0), np.zeros(n)])
    logits[-1, 1] = 1.0  # the likeliest row for a class that is never drawn
    drawn = drawn_labels(np.random.default_rng(0), softmax(logits, axis=1), None)
    assert sorted(set(drawn)) == [0, 1]
    weights = np.ones(n + 1)
    weights[0] = 0.0
    p = np.vstack([[0.0, 1.0], np.tile([1.0, 0.0], (n, 1))])
    assert set(drawn_labels(np.random.default_rng(0), p, weights)[1:]) == {0, 1}
    assert expit(400.0) == 1.0  # so the first case is one without chance
