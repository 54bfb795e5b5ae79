"""Tables to numbers: what a column was in the training table, it is in every later one."""

from __future__ import annotations

import math
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from kstonet._words import counted, quoted, rows, some
from kstonet.tables.columns import BOOLEAN, CATEGORY, NUMBER, kind_of, numbers, spelled, texts, truth_values
from kstonet.tables.errors import InputError

VERSION = 1
FREE_CATEGORIES = 20  # more of them need ROWS_PER_CATEGORY rows each: fewer teach nothing, and are names rather than groups
ROWS_PER_CATEGORY = 10


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes numbers.

    Parameters
    ----------
    name : str
    kind : {"number", "boolean", "category"}
    categories : tuple of str
        In sorted order; one output column each.
    fill : float, str or None
        What stands in for a missing value; None refuses it.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it becomes."""
        return [f"{self.name}={category}" for category in self.categories] if self.kind == CATEGORY else [self.name]


class TableEncoder:
    """Encode the columns of a table as numbers, and remember how.

    Numbers stay, truth values become 0 and 1, every category of a text column becomes a column of 0 and 1.

    Parameters
    ----------
    impute : bool, default=False
        Fill missing values, now and later, with the median or the most frequent value of the training table. Otherwise they are
        refused.
    categorical : sequence of str, default=()
        Columns that hold categories even if they look like numbers.

    Attributes
    ----------
    columns_ : list of ColumnEncoding
        In the order of the training table.
    feature_names_ : list of str
        Names of the encoded columns.

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

    columns_: list[ColumnEncoding]

    def __init__(self, *, impute: bool = False, categorical: tuple[str, ...] | list[str] = ()) -> None:
        self.impute = impute
        self.categorical = categorical

    # -- learning ----------------------------------------------------------------------------------------------------------

    def fit(self, table: pd.DataFrame) -> Self:
        """Learn what the columns hold.

        Parameters
        ----------
        table : DataFrame
            Without the target. Text that spells numbers is taken for numbers.

        Returns
        -------
        self
        """
        absent = [name for name in self.categorical if name not in table.columns]
        if absent:
            raise InputError(f"categorical names {quoted(absent)}, not a column; the columns are {quoted(table.columns)}.")
        if not self.impute:
            _refuse_missing(
                table, "Fill them in, or let impute=True (--impute) put the median or the most frequent value there."
            )
        self.columns_ = [self._learned(table[name]) for name in table.columns]
        return self

    def _learned(self, column: pd.Series) -> ColumnEncoding:
        name, kind = str(column.name), CATEGORY if column.name in self.categorical else kind_of(column)
        if column.isna().all():
            raise InputError(f"column {name!r} holds no values; leave it out (--drop {name!r}).")
        if kind == CATEGORY:
            counts = pd.Series(texts(column), dtype=object).value_counts()
            categories = sorted(counts.index)
            _check_categories(column, categories, chosen=name in self.categorical)
            commonest = min(counts.index[counts == counts.iloc[0]])
            return ColumnEncoding(name, kind, tuple(categories), commonest if self.impute else None)
        values = numbers(column) if kind == NUMBER else truth_values(column)
        middle = float(np.nanmedian(values))
        fill = middle if kind == NUMBER else float(middle > 0.5)
        return ColumnEncoding(name, kind, fill=fill if self.impute else None)

    # -- using -------------------------------------------------------------------------------------------------------------

    @property
    def feature_names_(self) -> list[str]:
        """Names of the encoded columns."""
        return [name for column in self.columns_ for name in column.outputs]

    def conform(self, table: pd.DataFrame, unknown: str = "error") -> pd.DataFrame:
        """The columns of the training table, in their order, typed and without missing values.

        Parameters
        ----------
        table : DataFrame
            Columns in any order; others are ignored, with a warning.
        unknown : {"error", "ignore"}, default="error"
            Categories that the training table did not have: refuse them, or let them be none of the known ones.

        Returns
        -------
        DataFrame
        """
        if unknown not in ("error", "ignore"):
            raise InputError(f"unknown={unknown!r} must be 'error' or 'ignore'.")
        names = [column.name for column in self.columns_]
        absent = [name for name in names if name not in table.columns]
        if absent:
            have = f"; the table has {quoted(table.columns)}" if len(table.columns) else ""
            raise InputError(f"the model needs {_columns(absent)}, which the table lacks{have}.")
        known = set(names)
        extra = [name for name in table.columns if name not in known]
        if extra:
            warnings.warn(f"ignored: {_columns(extra)}, which the model does not use.", UserWarning, stacklevel=2)
        table = table[names]
        if not self.impute:
            _refuse_missing(table, "Fill them in, or fit with impute=True (--impute).")
        done = {column.name: _conformed(column, table[column.name], unknown) for column in self.columns_}
        return pd.DataFrame(done, index=table.index)

    def transform(self, table: pd.DataFrame, unknown: str = "error") -> np.ndarray:
        """Encode a table.

        Parameters
        ----------
        table, unknown
            As in :meth:`conform`; a category that is ignored becomes zeros.

        Returns
        -------
        ndarray of shape (n_rows, len(feature_names_))
        """
        table = self.conform(table, unknown)
        blocks = []
        for column in self.columns_:
            values = table[column.name].to_numpy()
            if column.kind == CATEGORY:
                blocks.append(values[:, None] == np.array(column.categories, dtype=object))
            else:
                blocks.append(values[:, None])
        return np.concatenate(blocks, axis=1, dtype=np.float64)

    # -- storing -----------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """What was learned, for JSON."""
        columns = [asdict(column) | {"categories": list(column.categories)} for column in self.columns_]
        return {"version": VERSION, "impute": self.impute, "columns": columns}

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> Self:
        """The encoder that :meth:`to_dict` described."""
        if state.get("version") != VERSION:
            raise InputError(
                f"the table encoding has version {state.get('version')!r}, this kstonet reads {VERSION}; update it."
            )
        encoder = cls(impute=state["impute"])
        encoder.columns_ = [
            ColumnEncoding(**column | {"categories": tuple(column["categories"])}) for column in state["columns"]
        ]
        encoder.categorical = [column.name for column in encoder.columns_ if column.kind == CATEGORY]
        return encoder


def _columns(names: list[str]) -> str:
    return f"{'column' if len(names) == 1 else 'columns'} {quoted(names)}"


def _conformed(encoding: ColumnEncoding, column: pd.Series, unknown: str) -> np.ndarray:
    if encoding.kind == CATEGORY:
        values = np.array([encoding.fill if text is None else text for text in texts(column)], dtype=object)
        strange = ~np.isin(values.astype(str), np.array(encoding.categories, dtype=str))
        if strange.any() and unknown == "error":
            raise InputError(
                f"column {encoding.name!r} holds {values[strange][0]!r} in {rows(list(column.index[strange]))}, a category the "
                f"model does not know (it knows {quoted(encoding.categories)}); correct it, or say unknown='ignore' "
                "(--unknown ignore)."
            )
        return values
    values = numbers(column) if encoding.kind == NUMBER else truth_values(column)
    values = values if encoding.fill is None else np.where(np.isnan(values), encoding.fill, values)
    return values.astype(bool) if encoding.kind == BOOLEAN else values


def _refuse_missing(table: pd.DataFrame, remedy: str) -> None:
    gone = {name: list(table.index[table[name].isna()]) for name in table.columns if table[name].isna().any()}
    if gone:
        where = some((f"column {name!r} in {rows(numbers)}" for name, numbers in gone.items()), 3)
        raise InputError(f"values are missing: {where}. {remedy}")


def _check_categories(column: pd.Series, categories: list[str], chosen: bool) -> None:
    """Refuse names and free text; say where numbers are spoilt by a few texts, unless categories were asked for."""
    known = int(column.notna().sum())
    odd = [category for category in categories if math.isnan(spelled(category))]
    if len(categories) > max(FREE_CATEGORIES, known // ROWS_PER_CATEGORY):
        if 0 < len(odd) <= len(categories) // 2:
            what = f"holds numbers, but also {quoted(odd)}; leave these cells empty or correct them"
        else:
            number = counted(len(categories), "different value")
            what = (
                f"holds {number} such as {categories[0]!r} in {counted(known, 'row')}, too many for categories; group them, or "
            )
            what += f"leave the column out (--drop {column.name!r})"
        raise InputError(f"column {column.name!r} {what}.")
    if 0 < len(odd) < len(categories) and not chosen:
        warnings.warn(
            f"column {column.name!r} mixes numbers and text ({quoted(odd)}); all its values are taken for categories.",
            UserWarning,
            stacklevel=4,
        )
