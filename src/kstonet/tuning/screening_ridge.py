"""Kernel ridge regression with its leave-one-out errors in closed form: the judge of an automatic choice.

With A = K + ridge·W⁻¹ (W the weights of the rows) and an intercept that is not penalised, the coefficients are α = Q·y, where
Q = A⁻¹ - A⁻¹11ᵀA⁻¹/(1ᵀA⁻¹1), and the error at a row that was left out is αᵢ/Qᵢᵢ. One Cholesky factor and one inverse serve all
targets. (A factor and inverse cost a fifth of an eigendecomposition, and a climb visits about three values of the ridge.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
MIDDLE = 4  # where a climb starts
BLOCK = 256  # rows of a matrix that are copied together: they stay in the cache


@dataclass(frozen=True)
class RidgeFit:
    """A kernel ridge regression.

    Parameters
    ----------
    coef : ndarray of shape (n, k)
    intercept : ndarray of shape (k,)
    errors : ndarray of shape (n, k)
        Leave-one-out errors of all rows.
    score : float
        Their weighted mean square; of standardised targets, the share of their variance.
    ridge : float
    """

    coef: np.ndarray
    intercept: np.ndarray
    errors: np.ndarray
    score: float
    ridge: float

    @property
    def root(self) -> float:
        """Root mean squared error out of sample."""
        return float(np.sqrt(self.score))

    @property
    def strength(self) -> float:
        """Root mean square of the coefficients: the forces at which the errors of the fit pull."""
        return float(np.sqrt(np.mean(self.coef**2)))


def inverse(K: np.ndarray, ridge: np.ndarray | float) -> tuple[np.ndarray, float] | None:
    """(K + ridge·I)⁻¹ and the logarithm of the determinant; None where it is not positive definite in floating point."""
    A = K.copy()
    A.flat[:: len(K) + 1] += ridge
    factor, failed = dpotrf(A.T, lower=1, overwrite_a=1, clean=0)  # the transpose has LAPACK's order, and the same values
    if failed:
        return None
    log_det = 2.0 * float(np.log(np.diagonal(factor)).sum())
    full = dpotri(factor, lower=1, overwrite_c=1)[0].T  # LAPACK fills one half: here, the upper one
    for begin in range(0, len(K), BLOCK):
        end = begin + BLOCK
        corner = full[begin:end, begin:end]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        full[end:, begin:end] = full[begin:end, end:].T
    return full, log_det


def ridge_fit(K: np.ndarray, Y: np.ndarray, ridge: float, weights: np.ndarray | None = None) -> RidgeFit | None:
    """The kernel ridge regression of all columns of Y, and its leave-one-out errors.

    Parameters
    ----------
    K : ndarray of shape (n, n)
    Y : ndarray of shape (n, k)
    ridge : float
    weights : ndarray of shape (n,), optional
        Positive.

    Returns
    -------
    RidgeFit or None
        None where K + ridge·I is singular in floating point.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(-1, 1, 20)[:, None]
    >>> ridge_fit(np.exp(-((x - x.T) ** 2)), x**3, 1e-4).root < 0.03
    True
    """
    found = inverse(K, ridge if weights is None else ridge / weights)
    if found is None:
        return None
    Q = found[0]
    ones = Q.sum(axis=1)
    total = ones.sum()
    intercept = ones @ Y / total
    coef = Q @ Y - np.outer(ones, intercept)
    errors = coef / (np.diagonal(Q) - ones * ones / total)[:, None]
    score = float(np.average((errors**2).mean(axis=1), weights=weights))
    return RidgeFit(coef, intercept, errors, score, ridge) if np.isfinite(score) else None


def best_ridge(
    K: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    ridges: tuple[float, ...] = RIDGES,
    start: int = MIDDLE,
    note: Callable[[RidgeFit], None] | None = None,
) -> RidgeFit | None:
    """The regression with the smallest leave-one-out error, found by climbing from neighbour to neighbour.

    Parameters
    ----------
    K, Y, weights : ndarray
        As in :func:`ridge_fit`.
    ridges : tuple of float
        In ascending order.
    start : int
        Where to start.
    note : callable, optional
        Called with every regression that was tried.
    """
    tried: dict[int, RidgeFit | None] = {}

    def score(place: int) -> float:
        if place not in tried:
            fit = tried[place] = ridge_fit(K, Y, ridges[place], weights)
            if note is not None and fit is not None:
                note(fit)
        fit = tried[place]
        return np.inf if fit is None else fit.score

    best = start
    while True:
        around = [place for place in (best, best + 1, best - 1) if 0 <= place < len(ridges)]
        step = min(around, key=score)
        if step == best:
            if score(best) < np.inf or best == len(ridges) - 1:
                return tried[best]
            step = best + 1  # singular here: more ridge
        best = step
