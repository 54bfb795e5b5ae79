"""Penalised logistic and multinomial regression for a categorical last layer (eq. optsolver2 with that layer's likelihood).

Predictors are NumPy arrays, or tensors on a device, which then does all work that grows with the rows.

Two steps alternate. A proximal step on the quadratic bound of the likelihood (Böhning 1992) finds the active set by the same
coordinate pass as the Gaussian layer; the curvature of the bound is a multiple of the predictors' Gram for all parameters.
A truncated Newton step on that set, by conjugate gradients preconditioned with the same Gram, then converges quickly. Smooth
penalties need the second step only.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import Array, copy, full, namespace, to_numpy
from kstonet.solvers.penalized import centre, check_design, check_start, coordinate_pass, drop_constant, weigh
from kstonet.solvers.penalties import Floats, Penalty, make_penalty
from kstonet.solvers.softmax import SoftmaxLoss

DAMPING = 1e-8  # of the Newton step, relative to the bound's curvature: separable classes and collinearity stay solvable
KINKED_DAMPING = 0.1  # times the KKT violation, for penalties with a kink: signs are still being found while it is large
MAX_CG = 100
MAX_HALVINGS = 20


@dataclass(frozen=True)
class MultinomialFit:
    """The result of :func:`solve_multinomial`.

    Attributes
    ----------
    weights : array of shape (K, q), or (1, q) for two classes
        Fitted weights.
    intercept : array of shape (K,), or (1,) for two classes
        Fitted intercepts; with three or more classes their mean is zero.
    active : bool array, shape of ``weights``
        Whether a weight is different from zero.
    objective : float
        Mean negative log-likelihood plus penalty.
    kkt : float
        Largest violation of the first-order conditions: for the weights relative to the largest gradient of the model
        without predictors, for the intercepts in units of probability.
    n_iter : int
        Number of iterations.
    converged : bool
        Whether ``kkt`` is within ``tol``.
    """

    weights: Floats
    intercept: Floats
    active: NDArray[np.bool_]
    objective: float
    kkt: float
    n_iter: int
    converged: bool


def solve_multinomial(
    features: ArrayLike | Array,
    labels: ArrayLike | Array,
    n_classes: int,
    *,
    penalty: str | Penalty,
    alpha: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    temperature: float = 1.0,
    start: tuple[ArrayLike, ArrayLike] | None = None,
    tol: float = 1e-6,
    max_iter: int = 200,
    max_products: float = np.inf,
) -> MultinomialFit:
    """Minimise 1/Σw·Σᵢ wᵢ·NLLᵢ + P(W); the logits are (F·Wᵀ + b)/temperature, and b is not penalised.

    Three classes or more have one symmetric row of weights each; two classes share a single logit, that of class 1.
    Ridge is scikit-learn's ``LogisticRegression(C=1/(alpha·n))``, lasso the same with ``l1_ratio=1``.

    Parameters
    ----------
    features : array or tensor of shape (n, q)
        Predictors of the layer; with a tensor, the likelihood and its derivatives are computed on its device.
    labels : int array of shape (n,)
        Values 0 to n_classes - 1, at least two of them present.
    n_classes : int
        Number of classes.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"} or Penalty
        On separable classes ``"none"``, SCAD and MCP may have no finite optimum; they stop at the first weights whose
        gradient meets ``tol``.
    alpha : float
        Strength of the penalty. ``"none"`` ignores it.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    temperature : float
        The logits are divided by it. It corresponds to σ² of the last layer in the paper.
    start : (weights, intercept), optional
        Parameters near the solution, with the shapes of :class:`MultinomialFit`. If not given, SCAD and MCP start from the
        lasso solution.
    tol : float
        Largest violation of the KKT conditions.
    max_iter : int
        Largest number of iterations.
    max_products : float
        Largest number of evaluations of the likelihood and of products with its Hessian, which bounds the work.

    Returns
    -------
    MultinomialFit

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` was not enough; the message has the violation reached. If ``max_products`` was not; the message has the
        cause.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.solvers.softmax import log_proba
    >>> features = np.random.default_rng(0).normal(size=(300, 4))
    >>> labels = features[:, :3].argmax(1)
    >>> fit = solve_multinomial(features, labels, 3, penalty="lasso", alpha=0.05)
    >>> fit.active.any(0)
    array([ True,  True,  True, False])
    >>> proba = np.exp(log_proba(features @ fit.weights.T + fit.intercept))
    >>> bool((proba.argmax(1) == labels).mean() > 0.9)
    True
    """
    F, w = check_design(features, sample_weight, tol, max_iter)
    y, present = check_labels(labels, n_classes, w)
    if not (np.isfinite(temperature) and temperature > 0):
        raise ValueError(f"temperature={temperature!r} must be a positive finite number.")
    rows = 1 if n_classes == 2 else n_classes
    P = make_penalty(penalty, alpha, rows)
    problem = _Problem(F / temperature, y, rows, w, present, max_products)
    theta, n_iter = problem.null, 0
    if start is not None:
        weights = check_start("start[0] (weights)", start[0], (rows, F.shape[1]))
        intercept = check_start("start[1] (intercept)", start[1], (rows,)) / temperature
        theta = problem.centred(weights, intercept)
    elif (relaxed := P.relaxation()) is not None:
        relaxed_at, _, n_iter = problem.solve(relaxed, theta, tol, max_iter)
        theta = relaxed_at.theta
    at, kkt, more = problem.solve(P, theta, tol, max_iter)
    if kkt > tol:
        said = (
            f"stopped at max_iter={max_iter} with a relative KKT violation of {kkt:.2g}; tol={tol:g}. Raise max_iter or alpha, "
            "or loosen tol."
            if problem.products_left > 0
            else _beyond_the_work(P, n_classes)
        )
        warnings.warn(f"multinomial regression {said}", ConvergenceWarning, stacklevel=2)
    theta = at.theta
    if rows > 1 and P.quadratic and not P.curvature(theta[:-1]).any():
        theta = theta - theta.mean(1, keepdims=True)  # without a penalty a shift common to all classes is free
    weights = np.ascontiguousarray(theta[:-1].T)
    intercept = theta[-1] - weights @ problem.mean
    if rows > 1:
        intercept -= intercept.mean()
    return MultinomialFit(weights, intercept * temperature, weights != 0, at.value, kkt, n_iter + more, kkt <= tol)


def _beyond_the_work(penalty: Penalty, n_classes: int) -> str:
    """Why the work was not enough; without numbers of this fit, so that repeated fits say it once."""
    where = f"of {n_classes} classes stopped before its tolerance, at its limit of work: "
    if penalty.relaxation() is not None or not np.any(penalty.alpha):
        return where + "this penalty does not bound the weights of classes that can be separated. Use the lasso or ridge."
    return where + (
        "there are very many rows or classes, or predictors that differ by many orders. Its weights are near the optimum, "
        "not at it; with a larger alpha they come closer."
    )


def check_labels(labels: ArrayLike | Array, n_classes: int, w: Floats) -> tuple[NDArray[np.intp], Floats]:
    """Return the labels as integers, and the weighted frequency of every class."""
    if not n_classes >= 2:
        raise ValueError(f"n_classes={n_classes!r} must be at least 2.")
    y = to_numpy(labels)
    if y.shape != w.shape or not np.issubdtype(y.dtype, np.integer):
        raise ValueError(f"labels has shape {y.shape} and dtype {y.dtype}; it must hold {len(w)} integers, one per row.")
    if y.min() < 0 or y.max() >= n_classes:
        raise ValueError(
            f"labels run from {y.min()} to {y.max()}; with n_classes={n_classes} they must lie in 0..{n_classes - 1}. "
            "Encode them, for instance by np.unique(labels, return_inverse=True)."
        )
    y = y.astype(np.intp)
    frequency: Floats = np.bincount(y, weights=w, minlength=n_classes).astype(np.float64)
    if (frequency > 0).sum() < 2:
        only = np.flatnonzero(frequency > 0).tolist()
        raise ValueError(f"labels with positive weight hold classes {only} only; a classifier needs at least two classes.")
    return y, frequency


class _Point(NamedTuple):
    """Parameters (q + 1, r), the intercepts last, with the objective, probabilities and gradient."""

    theta: Floats
    value: float
    proba: Array
    gradient: Floats


class _Problem:
    """The likelihood on the centred design with a column of ones, its Gram, and the two steps."""

    def __init__(
        self, F: Array, y: NDArray[np.intp], rows: int, w: Floats, frequency: Floats, max_products: float = np.inf
    ) -> None:
        self.products_left = max_products
        F, self.mean = centre("features", F, w)
        weighted = copy(F)
        weigh(weighted, w)
        self.gram = to_numpy(weighted.T @ weighted)
        drop_constant(F, self.gram, self.mean)
        n, q = F.shape
        self.loss = SoftmaxLoss(namespace(F).hstack([F, full(F, (n, 1), 1.0)]), y, rows, w)
        # Centring makes the Gram of the whole design block-diagonal: the intercept has its own unit entry.
        values, self.vectors = eigh(self.gram, check_finite=False)
        self.values = np.maximum(values, 0.0)[:, None]
        self.varies = np.diag(self.gram)[:, None] > 0  # a constant predictor has no influence
        self.diagonal = np.ones((q + 1, 1))
        self.diagonal[:-1] = np.where(self.varies, np.diag(self.gram)[:, None], 1.0)
        self.null = np.zeros((q + 1, rows))
        frequency = np.maximum(frequency, 1e-8)  # a class without rows gets a small finite logit
        self.null[-1] = np.log(frequency) if rows > 1 else np.log(frequency[1] / frequency[0])
        self.null_value, proba = self.loss.evaluate(self.null)
        largest = np.abs(self.loss.gradient(proba)[:-1]).max()
        self.unit = np.ones((q + 1, 1))  # of the KKT violation
        self.unit[:-1] = 1.0 / largest if largest > 0 else 1.0

    def centred(self, weights: Floats, intercept: Floats) -> Floats:
        return np.vstack([weights.T * self.varies, intercept + weights @ self.mean])

    def value(self, penalty: Penalty, theta: Floats) -> tuple[float, Array]:
        self.products_left -= 1  # an evaluation costs as much as a product
        loss, proba = self.loss.evaluate(theta)
        return loss + float(penalty.value(theta[:-1]).sum()), proba

    def point(self, penalty: Penalty, theta: Floats) -> _Point:
        value, proba = self.value(penalty, theta)
        return _Point(theta, value, proba, self.loss.gradient(proba))

    def violation(self, penalty: Penalty, at: _Point) -> float:
        distance = np.abs(at.gradient)
        distance[:-1] = penalty.subgradient_distance(at.theta[:-1], at.gradient[:-1])
        return float((distance * self.unit).max())

    def solve(self, penalty: Penalty, theta: Floats, tol: float, max_iter: int) -> tuple[_Point, float, int]:
        """Return the solution, its KKT violation and the iterations."""
        at = self.point(penalty, theta)
        if not at.value <= self.null_value:  # a start worse than the model without predictors
            at = self.point(penalty, self.null)
        use_bound = not penalty.quadratic
        for n_iter in range(max_iter):
            kkt = self.violation(penalty, at)
            if kkt <= tol or self.products_left <= 0:
                return at, kkt, n_iter
            if use_bound:
                at = self.point(penalty, self.proximal(penalty, at))
            # Accurate enough for a superlinear rate, but not more accurate than tol needs.
            accuracy = max(min(0.1, kkt), 0.3 * tol / kkt)
            for _ in range(at.theta.size):  # until no more weights leave the active set
                before, at = at, self.search(penalty, at, self.newton(penalty, at, kkt, accuracy))
                settled = penalty.quadratic or not ((before.theta != 0) & (at.theta == 0)).any()
                if settled or self.products_left <= 0:
                    break
            use_bound = not penalty.quadratic or at is before  # the bound still makes progress where Newton does not
        return at, self.violation(penalty, at), max_iter

    def proximal(self, penalty: Penalty, at: _Point) -> Floats:
        """Descend on the quadratic bound at a point, hence on the objective."""
        theta = at.theta.copy()
        curvature = self.loss.bound * self.gram
        coordinate_pass(curvature, curvature @ theta[:-1] - at.gradient[:-1], penalty, theta[:-1])
        theta[-1] -= at.gradient[-1] / self.loss.bound
        if self.loss.n_logits > 1:
            theta[:-1] = best_shift(penalty, theta[:-1])
        return theta

    def newton(self, penalty: Penalty, at: _Point, kkt: float, accuracy: float) -> Floats:
        """Newton's step on the weights that are not zero, and on the intercepts."""
        slope, free = at.gradient.copy(), np.ones_like(at.theta)
        slope[:-1] += penalty.derivative(at.theta[:-1])
        free[:-1] = self.varies if penalty.quadratic else at.theta[:-1] != 0
        # Curvature of each logit, averaged over the rows: what the Gram alone does not know.
        spread = self.loss.spread(at.proba)
        damping = DAMPING * self.loss.bound + (0.0 if penalty.quadratic else min(1.0, KINKED_DAMPING * kkt)) * spread
        inverse_intercept = 1.0 / (spread + damping)
        bend = penalty.curvature(at.theta[:-1])
        for bending in (bend, np.maximum(bend, 0.0)):
            floor = damping * self.diagonal
            diagonal = floor + np.vstack([bending, np.zeros_like(spread)])
            # The inverse of spread·G + diagonal for every logit, in the eigenbasis that all logits share.
            inverse = 1.0 / (self.values * spread + (self.vectors**2).T @ np.maximum(diagonal, floor)[:-1])

            def product(v: Floats, diagonal: Floats = diagonal) -> Floats:
                self.products_left -= 1
                return np.asarray((self.loss.hessian_product(at.proba, v) + diagonal * v) * free)

            def precondition(r: Floats, inverse: Floats = inverse) -> Floats:
                z = np.vstack([self.vectors @ (inverse * (self.vectors.T @ r[:-1])), inverse_intercept * r[-1:]])
                return np.asarray(z * free)

            step = conjugate_gradients(product, -slope * free, precondition, self.unit, accuracy)
            if step is not None:  # else not convex with SCAD or MCP: use the tangent of the penalty
                return step
        return np.zeros_like(slope)

    def search(self, penalty: Penalty, at: _Point, step: Floats) -> _Point:
        """Shorten the step until the objective falls; weights that would change sign end at zero if zero is a kink."""
        slope = at.gradient.copy()
        slope[:-1] += penalty.derivative(at.theta[:-1])
        lengths = 0.5 ** np.arange(MAX_HALVINGS)
        crossing = np.full_like(step, np.inf)  # the share of the step at which a weight becomes zero
        if not penalty.quadratic:
            backwards = at.theta[:-1] * step[:-1] < 0
            np.divide(-at.theta[:-1], step[:-1], out=crossing[:-1], where=backwards)
            if crossing.min() < lengths[4]:  # a weight that is barely free must not hold up the others
                lengths = np.concatenate([lengths[:5], crossing.min() * lengths])
        for length in lengths if step.any() else ():
            theta = np.where(crossing < length * (1.0 + 1e-12), 0.0, at.theta + length * step)
            value, proba = self.value(penalty, theta)
            expected = float((slope * (theta - at.theta)).sum())
            if value <= at.value + 1e-4 * expected + 1e-14 * abs(at.value):
                return _Point(theta, value, proba, self.loss.gradient(proba))
        return at


def conjugate_gradients(
    product: Callable[[Floats], Floats], target: Floats, precondition: Callable[[Floats], Floats], unit: Floats, accuracy: float
) -> Floats | None:
    """Solve to a relative accuracy in the norm max|residual·unit|; None if the matrix is not positive definite."""
    solution, residual = np.zeros_like(target), target
    z = precondition(residual)
    direction, size = z, float((residual * z).sum())
    enough = accuracy * np.abs(target * unit).max()
    for _ in range(MAX_CG):
        if np.abs(residual * unit).max() <= enough:
            break
        image = product(direction)
        bending = float((direction * image).sum())
        if bending <= 0:
            return None
        length = size / bending
        solution = solution + length * direction
        residual = residual - length * image
        z = precondition(residual)
        size, last = float((residual * z).sum()), size
        direction = z + (size / last) * direction
    return solution


def best_shift(penalty: Penalty, W: Floats) -> Floats:
    """Move the weights of every predictor (a row of ``W``) to the common origin that the penalty likes best.

    The likelihood does not see a shift common to all classes. The penalties with a kink are concave on either side of it,
    so the best shift makes one of the weights zero.
    """
    W = W.copy()
    for weights in W:
        costs = penalty.value(weights - weights[:, None]).sum(1)
        best = int(np.argmin(costs))
        if costs[best] < (1.0 - 1e-12) * penalty.value(weights).sum():
            weights -= weights[best]
    return W
