"""The uncertainty of a regression on very many features, in a form whose size does not grow with their square."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import svd

from kstonet._records import storable
from kstonet.layers.regression import active, design

SMALLEST = 1e-15  # eigenvalue over the largest one that counts as zero


@storable(weights="float k q", intercept="float k", roots="float k q+1 r|float 1 q+1 r", noise="nonnegative k")
@dataclass(frozen=True)
class WideRegression:
    """A fitted regression whose covariances are noise·R·Rᵀ, with at most as many columns of R as there were rows.

    Parameters
    ----------
    weights : ndarray of shape (k, q)
        Weights, for every output.
    intercept : ndarray of shape (k,)
        Intercepts.
    roots : ndarray of shape (k, q + 1, r) or (1, q + 1, r)
        R of every output, or of all; the intercept first.
    noise : ndarray of shape (k,)
        Residual variance of the fit.
    """

    weights: np.ndarray
    intercept: np.ndarray
    roots: np.ndarray
    noise: np.ndarray

    @classmethod
    def of(
        cls,
        coefficients: tuple[np.ndarray, np.ndarray],
        inputs: np.ndarray,
        outputs: np.ndarray,
        sample_weight: np.ndarray | None,
        penalty: str,
        alpha: float,
    ) -> WideRegression:
        """What :meth:`kstonet.layers.dense.DenseLayer.uncertainty` gives, by singular values instead of inverses."""
        weights, intercept = coefficients
        features, weight = design(inputs, sample_weight)
        residuals = outputs - inputs @ weights.T - intercept
        if penalty == "ridge":
            root, used = _ridge_root(features, weight, alpha * weight.sum())
            found = [(root, used)] * len(weights)
        else:
            found = [_least_squares_root(features, weight, active(own, penalty)) for own in weights]
        rows = float((weight > 0).sum())
        noise = [float(weight @ residuals[:, j] ** 2) / max(rows - used, 1.0) for j, (_, used) in enumerate(found)]
        shared = penalty in ("ridge", "none")
        kept = found[:1] if shared else found
        roots = np.zeros((len(kept), features.shape[1], max(root.shape[1] for root, _ in kept)))
        for own, (root, _) in zip(roots, kept, strict=True):
            own[:, : root.shape[1]] = root
        return cls(weights, intercept, roots, np.array(noise))

    def own_covariance(self, inputs: np.ndarray) -> np.ndarray:
        """Covariance (n, k, k) of the outputs that comes from the estimated coefficients."""
        extended = np.column_stack([np.ones(len(inputs)), inputs])
        covariance = np.zeros((len(inputs), len(self.noise), len(self.noise)))
        shares = np.stack([((extended @ root) ** 2).sum(axis=1) for root in self.roots], axis=1)
        everyone = np.arange(len(self.noise))
        covariance[:, everyone, everyone] = self.noise * shares
        return covariance


def _least_squares_root(features: np.ndarray, weight: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, float]:
    """R with RRᵀ the pseudo-inverse of the squares of the chosen features, and how many there are."""
    _, singular, right = svd(np.sqrt(weight)[:, None] * features[:, chosen], full_matrices=False, check_finite=False)
    kept = singular**2 > SMALLEST * singular[0] ** 2
    root = np.zeros((len(chosen), int(kept.sum())))
    root[chosen] = right[kept].T / singular[kept]
    return root, float(chosen.sum())


def _ridge_root(features: np.ndarray, weight: np.ndarray, ridge: float) -> tuple[np.ndarray, float]:
    """R with RRᵀ the sandwich (A + Λ)⁻¹A(A + Λ)⁻¹, and its degrees of freedom.

    The intercept is not penalised: with centred features it is the mean of the targets, and independent of the weights.
    """
    total = float(weight.sum())
    mean = weight @ features[:, 1:] / total
    _, singular, right = svd(np.sqrt(weight)[:, None] * (features[:, 1:] - mean), full_matrices=False, check_finite=False)
    slopes = right.T * (singular / (singular**2 + ridge))
    root = np.zeros((features.shape[1], 1 + len(singular)))
    root[0, 0] = 1.0 / np.sqrt(total)
    root[0, 1:], root[1:, 1:] = -(mean @ slopes), slopes
    return root, 1.0 + float((singular**2 / (singular**2 + ridge)).sum())
