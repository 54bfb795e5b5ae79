"""Predictions given by quantiles or by draws: distributions of any shape."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from kstonet._checks import check_level, check_numbers, check_targets
from kstonet.metrics.checks import Score, mean_score


def pinball_loss(
    y_true: ArrayLike,
    quantiles: ArrayLike,
    levels: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Quantile loss max(level·(y - q), (level - 1)·(y - q)), averaged over the levels.

    Twice its average over many evenly spaced levels approaches the continuous ranked probability score.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    quantiles : array of shape (n, levels) or (n, k, levels)
        Predicted quantiles, as ``predict_quantiles`` returns them; without the last axis if ``levels`` is a number. They may
        cross and may be infinite.
    levels : array of shape (levels,), or float
        Probabilities of the quantiles, strictly between 0 and 1.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> pinball_loss([1.0, 2.0], [0.0, 3.0], levels=0.5)  # half the absolute error
    0.5
    >>> round(pinball_loss([1.0, 2.0], [[0.0, 1.5], [1.0, 2.5]], levels=[0.1, 0.9]), 6)
    0.075
    """
    y = check_targets(y_true)
    level = check_level("levels", levels)
    q = check_numbers("quantiles", quantiles, infinite=True)
    if level.ndim > 1 or level.size == 0:
        raise ValueError(f"levels has shape {level.shape}; it must be a number or a list of at least one.")
    if q.shape != y.shape + level.shape:
        raise ValueError(
            f"quantiles has shape {q.shape}; y_true of shape {y.shape} and levels of shape {level.shape} "
            f"ask for {y.shape + level.shape}."
        )
    missed = y.reshape(y.shape + (1,) * level.ndim) - q
    loss = np.maximum(level * missed, (level - 1.0) * missed)
    return mean_score(loss.mean(axis=-1) if level.ndim else loss, sample_weight, multioutput)


def crps_samples(
    y_true: ArrayLike,
    samples: ArrayLike,
    *,
    fair: bool = False,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Continuous ranked probability score E|X - y| - ½E|X - X'| of predictions given by draws X.

    The computation copies and sorts the draws.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    samples : array of shape (n, m) or (n, k, m)
        Draws from the predictive distribution of every observation, m for each.
    fair : bool
        If False, the score is that of the empirical distribution of the m draws. If True, it is an unbiased estimate of the
        score of the distribution that the draws come from, which may be negative; use it to compare predictions with different
        numbers of draws.
    sample_weight : array of shape (n,), optional
        Weights of the observations. If not given, all have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    References
    ----------
    Ferro (2014), Fair scores for ensemble forecasts.

    Examples
    --------
    >>> crps_samples([1.0, 2.0], [[0.0, 2.0], [1.0, 2.0]])
    0.375
    >>> crps_samples([1.0, 2.0], [[0.0, 2.0], [1.0, 2.0]], fair=True)
    0.0
    """
    y = check_targets(y_true)
    draws = check_numbers("samples", samples)
    if draws.ndim != y.ndim + 1 or draws.shape[:-1] != y.shape or draws.size == 0:
        expected = ", ".join([*map(str, y.shape), "m"])
        raise ValueError(f"samples has shape {draws.shape}; it must be ({expected}), m draws for every entry of y_true.")
    m = draws.shape[-1]
    if fair and m == 1:
        raise ValueError("samples holds one draw per observation, fair=True needs at least two: draw more, or set fair=False.")
    distance = draws - y[..., None]  # from y, so that a common offset costs the spread no digits
    distance.sort(axis=-1)
    # ½·ΣΣ|xᵢ - xⱼ| = Σ(2i - m - 1)·x₍ᵢ₎ over the order statistics, i = 1..m.
    spread = distance @ np.arange(1.0 - m, m, 2.0) / (m * (m - 1.0 if fair else m))
    np.abs(distance, out=distance)
    return mean_score(distance.mean(axis=-1) - spread, sample_weight, multioutput)
