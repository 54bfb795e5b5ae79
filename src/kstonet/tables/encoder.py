"""Tables by the names of their columns: what a column was in the training table, it is in every later one."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from kstonet._words import quoted, rows
from kstonet.tables.columns import numbers, texts, truth_values
from kstonet.tables.encoding import (
    EMPTY,
    ColumnEncoding,
    TableEncoding,
    as_dict,
    refuse_missing,
    unknown_categories,
)
from kstonet.tables.errors import InputError
from kstonet.tables.frames import BOOLEAN, CATEGORY, NUMBER, Column, columns_of

VERSION = 1


class TableEncoder(TransformerMixin, BaseEstimator):
    """Encode the columns of a table as numbers, by their names, and remember how.

    The estimators of this package encode tables themselves, in the same way (:class:`TableEncoding`). This class is for those
    who want the matrix, and is stricter: columns are found by their names, and what the training table did not have is refused
    unless it is allowed.

    Parameters
    ----------
    impute : bool, default=False
        Accept missing values, now and later: the median or the more frequent truth value stands in for them (the estimators
        also know what the other columns make one expect), a missing category is none of the categories, and where values were
        missing in the training table a column of 0 and 1 says so. Otherwise they are refused.
    categorical : sequence of str, default=()
        Columns that hold categories even if they look like numbers.

    Attributes
    ----------
    encoding_ : TableEncoding
        What was learnt.
    names_ : list of str
        The names of the columns, in the order of the training table.

    Examples
    --------
    >>> import pandas as pd
    >>> from kstonet.tables import TableEncoder
    >>> cars = pd.DataFrame({"speed": [90, 80, 70], "colour": ["red", "blue", "red"]})
    >>> encoder = TableEncoder().fit(cars)
    >>> encoder.feature_names_
    ['speed', 'colour=blue', 'colour=red']
    >>> encoder.transform(pd.DataFrame({"colour": ["blue"], "speed": ["85"]}))
    array([[85.,  1.,  0.]])
    >>> TableEncoder.from_dict(encoder.to_dict()).feature_names_ == encoder.feature_names_
    True
    """

    encoding_: TableEncoding
    names_: list[str]

    def __init__(self, *, impute: bool = False, categorical: tuple[str, ...] | list[str] = ()) -> None:
        self.impute = impute
        self.categorical = categorical

    # -- learning ----------------------------------------------------------------------------------------------------------

    def fit(self, table: Any, y: Any = None) -> Self:
        """Learn what the columns hold.

        Parameters
        ----------
        table : DataFrame of pandas or polars
            Without the target. Text that spells numbers is taken for numbers.
        y : None
            Not used; a pipeline gives it.

        Returns
        -------
        self
        """
        return self.fit_columns(columns_of(table))

    def fit_columns(self, columns: Sequence[Column]) -> Self:
        """As :meth:`fit`, of columns that were read already."""
        names = [column.name for column in columns]
        absent = [name for name in self.categorical if name not in names]
        if absent:
            raise InputError(f"categorical names {quoted(absent)}, not a column; the columns are {quoted(names)}.")
        if not self.impute:
            refuse_missing(
                columns, "Fill them in, or let impute=True (--impute) fill in numbers, and put missing categories aside."
            )
        for column in columns:
            if column.missing.all():
                raise InputError(f"column {column.name!r} holds no values; leave it out (--drop {column.name!r}).")
        columns = [_declared(column) if column.name in self.categorical else column for column in columns]
        self.encoding_, self.names_ = TableEncoding.of(columns), names
        return self

    # -- using -------------------------------------------------------------------------------------------------------------

    @property
    def columns_(self) -> list[ColumnEncoding]:
        """How every column becomes numbers; one that refuses missing values has nothing that stands in for them."""
        learnt = [self.encoding_.column(j, name) for j, name in enumerate(self.names_)]
        return learnt if self.impute else [replace(column, fill=None) for column in learnt]

    @property
    def feature_names_(self) -> list[str]:
        """Names of the encoded columns."""
        return self.encoding_.output_names(self.names_)

    def _read(self, table: Any, unknown: str) -> list[Column]:
        """The columns of the training table, in their order; what is not allowed is refused."""
        if unknown not in ("error", "ignore"):
            raise InputError(f"unknown={unknown!r} must be 'error' or 'ignore'.")
        columns = {column.name: column for column in columns_of(table)}
        absent = [name for name in self.names_ if name not in columns]
        if absent:
            have = f"; the table has {quoted(columns)}" if columns else ""
            raise InputError(f"the model needs {_columns(absent)}, which the table lacks{have}.")
        known = set(self.names_)
        extra = [name for name in columns if name not in known]
        if extra:
            warnings.warn(f"ignored: {_columns(extra)}, which the model does not use.", UserWarning, stacklevel=3)
        found = [columns[name] for name in self.names_]
        if not self.impute:
            refuse_missing(found, "Fill them in, or fit with impute=True (--impute).")
        for encoding, column in zip(self.columns_, found, strict=True):
            if encoding.kind == CATEGORY and unknown == "error":
                _refuse_unknown(encoding, column)
        return found

    def conform(self, table: Any, unknown: str = "error") -> Any:
        """The columns of the training table, in their order and typed.

        Parameters
        ----------
        table : DataFrame of pandas or polars
            Columns in any order; others are ignored, with a warning.
        unknown : {"error", "ignore"}, default="error"
            Categories that the training table did not have: refuse them, or let them be none of the known ones.

        Returns
        -------
        pandas.DataFrame
            Its columns hold numbers, truth values and categories; a missing value stays missing.
        """
        import pandas as pd

        columns = self._read(table, unknown)
        done = {column.name: _typed(encoding, column) for encoding, column in zip(self.columns_, columns, strict=True)}
        return pd.DataFrame(done, index=getattr(table, "index", None))

    def transform(self, table: Any, unknown: str = "error") -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        table, unknown
            As in :meth:`conform`; a category that is ignored becomes zeros.

        Returns
        -------
        ndarray of shape (n_rows, len(feature_names_))
        """
        return self.encoding_.encode(self._read(table, unknown))

    # -- storing -----------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What was learnt, for JSON."""
        return {"version": VERSION, "impute": self.impute, "columns": as_dict(self.columns_)}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The encoder that :meth:`to_dict` described; an InputError where it cannot have been it."""
        if not isinstance(state, dict) or state.get("version") != VERSION:
            found = state.get("version") if isinstance(state, dict) else state
            raise InputError(f"the table encoding has version {found!r:.40}, this kstonet reads {VERSION}; update it.")
        encoder = cls(impute=state.get("impute") is True)
        columns = [_column(column) for column in state["columns"]] if isinstance(state.get("columns"), list) else []
        if not columns or len({column.name for column in columns}) < len(columns):
            raise InputError("the table encoding is damaged: it has no columns, or two of the same name.")
        fill = [column.fill if isinstance(column.fill, float) else math.nan for column in columns]
        special = {j: column for j, column in enumerate(columns) if column.kind != NUMBER or column.indicated}
        encoder.encoding_, encoder.names_ = TableEncoding(np.array(fill), special), [column.name for column in columns]
        encoder.categorical = [column.name for column in columns if column.kind == CATEGORY]
        return encoder

    @classmethod
    def of(cls, encoding: TableEncoding, names: list[str], *, impute: bool = True) -> Self:
        """The encoder with the encoding of a fitted model."""
        encoder = cls(impute=impute)
        encoder.encoding_, encoder.names_ = encoding, names
        encoder.categorical = [column.name for column in encoder.columns_ if column.kind == CATEGORY]
        return encoder


def _column(state: Any) -> ColumnEncoding:
    """One column of :meth:`TableEncoder.to_dict`, which may come from a file that somebody has changed."""
    known = {field.name for field in fields(ColumnEncoding)}
    given = state if isinstance(state, dict) and state.keys() <= known else {}
    name, kind, categories, fill = (given.get(part) for part in ("name", "kind", "categories", "fill"))
    right = (
        isinstance(name, str) and kind in (NUMBER, BOOLEAN, CATEGORY, EMPTY) and isinstance(given.get("indicated", False), bool)
    )
    if not right or not isinstance(categories, list) or not all(isinstance(each, str) for each in categories):
        raise InputError(f"the table encoding is damaged: a column of it is {state!r:.80}.")
    if not (fill is None or isinstance(fill, str) or (isinstance(fill, float) and math.isfinite(fill))):
        raise InputError(f"the table encoding is damaged: column {name!r:.40} is filled with {fill!r:.40}.")
    return ColumnEncoding(**given | {"categories": tuple(categories)})


def _declared(column: Column) -> Column:
    """The same column, as one of categories."""
    values = np.empty(len(column.values), dtype=object)
    values[:] = [None if gone else value for value, gone in zip(column.values.tolist(), column.missing, strict=True)]
    return Column(column.name, CATEGORY, values, column.rows)


def _columns(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {quoted(names)}"


def _refuse_unknown(encoding: ColumnEncoding, column: Column) -> None:
    strange = unknown_categories(encoding, column)
    if strange.any():
        raise InputError(
            f"column {encoding.name!r} holds {texts(column)[int(strange.argmax())]!r} in {rows(column.where(strange))}, a "
            f"category the model does not know (it knows {quoted(encoding.categories)}); correct it, or say unknown='ignore' "
            "(--unknown ignore)."
        )


def _typed(encoding: ColumnEncoding, column: Column) -> Any:
    import pandas as pd

    if encoding.kind == CATEGORY:
        found = texts(column)
        new = {text for text in found if text is not None and text not in encoding.categories}
        return pd.Categorical(found, categories=[*encoding.categories, *sorted(new)])
    if encoding.kind == NUMBER:
        return numbers(column)
    values = truth_values(column) if encoding.kind == BOOLEAN else np.full(len(column.values), np.nan)
    missing = np.isnan(values)
    return values.astype(bool) if not missing.any() else pd.arrays.BooleanArray(np.where(missing, 0.0, values) > 0, missing)
