"""Where training starts: units of both signs for every target, so that no start is a trap."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.datasets import make_full_row_rank
from kstonet.initialisation import initial_latents
from kstonet.layers.activations import get_activation

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
CLASSES = np.eye(2)[RNG.integers(2, size=60)]
TARGETS = {"one target": X[:, :1], "two classes": CLASSES, "three targets": X[:, :3] @ RNG.normal(size=(3, 3))}


@pytest.mark.parametrize("size", [2, 5])
@pytest.mark.parametrize("kind", ["one target", "two classes"])
def test_every_start_has_units_of_both_signs(kind, size):
    targets = TARGETS[kind]
    for seed in range(40):
        (values,) = initial_latents(np.random.default_rng(seed), X, targets, (size,), get_activation("softplus"))
        for target in (targets - targets.mean(axis=0)).T:
            assert len(set(np.sign(target @ values))) == 2


def test_a_unit_is_turned_round_only_where_all_have_one_sign():
    """The sign of a unit is that of the first number drawn for it, but for one unit of a start whose numbers share a sign."""
    target, turned = TARGETS["one target"], 0
    for seed in range(40):
        (values,) = initial_latents(np.random.default_rng(seed), X, target, (3,), get_activation("tanh"))
        weights = np.random.default_rng(seed).normal(size=3)
        flipped = np.sign(target[:, 0] @ values) != np.sign(weights)
        one_sign = len(set(np.sign(weights))) == 1
        assert flipped.sum() == one_sign
        turned += one_sign
    assert 2 <= turned <= 20  # expected: a quarter


def test_one_unit_and_constant_targets_have_no_signs():
    for targets, size in ((X[:, :1], 1), (np.ones((60, 1)), 3), (TARGETS["three targets"], 4)):
        (values,) = initial_latents(np.random.default_rng(0), X, targets, (size,), get_activation("softplus"))
        assert values.shape == (60, size)
        assert np.isfinite(values).all()


def test_no_restart_is_trapped():
    """With three units a quarter of plain random starts have one sign; their test errors are a tenth larger."""
    X, y = make_full_row_rank(400, n_features=50, random_state=0)
    errors = []
    for seed in range(12):
        network = KStoNetRegressor((3,), tuning="none", residuals=None, max_iter=15, random_state=seed).fit(X[:200], y[:200])
        errors.append(np.mean((network.predict(X[200:]) - y[200:]) ** 2))
    assert max(errors) < 1.05 * np.median(errors)
