"""Temperature, log-odds and drawn labels, each against an independent answer."""

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import norm

from kstonet.layers.log_odds import log_odds, log_odds_variance
from kstonet.uncertainty.logits import (
    HOTTEST,
    best_temperature,
    drawn_labels,
    out_of_sample_temperature,
)


def labelled(n, classes, seed, temperature=1.0):
    """Logits that are ``temperature`` times the true ones, and labels of the true ones."""
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, classes))
    drawn = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)  # the Gumbel trick: softmax probabilities
    return temperature * logits, drawn


@pytest.mark.parametrize("classes", [2, 4])
def test_the_temperature_is_that_of_a_grid_search(classes):
    logits, codes = labelled(60, classes, seed=1, temperature=2.0)
    weights = np.random.default_rng(2).uniform(0.1, 3.0, size=60)
    grid = np.exp(np.linspace(-2.0, 2.0, 4001))

    def posterior(t):
        p = softmax(logits / t, axis=1)[np.arange(60), codes]
        return 60 * np.average(np.log(p), weights=weights) + norm.logpdf(np.log(t))

    best = grid[np.argmax([posterior(t) for t in grid])]
    assert best_temperature(logits, codes, weights) == pytest.approx(best, rel=2e-3)


@pytest.mark.parametrize("temperature", [0.25, 1.0, 8.0])
def test_a_known_temperature_is_found(temperature):
    """At 20,000 rows its standard error is below 2 %; four are allowed."""
    logits, codes = labelled(20_000, 3, seed=0, temperature=temperature)
    assert best_temperature(logits, codes) == pytest.approx(temperature, rel=0.08)


def test_size_and_repetition_of_weights():
    logits, codes = labelled(200, 3, seed=3, temperature=3.0)
    counts = np.random.default_rng(0).integers(0, 4, size=200)
    weighted = best_temperature(logits, codes, counts.astype(float))
    assert best_temperature(logits, codes, 7.0 * counts) == pytest.approx(weighted, rel=1e-6)
    repeated = best_temperature(np.repeat(logits, counts, axis=0), np.repeat(codes, counts))
    assert repeated == pytest.approx(weighted, rel=0.01)  # the prior weighs against rows, of which there are more or fewer


def test_classes_without_an_error_do_not_make_a_model_certain():
    codes = np.arange(100) % 2
    sure = np.column_stack([np.zeros(100), 20.0 * (2 * codes - 1)])
    assert best_temperature(sure, codes) == pytest.approx(1.0, abs=0.01)
    assert 0.3 < best_temperature(sure / 10, codes) < 1.0  # a probability of 0.88, and always right: sharpened
    assert out_of_sample_temperature(sure / 10, codes) == 1.0  # not by rows that are nearly its own
    assert best_temperature(sure, 1 - codes) == pytest.approx(HOTTEST, rel=1e-3)  # always wrong


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
