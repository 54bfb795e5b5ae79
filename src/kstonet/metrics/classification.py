"""Predicted probabilities of classes."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kstonet._checks import Floats, check_choice, check_numbers, first_of, whole_number
from kstonet.metrics.checks import Score, check_weights, mean_score, norm_of_gaps

ROUNDING = 1e-4  # by which probabilities computed in low precision may leave [0, 1] or miss a sum of one


class ReliabilityCurve(NamedTuple):
    """The result of :func:`reliability_curve`, with one entry for every bin that is not empty.

    Attributes
    ----------
    predicted : array of shape (bins,)
        Mean predicted probability in the bin.
    observed : array of shape (bins,)
        Share of the rows in the bin for which the class was correct.
    weight : array of shape (bins,)
        Share of the observations in the bin; the shares sum to one.

    Examples
    --------
    >>> curve = reliability_curve([0, 1, 1, 1], [0.2, 0.6, 0.9, 0.9], n_bins=2, label=1)
    >>> curve.weight
    array([0.25, 0.75])
    """

    predicted: Floats
    observed: Floats
    weight: Floats


def brier_score(
    y_true: ArrayLike, proba: ArrayLike, *, labels: ArrayLike | None = None, sample_weight: ArrayLike | None = None
) -> float:
    """Mean squared error of predicted probabilities, a strictly proper score.

    With two classes the score is the mean of (p - 1{y = second label})², between 0 and 1. With more classes it is the sum of
    the squared errors over all classes, between 0 and 2. scikit-learn uses the same convention.

    Parameters
    ----------
    y_true : array of shape (n,)
        Class labels, numbers or strings.
    proba : array of shape (n, classes), or (n,)
        Probabilities as ``predict_proba`` returns them. For two classes, an array of shape (n,) holds those of the second
        label.
    labels : array of shape (classes,), optional
        Labels of the columns of ``proba``, as in ``model.classes_``. If not given, they are the sorted labels of ``y_true``,
        which must then contain every class; labels that are all 0 or 1 with two columns are also recognised.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.

    Returns
    -------
    float

    Examples
    --------
    >>> round(brier_score([0, 1, 1], [0.1, 0.8, 0.6]), 4)
    0.07
    >>> round(brier_score(["dog", "cat"], [[0.2, 0.7, 0.1], [0.9, 0.1, 0.0]], labels=["cat", "dog", "fox"]), 4)
    0.08
    """
    seen, p, _ = _check_proba(y_true, proba, labels)
    squared = p**2
    rows = np.arange(len(p))
    squared[rows, seen] = (1.0 - p[rows, seen]) ** 2
    return float(mean_score(squared.sum(axis=1) / (2.0 if p.shape[1] == 2 else 1.0), sample_weight, "uniform_average"))


def reliability_curve(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    label: Any = None,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: str = "uniform",
    sample_weight: ArrayLike | None = None,
) -> ReliabilityCurve:
    """How often predictions of a given confidence are right, bin by bin.

    Parameters
    ----------
    y_true : array of shape (n,)
        Class labels, numbers or strings.
    proba : array of shape (n, classes), or (n,)
        Probabilities as ``predict_proba`` returns them. For two classes, an array of shape (n,) holds those of the second
        label.
    label : one of the labels, optional
        The class whose probabilities are put into bins. If not given, the probabilities of the most probable class of every row
        are used, also with two classes.
    labels : array of shape (classes,), optional
        Labels of the columns of ``proba``, as in ``model.classes_``. If not given, they are the sorted labels of ``y_true``,
        which must then contain every class; labels that are all 0 or 1 with two columns are also recognised.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        ``"uniform"`` makes bins of equal width on [0, 1], closed on the right; ``"quantile"`` makes bins with equal numbers of
        rows. Equal probabilities are put into the same bin.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.

    Returns
    -------
    ReliabilityCurve
        With the fields ``predicted``, ``observed`` and ``weight``.

    Examples
    --------
    >>> curve = reliability_curve(["no", "yes", "yes", "no"], [0.1, 0.7, 0.9, 0.7], label="yes", n_bins=5)
    >>> curve.predicted.round(3), curve.observed
    (array([0.1, 0.7, 0.9]), array([0. , 0.5, 1. ]))
    """
    seen, p, names = _check_proba(y_true, proba, labels)
    weights = check_weights(sample_weight, len(p))
    if label is None:
        return _curve(*_top_label(seen, p), n_bins, strategy, weights)
    if label not in names:
        raise ValueError(f"label={label!r} is not among the labels {names}.")
    column = names.index(label)
    return _curve(p[:, column], seen == column, n_bins, strategy, weights)


def expected_calibration_error(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    sample_weight: ArrayLike | None = None,
) -> float:
    """Distance between confidence and accuracy of the most probable class (top-label calibration error).

    Do not select models by it: predicting the base rate for all rows is well calibrated, and even a perfect model has an error
    above zero by chance, which grows as the bins contain fewer observations.

    Parameters
    ----------
    y_true : array of shape (n,)
        Class labels, numbers or strings.
    proba : array of shape (n, classes), or (n,)
        Probabilities as ``predict_proba`` returns them. For two classes, an array of shape (n,) holds those of the second
        label.
    labels : array of shape (classes,), optional
        Labels of the columns of ``proba``, as in ``model.classes_``. If not given, they are the sorted labels of ``y_true``,
        which must then contain every class; labels that are all 0 or 1 with two columns are also recognised.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        ``"uniform"`` makes bins of equal width on [0, 1], closed on the right; ``"quantile"`` makes bins with equal numbers of
        rows. Equal probabilities are put into the same bin.
    norm : {"l1", "l2", "max"}
        Mean absolute difference or root mean square difference, both weighted by the share of rows in the bins, or the largest
        difference.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.

    Returns
    -------
    float

    References
    ----------
    Guo, Pleiss, Sun and Weinberger (2017), On calibration of modern neural networks.

    Examples
    --------
    >>> proba = [[0.9, 0.1], [0.9, 0.1], [0.3, 0.7], [0.3, 0.7]]
    >>> round(expected_calibration_error(["a", "b", "b", "b"], proba), 4)
    0.35
    """
    seen, p, _ = _check_proba(y_true, proba, labels)
    curve = _curve(*_top_label(seen, p), n_bins, strategy, check_weights(sample_weight, len(p)))
    return float(_curve_error(curve, norm))


def classwise_ece(
    y_true: ArrayLike,
    proba: ArrayLike,
    *,
    labels: ArrayLike | None = None,
    n_bins: int = 15,
    strategy: str = "uniform",
    norm: str = "l1",
    average: str | None = "macro",
    sample_weight: ArrayLike | None = None,
) -> Score:
    """Calibration error of the probability of every class, one against the rest.

    Parameters
    ----------
    y_true : array of shape (n,)
        Class labels, numbers or strings.
    proba : array of shape (n, classes), or (n,)
        Probabilities as ``predict_proba`` returns them. For two classes, an array of shape (n,) holds those of the second
        label.
    labels : array of shape (classes,), optional
        Labels of the columns of ``proba``, as in ``model.classes_``. If not given, they are the sorted labels of ``y_true``,
        which must then contain every class; labels that are all 0 or 1 with two columns are also recognised.
    n_bins : int
        Number of bins.
    strategy : {"uniform", "quantile"}
        ``"uniform"`` makes bins of equal width on [0, 1], closed on the right; ``"quantile"`` makes bins with equal numbers of
        rows. Equal probabilities are put into the same bin.
    norm : {"l1", "l2", "max"}
        Mean absolute difference or root mean square difference, both weighted by the share of rows in the bins, or the largest
        difference.
    average : {"macro", None}
        Whether to return the mean over the classes, or an array with one value for each.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.

    Returns
    -------
    float or array of shape (classes,)

    References
    ----------
    Kull et al. (2019), Beyond temperature scaling: obtaining well-calibrated multiclass probabilities.

    Examples
    --------
    >>> proba = [[0.8, 0.1, 0.1], [0.1, 0.6, 0.3], [0.1, 0.2, 0.7]]
    >>> classwise_ece(["a", "b", "c"], proba, average=None).round(4)
    array([0.1333, 0.2333, 0.2333])
    """
    check_choice("average", average, ("macro", None))
    seen, p, _ = _check_proba(y_true, proba, labels)
    weights = check_weights(sample_weight, len(p))
    errors = np.array([_curve_error(_curve(p[:, c], seen == c, n_bins, strategy, weights), norm) for c in range(p.shape[1])])
    return errors if average is None else float(errors.mean())


def _check_proba(y_true: ArrayLike, proba: ArrayLike, labels: ArrayLike | None) -> tuple[NDArray[np.intp], Floats, list[Any]]:
    """Return the column of every observed class, the probabilities (n, classes) and the labels of the columns."""
    p = check_numbers("proba", proba)
    if p.ndim not in (1, 2) or p.size == 0 or (p.ndim == 2 and p.shape[1] < 2):
        raise ValueError(
            f"proba has shape {p.shape}; it must be (n, classes) with two classes or more, or (n,) for two classes."
        )
    outside = (p < -ROUNDING) | (p > 1.0 + ROUNDING)
    if outside.any():
        raise ValueError(f"proba holds {first_of(p, outside)}; probabilities lie in [0, 1]. Pass predict_proba, not scores.")
    p = p.clip(0.0, 1.0)
    if p.ndim == 1:
        p = np.column_stack([1.0 - p, p])
    total = p.sum(axis=1)
    off = np.abs(total - 1.0) > ROUNDING
    if off.any():
        raise ValueError(f"proba has a row sum of {first_of(total, off)}; every row must sum to one.")
    y = np.asarray(y_true)
    if y.shape != (len(p),):
        raise ValueError(f"y_true has shape {y.shape}; it must be ({len(p)},), one label per row of proba.")
    try:
        present, inverse = np.unique(y, return_inverse=True)
    except TypeError as error:
        raise ValueError(f"y_true mixes labels that cannot be compared, or misses some: {error}.") from error
    found = present.tolist()
    if any(value != value for value in found):
        raise ValueError("y_true holds nan; remove the rows without a label.")
    names = _column_names(found, labels, p.shape[1])
    unknown = [value for value in found if value not in names]
    if unknown:
        raise ValueError(f"y_true holds {unknown[:5]}, not among the labels {names[:20]}; pass labels=model.classes_.")
    return np.array([names.index(value) for value in found], dtype=np.intp)[inverse], p, names


def _column_names(found: list[Any], labels: ArrayLike | None, columns: int) -> list[Any]:
    """Return the label of every column of the probabilities."""
    if labels is not None:
        names: list[Any] = np.asarray(labels).ravel().tolist()
        if np.ndim(labels) != 1 or len(names) != columns or len(set(names)) != columns:
            raise ValueError(f"labels={labels!r} must name each of the {columns} columns of proba once.")
        return names
    if len(found) == columns:
        return found
    if columns == 2 and all(value in (0, 1) for value in found):
        return [0, 1]
    raise ValueError(f"y_true shows {len(found)} classes, proba has {columns}: name the columns with labels=model.classes_.")


def _top_label(seen: NDArray[np.intp], p: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the probability of the most probable class and whether it was right."""
    top = p.argmax(axis=1)
    return p[np.arange(len(p)), top], top == seen


def _curve(p: Floats, right: NDArray[np.bool_], n_bins: int, strategy: str, weights: Floats | None) -> ReliabilityCurve:
    check_choice("strategy", strategy, ("uniform", "quantile"))
    bins = whole_number("n_bins", n_bins)
    w = np.ones(len(p)) if weights is None else weights
    if strategy == "uniform":
        place = np.searchsorted(np.linspace(0.0, 1.0, bins + 1)[1:-1], p)
    else:
        # By the middle of the mass at each distinct value: ties stay together, and a weight of 2 is a row given twice.
        _, inverse = np.unique(p, return_inverse=True)
        mass = np.bincount(inverse, weights=w)
        middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
        place = (middle * bins).round(9).astype(np.intp)  # rounded, or the scale of the weights would decide at an edge
        place = np.minimum(place, bins - 1)[inverse]
    weight = np.bincount(place, weights=w)
    filled = weight > 0
    weight = weight[filled]
    predicted = np.bincount(place, weights=w * p)[filled] / weight
    observed = np.bincount(place, weights=w * right)[filled] / weight
    return ReliabilityCurve(predicted, observed, weight / weight.sum())


def _curve_error(curve: ReliabilityCurve, norm: str) -> Floats:
    return norm_of_gaps(curve.observed - curve.predicted, norm, curve.weight)
