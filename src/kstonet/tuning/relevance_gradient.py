"""Length scales per feature by gradients: of the evidence of a Gaussian process, or of the leave-one-out error itself.

Both are smooth in the logarithms of the scales and of the ridge, and are followed by L-BFGS. Their derivative with respect to
the kernel matrix is one matrix G, and the derivative with respect to the scale of a feature is Σᵢⱼ Gᵢⱼ·k'(dᵢⱼ)·(xᵢ - xⱼ)²: for
Euclidean distances two matrix products for all features together, so that an evaluation costs a small multiple of a Cholesky
factor however many features there are.

The evidence is the safer guide where rows are few. The leave-one-out error is what a user sees, and finds more where targets
carry little noise; it costs twice as much, and may be led astray from a bad start. So it goes last, on other rows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from scipy.optimize import OptimizeResult, minimize

from kstonet.gram.halves import CholeskyFactor, half_of_square, mirrored, with_products, with_squares
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.stationary import Family, halves

Objective = Literal["evidence", "loo"]

RIDGE_BOUNDS = (1e-5, 10.0)
SCALE_BOUNDS = (-6.0, 4.0)  # of a log scale, around the start common to all features
SINGLE_FROM = 1e-3  # ridge from which on float32 is precise enough
EDGE = 0.1  # in its logarithm: a climb that ends so near to that has to go on in float64
# Improvement, in nats, that is not worth more iterations: nothing against what chance does to the evidence of some rows, and
# about what float32 can tell. Line searches for less went astray in it, and took half of all evaluations.
ENOUGH = 0.1
MOST_HALVINGS = 5  # of a step
TINY = 1e-30  # in place of zero; its inverse is a number in float32
NOWHERE = 1e12  # value where the kernel matrix is singular


def evidence(K: np.ndarray, Y: np.ndarray, noise: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Minus the log evidence, amplitude and intercept profiled out, and its derivative with respect to K.

    Both matrices by their upper halves; the derivative overwrites K.
    """
    found = CholeskyFactor.of(K, noise, overwrite=True)
    if found is None:
        return None
    n, k = Y.shape
    log_det, solved = found.log_det(), found.solve(np.column_stack([Y, np.ones(n, dtype=K.dtype)]))
    coef, ones = solved[:, :-1], solved[:, -1:]
    coef -= ones * (ones.T @ Y / ones.sum())
    quadratic = max(float((Y * coef).sum()), TINY)  # zero for constant targets
    value = 0.5 * k * (n * np.log(quadratic) + log_det)
    return value, with_squares(found.inverse(), coef, times=0.5 * k, squares=-0.5 * n * k / quadratic)


def _left_out(K: np.ndarray, Y: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray] | None:
    """The map Q from targets to coefficients, over K, the coefficients, and the diagonal of Q: the errors are their ratio."""
    found = CholeskyFactor.of(K, noise, overwrite=True)
    if found is None:
        return None
    solved = found.solve(np.column_stack([Y, np.ones(len(K), dtype=K.dtype)]))
    ones = solved[:, -1:]
    Q = mirrored(with_squares(found.inverse(), ones, squares=-1.0 / ones.sum()))
    return Q, solved[:, :-1] - ones * (ones.T @ Y / ones.sum()), np.diagonal(Q)[:, None].copy()


def _leave_one_out(K: np.ndarray, Y: np.ndarray, noise: np.ndarray) -> tuple[float, np.ndarray] | None:
    """n/2 times the log of the summed squared leave-one-out errors, the scale of an evidence, and its derivative."""
    found = _left_out(K, Y, noise)
    if found is None:
        return None
    Q, coef, diagonal = found
    errors = coef / diagonal
    total = max(float((errors**2).sum()), TINY)
    # with dα = -Q·dK·α and dQ = -Q·dK·Q
    pulled = Q @ (2.0 * errors / diagonal)
    Q *= np.sqrt((2.0 * errors**2 / diagonal).sum(axis=1))
    G = with_products(half_of_square(Q), pulled, coef, products=-0.5)
    G *= 0.5 * len(Y) / total
    return 0.5 * len(Y) * float(np.log(total)), G


def _log_loss(
    K: np.ndarray, Y: np.ndarray, noise: np.ndarray, weights: np.ndarray | None, loss: LeftOutLogLoss
) -> tuple[float, np.ndarray] | None:
    """The log loss of all left-out rows, and its derivative."""
    found = _left_out(K, Y, noise)
    if found is None:
        return None
    Q, coef, diagonal = found
    errors = coef / diagonal
    whole = len(Y) * loss.entropy
    share, slope = loss.with_slope(Y - errors, weights)
    slope = (-whole * slope).astype(K.dtype)  # with respect to the errors
    pulled = Q @ (slope / diagonal)
    force = (slope * errors / diagonal).sum(axis=1)
    pushed = force < 0  # Q·diag(force)·Q as a difference of squares, each for half of the price of a product
    G = half_of_square(Q[:, ~pushed] * np.sqrt(force[~pushed]))
    G = with_squares(G, Q[:, pushed] * np.sqrt(-force[pushed]), squares=-1.0) if pushed.any() else G
    return whole * share, with_products(G, pulled, coef, products=-0.5)


def objective_and_gradient(
    parameters: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    family: Family,
    objective: Objective,
    centre: np.ndarray,
    prior: float,
    loss: LeftOutLogLoss | None = None,
    groups: np.ndarray | None = None,
    space: tuple[np.ndarray, np.ndarray] | None = None,
) -> tuple[float, np.ndarray]:
    """The objective with a normal prior of the log scales, and its gradient.

    Parameters
    ----------
    parameters : ndarray of shape (g + 1,)
        Logarithms of the scales that features are multiplied by, one for every group, and of the ridge.
    X, Y, weights : ndarray
        Rows, targets and sample weights, of shapes (n, p), (n, k) and (n,).
    family : Family
    objective : {"evidence", "loo"}
    centre : ndarray of shape (g,)
        Mean of the prior.
    prior : float
        Inverse standard deviation of the prior.
    loss : LeftOutLogLoss, optional
        What "loo" is of classes.
    groups : ndarray of int of shape (p,), optional
        Features of the same number share a scale; by default every feature has its own.
    space : tuple of two ndarrays of shape (n, n), optional
        Overwritten with the matrices of an evaluation.
    """
    groups = np.arange(X.shape[1]) if groups is None else groups
    logs, ridge = parameters[:-1], np.exp(parameters[-1])
    scales = np.exp(logs)[groups].astype(X.dtype)
    noise = np.full(len(X), ridge, dtype=X.dtype) if weights is None else ridge / weights
    K, slope = family.upper_half(X, scales, space)
    if objective == "evidence":
        found = evidence(K, Y, noise)
    else:
        found = _leave_one_out(K, Y, noise) if loss is None else _log_loss(K, Y, noise, weights, loss)
    if found is None:
        return NOWHERE, np.zeros_like(parameters)
    value, G = found
    gradient = np.empty_like(parameters)
    gradient[-1] = np.diagonal(G) @ noise
    G *= slope
    np.fill_diagonal(G, 0.0)
    away = logs - centre
    gradient[:-1] = np.bincount(groups, family.pull(G, X * scales)) + prior**2 * away
    return value + 0.5 * prior**2 * float(away @ away), gradient


def learn_scales(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    family: Family,
    start: tuple[np.ndarray, float],
    *,
    objective: Objective = "evidence",
    prior: float = 0.5,
    centre: np.ndarray | None = None,
    max_iter: int = 25,
    loss: LeftOutLogLoss | None = None,
    groups: np.ndarray | None = None,
) -> tuple[np.ndarray, float]:
    """Scales and ridge that the objective prefers.

    Parameters
    ----------
    X, Y : ndarray of shape (n, p), (n, k)
        Standardised.
    weights : ndarray of shape (n,) or None
    family : Family
    start : tuple of (scales, ridge)
    objective : {"evidence", "loo"}
    prior : float
        Inverse standard deviation of the log scales around ``centre``, which holds scales that the data do not know.
    centre : ndarray of shape (p,), optional
        By default the start.
    max_iter : int
        Iterations of L-BFGS at most.
    loss : LeftOutLogLoss, optional
        What "loo" is of classes.
    groups : ndarray of int of shape (p,), optional
        As in :func:`objective_and_gradient`.

    Returns
    -------
    (scales, ridge)
        Features are multiplied by the scales.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.tuning.stationary import FAMILIES
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> scales, ridge = learn_scales(X, np.sin(2 * X[:, :1]), None, FAMILIES["rbf"], (np.ones(2), 0.1))
    >>> bool(scales[0] > 5 * scales[1])  # the second feature does nothing
    True
    """
    scales, ridge = start
    groups = np.arange(len(scales)) if groups is None else groups
    logs = group_means(np.log(scales), groups)
    centre = logs if centre is None else group_means(centre, groups)
    at = np.append(logs, np.log(np.clip(ridge, *RIDGE_BOUNDS)))
    if ridge > 0.99 * SINGLE_FROM:
        single = (np.asarray(part, dtype=np.float32) for part in (X, Y))
        weights32 = None if weights is None else weights.astype(np.float32)
        args = (*single, weights32, family, objective, centre, prior, loss, groups)
        at = _climb(at, (SINGLE_FROM, RIDGE_BOUNDS[1]), args, max_iter, np.log(SINGLE_FROM) + EDGE)
        if at[-1] > np.log(SINGLE_FROM) + EDGE:
            return np.exp(at[:-1])[groups], float(np.exp(at[-1]))
        at[-1] -= EDGE
    at = _climb(at, RIDGE_BOUNDS, (X, Y, weights, family, objective, centre, prior, loss, groups), max_iter)
    return np.exp(at[:-1])[groups], float(np.exp(at[-1]))


def group_means(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """The mean of the values of every group."""
    return np.asarray(np.bincount(groups, values) / np.bincount(groups))


def _climb(
    at: np.ndarray, ridges: tuple[float, float], args: tuple[Any, ...], max_iter: int, edge: float = -np.inf
) -> np.ndarray:
    """The logarithms of scales and ridge where the objective is smallest, or after so many iterations."""
    bounds = [(c + SCALE_BOUNDS[0], c + SCALE_BOUNDS[1]) for c in args[-4]] + [tuple(np.log(ridges))]
    own = (*args, halves(args[0]))
    return lowest(lambda parameters: objective_and_gradient(parameters, *own), at, bounds, max_iter, edge)


def lowest(
    objective: Callable[[np.ndarray], tuple[float, np.ndarray]],
    at: np.ndarray,
    bounds: Any,
    max_iter: int,
    edge: float = -np.inf,
) -> np.ndarray:
    """Where an objective with its gradient is smallest, by L-BFGS, until two iterations improve it by less than ``ENOUGH``.

    One would not be enough: where a climb passes a saddle, an iteration improves little before the next ones improve much.
    It also ends where two iterations are at most at ``edge`` in their last parameter, below which float32 ends: it would stay.
    """
    values: list[float] = []
    beyond: list[bool] = []

    def noted(parameters: np.ndarray) -> tuple[float, np.ndarray]:
        found = objective(parameters)
        if not values:
            values.append(found[0])
        return found

    def check(intermediate_result: OptimizeResult) -> None:
        values.append(intermediate_result.fun)
        beyond.append(intermediate_result.x[-1] <= edge)
        if (len(values) > 2 and values[-3] - values[-1] < ENOUGH) or beyond[-2:] == [True, True]:
            raise StopIteration

    options = {"maxiter": max_iter, "maxfun": max_iter + 5, "maxls": MOST_HALVINGS, "ftol": 0.0}
    return np.asarray(minimize(noted, at, jac=True, method="L-BFGS-B", bounds=bounds, callback=check, options=options).x)
