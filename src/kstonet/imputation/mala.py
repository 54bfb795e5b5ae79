"""The Metropolis-adjusted Langevin algorithm: the friction = 1 update of eq. (imputationeq) as a proposal.

The accept step removes the bias of the discretisation; it costs a second gradient and two densities.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import namespace
from kstonet.imputation.base import ChainState, Conditionals, Sampler, SamplerInfo, choose, replaced


@dataclass(frozen=True)
class MALA(Sampler):
    """Langevin proposals, accepted or rejected for every observation separately."""

    takes_tensors = True

    @classmethod
    def longest_step(cls, friction: float) -> float:
        return 2.0

    def step(self, rng: Any, state: ChainState, conditionals: Conditionals) -> tuple[ChainState, SamplerInfo]:
        latents, rates, errors = state.latents, [], []
        for i in reversed(range(len(latents))):
            xp = namespace(latents[i])
            size = xp.broadcast_to(self.step_sizes[i], latents[i].shape)
            spread = xp.sqrt(2.0 * self.temperature * size)
            noise = rng.standard_normal(latents[i].shape)
            proposal = latents[i] + size * conditionals.score(i, latents) + spread * noise
            moved = replaced(latents, i, proposal)
            # the noise of the reverse move
            back = (latents[i] - proposal - size * conditionals.score(i, moved)) / spread
            log_ratio = (conditionals.log_density(i, moved) - conditionals.log_density(i, latents)) / self.temperature
            log_ratio = log_ratio + 0.5 * ((noise**2).sum(axis=1) - (back**2).sum(axis=1))
            chosen, rate = choose(rng, log_ratio, proposal, latents[i])
            latents = replaced(latents, i, chosen)
            rates.append(rate)
            errors.append(float(abs(log_ratio).mean()))
        return ChainState(latents), SamplerInfo(acceptance=float(np.mean(rates)), energy_error=float(np.mean(errors)))
