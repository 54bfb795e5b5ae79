"""Simulation-based calibration of every sampler (Talts et al. 2018), and the chain of Algorithm 1 against brute force.

Latent values are drawn from the first layer, outputs from the layer above given them, and latent values again from the sampler
given the outputs. If the sampler draws from the posterior, the rank of the first among several of the second is uniform. The
level of every test is 1e-4, for a fixed seed; 16 ranks and 6 moments are tested. A sampler whose draws were shifted by a tenth
of their standard deviation, or too wide by a tenth, would fail: that is tested, too.
"""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import chi2, ks_2samp

sys.path.append(str(Path(__file__).parents[1] / "imputation"))
from test_samplers import NAMES, GaussianPrior, draw, svr_prior

from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings, IROState, iro_together
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.linear import NOISE_RATIO, LinearFirstLayer
from kstonet.network import Network

pytestmark = pytest.mark.long

REPLICATIONS = 1_000 if os.environ.get("CI") else 4_000
DRAWS = 9  # of the posterior, for every replication
LEVEL = 1e-4
C, EPSILON = 2.0, 0.2


def prior_draws(kind: str, rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Latent values of a first layer around zero: normal, or of eq. (SVRdist), flat in its tube and exponential outside."""
    if kind == "normal":
        return rng.normal(size=shape)
    inside = rng.random(shape) < EPSILON / (EPSILON + 1.0 / C)
    outside = EPSILON + rng.exponential(1.0 / C, shape)
    return np.where(inside, rng.uniform(-EPSILON, EPSILON, shape), rng.choice([-1.0, 1.0], shape) * outside)


def ranks_of(kind: str, name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Ranks (replications, units) of true latent values among draws of the sampler; the truth, and the draws."""
    rng = np.random.default_rng(seed)
    n, units, variance = REPLICATIONS * DRAWS, 2, 0.3
    truth = prior_draws(kind, rng, (REPLICATIONS, units))
    weights = np.array([[1.2, -0.7]])
    y = np.tanh(truth) @ weights.T + np.sqrt(variance) * rng.normal(size=(REPLICATIONS, 1))
    first = GaussianPrior(n, units) if kind == "normal" else svr_prior(n, [C] * units, [EPSILON] * units)
    network = Network((first, DenseLayer(weights, np.zeros(1), variance, get_activation("tanh"))))
    (found,), _ = draw(name, network, np.repeat(y, DRAWS, axis=0), (units,), n=n, seed=seed + 1)
    draws = found.reshape(REPLICATIONS, DRAWS, units)
    return (draws < truth[:, None]).sum(axis=1), truth, draws


def p_value(ranks: np.ndarray) -> float:
    """Of the hypothesis that ranks 0 to DRAWS are equally likely."""
    counts = np.bincount(ranks, minlength=DRAWS + 1)
    expected = len(ranks) / (DRAWS + 1)
    return float(chi2.sf(((counts - expected) ** 2 / expected).sum(), DRAWS))


@pytest.mark.parametrize("kind", ["normal", "support vectors"])
@pytest.mark.parametrize("name", NAMES)
def test_ranks_are_uniform(name: str, kind: str) -> None:
    ranks, _, _ = ranks_of(kind, name)
    for unit in range(ranks.shape[1]):
        assert p_value(ranks[:, unit]) > LEVEL


@pytest.mark.skipif(REPLICATIONS < 4_000, reason="takes all replications")
@pytest.mark.parametrize("wrong", ["shifted", "wide"])
def test_wrong_draws_are_noticed(wrong: str) -> None:
    _, truth, draws = ranks_of("normal", "gibbs")
    if wrong == "shifted":
        draws = draws + 0.1 * draws.std()
    else:
        draws = draws.mean(axis=1, keepdims=True) + 1.2 * (draws - draws.mean(axis=1, keepdims=True))
    assert min(p_value((draws < truth[:, None]).sum(axis=1)[:, unit]) for unit in range(2)) < LEVEL


# -- Algorithm 1 ---------------------------------------------------------------------------------------------------------------

CHAINS, ITERATIONS, ALPHA, NOISE = (150 if os.environ.get("CI") else 400), 6, 0.05, 0.05
X = np.array([[-1.5], [-0.5], [0.2], [0.9], [1.6]])
Y = np.array([[-1.0], [-0.6], [0.3], [0.5], [0.9]])


def brute_force(rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Algorithm 1 on a network 1-1-1 with latent values drawn from a grid of their exact conditional density."""
    grid = np.linspace(-8.0, 8.0, 4001)
    slope, constant, weight, intercept = (np.full(CHAINS, each) for each in (0.5, 0.0, 1.0, 0.0))
    z = np.empty((CHAINS, len(X)))
    for _ in range(ITERATIONS):
        for i, (x, y) in enumerate(zip(X[:, 0], Y[:, 0], strict=True)):
            mean = constant + slope * x
            log_density = -0.5 * (grid - mean[:, None]) ** 2 / (NOISE_RATIO * NOISE)
            log_density -= 0.5 * (y - intercept[:, None] - weight[:, None] * np.tanh(grid)) ** 2 / NOISE
            cumulative = np.cumsum(np.exp(log_density - log_density.max(axis=1, keepdims=True)), axis=1)
            level = rng.random(CHAINS) * cumulative[:, -1]
            z[:, i] = [grid[np.searchsorted(row, at)] for row, at in zip(cumulative, level, strict=True)]
        z += (grid[1] - grid[0]) * (rng.random(z.shape) - 0.5)
        slope, constant = _ridge(np.broadcast_to(X[:, 0], z.shape), z)
        weight, intercept = _ridge(np.tanh(z), np.broadcast_to(Y[:, 0], z.shape))
    return {"latent": z[:, 1], "slope": slope, "weight": weight, "prediction": intercept + weight * np.tanh(constant)}


def _ridge(features: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """1/(2n)·SSE + alpha/2·w² of one feature, row by row of chains."""
    f, t = features - features.mean(axis=1, keepdims=True), targets - targets.mean(axis=1, keepdims=True)
    w = (f * t).mean(axis=1) / ((f**2).mean(axis=1) + ALPHA)
    return w, targets.mean(axis=1) - w * features.mean(axis=1)


def library(name: str) -> dict[str, np.ndarray]:
    """The same chains by the library's loop."""
    identity, tanh, one = get_activation("identity"), get_activation("tanh"), np.ones((1, 1))
    first = LinearFirstLayer(0.5 * one, np.zeros(1), 1.0, identity, "ridge", ALPHA)
    network = Network((first, DenseLayer(one, np.zeros(1), 1.0, tanh, "ridge", ALPHA)))
    steps = {"gibbs": 10, "hmc": 15, "mala": 60, "sghmc": 300}[name]
    short = {"step_size": 2e-4} if name == "sghmc" else {}
    settings = IROSettings(ChainSettings(name, steps), temperature=1.0, noise_variance=NOISE, alpha=ALPHA, **short)
    states = [IROState(0, network, (), dict(np.random.default_rng([7, k]).bit_generator.state)) for k in range(CHAINS)]
    loop = iro_together(X, Y, states, settings, [None] * CHAINS)
    for _ in range(ITERATIONS):
        states = next(loop)
    slope, constant = (np.array([getattr(s.network.first, part).item() for s in states]) for part in ("weights", "intercept"))
    weight, intercept = (np.array([getattr(s.network.head, part).item() for s in states]) for part in ("weights", "intercept"))
    latent = np.array([s.latents[0][1, 0] for s in states])
    return {"latent": latent, "slope": slope, "weight": weight, "prediction": intercept + weight * np.tanh(constant)}


@pytest.mark.parametrize("name", ["gibbs", "hmc"])
def test_the_chain_of_algorithm_1_is_that_of_brute_force(name: str) -> None:
    """Latent values, parameters and predictions after some iterations have the same distribution."""
    expected, found = brute_force(np.random.default_rng(0)), library(name)
    for quantity in expected:
        assert ks_2samp(expected[quantity], found[quantity]).pvalue > LEVEL, quantity
