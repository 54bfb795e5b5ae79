"""The sampler against the exact conditional of models where it is known."""

import numpy as np
import pytest

from kstonet.imputation import sghmc
from kstonet.imputation.step_size import automatic_step_sizes
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.network import Network


class GaussianPrior:
    """A first layer with mean zero and unit variance, so that the conditional is Gaussian in closed form."""

    def __init__(self, n, units):
        self.n, self.units = n, units

    def mean(self, inputs=None):
        return np.zeros((self.n, self.units))

    def log_density(self, inputs, outputs):
        return -0.5 * (outputs**2).sum(axis=1)

    def score_output(self, inputs, outputs):
        return -outputs

    def curvature_output(self):
        return np.ones(self.units)


@pytest.mark.parametrize("friction", [0.1, 1.0])
def test_draws_have_the_exact_conditional_mean_and_covariance(friction):
    """Y₁ ~ N(0, I), y = w·Y₁ + e with identity activation: the posterior is Gaussian. 4,000 independent chains.

    The discretisation of the paper's update biases the variance by O(step): a small step leaves the test at sampling error.
    Bounds are five standard errors (plus the bias bound), so a false alarm has probability below 1e-4, and the seed is fixed.
    """
    n, variance = 4000, 0.5
    w = np.array([[1.0, -2.0]])
    head = DenseLayer(w, np.zeros(1), variance, get_activation("identity"))
    network = Network((GaussianPrior(n, 2), head))
    y = np.full((n, 1), 1.5)
    precision = np.eye(2) + w.T @ w / variance
    covariance = np.linalg.inv(precision)
    mean = covariance @ w[0] * 1.5 / variance
    conditionals = network.conditionals(None, y)
    rng = np.random.default_rng(0)
    state = sghmc.init((np.zeros((n, 2)),))
    sizes = tuple(0.02 * size for size in automatic_step_sizes(conditionals, state.latents, friction))
    for _ in range(3000 if friction == 1.0 else 1200):
        state, info = sghmc.step(rng, state, conditionals, sizes, friction=friction)
        assert not info.diverged
    draws = state.latents[0]
    error = 5 * np.sqrt(np.diag(covariance) / n)
    assert (np.abs(draws.mean(axis=0) - mean) < error).all()
    np.testing.assert_allclose(np.cov(draws.T), covariance, atol=5 * covariance.max() * np.sqrt(2 / n) + 0.02)


@pytest.mark.parametrize("activation", ["tanh", "softplus", "relu", "gelu"])
@pytest.mark.parametrize("variance", [1.0, 1e-3, 1e-9])
@pytest.mark.parametrize("scale", [0.1, 30.0])
def test_automatic_steps_never_diverge(activation, variance, scale):
    """From far away, with steep weights and tiny noise, where a fixed step explodes."""
    n = 200
    rng = np.random.default_rng(1)
    head = DenseLayer(scale * rng.normal(size=(1, 5)), np.zeros(1), variance, get_activation(activation))
    network = Network((GaussianPrior(n, 5), head))
    y = head.mean(2.0 * rng.normal(size=(n, 5)))  # within reach of a saturating activation
    conditionals = network.conditionals(None, y)
    state = sghmc.init((2.0 * rng.normal(size=(n, 5)),))
    before = np.abs(y - head.mean(state.latents[0])).mean()
    sizes = automatic_step_sizes(conditionals, state.latents, 0.1)
    for _ in range(200):
        state, info = sghmc.step(rng, state, conditionals, sizes, friction=0.1)
        assert not info.diverged
    assert np.abs(state.latents[0]).max() < 100
    assert np.abs(y - head.mean(state.latents[0])).mean() <= before + np.sqrt(variance)


def test_zero_temperature_follows_the_gradient_only():
    head = DenseLayer(np.ones((1, 2)), np.zeros(1), 0.1, get_activation("identity"))
    network = Network((GaussianPrior(3, 2), head))
    conditionals = network.conditionals(None, np.ones((3, 1)))
    state = sghmc.init((np.zeros((3, 2)),))
    sizes = automatic_step_sizes(conditionals, state.latents, 1.0)
    for _ in range(500):
        state, _ = sghmc.step(np.random.default_rng(0), state, conditionals, sizes, friction=1.0, temperature=0.0)
    np.testing.assert_allclose(state.latents[0], 1 / 2.1, atol=1e-6)  # the posterior mode


def test_same_seed_same_draws():
    head = DenseLayer(np.ones((1, 2)), np.zeros(1), 0.1, get_activation("tanh"))
    network = Network((GaussianPrior(4, 2), head))
    conditionals = network.conditionals(None, np.ones((4, 1)))
    runs = []
    for _ in range(2):
        state = sghmc.init((np.zeros((4, 2)),))
        rng = np.random.default_rng(5)
        for _ in range(10):
            state, _ = sghmc.step(rng, state, conditionals, (np.full((4, 1), 0.01),))
        runs.append(state.latents[0])
    np.testing.assert_array_equal(*runs)
