"""Predictions given by a mean, a standard deviation and degrees of freedom: heavier tails than the Gaussian's."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaln, stdtr

from kstonet.metrics.checks import Score, mean_score
from kstonet.metrics.gaussian import crps_gaussian, nll_gaussian, residuals_of, standardised


def crps_student(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    df: float,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Continuous ranked probability score of predictions by Student's t, in the unit of y.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. ``std`` is not the scale parameter; it must not be negative,
        and may be zero.
    df : float
        Degrees of freedom, greater than 2. Infinity gives the Gaussian distribution.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    References
    ----------
    Jordan, Krüger and Lerch (2019), Evaluating probabilistic forecasts with scoringRules, appendix A.

    Examples
    --------
    >>> y = [0.0, 1.0, 2.0]
    >>> round(crps_student(y, [0.1, 0.9, 2.5], std=0.3, df=4), 4)
    0.1696
    >>> crps_student(y, [0.1, 0.9, 2.5], std=0.3, df=float("inf")) == crps_gaussian(y, [0.1, 0.9, 2.5], std=0.3)
    True
    """
    if np.isinf(_check_df(df)):
        return crps_gaussian(y_true, mean, std, sample_weight=sample_weight, multioutput=multioutput)
    residual, std = residuals_of(y_true, mean, std)
    scale = std * np.sqrt((df - 2.0) / df)
    with np.errstate(over="ignore"):
        z = standardised(residual, scale)
        square = z**2
    # 2f(z)(df + z²)/(df - 1) with the power of 1 + z²/df written out, so that std = 0, z infinite, needs no case of its own
    tails = np.exp(-betaln(0.5, 0.5 * df) - 0.5 * (df - 1.0) * np.log1p(square / df))
    spread = np.exp(betaln(0.5, df - 0.5) - 2.0 * betaln(0.5, 0.5 * df))
    values = residual * (2.0 * stdtr(df, z) - 1.0) + scale * 2.0 * np.sqrt(df) / (df - 1.0) * (tails - spread)
    return mean_score(values, sample_weight, multioutput)


def nll_student(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    df: float,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Negative log-likelihood per observation of predictions by Student's t.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. ``std`` is not the scale parameter and must be positive.
    df : float
        Degrees of freedom, greater than 2. Infinity gives the Gaussian distribution.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> round(nll_student([0.0, 1.0, 2.0], [0.1, 0.9, 2.5], std=0.3, df=4), 4)
    0.2461
    """
    if np.isinf(_check_df(df)):
        return nll_gaussian(y_true, mean, std, sample_weight=sample_weight, multioutput=multioutput)
    residual, std = residuals_of(y_true, mean, std, positive=True)
    constant = betaln(0.5, 0.5 * df) + 0.5 * np.log(df - 2.0)
    values = constant + np.log(std) + 0.5 * (df + 1.0) * np.log1p(standardised(residual, std) ** 2 / (df - 2.0))
    return mean_score(values, sample_weight, multioutput)


def _check_df(df: float) -> float:
    if not df > 2:
        raise ValueError(f"df={df!r} must be a number above 2: below it Student's t has no variance.")
    return df
