"""Predictions given by a mean and a standard deviation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf, ndtr

from kstonet._checks import Floats, check_like, check_not_negative, check_numbers, check_targets, first_of
from kstonet.metrics.checks import Score, check_weights, combine_outputs, mean_score, norm_of_gaps, weighted_mean

LEVELS = np.linspace(0.05, 0.95, 19)


class CalibrationCurve(NamedTuple):
    """The result of :func:`calibration_curve`.

    Attributes
    ----------
    nominal : array of shape (levels,)
        Nominal coverage of the central interval.
    observed : array of shape (levels,), or (levels, k) for raw values
        Share of observations inside the interval.

    Examples
    --------
    >>> nominal, observed = calibration_curve([0.1, -2.0], 0.0, 1.0, levels=[0.5, 0.99])
    >>> observed
    array([0.5, 1. ])
    """

    nominal: Floats
    observed: Floats


def crps_gaussian(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Continuous ranked probability score ∫(F(x) - 1{x ≥ y})²dx of Gaussian predictions, in the unit of y.

    The score is strictly proper and finite for every prediction; with ``std=0`` it is the absolute error.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. ``std`` must not be negative; it may be zero.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation, section 4.2.

    Examples
    --------
    >>> y = [0.0, 1.0, 2.0]
    >>> round(crps_gaussian(y, [0.1, 0.9, 2.5], std=0.3), 4)
    0.1697
    >>> crps_gaussian(y, [0.0, 1.0, 5.0], std=0.0)
    1.0
    """
    residual, std = residuals_of(y_true, mean, std)
    z = standardised(residual, std)
    # The textbook form is σ·(z·(2Φ(z) - 1) + ...); with σ·z written as the residual, σ = 0 needs no case of its own.
    values = residual * erf(z / math.sqrt(2.0)) + std * (math.sqrt(2.0 / math.pi) * np.exp(-_half_square(z)) - math.pi**-0.5)
    return mean_score(values, sample_weight, multioutput)


def nll_gaussian(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Negative log-likelihood ½log(2πσ²) + (y - mean)²/(2σ²) per observation of Gaussian predictions.

    The score is strictly proper and penalises overconfidence heavily. ``std=0`` raises an error, because there is no density.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. ``std`` must be positive.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean over the k outputs, or an array with one value for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> round(nll_gaussian([0.0, 1.0, 2.0], [0.1, 0.9, 2.5], std=0.3), 4)
    0.215
    """
    residual, std = residuals_of(y_true, mean, std, positive=True)
    values = 0.5 * math.log(2.0 * math.pi) + np.log(std) + _half_square(standardised(residual, std))
    return mean_score(values, sample_weight, multioutput)


def pit_values(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike) -> Floats:
    """Probability integral transform Φ((y - mean)/std) of every observation: uniform on [0, 1] if the predictions are correct.

    A histogram that is high in the middle indicates predictions that are too wide, one that is low in the middle predictions
    that are too narrow, and a slope indicates a bias.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. Where ``std`` is zero the value is 0 or 1, or 0.5 if the
        observation equals the mean.

    Returns
    -------
    array of the shape of y_true

    Examples
    --------
    >>> pit_values([0.0, 1.0, 2.0], mean=1.0, std=0.5).round(4)
    array([0.0228, 0.5   , 0.9772])
    """
    return np.asarray(ndtr(standardised(*residuals_of(y_true, mean, std))))


def calibration_curve(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    levels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> CalibrationCurve:
    """Observed against nominal coverage of the central intervals mean ± std·Φ⁻¹((1 + level)/2).

    Observed coverage below the nominal one means overconfidence. Errors in the two tails may cancel here; :func:`pit_values`
    shows them.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution. Where ``std`` is zero, the interval is a single point.
    levels : array, optional
        Nominal coverages in [0, 1]. If not given, they are 0.05, 0.10, ..., 0.95.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean of the curves of the k outputs, in which opposite errors cancel, or one column for each.

    Returns
    -------
    CalibrationCurve
        With the fields ``nominal`` and ``observed``.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=10_000)
    >>> curve = calibration_curve(y, mean=0.0, std=0.5, levels=[0.5, 0.9, 0.95])
    >>> curve.observed.round(2)  # intervals half as wide as they should be
    array([0.26, 0.59, 0.67])
    """
    nominal, observed = _coverages(y_true, mean, std, levels, sample_weight)
    return CalibrationCurve(nominal, np.array([combine_outputs(per_output, multioutput) for per_output in observed]))


def calibration_error(
    y_true: ArrayLike,
    mean: ArrayLike,
    std: ArrayLike,
    *,
    norm: str = "l1",
    levels: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    multioutput: str = "uniform_average",
) -> Score:
    """Distance between the :func:`calibration_curve` and the diagonal.

    Do not train or select models by it: it does not reward sharpness, and even perfect predictions have an error of about
    0.33/√n ("l1") by chance.

    Parameters
    ----------
    y_true : array of shape (n,) or (n, k)
        Observed values.
    mean, std : arrays of the shape of y_true, or floats
        Mean and standard deviation of the predictive distribution.
    norm : {"l1", "l2", "max"}
        Mean absolute difference, root mean square difference or largest difference over the levels.
    levels : array, optional
        Nominal coverages in [0, 1]. If not given, they are 0.05, 0.10, ..., 0.95.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    multioutput : {"uniform_average", "raw_values"}
        Whether to return the mean of the errors of the k outputs, or an array with one for each.

    Returns
    -------
    float or array of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> y = np.random.default_rng(0).normal(size=10_000)
    >>> round(calibration_error(y, mean=0.0, std=1.0), 3)
    0.004
    >>> round(calibration_error(y, mean=0.0, std=0.5, norm="max"), 2)
    0.33
    """
    nominal, observed = _coverages(y_true, mean, std, levels, sample_weight)
    return combine_outputs(norm_of_gaps(observed - nominal[:, None], norm), multioutput)


def residuals_of(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, *, positive: bool = False) -> tuple[Floats, Floats]:
    """Return y_true - mean and std, both in the shape of y_true; a density needs a ``positive`` std."""
    y = check_targets(y_true)
    mu = check_like("mean", check_numbers("mean", mean), y.shape)
    sigma = check_like("std", check_numbers("std", std), y.shape)
    check_not_negative("std", sigma, "a standard deviation cannot be negative; take the exponential of a logarithm first")
    if positive and (sigma == 0).any():
        raise ValueError(
            f"std holds {first_of(sigma, sigma == 0)}: a distribution without spread has no density. "
            "Bound std from below, as in numpy.maximum(std, 1e-6), or use crps_gaussian or crps_student, which accept zero."
        )
    return y - mu, sigma


def standardised(residual: Floats, std: Floats) -> Floats:
    """The residual in units of std: 0 for an exact hit and ±∞ for a miss where std is zero."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(residual == 0.0, 0.0, residual / std)


def _half_square(z: Floats) -> Floats:
    with np.errstate(over="ignore"):
        return np.asarray(0.5 * z * z)


def _coverages(
    y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: ArrayLike | None, sample_weight: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Return the levels and the observed coverage of the central intervals, (levels,) and (levels, k)."""
    nominal = LEVELS.copy() if levels is None else check_numbers("levels", levels)
    if nominal.ndim != 1 or nominal.size == 0 or not ((nominal >= 0) & (nominal <= 1)).all():
        raise ValueError(f"levels={levels!r} must be a list of at least one probability in [0, 1].")
    z = standardised(*residuals_of(y_true, mean, std))
    weights = check_weights(sample_weight, len(z))
    reach = erf(np.abs(z.reshape(len(z), -1)) / math.sqrt(2.0))  # the smallest central interval that holds y
    return nominal, np.stack([weighted_mean(reach <= level, weights) for level in nominal])
