"""Penalised regression of ordered classes: the adjacent-categories logit model (Agresti 2010, section 4.1).

All classes share one linear predictor. It moves the log-odds of every class against the one below by the same amount,

    logit of class k = b_k + s_k·(f·w)   with scores s_k that grow by the same step from class to class,

so that P(class ≥ k) rises with f·w for every k: the probabilities respect the order. It is a multinomial logit with the weights
s_k·w: convex, with the few coefficients of a binary regression. Solved by proximal Newton steps: the intercepts are eliminated
from the quadratic model, and what is left is a penalised least-squares problem of the weights.
"""

from __future__ import annotations

import warnings

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import Array, to_numpy
from kstonet.solvers.multinomial import MultinomialFit, check_labels
from kstonet.solvers.penalized import centre, check_design, check_start, descend, is_constant
from kstonet.solvers.penalties import Floats, Penalty, make_penalty
from kstonet.solvers.softmax import log_proba

DAMPING = 1e-8  # of the curvature, relative to its diagonal: separable classes and collinear predictors stay solvable
MAX_HALVINGS = 30


def class_scores(ranks: ArrayLike) -> Floats:
    """Scores of classes from their places in the order: equal steps, mean zero, standard deviation one.

    Parameters
    ----------
    ranks : int array of shape (K,)
        The place of every class, from 0.

    Examples
    --------
    >>> class_scores([0, 2, 1]).round(3).tolist()
    [-1.225, 1.225, 0.0]
    """
    values = np.asarray(ranks, dtype=np.float64)
    return np.asarray((values - values.mean()) / values.std())


def solve_ordinal(
    features: ArrayLike | Array,
    labels: ArrayLike | Array,
    scores: ArrayLike,
    *,
    penalty: str | Penalty,
    alpha: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 1e-6,
    max_iter: int = 100,
) -> MultinomialFit:
    """Minimise 1/Σw·Σᵢ wᵢ·NLLᵢ + P(w) with the logits b_k + s_k·(f·w); b is not penalised.

    Parameters
    ----------
    features : array or tensor of shape (n, q)
        Predictors of the layer. One linear predictor takes few products with them, which are NumPy's.
    labels : int array of shape (n,)
        Values 0 to K - 1, at least two of them present.
    scores : array of shape (K,)
        See :func:`class_scores`.
    penalty, alpha, sample_weight, tol, max_iter
        As in :func:`~kstonet.solvers.multinomial.solve_multinomial`; the penalty is that of the shared weights.
    start : (weights, intercept), optional
        Parameters near the solution, of shapes (K, q) and (K,).

    Returns
    -------
    MultinomialFit
        Its weights are s_k·w, shape (K, q).

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> features = rng.normal(size=(500, 2))
    >>> grades = np.digitize(features[:, 0] + rng.logistic(size=500), [-1.0, 1.0])
    >>> fit = solve_ordinal(features, grades, class_scores([0, 1, 2]), penalty="lasso", alpha=0.02)
    >>> bool(fit.weights[2, 0] > 0), fit.weights[:, 1].tolist()
    (True, [-0.0, 0.0, 0.0])
    """
    F, w = check_design(to_numpy(features), sample_weight, tol, max_iter)
    s = np.asarray(scores, dtype=np.float64)
    y, frequency = check_labels(labels, len(s), w)
    P = make_penalty(penalty, alpha, 1)
    F, mean = centre("features", F, w)
    F[:, is_constant(w @ F**2, mean)] = 0.0  # what rounding leaves of them says nothing
    problem = _Problem(F, y, s, w)
    weights, intercept = np.zeros(F.shape[1]), np.log(np.maximum(frequency, 1e-8))
    if start is not None:
        given = check_start("start[0] (weights)", start[0], (len(s), F.shape[1]))
        weights = s @ given / (s @ s)
        intercept = check_start("start[1] (intercept)", start[1], s.shape) + s * (weights @ mean)
    weights, intercept, value, kkt, n_iter = problem.solve(P, weights, intercept - intercept.mean(), tol, max_iter)
    if kkt > tol:
        warnings.warn(
            f"ordinal regression stopped at max_iter={max_iter} with a relative KKT violation of {kkt:.2g}; tol={tol:g}. "
            "Raise max_iter or alpha, or loosen tol.",
            ConvergenceWarning,
            stacklevel=2,
        )
    full = np.outer(s, weights)
    intercept = intercept - s * (weights @ mean)
    return MultinomialFit(full, intercept - intercept.mean(), full != 0, value, kkt, n_iter, kkt <= tol)


class _Problem:
    """The likelihood on a centred design, and its proximal Newton step."""

    def __init__(self, F: Floats, y: NDArray[np.intp], scores: Floats, w: Floats) -> None:
        self.F, self.y, self.scores, self.w = F, y, scores, w
        self.rows = np.arange(len(y))
        self.indicators = np.eye(len(scores))[y] * w[:, None]
        largest = np.abs(F.T @ (w * (scores[y] - w @ scores[y]))).max()  # gradient of the model without predictors
        self.unit = 1.0 / largest if largest > 0 else 1.0

    def evaluate(self, penalty: Penalty, weights: Floats, intercept: Floats) -> tuple[float, Floats]:
        """The objective and the probabilities (n, K)."""
        log_p = log_proba((self.F @ weights)[:, None] * self.scores + intercept)
        value = -float(self.w @ log_p[self.rows, self.y]) + float(penalty.value(weights[:, None]).sum())
        return value, np.exp(log_p)

    def solve(
        self, penalty: Penalty, weights: Floats, intercept: Floats, tol: float, max_iter: int
    ) -> tuple[Floats, Floats, float, float, int]:
        """Weights, intercepts, objective, KKT violation and iterations."""
        value, p = self.evaluate(penalty, weights, intercept)
        for n_iter in range(max_iter + 1):
            weighted = p * self.w[:, None]
            error = weighted - self.indicators
            slope, of_intercept = self.F.T @ (error @ self.scores), error.sum(axis=0)
            distance = penalty.subgradient_distance(weights[:, None], slope[:, None]).max() * self.unit
            kkt = float(max(distance, np.abs(of_intercept).max()))
            if kkt <= tol or n_iter == max_iter:
                break
            step, shift = self._step(penalty, weights, p, weighted, slope, of_intercept)
            # Armijo's rule for a convex model: what the step promises to first order, penalty included
            after = float(penalty.value((weights + step)[:, None]).sum() - penalty.value(weights[:, None]).sum())
            promised = min(float(slope @ step + of_intercept @ shift) + after, 0.0)
            for length in 0.5 ** np.arange(MAX_HALVINGS):
                trial = weights + length * step, intercept + length * shift
                reached, found = self.evaluate(penalty, *trial)
                if reached <= value + 1e-4 * length * promised + 1e-14 * abs(value):
                    break
            else:
                break  # rounding: no better point can be told apart
            (weights, intercept), value, p = trial, reached, found
        return weights, intercept - intercept.mean(), value, kkt, n_iter

    def _step(
        self, penalty: Penalty, weights: Floats, p: Floats, weighted: Floats, slope: Floats, of_intercept: Floats
    ) -> tuple[Floats, Floats]:
        """To the minimum of the quadratic model plus the penalty: the change of the weights, and that of the intercepts."""
        expected = p @ self.scores
        variance = self.w * (p @ self.scores**2 - expected**2)
        own = self.F.T @ (variance[:, None] * self.F)
        cross = self.F.T @ (weighted * (self.scores - expected[:, None]))
        inner = np.diag(weighted.sum(axis=0)) - p.T @ weighted
        inner += 1.0 / len(inner)  # a shift common to all intercepts changes nothing: any curvature will do for it
        inner.flat[:: len(inner) + 1] *= 1.0 + DAMPING
        inner.flat[:: len(inner) + 1] += 1e-12
        factor = cho_factor(inner, lower=True, check_finite=False)
        reduced = own - cross @ cho_solve(factor, cross.T, check_finite=False)
        diagonal = np.diagonal(own).copy()
        reduced.flat[:: len(reduced) + 1] += DAMPING * diagonal
        reduced[diagonal == 0] = reduced[:, diagonal == 0] = 0.0  # a constant predictor has no influence
        gradient = slope - cross @ cho_solve(factor, of_intercept, check_finite=False)
        linear = reduced @ weights - gradient
        scale = np.array([max(np.abs(linear).max(), 1e-300)])
        found, _, _ = descend(reduced, linear[:, None], penalty, weights[:, None].copy(), scale, 1e-9, 1000)
        step = found[:, 0] - weights
        return step, -cho_solve(factor, of_intercept + cross.T @ step, check_finite=False)
