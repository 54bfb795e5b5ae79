"""The classification head: a multinomial logit on the last hidden layer."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.layers.activations import Activation
from kstonet.solvers.multinomial import solve_multinomial
from kstonet.solvers.softmax import log_proba


@dataclass(frozen=True)
class CategoricalHead:
    """P(class k) ∝ exp(b_k + w_k ψ(inputs)), tempered in the imputation.

    The paper gives σ²_{h+1} the role of a temperature: latent values are drawn from the likelihood to the power 1/temperature.
    The refit is the plain multinomial regression.

    Parameters
    ----------
    weights : ndarray of shape (classes, inputs), or (1, inputs) for two classes
    intercept : ndarray of shape (classes,) or (1,)
    temperature : float
    activation : Activation
    penalty, alpha : str, float
    kkt : float
    """

    weights: np.ndarray
    intercept: np.ndarray
    n_classes: int
    temperature: float
    activation: Activation
    penalty: str = "lasso"
    alpha: float = 1e-4
    kkt: float = 0.0

    def mean(self, inputs: np.ndarray) -> np.ndarray:
        """Logits, one column per class (the first is zero for two classes)."""
        logits = self.activation.value(inputs) @ self.weights.T + self.intercept
        return np.column_stack([np.zeros(len(logits)), logits[:, 0]]) if self.n_classes == 2 else logits

    def _contrasts(self) -> np.ndarray:
        """Weights per class, in the same parametrisation as :meth:`mean`."""
        return np.vstack([np.zeros_like(self.weights), self.weights]) if self.n_classes == 2 else self.weights

    def log_density(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        log_p = log_proba(self.mean(inputs))
        return np.asarray(log_p[np.arange(len(outputs)), outputs] / self.temperature)

    def score_output(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no score for them")

    def score_input(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        error = -np.exp(log_proba(self.mean(inputs)))
        error[np.arange(len(outputs)), outputs] += 1.0
        return np.asarray(self.activation.slope(inputs) * (error @ self._contrasts()) / self.temperature)

    def curvature_output(self) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no curvature for them")

    def curvature_input(self, inputs: np.ndarray) -> np.ndarray:
        """The softmax Hessian is at most 1/2 (1/4 for two classes, of one contrast)."""
        bound = (0.25 if self.n_classes == 2 else 0.5) * self.activation.steepest**2
        return np.full(len(inputs), bound * float(np.linalg.norm(self.weights, 2)) ** 2 / self.temperature)

    def refit(self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> CategoricalHead:
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
