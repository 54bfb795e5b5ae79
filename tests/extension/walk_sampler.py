"""Random-walk Metropolis: needs densities only, no gradients."""

from dataclasses import dataclass

import numpy as np

from kstonet.imputation import Sampler, register_sampler
from kstonet.imputation.base import ChainState, SamplerInfo, choose, replaced


@dataclass(frozen=True)
class RandomWalk(Sampler):
    """Gaussian proposals around the current values, accepted or refused observation by observation."""

    @classmethod
    def longest_step(cls, friction):
        return 2.0

    def step(self, rng, state, conditionals):
        latents, rates = state.latents, []
        for i in reversed(range(len(latents))):
            spread = np.sqrt(2.0 * self.temperature * self.step_sizes[i])
            proposal = latents[i] + spread * rng.standard_normal(latents[i].shape)
            gain = conditionals.log_density(i, replaced(latents, i, proposal)) - conditionals.log_density(i, latents)
            values, rate = choose(rng, gain / self.temperature, proposal, latents[i])
            latents = replaced(latents, i, values)
            rates.append(rate)
        return ChainState(latents), SamplerInfo(acceptance=float(np.mean(rates)))


register_sampler("walk", RandomWalk)
