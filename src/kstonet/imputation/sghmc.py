"""The paper's momentum update, eq. (imputationeq); friction = 1 is Langevin Monte Carlo.

There is no accept step: a step costs one gradient, and the discretisation biases the distribution by O(step size).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import dots, namespace
from kstonet.imputation.base import ChainState, Conditionals, Latents, Sampler, SamplerInfo


@dataclass(frozen=True)
class SGHMC(Sampler):
    """Stochastic-gradient Hamiltonian Monte Carlo; temperature 0 follows the gradient only."""

    takes_tensors = True

    @classmethod
    def longest_step(cls, friction: float) -> float:
        return 4.0 - 2.0 * friction  # linear analysis of the update

    def init(self, latents: Latents) -> ChainState:
        """Start at rest (Algorithm 1, step 1.1)."""
        return ChainState(latents, tuple(namespace(values).zeros_like(values) for values in latents))

    def step(self, rng: Any, state: ChainState, conditionals: Conditionals) -> tuple[ChainState, SamplerInfo]:
        latents, velocities = list(state.latents), list(state.velocities)
        kinetic = []
        for i in reversed(range(len(latents))):
            size = self.step_sizes[i]
            gradient = conditionals.score(i, tuple(latents))
            noise = rng.standard_normal(latents[i].shape)
            noise *= namespace(noise).sqrt(2.0 * self.friction * self.temperature * size)
            velocity = (1.0 - self.friction) * velocities[i]
            velocity += size * gradient
            velocity += noise
            velocities[i], latents[i] = velocity, latents[i] + velocity
            kinetic.append(float(dots(velocity, velocity, axis=1) @ (1.0 / size[:, 0])) / math.prod(velocity.shape))
        finite = bool(np.isfinite(kinetic).all())
        # without a gradient the velocities have variance temperature·size/(1 - friction/2)
        equilibrium = self.temperature / (1.0 - 0.5 * self.friction)
        ratio = float(np.mean(kinetic)) / equilibrium if equilibrium else np.nan
        return ChainState(tuple(latents), tuple(velocities)), SamplerInfo(kinetic=ratio, diverged=not finite)
