"""Imputation and regressions on PyTorch tensors: the draws and coefficients are those of NumPy (make test-torch)."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import kstonet.iro
from extension.huber_layer import HuberLayer
from extension.walk_sampler import RandomWalk  # registered by its import
from kstonet._arrays import to_numpy
from kstonet.imputation import SAMPLERS
from kstonet.imputation.chain import ChainSettings
from kstonet.iro import CHUNK, IROSettings, impute
from kstonet.layers.activations import ACTIVATIONS, get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead, OrdinalHead
from kstonet.layers.kernel import KernelLayer, UnitGroup
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network
from kstonet.solvers.multinomial import solve_multinomial
from kstonet.solvers.ordinal import class_scores, solve_ordinal
from kstonet.solvers.penalized import solve_penalized

torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
N = 2 * CHUNK + 100  # three chunks
RNG = np.random.default_rng(0)
TARGETS, LABELS = RNG.normal(size=(N, 1)), RNG.integers(3, size=N)
FITTED = RNG.normal(size=(N, 4))
WEIGHTS = RNG.normal(size=(3, 4))
HEADS = {
    "regression": lambda tanh: (DenseLayer(WEIGHTS[:1], np.zeros(1), 0.1, tanh),),
    "two layers": lambda tanh: (
        DenseLayer(WEIGHTS, np.ones(3), 0.3, tanh),
        DenseLayer(WEIGHTS[:1, :3], np.zeros(1), 0.1, tanh),
    ),
    "two classes": lambda tanh: (CategoricalHead(WEIGHTS[:1], np.ones(1), 2, 0.5, tanh),),
    "three classes": lambda tanh: (CategoricalHead(WEIGHTS, np.arange(3.0), 3, 0.5, tanh),),
    "ordered classes": lambda tanh: (OrdinalHead(WEIGHTS, np.zeros(3), 3, 1.0, tanh, scores=class_scores([0, 1, 2])),),
}


def gram_on(device):
    """A Gram that says where it computes; the imputation asks no more of it."""
    return SimpleNamespace(array=lambda values: torch.as_tensor(np.asarray(values, dtype=np.float64), device=device), n=N)


def network_on(device, head="regression", *, activation="tanh", squared=False):
    """A network whose first layer has given values, and a Gram on a device, or none."""
    groups = () if device is None else (UnitGroup(gram_on(device), np.arange(4)),)
    if squared:
        first = RidgeLayer(groups or (UnitGroup(SimpleNamespace(array=np.asarray), np.arange(4)),), (), 0.2, fitted=FITTED)
    else:
        first = KernelLayer(groups, np.array([2.0, 3.0, 1.0, 5.0]), np.array([0.1, 0.0, 0.2, 0.05]), fitted=FITTED)
    return Network((first, *HEADS[head](get_activation(activation))))


def outputs_of(head):
    return TARGETS if head in ("regression", "two layers") else LABELS % 2 if head == "two classes" else LABELS


def imputed(network, outputs, sampler="sghmc", *, steps=5, n_jobs=1, step_size="auto"):
    start = network.forward()[:-1]
    settings = IROSettings(ChainSettings(sampler, n_steps=steps), n_jobs=n_jobs)
    return impute(np.random.default_rng(1), network, None, outputs, start, settings, step_size)


def assert_same_draws(there, here):
    for ours, theirs in zip(there, here, strict=True):
        assert isinstance(ours, np.ndarray)
        np.testing.assert_allclose(ours, theirs, **CLOSE)


# -- imputation --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("sampler", ["sghmc", "mala", "hmc", "gibbs"])
def test_every_sampler_draws_the_same_values(sampler, head, squared, device):
    steps = 1 if sampler == "gibbs" else 5
    here, draws = imputed(network_on(None, head, squared=squared), outputs_of(head), sampler, steps=steps)
    there, together = imputed(network_on(device, head, squared=squared), outputs_of(head), sampler, steps=steps)
    assert_same_draws(there, here)
    assert not np.allclose(here[0], FITTED)
    assert len(draws) == 3
    if sampler == "gibbs":  # it stays on the CPU, chunk by chunk
        assert len(together) == 3
    else:
        accepted = np.average([draw.acceptance for draw in draws], weights=[CHUNK, CHUNK, N - 2 * CHUNK])
        assert [draw.acceptance for draw in together] == [pytest.approx(accepted, rel=1e-9)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_every_activation_draws_the_same_values(activation, device):
    for head in ("two layers", "three classes"):
        here, _ = imputed(network_on(None, head, activation=activation), outputs_of(head), "mala")
        there, _ = imputed(network_on(device, head, activation=activation), outputs_of(head), "mala")
        assert_same_draws(there, here)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sampler", ["sghmc", "mala", "hmc"])
def test_draws_do_not_depend_on_the_number_of_threads(sampler, device):
    network = network_on(device, "two layers")
    ends = [imputed(network, TARGETS, sampler, n_jobs=n_jobs)[0] for n_jobs in (1, 2, 3)]
    for latents in ends[1:]:
        for ours, theirs in zip(latents, ends[0], strict=True):
            np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("values", "rows"), [(1, [CHUNK, CHUNK, 100]), (2 * 5 * CHUNK, [2 * CHUNK, 100]), (2**23, [N])])
def test_as_many_chunks_are_drawn_together_as_a_device_may_hold(values, rows, device, monkeypatch):
    """Five values of every row: four latent ones and an output."""
    seen, attempt = [], kstonet.iro.attempt

    def watched(rng, conditionals, start, *settings):
        seen.append(len(start[0]))
        assert start[0].device.type == device
        return attempt(rng, conditionals, start, *settings)

    monkeypatch.setattr(kstonet.iro, "attempt", watched)
    monkeypatch.setattr(kstonet.iro, "DEVICE_VALUES", values)
    there, draws = imputed(network_on(device), TARGETS)
    assert seen == rows
    assert len(draws) == len(rows)
    assert_same_draws(there, imputed(network_on(None), TARGETS)[0])


@pytest.mark.parametrize("device", DEVICES)
def test_chunks_of_which_one_diverges_find_their_own_steps(device):
    """The weights of the head make a step too long where the targets are far away."""
    targets = TARGETS + np.where(np.arange(N) < 2 * CHUNK, 0.0, 1e6)[:, None]
    ends = []
    for where in (None, device):
        network = network_on(where, activation="identity").with_layer(1, weights=np.ones((1, 4)))
        ends.append(imputed(network, targets, step_size=0.01, steps=50))
    (here, draws), (there, alone) = ends
    assert [draw.n_shrinks for draw in draws] == [draw.n_shrinks for draw in alone]
    assert draws[0].n_shrinks < draws[2].n_shrinks
    np.testing.assert_array_equal(there[0], here[0])


@dataclass(frozen=True)
class NumpyLayer(DenseLayer):
    """A layer from outside, written for NumPy."""

    def score_input(self, inputs, outputs):
        assert isinstance(inputs, np.ndarray)
        return super().score_input(inputs, outputs)

    def refit(self, inputs, outputs, sample_weight=None):
        assert isinstance(inputs, np.ndarray)
        return super().refit(inputs, outputs, sample_weight)


def test_samplers_and_layers_that_know_numpy_alone_stay_on_the_cpu():
    tanh = get_activation("tanh")
    assert SAMPLERS["walk"] is RandomWalk
    own = NumpyLayer(WEIGHTS[:1], np.zeros(1), 0.1, tanh)
    robust = HuberLayer(WEIGHTS[:1], np.zeros(1), 0.1, tanh, "lasso", 1e-3)
    for sampler, head in (("walk", None), ("sghmc", own), ("sghmc", robust)):
        here, there = (
            network if head is None else Network((network.first, head)) for network in (network_on(None), network_on("cpu"))
        )
        latents, draws = imputed(there, TARGETS, sampler)
        np.testing.assert_array_equal(latents[0], imputed(here, TARGETS, sampler)[0][0])
        assert len(draws) == 3
        (refitted,), (expected,) = (network.refit_above(latents, TARGETS, None) for network in (there, here))
        np.testing.assert_allclose(refitted.weights, expected.weights, **CLOSE)


# -- regressions -------------------------------------------------------------------------------------------------------------

FEATURES = RNG.normal(size=(500, 6)) @ RNG.normal(size=(6, 6)) / 3.0 + 1.0
FEATURES[:, 2] = 0.5  # constant
RESPONSES = FEATURES[:, :2] + 0.3 * RNG.normal(size=(500, 2))
CLASSES = (FEATURES[:, :3] + RNG.normal(size=(500, 3))).argmax(axis=1)
SAMPLE_WEIGHT = RNG.integers(3, size=500).astype(float)
PENALTIES = ["lasso", "ridge", "scad", "mcp", "none"]


def assert_same_fit(there, here):
    for name in ("weights", "intercept", "kkt"):
        assert isinstance(getattr(there, name), np.ndarray | float)
        np.testing.assert_allclose(getattr(there, name), getattr(here, name), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(there.active, here.active)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weights", [None, SAMPLE_WEIGHT])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_penalised_regressions(penalty, weights, device):
    options = {"penalty": penalty, "alpha": 0.02, "sample_weight": weights}
    tensors = torch.as_tensor(FEATURES, device=device), torch.as_tensor(RESPONSES, device=device)
    assert_same_fit(solve_penalized(*tensors, **options), solve_penalized(FEATURES, RESPONSES, **options))
    np.testing.assert_array_equal(to_numpy(tensors[0]), FEATURES)  # left as they were
    collinear = np.hstack([FEATURES, FEATURES[:, :1]])
    wide = RNG.normal(size=(30, 320))
    for F, T in ((collinear, RESPONSES), (wide, wide[:, :2])):
        own = {**options, "sample_weight": None}
        there = solve_penalized(torch.as_tensor(F, device=device), torch.as_tensor(T, device=device), **own)
        np.testing.assert_allclose(F @ there.weights.T, F @ solve_penalized(F, T, **own).weights.T, atol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("weights", [None, SAMPLE_WEIGHT])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("penalty", PENALTIES)
def test_multinomial_regressions(penalty, n_classes, weights, device):
    options = {"penalty": penalty, "alpha": 0.01, "sample_weight": weights, "tol": 1e-8}
    labels = CLASSES % n_classes
    there = solve_multinomial(torch.as_tensor(FEATURES, device=device), labels, n_classes, **options)
    here = solve_multinomial(FEATURES, labels, n_classes, **options)
    assert_same_fit(there, here)
    assert there.n_iter == here.n_iter


@pytest.mark.parametrize("device", DEVICES)
def test_ordinal_regression(device):
    options = {"scores": class_scores([0, 1, 2]), "penalty": "lasso", "alpha": 0.01}
    tensors = torch.as_tensor(FEATURES, device=device), torch.as_tensor(CLASSES, device=device)
    assert_same_fit(solve_ordinal(*tensors, **options), solve_ordinal(FEATURES, CLASSES, **options))


def test_errors_name_shapes_as_for_numpy():
    with pytest.raises(ValueError, match=r"features has shape \(3,\); it must be"):
        solve_penalized(torch.ones(3), torch.ones(3, 1), penalty="none")
    with pytest.raises(ValueError, match=r"targets has shape \(3,\); it must be"):
        solve_penalized(torch.ones(3, 2), torch.ones(3), penalty="none")
    with pytest.raises(ValueError, match=r"features contains NaN or infinity \(column 1\)"):
        solve_penalized(torch.tensor([[1.0, torch.nan], [2.0, 1.0]]), torch.ones(2, 1), penalty="none")
