"""Algorithm 1: impute the latent values, refit every layer, again and again.

The loop is a generator of immutable states: whoever drives it decides when to stop, what to keep and what to show, and
any state can be resumed, random numbers included.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kstonet.imputation import sghmc
from kstonet.imputation.base import Latents
from kstonet.imputation.step_size import automatic_step_sizes
from kstonet.layers.heads import CategoricalHead
from kstonet.network import Network
from kstonet.noise import automatic_noise, with_noise
from kstonet.solvers.multinomial import log_proba

Schedule = float | str | Sequence[float] | Callable[[int], float]
MOST_SHRINKS = 6  # a diverged imputation is redone with a quarter of the step, at most so often
FARTHEST = 1e4  # a latent value this many times the layer's spread away has diverged


@dataclass(frozen=True)
class IROSettings:
    """Settings of the imputation; schedules are a number, one number per iteration (the last is kept), or a function of it."""

    n_imputation_steps: int = 25
    step_size: Schedule = "auto"
    friction: float = 0.1
    temperature: float = 1.0
    noise_variance: Schedule = "auto"
    C: Schedule | None = None
    alpha: Schedule | None = None


@dataclass(frozen=True)
class IRORecord:
    """What one iteration did."""

    iteration: int
    loss: float  # mean squared error, or mean negative log-likelihood
    noise: float
    step_size: float
    n_shrinks: int
    svr_gap: float
    svr_iterations: int
    n_support: float
    seconds_impute: float
    seconds_svr: float
    seconds_regressions: float


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
        return float(schedule(iteration))
    if isinstance(schedule, str) or np.ndim(schedule) == 0:
        return schedule
    values: Sequence[float] = schedule  # type: ignore[assignment]
    return float(values[min(iteration, len(values) - 1)])


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
    step: Any,
) -> tuple[Latents, float, int]:
    """Step 1 of Algorithm 1: draw the latent values; shrink and redo where the chain diverges.

    Returns the latent values, the median step size and how often it was shrunk.
    """
    conditionals = network.conditionals(inputs, outputs)
    spreads = [values.std() + 1e-12 for values in start]
    for shrinks in range(MOST_SHRINKS + 1):
        if step == "auto":
            sizes = automatic_step_sizes(conditionals, start, settings.friction)
        else:
            sizes = tuple(np.full((len(values), 1), float(step)) for values in start)
        sizes = tuple(size / 4.0**shrinks for size in sizes)
        state = sghmc.init(start)
        diverged = False
        with np.errstate(over="ignore", invalid="ignore"):
            for _ in range(settings.n_imputation_steps):
                state, info = sghmc.step(
                    rng, state, conditionals, sizes, friction=settings.friction, temperature=settings.temperature
                )
                diverged = info.diverged
                if diverged:
                    break
        far = diverged or any(
            np.abs(values - first).max() > FARTHEST * spread
            for values, first, spread in zip(state.latents, start, spreads, strict=True)
        )
        if not far:
            return state.latents, float(np.median(np.concatenate([size.ravel() for size in sizes]))), shrinks
    warnings.warn(
        f"the imputation diverged {MOST_SHRINKS + 1} times, with steps down to step_size/{4**MOST_SHRINKS}; the latent values "
        "are kept as they were. Use step_size='auto' or a smaller step_size.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return start, 0.0, MOST_SHRINKS + 1


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
    rng = np.random.default_rng()
    while True:
        rng.bit_generator.state = state.rng_state
        t, network = state.iteration, state.network
        if settings.C is not None:
            network = network.with_layer(0, C=np.full_like(network.layers[0].C, scheduled(settings.C, t)))
        if settings.alpha is not None:
            for i in range(1, len(network)):
                network = network.with_layer(i, alpha=float(scheduled(settings.alpha, t)))
        started = time.perf_counter()
        values = network.forward(inputs)
        noise = scheduled(settings.noise_variance, t)
        noise = automatic_noise(network, values, outputs) if noise == "auto" else float(noise)
        network = with_noise(network, noise)
        latents, step, shrinks = impute(rng, network, inputs, outputs, values[:-1], settings, scheduled(settings.step_size, t))
        imputed = time.perf_counter()

        chain = (inputs, *latents, outputs)
        first = network.layers[0].refit(chain[0], chain[1], sample_weight)
        kernel_done = time.perf_counter()
        rest = tuple(layer.refit(chain[i], chain[i + 1], sample_weight) for i, layer in enumerate(network.layers[1:], start=1))
        done = time.perf_counter()

        network = Network((first, *rest))
        record = IRORecord(
            iteration=t + 1,
            loss=training_loss(network, network.forward(inputs)[-1], outputs),
            noise=noise,
            step_size=step,
            n_shrinks=shrinks,
            svr_gap=float(first.gap.max()),
            svr_iterations=int(max(solution.n_iter.max() for solution in first.solutions)),
            n_support=float(first.n_support.mean()),
            seconds_impute=imputed - started,
            seconds_svr=kernel_done - imputed,
            seconds_regressions=done - kernel_done,
        )
        state = replace(
            state, iteration=t + 1, network=network, latents=latents, rng_state=dict(rng.bit_generator.state), record=record
        )
        yield state
