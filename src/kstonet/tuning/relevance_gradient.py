"""Length scales per feature by gradients: of the evidence of a Gaussian process, or of the leave-one-out error itself.

Both are smooth in the logarithms of the scales and of the ridge, and are followed by L-BFGS. Their derivative with respect to
the kernel matrix is one matrix G, and the derivative with respect to the scale of a feature is Σᵢⱼ Gᵢⱼ·k'(dᵢⱼ)·(xᵢ - xⱼ)²: for
Euclidean distances two matrix products for all features together, so that an evaluation costs a small multiple of a Cholesky
factor however many features there are.

The evidence is the safer guide where rows are few. The leave-one-out error is what a user sees, and finds more where targets
carry little noise; it costs twice as much, and may be led astray from a bad start. So it goes last, on other rows.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
from scipy.optimize import minimize

from kstonet.tuning.screening_ridge import inverse
from kstonet.tuning.stationary import Family

Objective = Literal["evidence", "loo"]

RIDGE_BOUNDS = (1e-5, 10.0)
SCALE_BOUNDS = (-6.0, 4.0)  # of a log scale, around the start common to all features
NOWHERE = 1e12  # value where the kernel matrix is singular


def _evidence(K: np.ndarray, Y: np.ndarray, noise: np.ndarray) -> tuple[float, np.ndarray] | None:
    """Minus the log evidence, amplitude and intercept profiled out, and its derivative with respect to K."""
    found = inverse(K, noise)
    if found is None:
        return None
    Q, log_det = found
    n, k = Y.shape
    ones = Q.sum(axis=1)
    coef = Q @ Y
    coef -= np.outer(ones, ones @ Y / ones.sum())
    quadratic = max(float((Y * coef).sum()), 1e-300)  # zero for constant targets
    value = 0.5 * k * (n * np.log(quadratic) + log_det)
    Q *= 0.5 * k
    Q -= (0.5 * n * k / quadratic) * (coef @ coef.T)
    return value, Q


def _leave_one_out(K: np.ndarray, Y: np.ndarray, noise: np.ndarray) -> tuple[float, np.ndarray] | None:
    """n/2 times the log of the summed squared leave-one-out errors, the scale of an evidence, and its derivative."""
    found = inverse(K, noise)
    if found is None:
        return None
    Q = found[0]
    ones = Q.sum(axis=1)
    Q -= np.outer(ones, ones / ones.sum())
    coef, diagonal = Q @ Y, np.diagonal(Q)[:, None]
    errors = coef / diagonal
    total = max(float((errors**2).sum()), 1e-300)
    # with dα = -Q·dK·α and dQ = -Q·dK·Q
    pulled = Q @ (2.0 * errors / diagonal)
    G = (Q * (2.0 * errors**2 / diagonal).sum(axis=1)) @ Q
    crossed = pulled @ coef.T
    G -= 0.5 * (crossed + crossed.T)
    G *= 0.5 * len(Y) / total
    return 0.5 * len(Y) * float(np.log(total)), G


OBJECTIVES = {"evidence": _evidence, "loo": _leave_one_out}


def objective_and_gradient(
    parameters: np.ndarray,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    family: Family,
    objective: Objective,
    centre: np.ndarray,
    prior: float,
) -> tuple[float, np.ndarray]:
    """The objective with a normal prior of the log scales, and its gradient.

    Parameters
    ----------
    parameters : ndarray of shape (p + 1,)
        Logarithms of the scales that features are multiplied by, and of the ridge.
    X, Y, weights : ndarray
        Rows, targets and sample weights, of shapes (n, p), (n, k) and (n,).
    family : Family
    objective : {"evidence", "loo"}
    centre : ndarray of shape (p,)
        Mean of the prior.
    prior : float
        Inverse standard deviation of the prior.
    """
    p = X.shape[1]
    scales, ridge = np.exp(parameters[:p]), np.exp(parameters[p])
    noise = np.full(len(X), ridge) if weights is None else ridge / weights
    K, slope = family.value_and_slope(family.distances(X, scales))
    found = OBJECTIVES[objective](K, Y, noise)
    if found is None:
        return NOWHERE, np.zeros(p + 1)
    value, G = found
    gradient = np.empty(p + 1)
    gradient[p] = np.diagonal(G) @ noise
    G *= slope
    np.fill_diagonal(G, 0.0)
    scaled = X * scales
    if family.absolute:  # |sᵢ - sⱼ| has the logarithmic derivative one
        gradient[:p] = [np.vdot(G, np.abs(column[:, None] - column)) for column in scaled.T]
    else:  # a squared difference two; Σ Gᵢⱼ(sᵢ - sⱼ)² = 2·Σ(rowsum·s²) - 2·sᵀGs
        scaled -= scaled.mean(axis=0)
        gradient[:p] = 4.0 * (G.sum(axis=1) @ scaled**2 - (scaled * (G @ scaled)).sum(axis=0))
    away = parameters[:p] - centre
    gradient[:p] += prior**2 * away
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
    centre = np.log(scales) if centre is None else centre
    low, high = SCALE_BOUNDS
    found = minimize(
        objective_and_gradient,
        np.append(np.log(scales), np.log(np.clip(ridge, *RIDGE_BOUNDS))),
        args=(X, Y, weights, family, objective, centre, prior),
        jac=True,
        method="L-BFGS-B",
        bounds=[(c + low, c + high) for c in centre] + [tuple(np.log(RIDGE_BOUNDS))],
        options={"maxiter": max_iter},
    )
    return np.exp(found.x[:-1]), float(np.exp(found.x[-1]))
