"""Kernel ridge regression with its leave-one-out errors in closed form: the judge of an automatic choice.

With A = K + ridge·W⁻¹ (W the weights of the rows) and an intercept that is not penalised, the coefficients are α = Q·y, where
Q = A⁻¹ - A⁻¹11ᵀA⁻¹/(1ᵀA⁻¹1), and the error at a row that was left out is αᵢ/Qᵢᵢ. One Cholesky factor and its inverse serve all
targets. (They cost a fifth of an eigendecomposition, and a climb visits about three values of the ridge.)
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kstonet.gram.halves import CholeskyFactor, half_times
from kstonet.tuning.log_loss import LeftOutLogLoss

RIDGES = (1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 0.1, 0.3, 1.0, 3.0, 10.0)
MIDDLE = 4  # where a climb starts


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
        What it is judged by: their weighted mean square, of standardised targets the share of their variance; or the log loss
        of left-out classes.
    ridge : float
    root : float
        Root mean squared error out of sample.
    losses : ndarray of shape (n,), optional
        Log losses of left-out classes, whose mean is the score.
    """

    coef: np.ndarray
    intercept: np.ndarray
    errors: np.ndarray
    score: float
    ridge: float
    root: float
    losses: np.ndarray | None = None

    @property
    def strength(self) -> float:
        """Root mean square of the coefficients: the forces at which the errors of the fit pull."""
        return float(np.sqrt(np.mean(self.coef**2)))


def allows_single(ridge: float, weights: np.ndarray | None, single_from: float) -> bool:
    """Whether a ridge is large enough, over the largest weight, for a factor in float32."""
    return bool(ridge >= single_from * (1.0 if weights is None else weights.max()))


def ridge_fit(
    K: np.ndarray,
    Y: np.ndarray,
    ridge: float,
    weights: np.ndarray | None = None,
    loss: LeftOutLogLoss | None = None,
    *,
    overwrite: bool = False,
    single_from: float = np.inf,
) -> RidgeFit | None:
    """The kernel ridge regression of all columns of Y, and its leave-one-out errors.

    Parameters
    ----------
    K : ndarray of shape (n, n)
        Symmetric: the upper half is enough. The factor has its precision.
    Y : ndarray of shape (n, k)
    ridge : float
    weights : ndarray of shape (n,), optional
        Positive.
    loss : LeftOutLogLoss, optional
        Judges the regression by the classes of the rows instead of its squared errors.
    overwrite : bool
        Whether K may be overwritten.
    single_from : float
        Ridge, over the largest weight, from which on a factor in float32 solves, for half of the price, and what it leaves over
        corrects it. From 0.001 on the score is right to half a thousandth, enough to compare candidates; without the correction
        that takes a ridge of 0.01.

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
    noise = np.full(len(K), ridge) if weights is None else ridge / weights
    in_single = allows_single(ridge, weights, single_from) and K.dtype != np.float32
    found = CholeskyFactor.of(K.astype(np.float32) if in_single else K, noise, overwrite=overwrite or in_single)
    if found is None:
        return None
    right = np.column_stack([Y, np.ones(len(K))])
    solved = found.solve(right).astype(np.float64)
    if in_single:
        solved += found.solve(right - half_times(K, solved) - noise[:, None] * solved)
    ones = solved[:, -1]
    total = ones.sum()
    intercept = ones @ Y / total
    coef = solved[:, :-1] - np.outer(ones, intercept)
    errors = coef / (found.inverse_diagonal() - ones * ones / total)[:, None]
    square = float(np.average((errors**2).mean(axis=1), weights=weights))
    if not np.isfinite(square):
        return None
    score, losses = (square, None) if loss is None else loss.of_rows(Y - errors, weights)
    return RidgeFit(coef, intercept, errors, score, ridge, float(np.sqrt(square)), losses)


def best_ridge(
    K: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    ridges: tuple[float, ...] = RIDGES,
    start: int = MIDDLE,
    note: Callable[[RidgeFit], None] | None = None,
    loss: LeftOutLogLoss | None = None,
    single_from: float = np.inf,
) -> RidgeFit | None:
    """The regression with the smallest leave-one-out error or loss, found by climbing from neighbour to neighbour.

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
    loss, single_from
        As in :func:`ridge_fit`.
    """
    tried: dict[int, RidgeFit | None] = {}

    def score(place: int) -> float:
        if place not in tried:
            fit = tried[place] = ridge_fit(K, Y, ridges[place], weights, loss, single_from=single_from)
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
