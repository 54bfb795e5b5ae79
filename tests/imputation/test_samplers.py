"""One contract for all samplers, and their draws against exact conditionals of small models.

Every observation is an independent chain, so thousands of them give thousands of independent draws. Bounds are five standard
errors with a fixed seed: a false alarm has probability below 1e-5 per comparison, and about 150 comparisons are made. The
momentum update has no accept step; its bias of order O(step) is kept below the sampling error by short steps.
"""

import numpy as np
import pytest

from kstonet.imputation import SAMPLERS
from kstonet.imputation.chain import ChainSettings, run_chain
from kstonet.imputation.gibbs import slice_draw
from kstonet.imputation.step_size import automatic_step_sizes
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.kernel import KernelLayer
from kstonet.network import Network

NAMES = [name for name, kind in SAMPLERS.items() if kind.__module__.startswith("kstonet.")]  # other tests register more
STEPS = {"sghmc": 1200, "mala": 250, "hmc": 40, "gibbs": 25}
SHORTER = {"sghmc": 0.02, "mala": 1.0, "hmc": 1.0, "gibbs": 1.0}  # of the automatic step


class GaussianPrior:
    """A first layer with mean zero and unit variance, so that the conditional is Gaussian in closed form."""

    def __init__(self, n, units):
        self.n, self.units = n, units

    def at(self, rows):
        return self

    def mean(self, inputs=None):
        return np.zeros((self.n, self.units))

    def log_density(self, inputs, outputs):
        return -0.5 * (outputs**2).sum(axis=1)

    def score_output(self, inputs, outputs):
        return -outputs

    def curvature_output(self):
        return np.ones(self.units)


def svr_prior(n, C, epsilon):
    """The density of eq. (SVRdist) around zero."""
    C, epsilon = np.atleast_1d(C), np.atleast_1d(epsilon)
    return KernelLayer((), C, epsilon, fitted=np.zeros((n, len(C))))


def draw(name, network, y, widths, *, n, temperature=1.0, friction=0.1, steps=None, seed=0):
    """The last state of n independent chains started at zero, and the health of the last step."""
    conditionals = network.conditionals(None, y)
    start = tuple(np.zeros((n, width)) for width in widths)
    kind = SAMPLERS[name]
    sizes = automatic_step_sizes(conditionals, start, kind.longest_step(friction))
    sampler = kind(tuple(SHORTER[name] * size for size in sizes), temperature, friction)
    rng, state = np.random.default_rng(seed), sampler.init(start)
    for _ in range(steps or STEPS[name]):
        state, info = sampler.step(rng, state, conditionals)
        assert not info.diverged
    return state.latents, info


def assert_moments(draws, grid, density, bias):
    """Mean, standard deviation and quantiles of scalar draws against a density on a grid."""
    n = len(draws)
    weights = density / density.sum()
    mean = (weights * grid).sum()
    sd = np.sqrt((weights * (grid - mean) ** 2).sum())
    assert abs(draws.mean() - mean) < (5 / np.sqrt(n) + bias) * sd
    fourth = (weights * (grid - mean) ** 4).sum() / sd**4
    assert abs(draws.std() / sd - 1) < 5 * np.sqrt((fourth - 1) / (4 * n)) + bias
    cumulative = np.cumsum(weights)
    for level in (0.05, 0.25, 0.5, 0.75, 0.95):
        share = (draws <= grid[np.searchsorted(cumulative, level)]).mean()
        assert abs(share - level) < 5 * np.sqrt(level * (1 - level) / n) + bias


# -- the contract ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_contract(name):
    """init keeps the positions; step leaves its arguments alone, keeps shapes, reports its health, and follows its seed."""
    n = 50
    rng = np.random.default_rng(0)
    tanh = get_activation("tanh")
    network = Network(
        (
            svr_prior(n, [2.0, 5.0, 1.0], [0.1, 0.0, 0.3]),
            DenseLayer(rng.normal(size=(2, 3)), np.zeros(2), 0.3, tanh),
            DenseLayer(rng.normal(size=(1, 2)), np.zeros(1), 0.1, tanh),
        )
    )
    conditionals = network.conditionals(None, rng.normal(size=(n, 1)))
    start = (rng.normal(size=(n, 3)), rng.normal(size=(n, 2)))
    kept = tuple(values.copy() for values in start)
    sizes = automatic_step_sizes(conditionals, start, SAMPLERS[name].longest_step(0.1))
    sampler = SAMPLERS[name](sizes)
    ends = []
    for _ in range(2):
        stream, state = np.random.default_rng(5), sampler.init(start)
        for values, first in zip(state.latents, start, strict=True):
            np.testing.assert_array_equal(values, first)
        for _ in range(5):
            before = state
            copies = tuple(values.copy() for values in before.latents)
            state, info = sampler.step(stream, state, conditionals)
            for values, copy in zip(before.latents, copies, strict=True):
                np.testing.assert_array_equal(values, copy)
            assert [values.shape for values in state.latents] == [(n, 3), (n, 2)]
            assert all(np.isfinite(values).all() for values in state.latents)
            assert 0.0 <= info.acceptance <= 1.0
            assert info.diverged is False
        ends.append(state.latents)
    for a, b, first, copy in zip(*ends, start, kept, strict=True):
        np.testing.assert_array_equal(a, b)
        np.testing.assert_array_equal(first, copy)
        assert (a != first).any(axis=1).mean() > 0.9  # nearly every chain moved


# -- exact conditionals ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("temperature", [1.0, 0.3])
@pytest.mark.parametrize("name", NAMES)
def test_gaussian_conditional(name, temperature):
    """Y₁ ~ N(0, I), y = w·Y₁ + e with identity activation: mean and covariance in closed form."""
    n, variance = 4000, 0.5
    w = np.array([[1.0, -2.0]])
    network = Network((GaussianPrior(n, 2), DenseLayer(w, np.zeros(1), variance, get_activation("identity"))))
    (draws,), _ = draw(name, network, np.full((n, 1), 1.5), (2,), n=n, temperature=temperature)
    covariance = np.linalg.inv(np.eye(2) + w.T @ w / variance)
    mean = covariance @ w[0] * 1.5 / variance
    covariance = temperature * covariance
    assert (np.abs(draws.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(covariance) / n)).all()
    scale = np.sqrt(np.outer(np.diag(covariance), np.diag(covariance)))
    allowed = 5 * np.sqrt(2 / n) + (0.03 if name == "sghmc" else 0.0)
    assert (np.abs(np.cov(draws.T) - covariance) < allowed * scale).all()


@pytest.mark.parametrize(("C", "epsilon"), [(1.0, 0.5), (8.0, 0.1)])
@pytest.mark.parametrize("name", NAMES)
def test_svr_density_below_a_tanh(name, C, epsilon):
    """The conditional of one unit, eq. (SVRdist) times a Gaussian around a tanh, by quadrature."""
    n = 4000
    head = DenseLayer(np.array([[2.0]]), np.array([0.3]), 0.2, get_activation("tanh"))
    network = Network((svr_prior(n, C, epsilon), head))
    (draws,), _ = draw(name, network, np.full((n, 1), 1.4), (1,), n=n)
    grid = np.linspace(-12, 12, 40_001)
    log = -C * np.maximum(np.abs(grid) - epsilon, 0) - 0.5 * (1.4 - 0.3 - 2 * np.tanh(grid)) ** 2 / 0.2
    assert_moments(draws[:, 0], grid, np.exp(log - log.max()), 0.03 if name == "sghmc" else 0.0)


@pytest.mark.parametrize("name", NAMES)
def test_two_latent_layers(name):
    """One unit in each of two latent layers: the joint density on a grid; its marginals must both be right."""
    n = 4000
    softplus = get_activation("softplus")
    network = Network(
        (
            svr_prior(n, 2.0, 0.2),
            DenseLayer(np.array([[1.5]]), np.array([-1.0]), 0.3, softplus),
            DenseLayer(np.array([[1.0]]), np.array([0.0]), 0.2, softplus),
        )
    )
    steps = 3 * STEPS[name]
    (first, second), _ = draw(name, network, np.full((n, 1), 1.0), (1, 1), n=n, steps=steps)
    grid = np.linspace(-6, 6, 1201)
    a, b = grid[:, None], grid[None, :]
    log = -2.0 * np.maximum(np.abs(a) - 0.2, 0)
    log = log - 0.5 * (b + 1.0 - 1.5 * np.logaddexp(0, a)) ** 2 / 0.3 - 0.5 * (1.0 - np.logaddexp(0, b)) ** 2 / 0.2
    joint = np.exp(log - log.max())
    bias = 0.03 if name == "sghmc" else 0.0
    assert_moments(first[:, 0], grid, joint.sum(axis=1), bias)
    assert_moments(second[:, 0], grid, joint.sum(axis=0), bias)
    # the dependence between the layers: a share with its own standard error
    below = (first[:, 0] < grid[600]) & (second[:, 0] < grid[600])
    exact = joint[:600, :600].sum() / joint.sum()
    assert abs(below.mean() - exact) < 5 * np.sqrt(exact * (1 - exact) / n) + bias


@pytest.mark.parametrize("name", NAMES)
def test_below_a_classification_head(name):
    """A tempered multinomial logit of three classes above one SVR unit."""
    n = 4000
    weights, intercept = np.array([[1.0], [-1.0], [0.5]]), np.array([0.2, 0.0, -0.2])
    head = CategoricalHead(weights, intercept, 3, 0.25, get_activation("tanh"))
    network = Network((svr_prior(n, 1.5, 0.1), head))
    (draws,), _ = draw(name, network, np.full(n, 1), (1,), n=n)
    grid = np.linspace(-14, 14, 40_001)
    logits = np.tanh(grid)[:, None] * weights[:, 0] + intercept
    log = -1.5 * np.maximum(np.abs(grid) - 0.1, 0) + (logits[:, 1] - np.logaddexp.reduce(logits, axis=1)) / 0.25
    assert_moments(draws[:, 0], grid, np.exp(log - log.max()), 0.03 if name == "sghmc" else 0.0)


# -- each on its own ---------------------------------------------------------------------------------------------------------


def test_friction_one_is_langevin():
    """The update written out: one gradient step and one normal draw."""
    n = 6
    network = Network((GaussianPrior(n, 2), DenseLayer(np.ones((1, 2)), np.zeros(1), 0.5, get_activation("tanh"))))
    conditionals = network.conditionals(None, np.ones((n, 1)))
    start = (np.random.default_rng(0).normal(size=(n, 2)),)
    sampler = SAMPLERS["sghmc"]((np.full((n, 1), 0.01),), friction=1.0)
    state, _ = sampler.step(np.random.default_rng(1), sampler.init(start), conditionals)
    noise = np.random.default_rng(1).standard_normal((n, 2))
    expected = start[0] + 0.01 * conditionals.score(0, start) + np.sqrt(0.02) * noise
    np.testing.assert_allclose(state.latents[0], expected)


def test_langevin_without_an_accept_step_has_the_right_mean_and_variance():
    n = 4000
    network = Network((GaussianPrior(n, 1), DenseLayer(np.ones((1, 1)), np.zeros(1), 0.5, get_activation("identity"))))
    (draws,), info = draw("sghmc", network, np.full((n, 1), 1.0), (1,), n=n, friction=1.0, steps=800)
    assert draws.mean() == pytest.approx(2 / 3, abs=5 * np.sqrt(1 / 3 / n))
    assert draws.var() == pytest.approx(1 / 3, rel=5 * np.sqrt(2 / n) + 0.02)
    assert info.kinetic == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize("name", ["mala", "hmc"])
def test_automatic_steps_are_accepted_often_and_long_ones_are_not(name):
    n = 2000
    network = Network(
        (svr_prior(n, [10.0] * 3, [0.01] * 3), DenseLayer(np.ones((1, 3)), np.zeros(1), 1e-2, get_activation("tanh")))
    )
    conditionals = network.conditionals(None, np.full((n, 1), 0.5))
    start = (np.zeros((n, 3)),)
    draws = {
        factor: run_chain(
            np.random.default_rng(0),
            conditionals,
            start,
            ChainSettings(name, 20),
            "auto" if factor == 1 else factor * float(conditionals.curvature(0, start)[0]) ** -1,
        )
        for factor in (1, 50)
    }
    assert draws[1].acceptance > 0.5
    assert draws[50].acceptance < 0.2


@pytest.mark.parametrize("width", [0.01, 1.0, 50.0])
def test_slice_draws_do_not_depend_on_the_first_width(width):
    """A two-humped density; 5,000 chains, each started from an exact draw, must stay exact."""
    rng = np.random.default_rng(0)
    n = 5000
    x = np.where(rng.uniform(size=n) < 0.3, -2.0, 1.0) + 0.5 * rng.standard_normal(n)

    def log_density(v):
        return np.logaddexp(np.log(0.3) - 2 * (v + 2) ** 2, np.log(0.7) - 2 * (v - 1) ** 2)

    for _ in range(10):
        x, moved = slice_draw(rng, x, np.full(n, width), log_density)
        assert moved == 1.0
    grid = np.linspace(-6, 5, 20_001)
    assert_moments(x, grid, np.exp(log_density(grid)), 0.0)


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
    start = (2.0 * rng.normal(size=(n, 5)),)
    before = np.abs(y - head.mean(start[0])).mean()
    end = run_chain(rng, conditionals, start, ChainSettings(n_steps=200))
    assert end.n_shrinks == 0
    assert np.abs(end.latents[0]).max() < 100
    assert np.abs(y - head.mean(end.latents[0])).mean() <= before + np.sqrt(variance)


def test_zero_temperature_follows_the_gradient_only():
    head = DenseLayer(np.ones((1, 2)), np.zeros(1), 0.1, get_activation("identity"))
    network = Network((GaussianPrior(3, 2), head))
    conditionals = network.conditionals(None, np.ones((3, 1)))
    settings = ChainSettings(n_steps=500, friction=1.0, temperature=0.0)
    end = run_chain(np.random.default_rng(0), conditionals, (np.zeros((3, 2)),), settings)
    np.testing.assert_allclose(end.latents[0], 1 / 2.1, atol=1e-6)  # the posterior mode
