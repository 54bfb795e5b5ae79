"""Regression layers with Gaussian noise: the hidden layers above the first, and the regression head (eq. optsolver2)."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.layers.activations import Activation
from kstonet.solvers.penalized import solve_penalized


@dataclass(frozen=True)
class DenseLayer:
    """Y = b + w ψ(inputs) + e,  e ~ N(0, variance·I).

    Parameters
    ----------
    weights : ndarray of shape (outputs, inputs)
    intercept : ndarray of shape (outputs,)
    variance : float
        Of the noise.
    activation : Activation
        Applied to the inputs.
    penalty, alpha : str, float
        Of the refit.
    kkt : float
        How far the last refit was from its optimality conditions.
    """

    weights: np.ndarray
    intercept: np.ndarray
    variance: float
    activation: Activation
    penalty: str = "lasso"
    alpha: float = 1e-4
    kkt: float = 0.0

    def at(self, rows: slice) -> DenseLayer:
        return self

    def certificate(self) -> dict[str, float]:
        return {}

    def mean(self, inputs: np.ndarray) -> np.ndarray:
        return np.asarray(self.activation.value(inputs) @ self.weights.T + self.intercept)

    def log_density(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        squared = ((outputs - self.mean(inputs)) ** 2).sum(axis=1)
        constant = 0.5 * len(self.intercept) * np.log(2.0 * np.pi * self.variance)
        return np.asarray(-0.5 * squared / self.variance - constant)

    def score_output(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        return np.asarray((self.mean(inputs) - outputs) / self.variance)

    def score_input(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        value, slope = self.activation.value_and_slope(inputs)
        pull = ((outputs - self.intercept - value @ self.weights.T) / self.variance) @ self.weights
        return np.asarray(slope * pull)

    def curvature_output(self) -> np.ndarray:
        return np.full(len(self.intercept), 1.0 / self.variance)

    def curvature_input(self, inputs: np.ndarray) -> np.ndarray:
        """Gauss-Newton part |w diag ψ'|² / variance, with the steepest slope: it bounds every point on the way."""
        bound = self.activation.steepest**2 * float(np.linalg.norm(self.weights, 2)) ** 2 / self.variance
        return np.full(len(inputs), bound)

    def refit(self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> DenseLayer:
        fit = solve_penalized(
            self.activation.value(inputs),
            outputs,
            penalty=self.penalty,
            alpha=self.alpha,
            sample_weight=sample_weight,
            start=self.weights if self.weights.any() else None,  # a new layer has nothing to start from
        )
        return replace(self, weights=fit.weights, intercept=fit.intercept, kkt=float(np.max(fit.kkt)))
