"""What the regression layers share, and the recursion of the paper's Section 5 through one of them, eq. (varest).

Given its input, the output of a fitted layer varies with its estimated coefficients; over the distribution of the input, by
Eve's law,

    Σ_out = E[ψ̃ᵀ Cov(coefficients) ψ̃] + w Var(ψ) wᵀ,   ψ̃ = (1, ψ),

where the first term is tr(Cov · (Var ψ̃ + E ψ̃ E ψ̃ᵀ)). Coefficients are those of the intercept and the weights together.

Penalised layers: lasso, SCAD and MCP use the covariance of least squares on the active set (the oracle form: SCAD and MCP have
it asymptotically, Loh & Wainwright 2017; for the lasso it neglects the shrinkage and the selection). Ridge uses the sandwich
(A + Λ)⁻¹ A (A + Λ)⁻¹. A multinomial head uses the inverse Fisher information on the active set.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kstonet._records import storable
from kstonet.layers.activations import Activation
from kstonet.layers.log_odds import log_odds_variance
from kstonet.layers.moments import FIRST_LAYER, REGRESSION, Moments

PENALTY = 0.1  # validation rows cannot tell it from 0.01, which drifts; 1 is too strong where a network nearly interpolates


def automatic_alpha(residual: float, n: int, inputs: int) -> float:
    """The automatic penalty of a regression layer: 0.1·residual·√(log(inputs)/n), the order that the theory asks for.

    A layer's scale is not identified by the likelihood alone (smaller latent values, larger weights above them); a penalty that
    is too weak lets weights and noise creep up over hundreds of iterations, and the training error with them.
    """
    return PENALTY * residual * float(np.sqrt(np.log(max(inputs, 2)) / n))


class RegressionLayer:
    """Weights, an intercept and a penalty on the activated inputs: what Gaussian and categorical layers have in common."""

    weights: np.ndarray
    intercept: np.ndarray
    activation: Activation
    alpha: float

    def coefficients(self) -> tuple[np.ndarray, np.ndarray]:
        """Weights and intercepts with one row per output."""
        return self.weights, self.intercept

    @property
    def n_inputs(self) -> int:
        """The number of units of the layer below."""
        return int(self.weights.shape[1])

    def slope(self, inputs: np.ndarray) -> np.ndarray:
        """∂ mean / ∂ inputs, shape (n, outputs, inputs)."""
        return np.asarray(self.weights[None] * self.activation.slope(inputs)[:, None, :])

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Self:
        """The layer with a penalty of this strength; None is the automatic one."""
        strength = automatic_alpha(residual, n, self.n_inputs) if alpha is None else alpha
        return replace(self, alpha=strength)  # type: ignore[type-var]  # the layers themselves are dataclasses


@storable(weights="float k q", intercept="float k", covariance="float k q+1 k q+1", noise="nonnegative k")
@dataclass(frozen=True)
class RegressionUncertainty:
    """A fitted regression layer that propagates moments.

    Parameters
    ----------
    weights : ndarray of shape (k, q)
        Weights of the layer, for every output.
    intercept : ndarray of shape (k,)
        Its intercepts.
    covariance : ndarray of shape (k, q + 1, k, q + 1)
        Covariance of the coefficients, with the intercept first.
    activation : Activation
        The function applied to the inputs.
    noise : ndarray of shape (k,)
        Residual variance of the fit; one for logits, where it has no meaning.
    """

    weights: np.ndarray
    intercept: np.ndarray
    covariance: np.ndarray
    activation: Activation
    noise: np.ndarray

    @property
    def n_inputs(self) -> int:
        """The number of inputs of the layer."""
        return int(self.weights.shape[1])

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the layer."""
        return len(self.intercept)

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

    def own_covariance(self, inputs: np.ndarray) -> np.ndarray:
        """Covariance (n, k, k) of the outputs at certain inputs that comes from the estimated coefficients."""
        certain = {FIRST_LAYER: np.zeros((len(inputs), inputs.shape[1], inputs.shape[1]))}
        return self.propagate(Moments(inputs, certain)).parts[REGRESSION]

    def log_odds_variances(self, moments: Moments, logits: np.ndarray) -> dict[str, np.ndarray]:
        """Of a head: variance of the log-odds of every class by source, (n, k) each; gradients are taken at ``logits``."""
        parts = self.propagate(moments).parts
        return {source: log_odds_variance(logits, part) for source, part in parts.items()}


def design(features: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Features with an intercept column, and one weight per row."""
    n = len(features)
    return np.column_stack([np.ones(n), features]), np.ones(n) if sample_weight is None else sample_weight


def active(weights: np.ndarray, penalty: str) -> np.ndarray:
    """Which coefficients take part, the intercept first: the others are exactly zero by selection."""
    chosen = np.ones(len(weights), dtype=bool) if penalty in ("none", "ridge") else weights != 0
    return np.append(True, chosen)


def inverse_on(matrix: np.ndarray, coordinates: np.ndarray, smallest: float = 1e-15) -> np.ndarray:
    """The (pseudo-)inverse of a symmetric matrix on some of its coordinates, zero elsewhere.

    Eigenvalues below ``smallest`` times the largest count as zero.
    """
    out = np.zeros_like(matrix)
    chosen = np.ix_(coordinates, coordinates)
    out[chosen] = np.linalg.pinv(matrix[chosen], rcond=smallest, hermitian=True)
    return out
