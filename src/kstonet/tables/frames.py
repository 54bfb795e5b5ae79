"""Columns of pandas and polars data frames, and of arrays of objects, in one form; neither package is needed for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
TEXT, DATE = "text", "date"  # what a type may say besides: objects whose values decide; dates and times


@dataclass(frozen=True)
class Column:
    """One column of a table.

    Parameters
    ----------
    name : str
        Its name.
    declared : {"number", "boolean", "category", "text", "date"}
        What its type says it holds; "text" says nothing.
    values : ndarray of shape (n,)
        Float64 with NaN for missing values where numbers are declared, otherwise objects with None for them.
    rows : sequence
        The labels of the rows, for messages.
    """

    name: str
    declared: str
    values: np.ndarray
    rows: Sequence[Any]

    @property
    def missing(self) -> np.ndarray:
        """Which values are missing."""
        if self.declared == NUMBER:
            return np.asarray(np.isnan(self.values))
        return np.fromiter((value is None for value in self.values), dtype=bool, count=len(self.values))

    def where(self, chosen: np.ndarray) -> list[Any]:
        """The labels of some rows."""
        return [self.rows[i] for i in np.flatnonzero(chosen).tolist()]

    def taken(self, rows: np.ndarray) -> Column:
        """The column in some rows."""
        return Column(self.name, self.declared, self.values[rows], self.where(rows))


def is_frame(table: Any) -> bool:
    """Whether a table has typed and named columns that this module reads.

    Examples
    --------
    >>> import numpy as np
    >>> is_frame(np.zeros((2, 2)))
    False
    """
    return _package(table) in ("pandas", "polars") and hasattr(table, "columns")


def object_table(table: Any) -> Any:
    """The table where its columns have to be read one by one; None for numbers alone, which are an array at once.

    Those are data frames with a column that is not of a numeric type, and arrays or lists of rows that hold text.

    Examples
    --------
    >>> import numpy as np
    >>> object_table([[1.0, "red"], [2.0, "blue"]])
    array([[1.0, 'red'],
           [2.0, 'blue']], dtype=object)
    >>> object_table(np.zeros((2, 2))) is None
    True
    """
    if is_frame(table):
        kind = _of_pandas if _package(table) == "pandas" else _of_polars
        return table if any(kind(dtype) != NUMBER for dtype in table.dtypes) else None
    if isinstance(table, list | tuple):
        rows = [list(row) for row in table if isinstance(row, list | tuple)]
        if len(rows) != len(table) or len({len(row) for row in rows}) != 1:
            return None
        table = np.empty((len(rows), len(rows[0])), dtype=object)
        table[:] = rows
    if not isinstance(table, np.ndarray) or table.ndim != 2 or table.dtype.kind not in "OUT":
        return None
    return table if table.dtype.kind != "O" or any(isinstance(cell, str) for cell in table.flat) else None


def _package(value: Any) -> str:
    return type(value).__module__.partition(".")[0]


def names_of(table: Any) -> list[str]:
    """The names of the columns; those of an array are x0, x1, ...

    Examples
    --------
    >>> import numpy as np
    >>> names_of(np.zeros((2, 3)))
    ['x0', 'x1', 'x2']
    """
    return [str(name) for name in table.columns] if is_frame(table) else [f"x{j}" for j in range(table.shape[1])]


def columns_of(table: Any) -> list[Column]:
    """All columns of a data frame, or of an array of two dimensions.

    Examples
    --------
    >>> import numpy as np
    >>> [(column.name, column.declared) for column in columns_of(np.array([[1, "a"]], dtype=object))]
    [('x0', 'text'), ('x1', 'text')]
    """
    names = names_of(table)
    if not is_frame(table):
        return [as_column(table[:, j], name) for j, name in enumerate(names)]
    if _package(table) == "pandas":  # by place: names need not be unique
        return [as_column(values, name) for (_, values), name in zip(table.items(), names, strict=True)]
    return [as_column(table.to_series(j), name) for j, name in enumerate(names)]


def as_pandas(table: Any) -> Any:
    """A data frame as one of pandas."""
    if _package(table) == "pandas":
        return table
    import pandas as pd

    columns = columns_of(table)
    kinds = {CATEGORY: "category", NUMBER: np.float64}
    return pd.DataFrame({column.name: pd.Series(column.values, dtype=kinds.get(column.declared, object)) for column in columns})


def as_column(values: Any, name: str | None = None) -> Column:
    """A column from a Series of pandas or polars, an array of one dimension, or from a column.

    Examples
    --------
    >>> import pandas as pd
    >>> as_column(pd.Series([1, None], name="speed")).declared, as_column(pd.Series(["a"], name="colour")).declared
    ('number', 'text')
    """
    if isinstance(values, Column):
        return values
    package = _package(values)
    called = str(getattr(values, "name", "")) if name is None else name
    if package == "pandas":
        declared = _of_pandas(values.dtype)
        if declared == NUMBER:
            return Column(called, NUMBER, np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan)), values.index)
        listed = values.tolist()
        gone = [_is_missing(value) for value in listed] if values.dtype == object else np.asarray(values.isna()).tolist()
        return Column(called, declared, _objects(listed, gone), values.index)
    rows = range(len(values))
    if package == "polars":
        declared = _of_polars(values.dtype)
        if declared == NUMBER:
            return Column(called, NUMBER, values.cast(float).to_numpy().astype(np.float64), rows)
        listed = values.to_list()
        return Column(called, declared, _objects(listed, [value is None for value in listed]), rows)
    array = np.asarray(values)
    if array.dtype.kind in "fiu":
        return Column(called, NUMBER, array.astype(np.float64), rows)
    declared = {"b": BOOLEAN, "M": DATE, "m": DATE}.get(array.dtype.kind, TEXT)
    listed = array.tolist()
    return Column(called, declared, _objects(listed, [_is_missing(value) for value in listed]), rows)


def _is_missing(value: Any) -> bool:
    """None, NaN, and what pandas writes for missing objects and times."""
    return value is None or (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in ("NAType", "NaTType")


def _objects(values: list[Any], gone: list[bool]) -> np.ndarray:
    found = np.empty(len(values), dtype=object)
    found[:] = [None if missing else value for value, missing in zip(values, gone, strict=True)]
    return found


@lru_cache(maxsize=64)
def _of_pandas(dtype: Any) -> str:
    from pandas import CategoricalDtype, PeriodDtype
    from pandas.api import types

    if isinstance(dtype, CategoricalDtype):
        return CATEGORY
    if types.is_bool_dtype(dtype):
        return BOOLEAN
    if types.is_numeric_dtype(dtype) and not types.is_complex_dtype(dtype):
        return NUMBER
    if types.is_datetime64_any_dtype(dtype) or types.is_timedelta64_dtype(dtype) or isinstance(dtype, PeriodDtype):
        return DATE
    return TEXT


def _of_polars(dtype: Any) -> str:
    if dtype.is_numeric():
        return NUMBER
    if dtype.is_temporal():
        return DATE
    return {"Boolean": BOOLEAN, "Categorical": CATEGORY, "Enum": CATEGORY}.get(dtype.base_type().__name__, TEXT)
