"""Which map of the target is chosen: where the truth is known, and where nothing may be chosen."""

import numpy as np
import pytest

from kstonet.problem import Problem, Rows
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.tuning.target_maps import chosen_map


def rows(seed, n=300):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return rng, X, X[:, 0] + 0.7 * np.sin(2 * X[:, 1])


def chosen(X, y, weights=None, kind=NumericTargets):
    return chosen_map(Problem.of(Rows(X, y, weights), kind))


@pytest.mark.parametrize("seed", range(3))
def test_multiplicative_errors_ask_for_the_logarithm(seed):
    rng, X, signal = rows(seed)
    kind, why = chosen(X, np.exp(signal + 0.5 * rng.normal(size=len(X))))
    assert kind == "log"
    assert "learned as its logarithm: left-out predictions have 0." in why


def test_counts_ask_for_the_root_or_the_logarithm():
    rng, X, signal = rows(0, 600)
    assert chosen(X, rng.poisson(np.exp(1.0 + 0.8 * signal)).astype(float))[0] in ("sqrt", "log")


@pytest.mark.parametrize("seed", range(3))
def test_skewed_targets_with_additive_errors_stay_as_they_are(seed):
    rng, X, _ = rows(seed)
    X = np.exp(X)
    y = X @ [1.0, 0.5, 0.2, 0.0] + 0.3 * rng.normal(size=len(X))
    kind, why = chosen(X, y - y.min())
    assert kind == "none"
    assert "the target is learned as it is" in why


def test_pure_noise_stays_as_it_is():
    for seed in range(8):
        rng, X, _ = rows(seed, 150)
        assert chosen(X, np.exp(rng.normal(size=len(X))))[0] == "none"


def test_what_no_map_is_for():
    rng, X, signal = rows(0)
    y = np.exp(signal + 0.5 * rng.normal(size=len(X)))
    assert chosen(X, y - 1.0) == ("none", "")  # negative numbers
    assert chosen(X, signal - signal.min()) == ("none", "")  # not skewed
    assert chosen(X, np.column_stack([y, y])) == ("none", "")
    assert chosen(X, np.ones(len(X))) == ("none", "")
    assert chosen(X, y > 1.0, kind=ClassTargets) == ("none", "")


def test_weights_count_and_a_unit_does_not_matter():
    rng, X, signal = rows(1)
    y = np.exp(signal + 0.5 * rng.normal(size=len(X)))
    assert chosen(X, y, np.full(len(X), 3.0))[0] == chosen(X, y)[0] == "log"
    assert chosen(X, 1000.0 * y)[0] == "log"
    weights = np.where(y > np.quantile(y, 0.5), 0.0, 1.0) + 1e-9  # the small targets alone are not skewed
    assert chosen(X, y, weights)[0] == "none"
