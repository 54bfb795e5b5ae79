"""Hamiltonian Monte Carlo with an accept step: 1/friction leapfrog steps from a fresh momentum.

The paper's update forgets its momentum after about 1/friction steps; a trajectory of as many leapfrog steps is its exact
counterpart (friction = 1 is one leapfrog step, which is MALA).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import namespace
from kstonet.imputation.base import ChainState, Conditionals, Sampler, SamplerInfo, choose, replaced

JITTER = 0.2  # relative variation of the leapfrog step: a fixed trajectory may return to its start


@dataclass(frozen=True)
class HMC(Sampler):
    """Leapfrog trajectories, accepted or rejected for every observation separately; the leapfrog step is √step_size."""

    takes_tensors = True

    @classmethod
    def longest_step(cls, friction: float) -> float:
        return 4.0

    def step(self, rng: Any, state: ChainState, conditionals: Conditionals) -> tuple[ChainState, SamplerInfo]:
        latents, rates, errors = state.latents, [], []
        for i in reversed(range(len(latents))):
            stretch = rng.uniform(1.0 - JITTER, 1.0 + JITTER, size=(len(latents[i]), 1))
            leap = namespace(stretch).sqrt(self.step_sizes[i]) * stretch
            start = math.sqrt(self.temperature) * rng.standard_normal(latents[i].shape)
            proposal, momentum = latents[i], start + 0.5 * leap * conditionals.score(i, latents)
            for left in reversed(range(max(1, round(1.0 / self.friction)))):
                proposal = proposal + leap * momentum
                gradient = conditionals.score(i, replaced(latents, i, proposal))
                momentum = momentum + (leap if left else 0.5 * leap) * gradient
            gained = conditionals.log_density(i, replaced(latents, i, proposal)) - conditionals.log_density(i, latents)
            kinetic = 0.5 * ((momentum**2).sum(axis=1) - (start**2).sum(axis=1))
            log_ratio = (gained - kinetic) / self.temperature
            chosen, rate = choose(rng, log_ratio, proposal, latents[i])
            latents = replaced(latents, i, chosen)
            rates.append(rate)
            errors.append(float(abs(log_ratio).mean()))
        return ChainState(latents), SamplerInfo(acceptance=float(np.mean(rates)), energy_error=float(np.mean(errors)))
