"""One column of a table: its kind, and its values as numbers or text."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np

from kstonet._words import rows
from kstonet.tables.errors import InputError
from kstonet.tables.frames import BOOLEAN, CATEGORY, DATE, NUMBER, TEXT, Column, as_column

__all__ = [
    "BOOLEAN", "BOOLEANS", "CATEGORY", "LARGEST_WHOLE", "NUMBER", "kind_of", "numbers", "spelled", "texts", "truth_values",
]  # fmt: skip

BOOLEANS = {"true": "True", "false": "False"}
DATES = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}([T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{4}([T ].*)?|\d{1,2}:\d{2}(:\d{2}.*)?")
WHOLE = re.compile(r"-?\d+\.0+")
LARGEST_WHOLE = 2.0**53  # above it, floats skip whole numbers


def kind_of(column: Any) -> str:
    """Kind of a column: numbers, booleans or categories; dates, and columns without values, are an error.

    Parameters
    ----------
    column : Series of pandas or polars, or array
        Text that spells numbers, or true and false, is taken for them; a column of categories holds categories whatever they
        spell.

    Returns
    -------
    {"number", "boolean", "category"}

    Examples
    --------
    >>> import pandas as pd
    >>> kind_of(pd.Series(["1", "2.5", None])), kind_of(pd.Series(["true", "False"])), kind_of(pd.Series(["red", "1"]))
    ('number', 'boolean', 'category')
    """
    column = as_column(column)
    declared: str = column.declared
    if declared in (NUMBER, BOOLEAN, CATEGORY):
        return declared
    given = [value for value in column.values if value is not None]
    if not given:
        raise InputError(f"column {column.name!r} holds no values; leave it out (--drop {column.name!r}).")
    if declared == TEXT:
        odd = next((value for value in given if isinstance(value, list | tuple | dict | set | np.ndarray)), None)
        if odd is not None:
            raise InputError(
                f"column {column.name!r} holds {odd!r:.60} of type {type(odd).__name__}; replace it by columns of numbers or "
                "categories, or leave it out."
            )
        if not any(math.isnan(spelled(value)) for value in given):
            return NUMBER
    known = [_text(value) for value in given]
    if declared == DATE or all(DATES.fullmatch(text) for text in known):
        raise InputError(
            f"column {column.name!r} holds dates or times such as {known[0]!r}; replace it by numbers (year, month, "
            f"hours since a start; the option --dates {column.name!r} does so), or leave it out (--drop {column.name!r})."
        )
    return BOOLEAN if all(text.lower() in BOOLEANS for text in known) else CATEGORY


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


def texts(column: Any) -> list[str | None]:
    """Values as text; a missing value is None.

    A whole number is written without a point: code 7 becomes 7.0 in a column that misses a value elsewhere.

    Examples
    --------
    >>> import pandas as pd
    >>> texts(pd.Series([7.0, 2.5, None])), texts(pd.Series(["7.0", "07"]))
    (['7', '2.5', None], ['7', '07'])
    """
    column = as_column(column)
    return [None if gone else _text(value) for value, gone in zip(column.values.tolist(), column.missing, strict=True)]


def _text(value: Any) -> str:
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    return text.partition(".")[0] if WHOLE.fullmatch(text) else text


def numbers(column: Any) -> np.ndarray:
    """Values as numbers, NaN where they are missing; text that is no number and infinite values are refused.

    Examples
    --------
    >>> import pandas as pd
    >>> numbers(pd.Series(["1", "2.5", None]))
    array([1. , 2.5, nan])
    """
    column = as_column(column)
    if column.declared == NUMBER:
        values, missing = column.values, np.isnan(column.values)
    else:
        missing = column.missing
        values = np.array([math.nan if value is None else spelled(value) for value in column.values], dtype=np.float64)
    wrong = np.isinf(values) | (np.isnan(values) & ~missing)
    if wrong.any():
        _refuse(column, wrong, "finite numbers")
    return np.asarray(values)


def truth_values(column: Any) -> np.ndarray:
    """0 and 1, NaN where they are missing; written true and false (in any case) or 0 and 1.

    Examples
    --------
    >>> import pandas as pd
    >>> truth_values(pd.Series(["true", "False", None]))
    array([ 1.,  0., nan])
    """
    column = as_column(column)
    meaning = {"true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
    values = np.array([np.nan if text is None else meaning.get(text.lower(), -1.0) for text in texts(column)])
    if (values == -1.0).any():
        _refuse(column, values == -1.0, "true or false")
    return values


def _refuse(column: Column, wrong: np.ndarray, wanted: str) -> None:
    found = column.values[wrong].tolist()[0]
    raise InputError(f"column {column.name!r} must hold {wanted}, but holds {found!r} in {rows(column.where(wrong))}.")
