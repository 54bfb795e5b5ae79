"""Predictions given by an interval."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kstonet._checks import Floats, check_level, check_numbers, check_targets, first_of
from kstonet.metrics.checks import Score, mean_score


def coverage(
    y_true: ArrayLike,
    interval: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Share of observations inside their intervals, bounds included.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    interval : array of shape (n, 2) or (n, k, 2)
        Lower and upper bounds, as ``predict_interval`` returns them. Bounds may be infinite.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> coverage([1.0, 2.0, 3.0, 4.0], [[0, 2], [2, 5], [4, 5], [3, 5]])
    0.75
    """
    covered, _ = inside(y_true, interval)
    return mean_score(covered, sample_weight, multioutput)


def inside(y_true: ArrayLike, interval: ArrayLike, *, single: bool = False) -> tuple[NDArray[np.bool_], Floats]:
    """Which observations lie inside their intervals, and the widths of these; ``single`` asks for one output.

    Examples
    --------
    >>> inside([1.0, 2.0], [[0, 2], [3, 6]])
    (array([ True, False]), array([2., 3.]))
    """
    y = check_targets(y_true)
    if single and y.ndim != 1:
        raise ValueError(f"y_true has shape {y.shape}; it must be (n,): ask for one output at a time.")
    lower, upper = _bounds(interval, y.shape)
    return (lower <= y) & (y <= upper), upper - lower


def mean_width(interval: ArrayLike, *, sample_weight: ArrayLike | None = None, multioutput: str = "uniform_average") -> Score:
    """Mean width of intervals; infinite if one of them is.

    Narrow intervals are better only if :func:`coverage` is kept; :func:`winkler_score` combines the two.

    Parameters
    ----------
    interval : array of shape (n, 2) or (n, k, 2)
        Lower and upper bounds, as ``predict_interval`` returns them.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> mean_width([[0, 2], [2, 5], [4, 5], [3, 5]])
    2.0
    """
    lower, upper = _bounds(interval)
    return mean_score(upper - lower, sample_weight, multioutput)


def winkler_score(
    y_true: ArrayLike,
    interval: ArrayLike,
    coverage: float,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Interval score: the width, plus 2/(1 - coverage) times the distance of the observation from the interval.

    The score is proper: its expectation is smallest for the interval between the (1 ± coverage)/2 quantiles of the true
    distribution.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    interval : array of shape (n, 2) or (n, k, 2)
        Lower and upper bounds, as ``predict_interval`` returns them. The score of infinite bounds is infinite.
    coverage : float
        Nominal coverage of the intervals, as in ``predict_interval(X, coverage=0.95)``.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, eq. (43).

    Examples
    --------
    >>> round(winkler_score([1.0, 2.0, 3.0, 4.0], [[0, 2], [2, 5], [4, 5], [3, 5]], coverage=0.9), 6)
    7.0
    """
    y = check_targets(y_true)
    lower, upper = _bounds(interval, y.shape)
    level = check_level("coverage", coverage)
    if level.ndim:
        raise ValueError(f"coverage={coverage!r} must be a single number; score the intervals of each level separately.")
    missed = np.maximum(lower - y, 0.0) + np.maximum(y - upper, 0.0)
    return mean_score(upper - lower + 2.0 / (1.0 - level) * missed, sample_weight, multioutput)


def _bounds(interval: ArrayLike, shape: tuple[int, ...] | None = None) -> tuple[Floats, Floats]:
    """Return lower and upper bounds, in the shape of y_true if it is known."""
    bounds = check_numbers("interval", interval, infinite=True)
    if bounds.ndim not in (2, 3) or bounds.shape[-1] != 2 or bounds.size == 0 or shape not in (None, bounds.shape[:-1]):
        wanted = "(n, 2) or (n, k, 2)" if shape is None else f"{(*shape, 2)} to match y_true"
        raise ValueError(
            f"interval has shape {bounds.shape}; it must be {wanted}, as numpy.stack([lower, upper], axis=-1) makes it."
        )
    lower, upper = bounds[..., 0], bounds[..., 1]
    empty = (lower > upper) | (lower == np.inf) | (upper == -np.inf)
    if empty.any():
        raise ValueError(
            f"interval has a lower bound of {first_of(lower, empty)} with an upper bound of {upper[empty][0]}: it is empty. "
            "Sort crossed bounds with numpy.sort(interval, axis=-1)."
        )
    return lower, upper
