"""A robust regression layer: residuals beyond a threshold count linearly, so that outliers pull with bounded force."""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import erf

from kstonet.layers import RegressionLayer, RegressionUncertainty, register_layer
from kstonet.layers.activations import Activation
from kstonet.layers.regression import active, design, inverse_on
from kstonet.persistence import storable
from kstonet.solvers.penalized import solve_penalized

ROUNDS, ENOUGH = 100, 1e-10  # reweighted least squares: at most so many solves, until the weights stand still


@storable(weights="float k q", intercept="float k")
@dataclass(frozen=True)
class HuberLayer(RegressionLayer):
    """Y = b + w ψ(inputs) + e with the density of e ∝ exp(-ρ(e)/variance) and Huber's loss ρ.

    ρ(e) is e²/2 up to ``threshold`` and linear beyond. Outputs are standardised, so that the threshold is in their units.
    """

    weights: np.ndarray
    intercept: np.ndarray
    variance: float
    activation: Activation
    penalty: str
    alpha: float
    threshold: float = 0.3

    @classmethod
    def new(cls, inputs: int, outputs: int, activation: Activation, penalty: str, alpha: float) -> Self:
        return cls(np.zeros((outputs, inputs)), np.zeros(outputs), 1.0, activation, penalty, alpha)

    @property
    def n_outputs(self) -> int:
        return len(self.intercept)

    # -- the distribution ----------------------------------------------------------------------------------------------------

    def mean(self, inputs):
        return self.activation.value(inputs) @ self.weights.T + self.intercept

    def _rho(self, residuals):
        size = np.abs(residuals)
        return np.where(size <= self.threshold, 0.5 * size**2, self.threshold * (size - 0.5 * self.threshold))

    def _pull(self, inputs, outputs):
        """ρ′ of the residuals."""
        return np.clip(outputs - self.mean(inputs), -self.threshold, self.threshold)

    def log_density(self, inputs, outputs):
        v, c = self.variance, self.threshold
        mass = np.sqrt(2.0 * np.pi * v) * erf(c / np.sqrt(2.0 * v)) + 2.0 * v / c * np.exp(-0.5 * c**2 / v)
        return -self._rho(outputs - self.mean(inputs)).sum(axis=1) / v - self.n_outputs * np.log(mass)

    def score_output(self, inputs, outputs):
        return -self._pull(inputs, outputs) / self.variance

    def score_input(self, inputs, outputs):
        return self.activation.slope(inputs) * (self._pull(inputs, outputs) @ self.weights) / self.variance

    def curvature_output(self):
        return np.full(self.n_outputs, 1.0 / self.variance)

    def curvature_input(self, inputs):
        bound = (self.activation.steepest * np.linalg.norm(self.weights, 2)) ** 2 / self.variance
        return np.full(len(inputs), bound)

    # -- training ------------------------------------------------------------------------------------------------------------

    def with_noise(self, variance: float) -> Self:
        return replace(self, variance=variance)

    def loss(self, prediction, outputs) -> float:
        return float(2.0 * self._rho(outputs - prediction).mean())

    def residual(self, prediction, outputs) -> float:
        return max(float(1.4826 * np.median(np.abs(outputs - prediction))), 1e-3)

    def refit(self, inputs, outputs, sample_weight=None) -> Self:
        """Minimise Σ ωᵢ ρ(residualᵢ)/Σ ωᵢ + penalty: a convex problem, as a sequence of weighted least squares."""
        features = self.activation.value(inputs)
        given = np.ones(len(features)) if sample_weight is None else sample_weight
        weights, intercept = self.weights.copy(), self.intercept.copy()
        for j in range(self.n_outputs):
            start = weights[[j]] if weights[j].any() else None
            trust = given  # ρ′(e)/e of every residual, times its weight; least squares first
            for _ in range(ROUNDS):
                alpha = self.alpha * given.sum() / trust.sum()  # the solver divides by the sum of the weights it is given
                fit = solve_penalized(
                    features, outputs[:, [j]], penalty=self.penalty, alpha=alpha, sample_weight=trust, start=start
                )
                start = fit.weights
                size = np.abs(outputs[:, j] - features @ fit.weights[0] - fit.intercept[0])
                before, trust = trust, given * self.threshold / np.maximum(size, self.threshold)
                if np.abs(trust - before).max() <= ENOUGH:
                    break
            weights[j], intercept[j] = fit.weights[0], fit.intercept[0]
        return replace(self, weights=weights, intercept=intercept)

    def uncertainty(self, inputs, outputs, sample_weight=None) -> RegressionUncertainty:
        """The sandwich of an M-estimator, A⁻¹ B A⁻¹ with A = Σ ρ″ x xᵀ and B = Σ ρ′² x xᵀ, on the active coefficients."""
        features, weight = design(self.activation.value(inputs), sample_weight)
        residuals, pulls = outputs - self.mean(inputs), self._pull(inputs, outputs)
        q1, k = features.shape[1], self.n_outputs
        covariance, noise = np.zeros((k, q1, k, q1)), np.empty(k)
        for j in range(k):
            inside = weight * (np.abs(residuals[:, j]) <= self.threshold)
            inverse = inverse_on((features * inside[:, None]).T @ features, active(self.weights[j], self.penalty))
            score = features * (weight * pulls[:, j])[:, None]
            covariance[j, :, j, :] = inverse @ (score.T @ score) @ inverse
            noise[j] = weight @ residuals[:, j] ** 2 / weight.sum()
        return RegressionUncertainty(self.weights, self.intercept, covariance, self.activation, noise)


register_layer("huber", HuberLayer.new)
