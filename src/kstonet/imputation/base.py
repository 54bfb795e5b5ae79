"""What a sampler may ask of a network, and what it answers.

A sampler is a pair of functions in the manner of BlackJAX: ``init(latents)`` and ``step(rng, state, conditionals, ...) ->
(state, info)``. Observations are independent of each other: every array has one row per observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

Latents = tuple[np.ndarray, ...]


class Conditionals(Protocol):
    """π(Y_i | Y_{i-1}, Y_{i+1}) for every latent layer, given the current parameters (Algorithm 1, step 1)."""

    def score(self, layer: int, latents: Latents) -> np.ndarray:
        """∂ log π / ∂ Y_layer, shape (n, units)."""
        ...

    def log_density(self, layer: int, latents: Latents) -> np.ndarray:
        """Log π of the terms that hold Y_layer, up to a constant, shape (n,)."""
        ...

    def curvature(self, layer: int, latents: Latents) -> np.ndarray:
        """A bound of the stiffness of log π in Y_layer, shape (n,)."""
        ...


@dataclass(frozen=True)
class SamplerInfo:
    """Health of one step."""

    acceptance: float
    energy: float
    diverged: bool
