"""The steps of a pipeline before the model inside a graph: scalers, imputers, projections, and choices of columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn import decomposition, feature_selection, impute, preprocessing
from sklearn.compose import ColumnTransformer
from sklearn.utils.validation import check_is_fitted

from kstonet.onnx_export.graph import Value, op

KNOWN = "StandardScaler, MinMaxScaler, MaxAbsScaler, RobustScaler, SimpleImputer, PCA, VarianceThreshold and ColumnTransformer"
PASSED = (None, "passthrough")


def taken_apart(model: Any) -> tuple[list[Any], Any]:
    """The transformers before a model, and the model inside searches and pipelines."""
    steps: list[Any] = []
    while hasattr(model, "best_estimator_") or isinstance(model, sklearn.pipeline.Pipeline):
        if not isinstance(model, sklearn.pipeline.Pipeline):
            model = model.best_estimator_
            continue
        check_is_fitted(model)
        steps += [step for _, step in model.steps[:-1] if not _passes(step)]
        model = model.steps[-1][1]
    return steps, model


def transformed(x: Value, steps: list[Any]) -> Value:
    """What the steps make of rows; a matrix has one row per column of the table here."""
    for step in steps:
        x = _step(x, step)
    return x


def _passes(step: Any) -> bool:
    return step in PASSED if step is None or isinstance(step, str) else _is_identity(step)


def _is_identity(step: Any) -> bool:
    return isinstance(step, preprocessing.FunctionTransformer) and step.func is None


def _step(x: Value, step: Any) -> Value:
    if _passes(step):
        return x
    if isinstance(step, sklearn.pipeline.Pipeline):
        return transformed(x, [own for _, own in step.steps])
    if isinstance(step, preprocessing.StandardScaler | preprocessing.RobustScaler):
        standard = isinstance(step, preprocessing.StandardScaler)
        centred, centre = (step.with_mean, step.mean_) if standard else (step.with_centering, step.center_)
        return _scaled(x, -centre if centred else None, None if step.scale_ is None else 1.0 / step.scale_)
    if isinstance(step, preprocessing.MaxAbsScaler) and not getattr(step, "clip", False):
        return _scaled(x, None, 1.0 / step.scale_)
    if isinstance(step, preprocessing.MinMaxScaler):
        values: Value = x * step.scale_[:, None] + step.min_[:, None]
        low, high = step.feature_range
        return values.maximum(float(low)).minimum(float(high)) if step.clip else values
    if isinstance(step, impute.SimpleImputer) and _is_plain(step):
        return op("Where", op("IsNaN", x), np.asarray(step.statistics_, dtype=np.float64)[:, None], x)
    if isinstance(step, decomposition.PCA):
        weights = step.components_ / (np.sqrt(step.explained_variance_)[:, None] if step.whiten else 1.0)
        return x.left_product(weights, -(weights @ step.mean_)[:, None])
    if isinstance(step, feature_selection.VarianceThreshold):
        return x.take(np.flatnonzero(step.get_support()), axis=0)
    if isinstance(step, ColumnTransformer):
        return _columns(x, step)
    raise TypeError(
        f"the pipeline holds a {type(step).__name__} that kstonet.to_onnx does not know, or with settings that it does not "
        f"know; it knows {KNOWN}. Export the last step, model[-1], and transform rows before they are handed to the graph."
    )


def _scaled(x: Value, shift: np.ndarray | None, factor: np.ndarray | None) -> Value:
    x = x if shift is None else x + shift[:, None]
    return x if factor is None else x * factor[:, None]


def _is_plain(step: impute.SimpleImputer) -> bool:
    """Whether NaN becomes a number, and nothing else happens."""
    numeric = np.asarray(step.statistics_).dtype.kind == "f"
    return bool(numeric and not step.add_indicator and np.isnan(step.missing_values) and np.isfinite(step.statistics_).all())


def _columns(x: Value, step: ColumnTransformer) -> Value:
    """Parts of the columns through transformers of their own, one below the other."""
    parts = []
    names = list(getattr(step, "feature_names_in_", range(step.n_features_in_)))
    for _, own, columns in step.transformers_:
        if isinstance(own, str) and own == "drop":
            continue
        chosen = np.arange(len(names))[columns] if isinstance(columns, slice) else np.atleast_1d(np.asarray(columns))
        if chosen.dtype.kind == "b":
            chosen = np.flatnonzero(chosen)
        elif chosen.dtype.kind not in "iu":
            chosen = np.array([names.index(name) for name in chosen.tolist()], dtype=np.int64)
        if len(chosen):
            parts.append(_step(x.take(chosen, axis=0), own))
    return parts[0] if len(parts) == 1 else op("Concat", *parts, axis=0)
