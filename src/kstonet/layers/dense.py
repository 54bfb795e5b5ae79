"""Regression layers with Gaussian noise: the hidden layers above the first, and the regression head (eq. optsolver2)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kstonet._arrays import Array, beside, full
from kstonet._records import storable
from kstonet.layers.activations import Activation
from kstonet.layers.regression import RegressionLayer, RegressionUncertainty, active, design, inverse_on
from kstonet.solvers.penalized import solve_penalized

SMALLEST_RESIDUAL = 1e-3  # of standardised targets or of probabilities: below it a fit is an interpolation


@storable(weights="float k q", intercept="float k", variance="positive", alpha="nonnegative", anchor="float k q")
@dataclass(frozen=True)
class DenseLayer(RegressionLayer):
    """Y = b + w ψ(inputs) + e,  e ~ N(0, variance·I).

    Parameters
    ----------
    weights : ndarray of shape (outputs, inputs)
    intercept : ndarray of shape (outputs,)
    variance : float
        Variance of the noise.
    activation : Activation
        The function applied to the inputs.
    penalty, alpha : str, float
        Kind and strength of the penalty of the refit.
    kkt : float
        How far the last refit was from its optimality conditions.
    anchor : ndarray of shape (outputs, inputs), optional
        Weights from which the penalty counts; by default zero.
    """

    weights: np.ndarray
    intercept: np.ndarray
    variance: float
    activation: Activation
    penalty: str = "lasso"
    alpha: float = 1e-4
    kkt: float = 0.0
    anchor: np.ndarray | None = None

    takes_tensors = True  # values are asked for and fitted in the kind that they come in; coefficients stay NumPy's

    @classmethod
    def new(cls, inputs: int, outputs: int, activation: Activation, penalty: str, alpha: float) -> Self:
        """A layer before its first refit."""
        return cls(np.zeros((outputs, inputs)), np.zeros(outputs), 1.0, activation, penalty, alpha)

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    def mean(self, inputs: Array) -> Array:
        return self.activation.value(inputs) @ beside(inputs, self.weights).T + beside(inputs, self.intercept)

    def log_density(self, inputs: Array, outputs: Array) -> Array:
        squared = ((outputs - self.mean(inputs)) ** 2).sum(axis=1)
        constant = 0.5 * len(self.intercept) * float(np.log(2.0 * np.pi * self.variance))
        return -0.5 * squared / self.variance - constant

    def score_output(self, inputs: Array, outputs: Array) -> Array:
        return (self.mean(inputs) - outputs) / self.variance

    def score_input(self, inputs: Array, outputs: Array) -> Array:
        value, slope = self.activation.value_and_slope(inputs)
        weights = beside(value, self.weights)
        pull = ((outputs - beside(value, self.intercept) - value @ weights.T) / self.variance) @ weights
        return slope * pull

    def curvature_output(self) -> np.ndarray:
        return np.full(len(self.intercept), 1.0 / self.variance)

    def curvature_input(self, inputs: Array) -> Array:
        """Gauss-Newton part |w diag ψ'|² / variance, with the steepest slope: it bounds every point on the way."""
        bound = self.activation.steepest**2 * float(np.linalg.norm(self.weights, 2)) ** 2 / self.variance
        return full(inputs, (len(inputs),), bound)

    def loss(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        return float(((outputs - prediction) ** 2).mean())

    def residual(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """Root mean squared residual."""
        return max(float(np.sqrt(np.mean((outputs - prediction) ** 2))), SMALLEST_RESIDUAL)

    def with_noise(self, variance: float) -> Self:
        return replace(self, variance=variance)

    def refit(self, inputs: Array, outputs: Array, sample_weight: np.ndarray | None = None) -> Self:
        features = self.activation.value(inputs)
        fit = solve_penalized(
            features,
            outputs if self.anchor is None else outputs - features @ beside(features, self.anchor).T,
            penalty=self.penalty,
            alpha=self.alpha,
            sample_weight=sample_weight,
            start=self._departure if self.weights.any() else None,  # a new layer has nothing to start from
        )
        weights = fit.weights if self.anchor is None else self.anchor + fit.weights
        return replace(self, weights=weights, intercept=fit.intercept, kkt=float(np.max(fit.kkt)))

    @property
    def _departure(self) -> np.ndarray:
        """What is penalised: how far the weights are from where they are anchored."""
        return self.weights if self.anchor is None else self.weights - self.anchor

    def anchored(self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None, alpha: float) -> Self:
        """A new layer whose weights are anchored where a ridge regression puts them.

        Among inputs that say the same, a ridge penalty divides the weight equally, where a lasso would pick some of them.
        """
        features = self.activation.value(inputs)
        fit = solve_penalized(features, outputs, penalty="ridge", alpha=alpha, sample_weight=sample_weight)
        return replace(self, weights=fit.weights, anchor=fit.weights)

    def uncertainty(
        self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty:
        """Covariance of the coefficients by least squares on the active set, or by the sandwich of ridge regression."""
        features, weight = design(self.activation.value(inputs), sample_weight)
        squares = (features * weight[:, None]).T @ features
        residuals = outputs - self.mean(inputs)
        q1, k = features.shape[1], len(self.intercept)
        covariance, noise = np.zeros((k, q1, k, q1)), np.empty(k)
        for j in range(k):
            if self.penalty == "ridge":
                shrinkage = np.diag([0.0, *[self.alpha * weight.sum()] * (q1 - 1)])
                inverse = np.linalg.pinv(squares + shrinkage, hermitian=True)
                spread, used = inverse @ squares @ inverse, float(np.trace(inverse @ squares))
            else:
                coordinates = active(self._departure[j], self.penalty)
                spread, used = inverse_on(squares, coordinates), float(coordinates.sum())
            # least squares' own estimate of the noise, with the degrees of freedom that are left
            noise[j] = float(weight @ residuals[:, j] ** 2) / max(float((weight > 0).sum()) - used, 1.0)
            covariance[j, :, j, :] = noise[j] * spread
        return RegressionUncertainty(self.weights, self.intercept, covariance, self.activation, noise)
