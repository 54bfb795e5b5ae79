"""A Gibbs sampler: one latent coordinate at a time, by slice draws (Neal 2003), all observations at once.

It needs no gradient and no tuning: the step size only sets the first width of the slice, which adapts by stepping out and
shrinking. It computes several densities per coordinate and is therefore slow; it is a reference for the other samplers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kstonet.imputation.base import ChainState, Conditionals, Sampler, SamplerInfo, replaced

STEPS_OUT = 8  # at most, on both sides together; fewer are correct too, but mix more slowly
SHRINKS = 60  # at most; after that the coordinate keeps its value


@dataclass(frozen=True)
class SliceGibbs(Sampler):
    """Slice draws, coordinate by coordinate, in random order of the units.

    How many random numbers a draw takes depends on its values, so that a device cannot draw chunks together as it would draw
    them alone: this sampler runs on the CPU.
    """

    @classmethod
    def longest_step(cls, friction: float) -> float:
        return 16.0  # a width of four standard deviations (of the stiffest direction) after the safety factor of step_size.py

    def step(self, rng: np.random.Generator, state: ChainState, conditionals: Conditionals) -> tuple[ChainState, SamplerInfo]:
        latents, hits = state.latents, []
        for i in reversed(range(len(latents))):
            widths = np.broadcast_to(np.sqrt(self.temperature * self.step_sizes[i]), latents[i].shape)
            for unit in rng.permutation(latents[i].shape[1]):
                log_density = _along(conditionals, latents, i, int(unit), self.temperature)
                drawn, hit = slice_draw(rng, latents[i][:, unit], widths[:, unit], log_density)
                values = latents[i].copy()
                values[:, unit] = drawn
                latents = replaced(latents, i, values)
                hits.append(hit)
        return ChainState(latents), SamplerInfo(acceptance=float(np.mean(hits)))


Line = Callable[[np.ndarray], np.ndarray]


def _along(conditionals: Conditionals, latents: tuple[np.ndarray, ...], layer: int, unit: int, temperature: float) -> Line:
    """The log-density of every observation as a function of one of its coordinates."""

    def log_density(x: np.ndarray) -> np.ndarray:
        values = latents[layer].copy()
        values[:, unit] = x
        return np.asarray(conditionals.log_density(layer, replaced(latents, layer, values)) / temperature)

    return log_density


def slice_draw(rng: np.random.Generator, x: np.ndarray, width: np.ndarray, log_density: Line) -> tuple[np.ndarray, float]:
    """One slice-sampling update of n independent scalars (Neal 2003, Figures 3 and 5).

    Returns
    -------
    ndarray, float
        The new values, and the share that moved within the bounds on the work.
    """
    n = len(x)
    level = log_density(x) - rng.exponential(size=n)
    left = x - width * rng.uniform(size=n)
    right = left + width
    # The budget of steps is split at random between the sides, which keeps the update reversible.
    left_budget = rng.integers(STEPS_OUT + 1, size=n)
    for edge, direction, budget in ((left, -1.0, left_budget), (right, 1.0, STEPS_OUT - left_budget)):
        for used in range(STEPS_OUT):
            inside = (used < budget) & (log_density(edge) > level)
            if not inside.any():
                break
            edge += np.where(inside, direction * width, 0.0)
    out, waiting = x.copy(), np.ones(n, dtype=bool)
    for _ in range(SHRINKS):
        trial = left + (right - left) * rng.uniform(size=n)
        hit = waiting & (log_density(np.where(waiting, trial, out)) > level)
        out = np.where(hit, trial, out)
        waiting &= ~hit
        if not waiting.any():
            break
        right = np.where(waiting & (trial >= x), trial, right)
        left = np.where(waiting & (trial < x), trial, left)
    return out, float(1.0 - waiting.mean())
