"""Algorithm 1: impute the latent values, refit every layer, again and again.

The loop is a generator of immutable states: whoever drives it decides when to stop, what to keep and what to show, and
any state can be resumed, random numbers included.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.parallel import Parallel, delayed

from kstonet.imputation.base import Latents
from kstonet.imputation.chain import MOST_SHRINKS, ChainSettings, Draw, run_chain
from kstonet.layers.heads import CategoricalHead
from kstonet.network import Network
from kstonet.noise import automatic_alpha, automatic_noise, automatic_temperature, typical_residual, with_noise
from kstonet.solvers.softmax import log_proba

Schedule = float | str | Sequence[Any] | Callable[[int], Any]
CHUNK = 2048  # observations drawn together: their arrays stay in the cache


@dataclass(frozen=True)
class IROSettings:
    """Settings of the loop; schedules are a number, one number per iteration (the last is kept), or a function of it.

    A schedule of ``noise_variance`` may have tuples for numbers: a variance for every layer above the first.
    """

    chain: ChainSettings = field(default_factory=ChainSettings)
    temperature: float | str = "auto"
    step_size: Schedule = "auto"
    noise_variance: Schedule = "auto"
    C: Schedule | None = None
    alpha: Schedule = "auto"
    n_jobs: int | None = None


@dataclass(frozen=True)
class IRORecord:
    """What one iteration did."""

    iteration: int
    loss: float  # mean squared error, or mean negative log-likelihood
    noise: float  # of the output layer
    temperature: float
    step_size: float
    n_shrinks: int
    acceptance: float
    kinetic: float  # of the momenta, over the equilibrium value; see SamplerInfo
    seconds_impute: float
    seconds_first_layer: float
    seconds_regressions: float
    svr_gap: float = np.nan
    svr_iterations: float = np.nan
    n_support: float = np.nan


@dataclass(frozen=True)
class IROState:
    """The chain after some iterations; everything needed to go on."""

    iteration: int
    network: Network
    latents: Latents
    rng_state: dict[str, Any]
    record: IRORecord | None = None


def scheduled(schedule: Schedule, iteration: int) -> Any:
    """The value of a schedule at an iteration (from 0)."""
    if callable(schedule):
        value = schedule(iteration)
    elif isinstance(schedule, str) or np.ndim(schedule) == 0:
        return schedule
    else:
        value = schedule[min(iteration, len(schedule) - 1)]  # type: ignore[index, arg-type]
    return float(value) if np.ndim(value) == 0 else tuple(map(float, value))


def training_loss(network: Network, prediction: np.ndarray, outputs: np.ndarray) -> float:
    """Mean squared error, or mean negative log-likelihood, of the noise-free network."""
    if isinstance(network.layers[-1], CategoricalHead):
        log_p = log_proba(prediction)
        return float(-log_p[np.arange(len(outputs)), outputs].mean())
    return float(((outputs - prediction) ** 2).mean())


def impute(
    rng: np.random.Generator,
    network: Network,
    inputs: Any,
    outputs: np.ndarray,
    start: Latents,
    settings: IROSettings,
    step_size: Any,
    temperature: float = 1.0,
) -> tuple[Latents, list[Draw]]:
    """Step 1 of Algorithm 1: draw the latent values of all observations.

    Observations are independent given the parameters, so they are drawn in chunks, every chunk from a stream of its own: the
    numbers are the same whether the chunks run one after another or at once.

    Returns the latent values, and the draws of the chunks.
    """
    n = len(start[0])
    seed = int(rng.integers(2**63))
    chain = replace(settings.chain, temperature=temperature)
    chunks = [slice(begin, min(begin + CHUNK, n)) for begin in range(0, n, CHUNK)]

    def draw(k: int, rows: slice) -> Draw:
        conditionals = network.conditionals(inputs, outputs, rows)
        here = tuple(values[rows] for values in start)
        return run_chain(np.random.default_rng([seed, k]), conditionals, here, chain, step_size)

    if len(chunks) == 1:
        draws = [draw(0, chunks[0])]
    else:
        tasks = (delayed(draw)(k, rows) for k, rows in enumerate(chunks))
        draws = list(Parallel(n_jobs=settings.n_jobs, prefer="threads")(tasks))
    if any(each.gave_up for each in draws):
        warnings.warn(
            f"the imputation diverged {MOST_SHRINKS + 1} times, with steps down to step_size/{4**MOST_SHRINKS}; the latent "
            "values are kept as they were. Use step_size='auto' or a smaller step_size.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return tuple(np.concatenate(parts) for parts in zip(*(each.latents for each in draws), strict=True)), draws


@dataclass(frozen=True)
class ImputationStep:
    """What the refits of an iteration start from: the network with this iteration's settings, and the latent values."""

    network: Network
    latents: Latents
    draws: list[Draw]
    noise: float
    temperature: float
    rng_state: dict[str, Any]


def imputation_step(inputs: Any, outputs: np.ndarray, state: IROState, settings: IROSettings) -> ImputationStep:
    """The first half of an iteration: the schedules' and automatic values, then the draw of the latent values."""
    rng = np.random.default_rng()
    rng.bit_generator.state = state.rng_state
    t, network = state.iteration, state.network
    if settings.C is not None:
        network = network.with_layer(0, C=np.full_like(network.layers[0].C, scheduled(settings.C, t)))
    values = network.forward(inputs)
    alpha, residual = scheduled(settings.alpha, t), typical_residual(network, values, outputs)
    for i, layer in enumerate(network.layers):
        if hasattr(layer, "alpha"):
            auto = automatic_alpha(residual, len(outputs), layer.weights.shape[1])
            network = network.with_layer(i, alpha=auto if alpha == "auto" else float(alpha))
    noise = scheduled(settings.noise_variance, t)
    noise = automatic_noise(network, values, outputs) if noise == "auto" else noise
    variances = noise if isinstance(noise, tuple) else (float(noise),) * (len(network) - 1)
    network = with_noise(network, variances)
    temperature = automatic_temperature(network) if settings.temperature == "auto" else float(settings.temperature)
    step_size = scheduled(settings.step_size, t)
    latents, draws = impute(rng, network, inputs, outputs, values[:-1], settings, step_size, temperature)
    return ImputationStep(network, latents, draws, variances[-1], temperature, dict(rng.bit_generator.state))


def iro(
    inputs: Any, outputs: np.ndarray, state: IROState, settings: IROSettings, sample_weight: np.ndarray | None = None
) -> Iterator[IROState]:
    """Yield the state after every iteration, without end.

    Parameters
    ----------
    inputs : any
        Handed to the first layer (a kernel layer ignores it: its rows are fixed).
    outputs : ndarray
        (n, k) targets or (n,) class codes.
    state : IROState
        From :func:`kstonet.initialisation.initial_state`, or a state yielded before.
    settings : IROSettings
    sample_weight : ndarray of shape (n,), optional

    Yields
    ------
    IROState
    """
    while True:
        started = time.perf_counter()
        step = imputation_step(inputs, outputs, state, settings)
        imputed = time.perf_counter()

        first = step.network.layers[0].refit(inputs, step.latents[0], sample_weight)
        first_done = time.perf_counter()
        rest = step.network.refit_above(step.latents, outputs, sample_weight)
        done = time.perf_counter()

        network = Network((first, *rest))
        record = IRORecord(
            iteration=state.iteration + 1,
            loss=training_loss(network, network.forward(inputs)[-1], outputs),
            noise=step.noise,
            temperature=step.temperature,
            step_size=float(np.median([draw.step_size for draw in step.draws])),
            n_shrinks=max(draw.n_shrinks for draw in step.draws),
            acceptance=float(np.mean([draw.acceptance for draw in step.draws])),
            kinetic=float(np.mean([draw.kinetic for draw in step.draws])),
            seconds_impute=imputed - started,
            seconds_first_layer=first_done - imputed,
            seconds_regressions=done - first_done,
            **first.certificate(),
        )
        state = IROState(state.iteration + 1, network, step.latents, step.rng_state, record)
        yield state
