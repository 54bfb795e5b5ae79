"""Run a sampler for some steps; if it diverges, shrink the step and start again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import deviation, full, to_numpy
from kstonet.imputation import SAMPLERS
from kstonet.imputation.base import Conditionals, Latents, SamplerInfo
from kstonet.imputation.step_size import automatic_step_sizes

MOST_SHRINKS = 6  # number of times that a diverged chain is repeated with a quarter of the step
FARTHEST = 1e4  # a latent value this many times the layer's spread away (one, where training starts) has diverged


@dataclass(frozen=True)
class ChainSettings:
    """Name of the sampler, number of steps, friction and temperature."""

    sampler: str = "sghmc"
    n_steps: int = 25
    friction: float = 0.1
    temperature: float = 1.0


@dataclass(frozen=True)
class Draw:
    """The end of a chain: latent values and diagnostics."""

    latents: Latents
    step_size: float  # median over observations and layers
    n_shrinks: int
    acceptance: float
    kinetic: float

    @property
    def gave_up(self) -> bool:
        """Whether every attempt diverged and the latent values are those of the start."""
        return self.n_shrinks > MOST_SHRINKS


def run_chain(
    rng: np.random.Generator, conditionals: Conditionals, start: Latents, settings: ChainSettings, step_size: Any = "auto"
) -> Draw:
    """Draw latent values, beginning at ``start`` (step 1 of Algorithm 1).

    Parameters
    ----------
    rng : Generator
        Source of random numbers.
    conditionals : Conditionals
        Densities and gradients of the hidden values.
    start : tuple of ndarray
        Hidden values at the start of the chain.
    settings : ChainSettings
        Sampler, number of steps, friction and temperature.
    step_size : "auto" or float
        ε of eq. (imputationeq), or ``"auto"`` for a quarter of the stability limit.

    Returns
    -------
    Draw
    """
    for shrinks in range(MOST_SHRINKS + 1):
        draw = attempt(rng, conditionals, start, settings, step_size, shrinks)
        if draw is not None:
            return draw
    return Draw(start, 0.0, MOST_SHRINKS + 1, 0.0, np.nan)


def attempt(
    rng: Any, conditionals: Conditionals, start: Latents, settings: ChainSettings, step_size: Any, shrinks: int = 0
) -> Draw | None:
    """Draw latent values with a step that was quartered ``shrinks`` times; None where the chain diverges."""
    kind = SAMPLERS[settings.sampler]
    spreads = [1.0 + deviation(values) for values in start]
    if step_size == "auto":
        sizes = automatic_step_sizes(conditionals, start, kind.longest_step(settings.friction))
    else:
        sizes = tuple(full(values, (len(values), 1), float(step_size)) for values in start)
    sizes = tuple(size / 4.0**shrinks for size in sizes)
    sampler = kind(sizes, settings.temperature, settings.friction)
    state, infos = sampler.init(start), [SamplerInfo()]
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(settings.n_steps):
            state, info = sampler.step(rng, state, conditionals)
            infos.append(info)
            if info.diverged:
                return None
    if any(
        float(abs(values - first).max()) > FARTHEST * spread
        for values, first, spread in zip(state.latents, start, spreads, strict=True)
    ):
        return None
    median = float(np.median(np.concatenate([to_numpy(size).ravel() for size in sizes])))
    return Draw(state.latents, median, shrinks, float(np.mean([i.acceptance for i in infos[1:]])), infos[-1].kinetic)
