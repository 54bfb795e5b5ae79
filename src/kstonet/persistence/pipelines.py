"""The transformers before a model: a closed list of scikit-learn's, as records of plain values.

A transformer is stored as the attributes it has: numbers, strings, arrays, and other transformers of the list. What a file
holds is data; functions (of a FunctionTransformer, say) are refused when the model is saved.
"""

from __future__ import annotations

from collections import UserList
from dataclasses import dataclass
from typing import Any

import numpy as np
import sklearn.pipeline
from sklearn import compose, decomposition, feature_selection, impute, preprocessing

from kstonet._records import storable
from kstonet.storage.records import check_numbers, expect
from kstonet.tables import TableEncoder

#: The transformers that a file may name.
TRANSFORMERS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        compose.ColumnTransformer,
        decomposition.PCA,
        decomposition.TruncatedSVD,
        feature_selection.VarianceThreshold,
        impute.MissingIndicator,
        impute.SimpleImputer,
        preprocessing.FunctionTransformer,
        preprocessing.KBinsDiscretizer,
        preprocessing.MaxAbsScaler,
        preprocessing.MinMaxScaler,
        preprocessing.Normalizer,
        preprocessing.OneHotEncoder,
        preprocessing.OrdinalEncoder,
        preprocessing.PolynomialFeatures,
        preprocessing.PowerTransformer,
        preprocessing.QuantileTransformer,
        preprocessing.RobustScaler,
        preprocessing.StandardScaler,
        sklearn.pipeline.Pipeline,
        TableEncoder,
    )
}
#: Numbers of transformers, one per feature.
PER_FEATURE = {"mean_", "var_", "scale_", "center_", "min_", "data_min_", "data_max_", "data_range_", "max_abs_", "statistics_"}
#: Numbers of transformers that rows are calculated with: of which sign they are.
FINITE = dict.fromkeys(PER_FEATURE - {"statistics_"} | {"components_", "lambdas_", "quantiles_"}, "float") | {
    "scale_": "positive",
    "var_": "nonnegative",
}
TYPES = {
    kind.__name__: kind for kind in (np.float64, np.float32, np.int64, np.int32, np.bool_, np.str_, np.object_, float, int, str)
}


@storable(state="any")
@dataclass(frozen=True)
class StoredTransformer:
    """A transformer of the list: the name of its class, and its attributes."""

    kind: str
    state: dict[str, Any]


@storable(start="any", stop="any", step="any")
@dataclass(frozen=True)
class StoredSlice:
    """Columns from one to another."""

    start: int | str | None
    stop: int | str | None
    step: int | None


@storable()
@dataclass(frozen=True)
class StoredType:
    """The type of an array's numbers: a class, or the dtype of it."""

    name: str
    as_dtype: bool


def as_values(value: Any) -> Any:
    """A transformer, or a part of one, as values that a file can hold; what is not known stays, and is refused later."""
    if TRANSFORMERS.get(type(value).__name__) is type(value):
        state = dict(value.__getstate__() or {})
        if isinstance(value, compose.ColumnTransformer):  # columns that a function has chosen are known by now
            fitted = {name: columns for name, _, columns in getattr(value, "transformers_", ())}
            state["transformers"] = [
                (name, own, fitted.get(name) if callable(columns) else columns) for name, own, columns in value.transformers
            ]
        return StoredTransformer(type(value).__name__, {name: as_values(item) for name, item in state.items()})
    if isinstance(value, slice):
        return StoredSlice(value.start, value.stop, value.step)
    if isinstance(value, type | np.dtype):
        name = value.__name__ if isinstance(value, type) else value.type.__name__
        return StoredType(name, isinstance(value, np.dtype)) if name in TYPES else value
    if isinstance(value, dict):
        return {key: as_values(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(as_values, value))
    if isinstance(value, list | UserList):
        return [as_values(item) for item in value]
    if hasattr(value, "to_numpy"):  # an index of pandas
        return as_values(value.to_numpy())
    return value


def from_values(value: Any) -> Any:
    """What :func:`as_values` has taken apart, put together again."""
    if isinstance(value, StoredTransformer):
        expect(value.kind in TRANSFORMERS, f"it holds a transformer {value.kind!r:.40}, which is not known here")
        kind = TRANSFORMERS[value.kind]
        for name in value.state:
            expect(isinstance(name, str) and not callable(getattr(kind, name, None)), f"{value.kind} has no state {name!r:.40}")
        made, state = object.__new__(kind), {name: from_values(item) for name, item in value.state.items()}
        for name in PER_FEATURE & state.keys():
            shape = getattr(state[name], "shape", None)
            expect(shape in (None, (state.get("n_features_in_"),)), f"{name} of {value.kind} has not one number per feature")
        for name in FINITE.keys() & state.keys():
            check_numbers(f"{name} of {value.kind}", state[name], FINITE[name])
        categories = state.get("categories_")
        expect(isinstance(categories, list | None), f"the categories of {value.kind} are no list")
        for known in categories or ():
            expect(_in_order(known), f"the categories of {value.kind} are not in order")
        made.__setstate__(state) if hasattr(made, "__setstate__") else vars(made).update(state)
        return made
    if isinstance(value, StoredSlice):
        return slice(value.start, value.stop, value.step)
    if isinstance(value, StoredType):
        expect(value.name in TYPES, f"it holds a type {value.name!r:.40}")
        return np.dtype(TYPES[value.name]) if value.as_dtype else TYPES[value.name]
    if isinstance(value, dict):
        return {key: from_values(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return tuple(map(from_values, value))
    return [from_values(item) for item in value] if isinstance(value, list) else value


def _in_order(categories: Any) -> bool:
    """Whether categories are an array, and numbers among them finite and in ascending order; NaN may be the last."""
    if not isinstance(categories, np.ndarray) or categories.ndim != 1 or categories.dtype.kind not in "fiu":
        return isinstance(categories, np.ndarray) and categories.ndim == 1
    last = len(categories) - 1 if categories.size and np.isnan(categories[-1]) else len(categories)
    numbers = categories[:last]
    return bool(np.isfinite(numbers).all() and (numbers[:-1] < numbers[1:]).all())
