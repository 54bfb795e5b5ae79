"""What the recursion cannot know: the noise of the data, and the scale of the first layer's variance.

Eq. (finalvar) takes the noise from *training* residuals. Where the network nearly interpolates these say little about new
rows, and the first layer's variance has the scale of the kernel's prior whatever the data. Honest residuals (left out, or
cross-fitted) with the variances that belong to them tell both: for every output

    residual_i ~ N(0, noise + scale · first_i + other_i),

and (noise, scale) maximise that likelihood. ``first`` is the first layer's part of the variance, ``other`` the rest of it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from kstonet.uncertainty.moments import FIRST_LAYER

SMALLEST, LARGEST = 1e-10, 1e2  # noise over the mean squared residual, and scale over what would explain all of it


@dataclass(frozen=True)
class NoiseModel:
    """Noise covariance of the outputs, and the factor of the first layer's variance.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
    scale : ndarray of shape (k,)
    """

    covariance: np.ndarray
    scale: np.ndarray

    @classmethod
    def of_training(cls, residuals: np.ndarray, sample_weight: np.ndarray | None = None) -> NoiseModel:
        """The paper's: the mean square of the training residuals, and the recursion as it stands."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        return cls((residuals * weights[:, None]).T @ residuals / weights.sum(), np.ones(residuals.shape[1]))

    @classmethod
    def of_honest(
        cls, residuals: np.ndarray, first: np.ndarray, other: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> NoiseModel:
        """From honest residuals (n, k) and the variances (n, k) of the same rows."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        k = residuals.shape[1]
        fits = np.array([_maximise(residuals[:, j], first[:, j], other[:, j], weights) for j in range(k)]).reshape(k, 2)
        deviation, scale = np.sqrt(fits[:, 0]), fits[:, 1]
        standard = residuals / np.sqrt(np.maximum(fits[:, 0] + scale * first + other, 1e-300))
        moment = (standard * weights[:, None]).T @ standard / weights.sum()
        size = np.sqrt(np.maximum(np.diagonal(moment), 1e-300))
        return cls(np.outer(deviation, deviation) * (moment / np.outer(size, size)), scale)

    def scaled(self, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The covariances (n, k, k) by source, the first layer's with its scale."""
        root = np.sqrt(self.scale)
        return parts | {FIRST_LAYER: root[:, None] * parts[FIRST_LAYER] * root}


def _maximise(residual: np.ndarray, first: np.ndarray, other: np.ndarray, weights: np.ndarray) -> tuple[float, float]:
    """Maximum-likelihood (noise, scale) of one output."""
    square = residual**2
    total = float(np.average(square, weights=weights))
    if total <= 1e-20:  # standardised targets are reproduced exactly
        return 0.0, 0.0
    prior = float(np.average(first, weights=weights))
    unit = total / prior if prior > 0.0 else 1.0  # scale that would explain everything

    def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
        noise, scale = total * np.exp(logs[0]), unit * np.exp(logs[1])
        variance = noise + scale * first + other
        value = 0.5 * np.average(np.log(variance) + square / variance, weights=weights)
        slope = 0.5 * weights * (1.0 / variance - square / variance**2) / weights.sum()
        return float(value), np.array([noise * slope.sum(), scale * (slope @ first)])

    bounds = [(np.log(SMALLEST), np.log(LARGEST)), (np.log(SMALLEST), np.log(LARGEST))]
    starts = [np.log([0.5, 0.5]), np.log([1.0, 1e-4]), np.log([1e-3, 1.0])]
    fits = [minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds) for start in starts]
    logs = min(fits, key=lambda fit: float(fit.fun)).x
    return float(total * np.exp(logs[0])), float(unit * np.exp(logs[1]))
