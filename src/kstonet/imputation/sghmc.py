"""The paper's momentum update, eq. (imputationeq); friction = 1 is Langevin Monte Carlo."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet.imputation.base import Conditionals, Latents, SamplerInfo


@dataclass(frozen=True)
class SGHMCState:
    """Positions and velocities, one array per latent layer."""

    latents: Latents
    velocities: Latents


def init(latents: Latents) -> SGHMCState:
    """Start at rest (Algorithm 1, step 1.1)."""
    return SGHMCState(latents, tuple(np.zeros_like(values) for values in latents))


def step(
    rng: np.random.Generator,
    state: SGHMCState,
    conditionals: Conditionals,
    step_sizes: Latents,
    *,
    friction: float = 0.1,
    temperature: float = 1.0,
) -> tuple[SGHMCState, SamplerInfo]:
    """One sweep from the last latent layer to the first.

    Parameters
    ----------
    rng : Generator
    state : SGHMCState
    conditionals : Conditionals
    step_sizes : tuple of ndarray
        ε of the equation for every latent layer, broadcastable to (n, units).
    friction : float
        α of the equation, in (0, 1].
    temperature : float
        Scales the variance of the injected noise; 0 follows the gradient only.

    Returns
    -------
    SGHMCState, SamplerInfo
    """
    latents, velocities = list(state.latents), list(state.velocities)
    for i in reversed(range(len(latents))):
        gradient = conditionals.score(i, tuple(latents))
        noise = rng.standard_normal(latents[i].shape)
        velocities[i] = (
            (1.0 - friction) * velocities[i]
            + step_sizes[i] * gradient
            + np.sqrt(2.0 * friction * temperature * step_sizes[i]) * noise
        )
        latents[i] = latents[i] + velocities[i]
    finite = all(np.isfinite(values).all() for values in latents)
    energy = float(sum(0.5 * (v**2).sum() for v in velocities)) if finite else np.inf
    return SGHMCState(tuple(latents), tuple(velocities)), SamplerInfo(1.0, energy, not finite)
