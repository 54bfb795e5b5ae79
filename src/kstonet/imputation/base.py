"""The interface between samplers and networks.

A sampler has two methods, as in BlackJAX: ``init(latents) -> state`` and ``step(rng, state, conditionals) -> (state, info)``.
Every step sweeps the latent layers from the last to the first (Algorithm 1, step 1) and leaves the joint distribution of the
latent values, to the power 1/temperature, invariant. Observations are independent of each other: every array has one row per
observation, and proposals are accepted or rejected separately for every observation.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from kstonet._arrays import Array, namespace

Latents = tuple[Array, ...]


class Conditionals(Protocol):
    """π(Y_i | Y_{i-1}, Y_{i+1}) for every latent layer, given the current parameters (Algorithm 1, step 1)."""

    def score(self, layer: int, latents: Latents) -> Array:
        """∂ log π / ∂ Y_layer, shape (n, units)."""
        ...

    def log_density(self, layer: int, latents: Latents) -> Array:
        """Log π of the terms that hold Y_layer, up to a constant, shape (n,)."""
        ...

    def curvature(self, layer: int, latents: Latents) -> Array:
        """A bound on the curvature of log π in Y_layer, shape (n,)."""
        ...


@dataclass(frozen=True)
class SamplerInfo:
    """Diagnostics of one step.

    Attributes
    ----------
    acceptance : float
        Share of the accepted proposals; 1 for samplers without an accept step.
    kinetic : float
        Kinetic energy divided by its value in equilibrium: about 1 if the chain of momentum updates works well, large if the
        step is too long. NaN for samplers without a lasting momentum.
    energy_error : float
        Mean absolute change of the total energy of the proposals, in units of the temperature. NaN without an accept step.
    diverged : bool
        Whether a latent value is no longer finite.
    """

    acceptance: float = 1.0
    kinetic: float = np.nan
    energy_error: float = np.nan
    diverged: bool = False


@dataclass(frozen=True)
class ChainState:
    """State of a chain: latent values, and velocities for samplers that keep them (else empty)."""

    latents: Latents
    velocities: Latents = ()


@dataclass(frozen=True)
class Sampler(ABC):
    """A sampler of the latent values.

    A class that says ``takes_tensors = True`` may be given tensors on a device for all of its arrays, and then ``rng`` gives
    ``standard_normal`` and ``uniform`` numbers as tensors, too. Others are given NumPy arrays only.

    Parameters
    ----------
    step_sizes : tuple of ndarray
        Step sizes ε of eq. (imputationeq) for every latent layer, broadcastable to (n, units).
    temperature : float
        The chain draws from π^(1/temperature); 1 is the distribution of the model, smaller values concentrate on its mode.
    friction : float
        Friction α of eq. (imputationeq), in (0, 1]. Samplers without momentum ignore it.
    """

    step_sizes: Latents
    temperature: float = 1.0
    friction: float = 0.1

    @classmethod
    @abstractmethod
    def longest_step(cls, friction: float) -> float:
        """The largest stable step, in units of one over the curvature."""

    def init(self, latents: Latents) -> ChainState:
        """Start at given latent values."""
        return ChainState(latents)

    @abstractmethod
    def step(self, rng: Any, state: ChainState, conditionals: Conditionals) -> tuple[ChainState, SamplerInfo]:
        """One sweep from the last latent layer to the first."""


def replaced(latents: Latents, layer: int, values: Array) -> Latents:
    """The latent values with one layer replaced."""
    return (*latents[:layer], values, *latents[layer + 1 :])


def choose(rng: Any, log_ratio: Array, proposal: Array, current: Array) -> tuple[Array, float]:
    """Apply Metropolis' rule to every observation; non-finite proposals are rejected. Return values and share accepted."""
    xp = namespace(log_ratio)
    accepted = xp.log(rng.uniform(size=len(log_ratio))) < log_ratio  # NaN compares as False
    return xp.where(accepted[:, None], proposal, current), int(accepted.sum()) / len(accepted)
