"""The recursion of the paper's Section 5 through one regression layer, eq. (varest).

Given its input, the output of a fitted layer varies with its estimated coefficients; over the distribution of the input, by
Eve's law,

    Σ_out = E[ψ̃ᵀ Cov(coefficients) ψ̃] + w Var(ψ) wᵀ,   ψ̃ = (1, ψ),

where the first term is tr(Cov · (Var ψ̃ + E ψ̃ E ψ̃ᵀ)). Coefficients are those of the intercept and the weights together.

Penalised layers: lasso, SCAD and MCP use the covariance of least squares on the active set (the oracle form: SCAD and MCP have
it asymptotically, Loh & Wainwright 2017; for the lasso it neglects the shrinkage and the selection). Ridge uses the sandwich
(A + Λ)⁻¹ A (A + Λ)⁻¹. A multinomial head uses the inverse Fisher information on the active set.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet.layers.activations import Activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.solvers.softmax import log_proba
from kstonet.uncertainty.moments import REGRESSION, Moments


@dataclass(frozen=True)
class RegressionUncertainty:
    """A fitted regression layer that propagates moments.

    Parameters
    ----------
    weights : ndarray of shape (k, q)
    intercept : ndarray of shape (k,)
    covariance : ndarray of shape (k, q + 1, k, q + 1)
        Of the coefficients, intercept first.
    activation : Activation
    noise : ndarray of shape (k,)
        Residual variance of the fit; one for logits, where it has no meaning.
    """

    weights: np.ndarray
    intercept: np.ndarray
    covariance: np.ndarray
    activation: Activation
    noise: np.ndarray

    @classmethod
    def of_dense(
        cls, layer: DenseLayer, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty:
        """From a Gaussian layer and the values it was fitted on."""
        design, weight = _design(layer.activation.value(inputs), sample_weight)
        squares = (design * weight[:, None]).T @ design
        residuals = outputs - layer.mean(inputs)
        q1, k = design.shape[1], len(layer.intercept)
        covariance, noise = np.zeros((k, q1, k, q1)), np.empty(k)
        for j in range(k):
            if layer.penalty == "ridge":
                shrinkage = np.diag([0.0, *[layer.alpha * weight.sum()] * (q1 - 1)])
                inverse = np.linalg.pinv(squares + shrinkage, hermitian=True)
                spread, used = inverse @ squares @ inverse, float(np.trace(inverse @ squares))
            else:
                active = _active(layer.weights[j], layer.penalty)
                spread, used = _inverse_on(squares, active), float(active.sum())
            # least squares' own estimate of the noise, with the degrees of freedom that are left
            noise[j] = float(weight @ residuals[:, j] ** 2) / max(float((weight > 0).sum()) - used, 1.0)
            covariance[j, :, j, :] = noise[j] * spread
        return cls(layer.weights, layer.intercept, covariance, layer.activation, noise)

    @classmethod
    def of_categorical(
        cls, head: CategoricalHead, inputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty:
        """From a multinomial logit; its outputs are the logits of all classes (the first is zero for two classes)."""
        design, weight = _design(head.activation.value(inputs), sample_weight)
        p = np.exp(log_proba(head.mean(inputs)))
        rows, q1 = len(head.intercept), design.shape[1]
        p = p[:, -rows:]  # for two classes the logit of the second one
        curvature = p[:, :, None] * np.eye(rows) - p[:, :, None] * p[:, None, :]
        information = np.einsum("n,njl,na,nb->jalb", weight, curvature, design, design, optimize=True)
        active = np.concatenate([_active(w, head.penalty) for w in head.weights])
        flat = _inverse_on(information.reshape(rows * q1, rows * q1), active)
        covariance = flat.reshape(rows, q1, rows, q1)
        weights, intercept = head.weights, head.intercept
        if head.n_classes == 2:  # the first logit is fixed at zero
            covariance = np.pad(covariance, ((1, 0), (0, 0), (1, 0), (0, 0)))
            weights, intercept = np.vstack([0.0 * weights, weights]), np.append(0.0, intercept)
        return cls(weights, intercept, covariance, head.activation, np.ones(head.n_classes))

    def propagate(self, moments: Moments, order: int = 1) -> Moments:
        """Moments of the layer's output from those of its input, eq. (varest)."""
        inputs = moments.activated(self.activation, order)
        mean = inputs.mean @ self.weights.T + self.intercept
        parts = {source: self.weights @ part @ self.weights.T for source, part in inputs.parts.items()}
        extended = np.column_stack([np.ones(len(mean)), inputs.mean])
        second = extended[:, :, None] * extended[:, None, :]  # E ψ̃ψ̃ᵀ
        second[:, 1:, 1:] += inputs.covariance
        own = np.einsum("jalb,nab->njl", self.covariance, second, optimize=True)
        parts[REGRESSION] = parts.get(REGRESSION, 0.0) + own
        return Moments(mean, parts)


def _design(features: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Features with an intercept column, and one weight per row."""
    n = len(features)
    return np.column_stack([np.ones(n), features]), np.ones(n) if sample_weight is None else sample_weight


def _active(weights: np.ndarray, penalty: str) -> np.ndarray:
    """Which coefficients take part, the intercept first: the others are exactly zero by selection."""
    chosen = np.ones(len(weights), dtype=bool) if penalty in ("none", "ridge") else weights != 0
    return np.append(True, chosen)


def _inverse_on(matrix: np.ndarray, active: np.ndarray) -> np.ndarray:
    """The (pseudo-)inverse of a symmetric matrix on some of its coordinates, zero elsewhere."""
    out = np.zeros_like(matrix)
    chosen = np.ix_(active, active)
    out[chosen] = np.linalg.pinv(matrix[chosen], hermitian=True)
    return out
