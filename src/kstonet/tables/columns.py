"""One column of a table: its kind, and its values as numbers or text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pandas as pd

from kstonet._words import rows
from kstonet.tables.errors import InputError

NUMBER, BOOLEAN, CATEGORY = "number", "boolean", "category"
BOOLEANS = {"true": "True", "false": "False"}
DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
WHOLE = re.compile(r"-?\d+\.0+")
LARGEST_WHOLE = 2.0**53  # above it, floats skip whole numbers


def kind_of(column: pd.Series) -> str:
    """Kind of a column: numbers, booleans or categories; dates are an error.

    Examples
    --------
    >>> import pandas as pd
    >>> kind_of(pd.Series(["1", "2.5", None])), kind_of(pd.Series(["true", "False"])), kind_of(pd.Series(["red", "1"]))
    ('number', 'boolean', 'category')
    """
    kinds = pd.api.types
    if kinds.is_bool_dtype(column.dtype) and not isinstance(column.dtype, pd.CategoricalDtype):
        return BOOLEAN
    if isinstance(column.dtype, pd.CategoricalDtype):
        return CATEGORY
    if kinds.is_numeric_dtype(column.dtype) and not kinds.is_complex_dtype(column.dtype):
        return NUMBER
    if column.isna().all():
        raise InputError(f"column {column.name!r} holds no values; leave it out (--drop {column.name!r}).")
    if not (np.isnan(_parsed(column)) & column.notna()).any():
        return NUMBER
    given = [text for text in texts(column) if text is not None]
    if kinds.is_datetime64_any_dtype(column.dtype) or all(DATE.fullmatch(text) for text in given):
        raise InputError(
            f"column {column.name!r} holds dates or times such as {given[0]!r}; replace it by numbers (year, month, "
            f"hours since a start), or leave it out (--drop {column.name!r})."
        )
    return BOOLEAN if all(text.lower() in BOOLEANS for text in given) else CATEGORY


def spelled(value: Any) -> float:
    """The number a value spells, to the last digit; NaN where it spells none.

    Examples
    --------
    >>> spelled("1e3"), spelled("1,000"), spelled("True")
    (1000.0, nan, nan)
    """
    text = str(value)
    try:
        return math.nan if "_" in text else float(text)
    except ValueError:
        return math.nan


def _parsed(column: pd.Series) -> np.ndarray:
    """Numbers, and NaN where a value is missing or spells none."""
    missing = column.isna().to_numpy()
    return np.array([math.nan if gone else spelled(value) for value, gone in zip(column.tolist(), missing, strict=True)])


def texts(column: pd.Series) -> list[str | None]:
    """Values as text; a missing value is None.

    A whole number is written without a point: code 7 becomes 7.0 in a column that misses a value elsewhere.

    Examples
    --------
    >>> import pandas as pd
    >>> texts(pd.Series([7.0, 2.5, None])), texts(pd.Series(["7.0", "07"]))
    (['7', '2.5', None], ['7', '07'])
    """
    missing = column.isna().to_numpy()
    return [None if gone else _text(value) for value, gone in zip(column.tolist(), missing, strict=True)]


def _text(value: Any) -> str:
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text


def numbers(column: pd.Series) -> np.ndarray:
    """Values as numbers, NaN where they are missing; text that is no number and infinite values are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers(pd.Series(["1", "2.5", None]))
    array([1. , 2.5, nan])
    """
    if pd.api.types.is_numeric_dtype(column.dtype):
        values = column.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        values = _parsed(column)
    wrong = np.isinf(values) | (np.isnan(values) & ~column.isna().to_numpy())
    if wrong.any():
        found = column[wrong]
        raise InputError(
            f"column {column.name!r} must hold finite numbers, but holds {found.iloc[0]!r} in {rows(list(found.index))}."
        )
    return np.asarray(values)


def truth_values(column: pd.Series) -> np.ndarray:
    """0 and 1, NaN where they are missing; written true and false (in any case) or 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> truth_values(pd.Series(["true", "False", None]))
    array([ 1.,  0., nan])
    """
    meaning = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
    values = np.array([np.nan if text is None else meaning.get(text.lower(), -1.0) for text in texts(column)])
    if (values == -1.0).any():
        found = column[values == -1.0]
        raise InputError(
            f"column {column.name!r} must hold true or false, but holds {found.iloc[0]!r} in {rows(list(found.index))}."
        )
    return values
