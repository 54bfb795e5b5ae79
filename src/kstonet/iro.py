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

from kstonet._arrays import namespace, takes_tensors, to_numpy
from kstonet.imputation import SAMPLERS
from kstonet.imputation.base import Latents
from kstonet.imputation.chain import MOST_SHRINKS, ChainSettings, Draw, attempt, run_chain
from kstonet.imputation.streams import ChunkStreams
from kstonet.network import Network
from kstonet.noise import automatic_noise
from kstonet.threads import in_threads, pieces

Schedule = float | str | Sequence[Any] | Callable[[int], Any]
CHUNK = 1024  # observations drawn together: their arrays stay in the cache
DEVICE_VALUES = 2**23  # values of all layers in the chunks that a device draws together: some ten arrays of 64 MB


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
    """The chain after some iterations; everything needed to go on.

    A chain rests after ``rest_after`` iterations, if that is given: the network stays as it is.
    """

    iteration: int
    network: Network
    latents: Latents
    rng_state: dict[str, Any]
    record: IRORecord | None = None
    rest_after: int | None = None

    @property
    def rests(self) -> bool:
        """Whether the next iteration changes nothing."""
        return self.rest_after is not None and self.iteration >= self.rest_after


def scheduled(schedule: Schedule, iteration: int) -> Any:
    """The value of a schedule at an iteration (from 0)."""
    if callable(schedule):
        value = schedule(iteration)
    elif isinstance(schedule, str) or np.ndim(schedule) == 0:
        return schedule
    else:
        value = schedule[min(iteration, len(schedule) - 1)]  # type: ignore[index, arg-type]
    return float(value) if np.ndim(value) == 0 else tuple(map(float, value))


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
    numbers are the same whether the chunks run one after another or at once. A device draws many chunks together, with the same
    random numbers.

    Returns the latent values, and the draws of the chunks, or of those that were drawn together.
    """
    n = len(start[0])
    seed = int(rng.integers(2**63))
    chain = replace(settings.chain, temperature=temperature)
    chunks = pieces(0, n, CHUNK)

    def draw(k: int) -> Draw:
        conditionals = network.conditionals(inputs, outputs, chunks[k])
        here = tuple(values[chunks[k]] for values in start)
        return run_chain(np.random.default_rng([seed, k]), conditionals, here, chain, step_size)

    def alone(some: Sequence[int]) -> list[Draw]:
        return in_threads(draw, some, settings.n_jobs)

    def together(some: Sequence[int]) -> list[Draw]:
        rows = slice(chunks[some[0]].start, chunks[some[-1]].stop)
        conditionals = network.conditionals(inputs, outputs, rows, placed=True)
        there = tuple(network.first.place(values[rows]) for values in start)
        generators = [np.random.default_rng([seed, k]) for k in some]
        streams = ChunkStreams(generators, pieces(0, rows.stop - rows.start, CHUNK), there[0], settings.n_jobs)
        drawn = attempt(streams, conditionals, there, chain, step_size)
        if drawn is None:  # some chunk needs a shorter step, but not all: each finds its own
            return alone(some)
        return [replace(drawn, latents=tuple(to_numpy(values) for values in drawn.latents))]

    every = range(len(chunks))
    if _on_device(network, chain):
        most = max(1, DEVICE_VALUES // (CHUNK * sum(layer.n_outputs for layer in network.layers)))
        draws = [each for some in pieces(0, len(chunks), most) for each in together(every[some])]
    else:
        draws = alone(every)
    if any(each.gave_up for each in draws):
        warnings.warn(
            f"the imputation diverged {MOST_SHRINKS + 1} times, with steps down to step_size/{4**MOST_SHRINKS}; the latent "
            "values are kept as they were. Use step_size='auto' or a smaller step_size.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return tuple(np.concatenate(parts) for parts in zip(*(each.latents for each in draws), strict=True)), draws


def _on_device(network: Network, chain: ChainSettings) -> bool:
    """Whether the first layer's Gram is on a device, and the sampler and all layers take tensors."""
    kinds = (SAMPLERS[chain.sampler], *(type(layer) for layer in network.uppers))
    return all(takes_tensors(kind) for kind in kinds) and namespace(network.first.place(np.empty(0))) is not np


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
        network = network.with_layer(0, C=np.full(network.first.n_outputs, scheduled(settings.C, t)))
    values = network.forward(inputs)
    alpha = scheduled(settings.alpha, t)
    residual = network.head.residual(values[-1], outputs)
    network = network.with_penalty(None if alpha == "auto" else float(alpha), residual, len(outputs))
    noise = scheduled(settings.noise_variance, t)
    noise = automatic_noise(network, values, outputs) if noise == "auto" else noise
    variances = noise if isinstance(noise, tuple) else (float(noise),) * len(network.uppers)
    network = network.with_noise(variances)
    temperature = network.first.temperature() if settings.temperature == "auto" else float(settings.temperature)
    step_size = scheduled(settings.step_size, t)
    latents, draws = impute(rng, network, inputs, outputs, values[:-1], settings, step_size, temperature)
    return ImputationStep(network, latents, draws, variances[-1], temperature, dict(rng.bit_generator.state))


def iro(
    inputs: Any, outputs: np.ndarray, state: IROState, settings: IROSettings, sample_weight: np.ndarray | None = None
) -> Iterator[IROState]:
    """Yield the state of one chain after every iteration, without end.

    Parameters
    ----------
    inputs : any
        Handed to the first layer (a kernel layer ignores it: its rows are fixed).
    outputs : ndarray
        (n, k) targets or (n,) class codes.
    state : IROState
        Where the chain stands: before its first iteration, or a state yielded before.
    settings : IROSettings
    sample_weight : ndarray of shape (n,), optional

    Yields
    ------
    IROState
    """
    for (new,) in iro_together(inputs, outputs, [state], settings, [sample_weight]):
        yield new


def iro_together(
    inputs: Any,
    outputs: np.ndarray,
    states: Sequence[IROState],
    settings: IROSettings,
    sample_weights: Sequence[np.ndarray | None],
) -> Iterator[list[IROState]]:
    """Algorithm 1 for several chains on the same rows, each with its own weights: the loop that everything drives.

    The chains are independent of each other; their first layers are refitted together, which costs little more than one refit.

    Parameters
    ----------
    inputs, outputs, settings
        As in :func:`iro`.
    states : sequence of IROState
        Where the chains stand.
    sample_weights : sequence of ndarray or None
        One per chain.

    Yields
    ------
    list of IROState
    """
    states = list(states)
    while True:
        moving = [place for place, state in enumerate(states) if not state.rests]
        moved = _moved(inputs, outputs, [states[k] for k in moving], settings, [sample_weights[k] for k in moving])
        states = [_rested(state, inputs, outputs) if state.rests else state for state in states]
        for place, state in zip(moving, moved, strict=True):
            states[place] = state
        yield states


def _moved(
    inputs: Any,
    outputs: np.ndarray,
    states: Sequence[IROState],
    settings: IROSettings,
    sample_weights: Sequence[np.ndarray | None],
) -> list[IROState]:
    """One iteration of chains that do not rest."""
    if not states:
        return []
    started = time.perf_counter()
    steps = [imputation_step(inputs, outputs, state, settings) for state in states]
    imputed = time.perf_counter()

    versions, latents = [step.network.first for step in steps], [step.latents[0] for step in steps]
    firsts = versions[0].refit_versions(versions, inputs, latents, sample_weights)
    first_done = time.perf_counter()
    networks = []
    for first, step, weights in zip(firsts, steps, sample_weights, strict=True):
        network = Network((first, *step.network.uppers))
        networks.append(Network((first, *network.refit_above(step.latents, outputs, weights))))
    done = time.perf_counter()

    seconds = (imputed - started, first_done - imputed, done - first_done)
    return [
        _finished(state, step, network, inputs, outputs, seconds)
        for state, step, network in zip(states, steps, networks, strict=True)
    ]


def _rested(state: IROState, inputs: Any, outputs: np.ndarray) -> IROState:
    """The state after an iteration that changes nothing."""
    network, iteration = state.network, state.iteration + 1
    idle: dict[str, Any] = {"seconds_impute": 0.0, "seconds_first_layer": 0.0, "seconds_regressions": 0.0}
    if state.record is not None:
        return replace(state, iteration=iteration, record=replace(state.record, iteration=iteration, **idle))
    record = IRORecord(
        iteration=iteration,
        loss=network.head.loss(network.forward(inputs)[-1], outputs),
        noise=network.first.noise_above(1.0, 1.0),
        temperature=network.first.temperature(),
        step_size=0.0,
        n_shrinks=0,
        acceptance=1.0,
        kinetic=1.0,
        **idle,
        **network.first.certificate(),
    )
    return replace(state, iteration=iteration, record=record)


def _finished(
    before: IROState,
    step: ImputationStep,
    network: Network,
    inputs: Any,
    outputs: np.ndarray,
    seconds: tuple[float, float, float],
) -> IROState:
    """The state after an iteration, with its record; ``seconds`` are those of all chains that ran together."""
    iteration = before.iteration + 1
    record = IRORecord(
        iteration=iteration,
        loss=network.head.loss(network.forward(inputs)[-1], outputs),
        noise=step.noise,
        temperature=step.temperature,
        step_size=float(np.median([draw.step_size for draw in step.draws])),
        n_shrinks=max(draw.n_shrinks for draw in step.draws),
        acceptance=float(np.mean([draw.acceptance for draw in step.draws])),
        kinetic=float(np.mean([draw.kinetic for draw in step.draws])),
        seconds_impute=seconds[0],
        seconds_first_layer=seconds[1],
        seconds_regressions=seconds[2],
        **network.first.certificate(),
    )
    return IROState(iteration, network, step.latents, step.rng_state, record, before.rest_after)
