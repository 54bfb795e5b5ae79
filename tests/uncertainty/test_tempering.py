"""Temperature and floor of probabilities, each against an independent answer."""

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import norm

from kstonet.uncertainty.tempering import (
    HOTTEST,
    Tempering,
    best_temperature,
    best_tempering,
    fresh_temperature,
    fresh_tempering,
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
    assert fresh_temperature(sure / 10, codes) == 1.0  # not by rows that are nearly its own
    assert best_temperature(sure, 1 - codes) == pytest.approx(HOTTEST, rel=1e-3)  # always wrong


def mislabelled(n, share, seed, spread=4.0):
    """Logits, and labels of which a share is drawn from frequencies that differ between the classes."""
    rng = np.random.default_rng(seed)
    logits = spread * rng.normal(size=(n, 3)) + np.array([0.0, 1.0, -2.0])
    codes = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    frequencies = np.bincount(codes) / n
    return logits, np.where(rng.uniform(size=n) < share, rng.choice(3, size=n, p=frequencies), codes), frequencies


@pytest.mark.parametrize(("share", "temperature"), [(0.05, 1.0), (0.2, 0.5), (0.5, 3.0)])
def test_a_known_share_of_wrong_labels_is_found(share, temperature):
    """At 20,000 rows its standard error is below 0.006; four are allowed."""
    logits, codes, frequencies = mislabelled(20_000, share, seed=0)
    found = best_tempering(temperature * logits, codes)
    np.testing.assert_allclose(found.floor, share * frequencies, atol=0.024)
    assert found.temperature == pytest.approx(temperature, rel=0.15)
    assert best_temperature(temperature * logits, codes, floor=found.floor) == pytest.approx(found.temperature, rel=1e-3)
    assert fresh_tempering(temperature * logits, codes).temperature == found.temperature  # below one, too
    assert best_temperature(temperature * logits, codes) > 1.2 * found.temperature  # alone it has to do for both


def test_right_labels_have_no_floor():
    """A parameter that is not needed gains 5 in log-likelihood with a probability below 0.001, at the end of its range."""
    found = [best_tempering(*mislabelled(500, 0.0, seed)[:2]) for seed in range(20)]
    assert all(one.floor is None for one in found)
    logits, codes, _ = mislabelled(500, 0.0, 0)
    assert found[0].temperature == best_temperature(logits, codes)
    assert fresh_tempering(logits / 3.0, codes).temperature == 1.0


def test_weights_are_repetitions_to_a_floor():
    logits, codes, _ = mislabelled(1500, 0.3, seed=1)
    counts = np.random.default_rng(0).integers(0, 4, size=1500)
    weighted = best_tempering(logits, codes, counts.astype(float))
    repeated = best_tempering(np.repeat(logits, counts, axis=0), np.repeat(codes, counts))
    np.testing.assert_allclose(weighted.floor, repeated.floor, atol=2e-3)


def test_probabilities_above_a_floor():
    tempering, logits = Tempering(2.0, np.array([0.02, 0.03, 0.05])), 1e4 * np.random.default_rng(0).normal(size=(20, 3))
    p = tempering.probabilities(logits)
    np.testing.assert_allclose(p, 0.9 * softmax(logits / 2.0, axis=1) + tempering.floor)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_allclose(tempering.log_probabilities(logits), np.log(p))
