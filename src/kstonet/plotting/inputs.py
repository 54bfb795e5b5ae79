"""Inputs of all displays: models or plain arrays, one target and one feature of several."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from kstonet._checks import Floats, check_like, check_not_negative, check_numbers, check_targets, position
from kstonet.uncertainty.distribution import PredictiveDistribution, probabilities
from kstonet.uncertainty.mapped import MappedDistribution

TOTAL = "total"  # the source of a variance that is known as a whole only


@dataclass(frozen=True)
class Predicted:
    """The prediction for one target."""

    distribution: PredictiveDistribution | MappedDistribution
    column: int

    @property
    def mean(self) -> Floats:
        """Shape (n,)."""
        return self.distribution.means[:, self.column]

    @property
    def std(self) -> Floats:
        """Shape (n,)."""
        std = self.distribution.std
        return std if self.distribution.single else std[:, self.column]

    def interval(self, levels: Floats) -> Floats:
        """Shape (n, 2, levels)."""
        bounds = self.distribution.interval(levels)
        return bounds if self.distribution.single else bounds[:, self.column]

    def nll(self, y: Floats) -> float | None:
        """Mean negative log-density of the observations; None where there is none."""
        return self.distribution.nll(y, self.column)

    def crps(self, y: Floats) -> float:
        """Mean continuous ranked probability score of the observations."""
        return self.distribution.crps(y, self.column)

    def observed(self, name: str, y: ArrayLike) -> Floats:
        """The observations of the target, shape (n,); ``y`` must have the shape of the predictions."""
        table, shape = _table(name, y), self.distribution.means.shape
        if table.shape != shape:
            raise ValueError(
                f"{name} holds {table.shape[0]} rows and {table.shape[1]} targets, the predictions {shape[0]} rows and "
                f"{shape[1]} targets; give {name} for the rows and targets that are predicted."
            )
        return table[:, self.column]

    @property
    def variance_by_source(self) -> dict[str, Floats]:
        """Shape (n,) each."""
        parts = self.distribution.variance_by_source
        return parts if self.distribution.single else {source: part[:, self.column] for source, part in parts.items()}


def model_name(model: Any, name: str | None) -> str:
    """The name in a legend: as given, or that of the estimator inside searches and pipelines."""
    return type(innermost(model)).__name__ if name is None else name


def predicted_by(model: Any, X: Any, target: int | None) -> Predicted:
    """The prediction of a model for one target."""
    model, X = _unwrapped(model, X)
    distribution = model.predict_dist(X) if hasattr(model, "predict_dist") else _gaussian(*_mean_and_std(model, X))
    return Predicted(distribution, chosen_column(target, distribution.means.shape[1]))


def judged_by(model: Any, X: Any, y: ArrayLike, target: int | None) -> tuple[Predicted, Floats]:
    """The prediction of a model for one target, and the observations of it."""
    predicted = predicted_by(model, X, target)
    return predicted, predicted.observed("y", y)


def judged_as(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, target: int | None) -> tuple[Predicted, Floats]:
    """The same from plain arrays."""
    predicted = predicted_as(y_true, mean, std, target)
    return predicted, predicted.observed("y_true", y_true)


def predicted_as(y_true: ArrayLike, mean: ArrayLike, std: ArrayLike, target: int | None) -> Predicted:
    """The prediction of one target from plain arrays."""
    k = _table("y_true", y_true).shape[1]
    return Predicted(_gaussian(spread("mean", mean, y_true), spread("std", std, y_true)), chosen_column(target, k))


def read_intervals(
    y_true: ArrayLike, intervals: ArrayLike, coverage: Any, target: int | None, called: str = "coverage"
) -> tuple[Floats, Floats, int]:
    """The bounds (n, 2, levels) and the observations (n,) of one target, and its column."""
    levels = probabilities(called, coverage)
    bounds = check_numbers("intervals", intervals, infinite=True)
    y, shape = _table("y_true", y_true), np.shape(y_true)
    expected = (*shape, 2, *np.shape(coverage))
    if bounds.shape != expected:
        raise ValueError(
            f"intervals has shape {bounds.shape}; y_true of shape {shape} and {called}={coverage!r} need {expected}, as "
            "predict_interval returns them."
        )
    column = chosen_column(target, y.shape[1])
    bounds = bounds.reshape(*y.shape, 2, len(levels))[:, column]
    if (bounds[:, 0] > bounds[:, 1]).any():
        raise ValueError("intervals has lower bounds above the upper ones; sort them with numpy.sort along their axis.")
    return bounds, y[:, column], column


def chosen_column(target: Any, k: int) -> int:
    """The column of a target; with several, one has to be chosen."""
    if target is None:
        if k == 1:
            return 0
        raise ValueError(f"target=None, but there are {k} targets; choose the one to draw with target=0 to target={k - 1}.")
    column = position(target, k)
    if column is None:
        raise ValueError(f"target={target!r} must be the index of one of the {k} targets, 0 to {k - 1}.")
    return column


def feature_values(X: Any, feature: int | str) -> tuple[Floats, str]:
    """The values of one feature, and its name."""
    names = None if getattr(X, "columns", None) is None else [str(name) for name in X.columns]
    table = np.asarray(X)
    if table.ndim != 2:
        raise ValueError(f"X has shape {table.shape}; feature={feature!r} needs an array of two dimensions.")
    p = table.shape[1]
    if isinstance(feature, str):
        if names is None:
            raise ValueError(
                f"feature={feature!r} is a name, but X has no column names; give the index of a column, 0 to {p - 1}."
            )
        if feature not in names:
            raise ValueError(f"feature={feature!r} is not among the columns of X: {', '.join(names[:20])}.")
        column = names.index(feature)
    else:
        place = position(feature, p)
        if place is None:
            raise ValueError(f"feature={feature!r} must be the name of a column of X or its index, 0 to {p - 1}.")
        column = place
    return check_numbers(f"X[:, {column}]", table[:, column]), f"feature {column}" if names is None else names[column]


def target_name(y: Any, column: int) -> str | None:
    """What pandas calls the target, or None."""
    columns = getattr(y, "columns", None)
    name = getattr(y, "name", None) if columns is None else columns[column]
    return name if isinstance(name, str) else None


def row_values(name: str, values: ArrayLike, n: int) -> Floats:
    """One number per row."""
    array = check_numbers(name, values)
    if array.shape != (n,):
        raise ValueError(f"{name} has shape {array.shape}; it must be ({n},), one number per row of the predictions.")
    return array


def innermost(model: Any) -> Any:
    """The estimator inside searches and pipelines."""
    while hasattr(model, "best_estimator_") or isinstance(model, Pipeline):
        model = model[-1] if isinstance(model, Pipeline) else model.best_estimator_
    return model


def _unwrapped(model: Any, X: Any) -> tuple[Any, Any]:
    """The estimator inside searches and pipelines, which do not forward ``predict_dist``, and the transformed rows."""
    while hasattr(model, "best_estimator_") or isinstance(model, Pipeline):
        if not isinstance(model, Pipeline):
            model = model.best_estimator_
            continue
        if len(model.steps) > 1:
            X = model[:-1].transform(X)
        model = model[-1]
    return model, X


def _mean_and_std(model: Any, X: Any) -> tuple[Any, Any]:
    check_is_fitted(model)
    try:
        mean, std = model.predict(X, return_std=True)
    except TypeError as error:
        raise TypeError(
            f"model={type(model).__name__} has neither predict_dist(X) nor predict(X, return_std=True), so its uncertainty is "
            "unknown; use a regressor that has one of them, or the constructors that take arrays."
        ) from error
    return mean, std


def _gaussian(mean: ArrayLike, std: ArrayLike) -> PredictiveDistribution:
    """N(mean, std²) from (n,) or (n, k) arrays."""
    means, deviations = _table("mean", mean), _table("std", std)
    check_not_negative("std", deviations, "a standard deviation cannot be negative")
    covariance = np.einsum("nk,kl->nkl", deviations**2, np.eye(means.shape[1]))
    return PredictiveDistribution(means, {TOTAL: covariance}, single=False)


def spread(name: str, values: ArrayLike, y_true: ArrayLike) -> Floats:
    """Numbers in the shape of y_true; a single one spreads."""
    return check_like(name, check_numbers(name, values), np.shape(y_true))


def _table(name: str, values: ArrayLike) -> Floats:
    array = check_targets(values, name)
    return array.reshape(len(array), -1)
