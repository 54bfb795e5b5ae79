"""The classification heads: a multinomial logit on the last hidden layer, and one for ordered classes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from kstonet._arrays import Array, beside, full, namespace, row_indices, zeros
from kstonet._records import storable
from kstonet.layers.activations import Activation
from kstonet.layers.dense import SMALLEST_RESIDUAL
from kstonet.layers.log_odds import OneVsRestUncertainty
from kstonet.layers.regression import RegressionLayer, RegressionUncertainty, active, design, inverse_on
from kstonet.solvers.multinomial import solve_multinomial
from kstonet.solvers.ordinal import solve_ordinal
from kstonet.solvers.softmax import log_proba

LARGEST_INFORMATION = 400  # coefficients whose covariance is computed together: 16 classes on 24 units, a second on one core
MOST_OPERATIONS, FEWEST_PRODUCTS = 2e10, 30  # of a refit, in products of the Hessian: the next iteration goes on from there
MOST_PRODUCTS = 4_000  # of a refit, however small: fits that have a finite solution take a twentieth as a rule
TOLERANCE = 1e-6  # of the KKT conditions

# A shift common to all logits has no information but rounding, which would become a huge variance that contrasts cannot cancel.
FREE = 1e-12


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
    residual_share : float
        What the automatic penalty takes for the residual of one logit, over that of the probabilities of the true classes.
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
    residual_share: float = 1.0

    takes_tensors = True

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

    def mean(self, inputs: Array) -> Array:
        """Logits, one column per class (the first is zero for two classes)."""
        return self._logits(self.activation.value(inputs))

    def _logits(self, value: Array) -> Array:
        """From the activated inputs."""
        logits = value @ beside(value, self.weights).T + beside(value, self.intercept)
        if self.n_classes > 2:
            return logits
        return namespace(logits).column_stack([zeros(logits, (len(logits),)), logits[:, 0]])

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
        return super().with_penalty(alpha, self.residual_share * max(residual, self.least_residual), n)

    def log_density(self, inputs: Array, outputs: Array) -> Array:
        log_p = log_proba(self.mean(inputs))
        return log_p[row_indices(log_p), outputs] / self.temperature

    def score_output(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no score for them")

    def score_input(self, inputs: Array, outputs: Array) -> Array:
        value, slope = self.activation.value_and_slope(inputs)
        error = -namespace(value).exp(log_proba(self._logits(value)))
        error[row_indices(error), outputs] += 1.0
        return slope * (error @ beside(error, self.coefficients()[0])) / self.temperature

    def curvature_output(self) -> np.ndarray:
        raise TypeError("class labels are observed, never imputed: there is no curvature for them")

    def curvature_input(self, inputs: Array) -> Array:
        """The softmax Hessian is at most 1/2 (1/4 for two classes, of one contrast)."""
        bound = (0.25 if self.n_classes == 2 else 0.5) * self.activation.steepest**2
        return full(inputs, (len(inputs),), bound * float(np.linalg.norm(self.weights, 2)) ** 2 / self.temperature)

    def refit(self, inputs: Array, outputs: Array, sample_weight: np.ndarray | None = None) -> Self:
        fit = solve_multinomial(
            self.activation.value(inputs),
            outputs,
            self.n_classes,
            penalty=self.penalty,
            alpha=self.alpha,
            sample_weight=sample_weight,
            start=(self.weights, self.intercept) if self.weights.any() else None,
            tol=TOLERANCE,
            max_products=self._products(len(inputs)),
        )
        return replace(self, weights=fit.weights, intercept=fit.intercept, kkt=float(np.max(fit.kkt)))

    def _products(self, n: int) -> float:
        """The work of a refit; a tenth after one that was not enough, which does not become easier by trying as hard again."""
        most = MOST_PRODUCTS if self.kkt <= TOLERANCE else MOST_PRODUCTS // 10
        return min(most, max(FEWEST_PRODUCTS, MOST_OPERATIONS / (4 * n * self.weights.size)))

    def uncertainty(
        self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty | OneVsRestUncertainty:
        """Inverse Fisher information on the active set; the outputs are the logits of all classes.

        Beyond ``LARGEST_INFORMATION`` coefficients, every class has the information of its own regression against the rest.
        """
        features, weight = design(self.activation.value(inputs), sample_weight)
        p = np.exp(log_proba(self.mean(inputs)))
        rows, q1 = len(self.intercept), features.shape[1]
        chosen = np.stack([active(w, self.penalty) for w in self.weights])
        if self.n_classes > 2 and rows * q1 > LARGEST_INFORMATION:
            return OneVsRestUncertainty.of(self.coefficients(), features, weight, p, chosen, self.activation)
        information = _information(features, weight, p[:, -rows:])
        covariance = inverse_on(information, chosen.ravel(), FREE).reshape(rows, q1, rows, q1)
        if self.n_classes == 2:  # the first logit is fixed at zero
            covariance = np.pad(covariance, ((1, 0), (0, 0), (1, 0), (0, 0)))
        return RegressionUncertainty(*self.coefficients(), covariance, self.activation, np.ones(self.n_classes))


def _information(features: np.ndarray, weight: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Fisher information of the coefficients of all logits, Σᵢ wᵢ (diag p - ppᵀ) ⊗ ψ̃ψ̃ᵀ, of order K·(q + 1)."""
    n, size = features.shape
    spread = (p[:, :, None] * features[:, None, :]).reshape(n, -1)
    information = -(spread.T @ (weight[:, None] * spread))
    for k in range(p.shape[1]):  # for two classes p(1 - p), else the diagonal of the softmax's Hessian
        block = slice(k * size, (k + 1) * size)
        information[block, block] += features.T @ ((weight * p[:, k])[:, None] * features)
    return np.asarray(information)


@storable(weights="float k q", intercept="float k", scores="float k")
@dataclass(frozen=True)
class OrdinalHead(CategoricalHead):
    """A head for three or more ordered classes: P(class k) ∝ exp(b_k + s_k·w ψ(inputs)), see :mod:`kstonet.solvers.ordinal`.

    Parameters
    ----------
    scores : ndarray of shape (classes,)
        s_k: the places of the classes in their order, in equal steps. The rows of ``weights`` are multiples of each other.
    """

    scores: np.ndarray = field(default_factory=lambda: np.empty(0))

    takes_tensors = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_classes < 3 or len(self.scores) != self.n_classes:
            raise ValueError(f"an ordinal head for n_classes={self.n_classes} has as many scores, and at least 3 classes.")

    def refit(self, inputs: Array, outputs: Array, sample_weight: np.ndarray | None = None) -> Self:
        fit = solve_ordinal(
            self.activation.value(inputs),
            outputs,
            self.scores,
            penalty=self.penalty,
            alpha=self.alpha,
            sample_weight=sample_weight,
            start=(self.weights, self.intercept) if self.weights.any() else None,
        )
        return replace(self, weights=fit.weights, intercept=fit.intercept, kkt=fit.kkt)

    def uncertainty(
        self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> RegressionUncertainty:
        """Inverse Fisher information of the shared weights and of the intercepts, as a covariance of all logits."""
        features, weight = design(self.activation.value(inputs), sample_weight)
        p = np.exp(log_proba(self.mean(inputs)))
        k, q = self.weights.shape
        expected = p @ self.scores
        variance = weight * (p @ self.scores**2 - expected**2)
        weighted = weight[:, None] * p
        information = np.empty((q + k, q + k))  # of the shared weights, then of the intercepts
        information[:q, :q] = features[:, 1:].T @ (variance[:, None] * features[:, 1:])
        information[:q, q:] = features[:, 1:].T @ (weighted * (self.scores - expected[:, None]))
        information[q:, :q] = information[:q, q:].T
        information[q:, q:] = np.diag(weighted.sum(axis=0)) - p.T @ weighted
        chosen = np.append(active(self.scores @ self.weights, self.penalty)[1:], np.ones(k, dtype=bool))
        shared = inverse_on(information, chosen, FREE)
        covariance = np.empty((k, q + 1, k, q + 1))
        covariance[:, 0, :, 0] = shared[q:, q:]
        covariance[:, 1:, :, 1:] = np.einsum("j,ab,l->jalb", self.scores, shared[:q, :q], self.scores)
        covariance[:, 1:, :, 0] = np.einsum("j,al->jal", self.scores, shared[:q, q:])
        covariance[:, 0, :, 1:] = np.einsum("jb,l->jlb", shared[q:, :q], self.scores)
        return RegressionUncertainty(*self.coefficients(), covariance, self.activation, np.ones(k))
