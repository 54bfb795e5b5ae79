"""The classification head: a multinomial logit on the last hidden layer."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kstonet._records import storable
from kstonet.layers.activations import Activation
from kstonet.layers.dense import SMALLEST_RESIDUAL
from kstonet.layers.regression import RegressionLayer, RegressionUncertainty, active, design, inverse_on
from kstonet.solvers.multinomial import solve_multinomial
from kstonet.solvers.softmax import log_proba


@storable(weights="float k q", intercept="float k", temperature="positive", alpha="nonnegative")
@dataclass(frozen=True)
class CategoricalHead(RegressionLayer):
    """P(class k) ∝ exp(b_k + w_k ψ(inputs)), tempered in the imputation.

    The paper gives σ²_{h+1} the role of a temperature: latent values are drawn from the likelihood to the power 1/temperature.
    The refit is the plain multinomial regression.

    Parameters
    ----------
    weights : ndarray of shape (classes, inputs), or (1, inputs) for two classes
    intercept : ndarray of shape (classes,) or (1,)
    n_classes : int
        Number of classes.
    temperature : float
        Temperature of the likelihood in the imputation.
    activation : Activation
        The function applied to the inputs.
    penalty, alpha : str, float
        Kind and strength of the penalty of the refit.
    kkt : float
        How far the last refit was from its optimality conditions.
    least_residual : float
        The smallest residual that the automatic penalty takes for typical.
    """

    weights: np.ndarray
    intercept: np.ndarray
    n_classes: int
    temperature: float
    activation: Activation
    penalty: str = "lasso"
    alpha: float = 1e-4
    kkt: float = 0.0
    least_residual: float = 0.0

    def __post_init__(self) -> None:
        rows = 1 if self.n_classes == 2 else self.n_classes
        if len(self.weights) != rows or len(self.intercept) != rows:
            raise ValueError(f"a head for n_classes={self.n_classes} has {rows} rows of weights, not {len(self.weights)}.")

    @classmethod
    def new(cls, inputs: int, n_classes: int, activation: Activation, penalty: str, alpha: float) -> Self:
        """A head before its first refit."""
        rows = 1 if n_classes == 2 else n_classes
        return cls(np.zeros((rows, inputs)), np.zeros(rows), n_classes, 1.0, activation, penalty, alpha)

    @property
    def n_outputs(self) -> int:
        return self.n_classes

    def mean(self, inputs: np.ndarray) -> np.ndarray:
        """Logits, one column per class (the first is zero for two classes)."""
        logits = self.activation.value(inputs) @ self.weights.T + self.intercept
        return np.column_stack([np.zeros(len(logits)), logits[:, 0]]) if self.n_classes == 2 else logits

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts per class, in the same parametrisation as :meth:`mean`."""
        if self.n_classes == 2:
            return np.vstack([np.zeros_like(self.weights), self.weights]), np.append(0.0, self.intercept)
        return self.weights, self.intercept

    def loss(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        return float(-log_proba(prediction)[np.arange(len(outputs)), outputs].mean())

    def residual(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """Root mean square of what the probabilities of the true classes lack to one."""
        lacking = 1.0 - np.exp(log_proba(prediction))[np.arange(len(outputs)), outputs]
        return max(float(np.sqrt(np.mean(lacking**2))), SMALLEST_RESIDUAL)

    def with_noise(self, variance: float) -> Self:
        return replace(self, temperature=variance)

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Self:
        return super().with_penalty(alpha, max(residual, self.least_residual), n)

    def log_density(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        log_p = log_proba(self.mean(inputs))
        return np.asarray(log_p[np.arange(len(outputs)), outputs] / self.temperature)

    def score_output(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no score for them")

    def score_input(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        error = -np.exp(log_proba(self.mean(inputs)))
        error[np.arange(len(outputs)), outputs] += 1.0
        return np.asarray(self.activation.slope(inputs) * (error @ self.coefficients()[0]) / self.temperature)

    def curvature_output(self) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no curvature for them")

    def curvature_input(self, inputs: np.ndarray) -> np.ndarray:
        """The softmax Hessian is at most 1/2 (1/4 for two classes, of one contrast)."""
        bound = (0.25 if self.n_classes == 2 else 0.5) * self.activation.steepest**2
        return np.full(len(inputs), bound * float(np.linalg.norm(self.weights, 2)) ** 2 / self.temperature)

    def refit(self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        fit = solve_multinomial(
            self.activation.value(inputs),
            outputs,
            self.n_classes,
            penalty=self.penalty,
            alpha=self.alpha,
            sample_weight=sample_weight,
            start=(self.weights, self.intercept) if self.weights.any() else None,
        )
        return replace(self, weights=fit.weights, intercept=fit.intercept, kkt=float(np.max(fit.kkt)))

    def uncertainty(
        self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty:
        """Inverse Fisher information on the active set; the outputs are the logits of all classes."""
        features, weight = design(self.activation.value(inputs), sample_weight)
        p = np.exp(log_proba(self.mean(inputs)))
        rows, q1 = len(self.intercept), features.shape[1]
        p = p[:, -rows:]  # for two classes the logit of the second one
        curvature = p[:, :, None] * np.eye(rows) - p[:, :, None] * p[:, None, :]
        information = np.einsum("n,njl,na,nb->jalb", weight, curvature, features, features, optimize=True)
        coordinates = np.concatenate([active(w, self.penalty) for w in self.weights])
        covariance = inverse_on(information.reshape(rows * q1, rows * q1), coordinates).reshape(rows, q1, rows, q1)
        if self.n_classes == 2:  # the first logit is fixed at zero
            covariance = np.pad(covariance, ((1, 0), (0, 0), (1, 0), (0, 0)))
        return RegressionUncertainty(*self.coefficients(), covariance, self.activation, np.ones(self.n_classes))
