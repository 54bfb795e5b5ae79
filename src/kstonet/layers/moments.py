"""Mean and covariance of a layer's values at some rows, the covariance split by where it comes from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet.layers.activations import Activation

FIRST_LAYER, REGRESSION = "first layer", "regression layers"


@dataclass(frozen=True)
class Moments:
    """Moments of the m values of a layer at n rows.

    Parameters
    ----------
    mean : ndarray of shape (n, m)
    parts : dict of ndarray of shape (n, m, m)
        Covariance by source; the sources are independent of each other.
    """

    mean: np.ndarray
    parts: dict[str, np.ndarray]

    @property
    def covariance(self) -> np.ndarray:
        """Shape (n, m, m)."""
        return np.asarray(sum(self.parts.values()))

    def activated(self, activation: Activation, order: int = 1) -> Moments:
        """Moments of ψ(values) by a Taylor expansion around the mean.

        Order 1 is the paper's: E ψ(Z) ≈ ψ(μ), Var ψ(Z) ≈ D Σ D with D = diag ψ′(μ). Order 2 adds all terms of second order in Σ
        of a Gaussian Z: ½ ψ″ Σ_jj to the mean, and ½ ψ″_j ψ″_k Σ_jk² + ½ (ψ′_j ψ‴_k Σ_kk + ψ‴_j ψ′_k Σ_jj) Σ_jk to the
        covariance; they count as the first layer's. For wide Σ the expansion breaks down; a variance never falls below zero.
        """
        slope = activation.slope(self.mean)
        mean = activation.value(self.mean)
        parts = {source: slope[:, :, None] * part * slope[:, None, :] for source, part in self.parts.items()}
        if order == 2:
            covariance, bend = self.covariance, activation.bend(self.mean)
            variance = np.diagonal(covariance, axis1=1, axis2=2)
            mean = mean + 0.5 * bend * variance
            lean = slope[:, :, None] * (activation.twist(self.mean) * variance)[:, None, :]
            more = 0.5 * (bend[:, :, None] * bend[:, None, :] * covariance + lean + lean.swapaxes(1, 2)) * covariance
            parts[FIRST_LAYER] = _positive(parts[FIRST_LAYER] + more)
        return Moments(mean, parts)


def _positive(covariance: np.ndarray) -> np.ndarray:
    """The nearest positive semi-definite matrices."""
    values, vectors = np.linalg.eigh(covariance)
    return np.asarray((vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.swapaxes(1, 2))
