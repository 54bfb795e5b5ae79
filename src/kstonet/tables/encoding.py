"""How the columns of a table become numbers: learnt on the training rows, part of a fitted model, stored with it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet._words import counted, quoted, rows, some
from kstonet.tables.columns import kind_of, numbers, spelled, texts, truth_values
from kstonet.tables.dates import DateColumn, with_dates
from kstonet.tables.errors import InputError
from kstonet.tables.expected import FEWEST_ROWS, MOST_COLUMNS, ROWS_PER_COLUMN, ExpectedValues
from kstonet.tables.frames import BOOLEAN, CATEGORY, NUMBER, Column, as_pandas, is_frame
from kstonet.tables.roles import Roles, category_blocks

EMPTY = "empty"  # a column without values in the training rows
KINDS_OF_COLUMNS = (NUMBER, BOOLEAN, CATEGORY, EMPTY)
FREE_CATEGORIES = 20  # more of them need ROWS_PER_CATEGORY rows each on average: otherwise they are names rather than groups
ROWS_PER_CATEGORY = 2
TELLING = 3.0  # standard errors


@storable()
@dataclass(frozen=True)
class ColumnEncoding:
    """How one column becomes numbers.

    Parameters
    ----------
    name : str
        Its name.
    kind : {"number", "boolean", "category", "empty"}
        What it holds; "empty" had no values in the training rows and is ignored.
    categories : tuple of str
        In sorted order; one output column each.
    fill : float, str or None
        What stands in for a missing value. With None a missing number is refused, and a missing category is none of the
        categories.
    indicated : bool
        Whether a missing value has an output column of its own.
    """

    name: str
    kind: str
    categories: tuple[str, ...] = ()
    fill: float | str | None = None
    indicated: bool = False

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it becomes."""
        values = [] if self.kind == EMPTY else [self.name]
        if self.kind == CATEGORY:
            values = [f"{self.name}={category}" for category in self.categories]
        return [*values, f"{self.name} is missing"] if self.indicated else values

    def encode(self, column: Column, out: np.ndarray) -> None:
        """Write the output columns of some rows; a category that is not known is none of the categories."""
        if self.kind == CATEGORY:
            place = {category: k for k, category in enumerate(self.categories)}
            gone = place.get(str(self.fill), -1) if self.fill is not None else len(self.categories) if self.indicated else -1
            found = np.array([gone if text is None else place.get(text, -1) for text in texts(column)], dtype=np.intp)
            out[:] = found[:, None] == np.arange(out.shape[1])
        elif self.kind != EMPTY:
            values = numbers(column) if self.kind == NUMBER else truth_values(column)
            missing = np.isnan(values)
            if missing.any() and self.fill is None:
                raise InputError(
                    f"values are missing: column {self.name!r} in {rows(column.where(missing))}. The model was fitted so as to "
                    "refuse them: fill them in, or fit with --impute."
                )
            out[:, 0] = np.where(missing, np.nan if self.fill is None else self.fill, values)
            if self.indicated:
                out[:, 1] = missing


@storable(fill="any p")  # NaN where a missing number is refused
@dataclass(frozen=True)
class TableEncoding:
    """How a table becomes the matrix that a model is trained on.

    Numbers stay what they are. Truth values become 0 and 1, and every category becomes a column of 0 and 1. A missing number is
    replaced by the median of the training rows, or by what the other columns make one expect (:meth:`expecting`), and a missing
    truth value by the more frequent one. Where values of a column were missing in training, it has one more column of 0 and 1
    that says so; estimators leave it out where it says nothing about the targets. A missing category has this column only. A
    category that the training rows did not have, and a missing one where none was missing, is none of the known ones: zeros.

    Parameters
    ----------
    fill : ndarray of shape (n_columns,)
        What stands in for a missing number of every column.
    special : dict
        By their place, the columns that are not numbers, or that had missing values in training.
    by_name : bool, default=False
        Whether data frames are read by the names of their columns, in any order and with others besides, as the models of the
        command line read them. Otherwise the columns have to be those of the training, as scikit-learn demands.
    dates : tuple of DateColumn, default=()
        Columns of dates that become numbers first; the names of these numbers are among those of the features.
    expected : ExpectedValues, optional
        What is expected of a missing number given the other values of its row; its columns count those that
        :attr:`valued` are.

    Examples
    --------
    >>> import pandas as pd
    >>> from kstonet.tables import TableEncoding, columns_of
    >>> cars = pd.DataFrame({"speed": [90, None, 70], "colour": ["red", "blue", "red"]})
    >>> encoding = TableEncoding.of(columns_of(cars))
    >>> encoding.output_names(["speed", "colour"])
    ['speed', 'speed is missing', 'colour=blue', 'colour=red']
    >>> encoding.encode(columns_of(cars))
    array([[90.,  0.,  0.,  1.],
           [80.,  1.,  1.,  0.],
           [70.,  0.,  0.,  1.]])
    """

    fill: np.ndarray
    special: dict[int, ColumnEncoding] = field(default_factory=dict)
    by_name: bool = False
    dates: tuple[DateColumn, ...] = ()
    expected: ExpectedValues | None = None

    # -- learning ----------------------------------------------------------------------------------------------------------

    @classmethod
    def of(cls, columns: Sequence[Column], weights: np.ndarray | None = None) -> TableEncoding:
        """Learn from training rows; those of weight zero are left out."""
        if weights is not None:
            columns, weights = [column.taken(weights > 0) for column in columns], weights[weights > 0]
        learnt = [_learnt(column, weights) for column in columns]
        fill = [each.fill if isinstance(each.fill, float) else math.nan for each in learnt]
        special = {j: each for j, each in enumerate(learnt) if each.kind != NUMBER or each.indicated}
        return cls(np.array(fill, dtype=np.float64), special)

    @classmethod
    def of_numbers(cls, X: np.ndarray, weights: np.ndarray | None = None, names: Sequence[str] | None = None) -> TableEncoding:
        """Learn from an array of numbers, in which NaN is a missing value."""
        if weights is not None:
            X, weights = X[weights > 0], weights[weights > 0]
        if not np.isnan(X).any():
            return cls(weighted_median(X, weights))
        return cls.of(columns_of_numbers(X, names), weights)

    def expecting(self, columns: Sequence[Column], weights: np.ndarray | None = None) -> TableEncoding:
        """The same with what is expected of missing numbers, learnt from the rows this was learnt from.

        Where no number is missing, or there are more than ``MOST_COLUMNS`` numbers, medians stay. Where there are more columns
        than that with those of the categories, the numbers alone tell each other.

        Examples
        --------
        >>> import pandas as pd
        >>> from kstonet.tables import TableEncoding, columns_of
        >>> boxes = pd.DataFrame({"inches": [2.0, 4.0, 6.0, None, 10.0] * 20, "cm": [5.0, 10.0, 15.0, 20.0, 25.0] * 20})
        >>> encoding = TableEncoding.of(columns_of(boxes)).expecting(columns_of(boxes))
        >>> encoding.encode(columns_of(boxes))[3].round(1)  # the median is 5
        array([ 8.,  1., 20.])
        """
        valued = np.flatnonzero(self.valued)
        if len(valued) > MOST_COLUMNS:
            valued = np.flatnonzero(self.valued & ~self.indicators())
        if len(valued) > MOST_COLUMNS:
            return self
        missing, n = self._missing(columns), len(columns[0].values)
        if not (missing if weights is None else missing[weights > 0]).any():
            return self
        rows = drawn_rows(n, weights, max(FEWEST_ROWS, ROWS_PER_COLUMN * len(valued)))
        matrix, missing = self.encode([column.taken(rows) for column in columns]), missing[np.ix_(rows, valued)]
        told = ~missing.all(axis=0)  # the rows drawn may lack all values of a column
        weights = None if weights is None else weights[rows]
        places = np.cumsum(self.valued)[valued[told]] - 1
        return replace(self, expected=ExpectedValues.of(matrix[:, valued[told]], missing[:, told], places, weights))

    def telling(self, X: np.ndarray, targets: np.ndarray, weights: np.ndarray | None = None) -> TableEncoding:
        """The same without the indicators of missing numbers that say nothing about the targets.

        An indicator stays where the targets, or their distances from the mean, differ by three standard errors between rows
        with and without a value.

        Parameters
        ----------
        X : ndarray of shape (n, n_outputs)
            The matrix of the training rows.
        targets : ndarray of shape (n, k)
            Their targets as numbers.
        weights : ndarray of shape (n,), optional
            Sample weights.

        Returns
        -------
        TableEncoding
        """
        asked = [j for j, each in self.special.items() if each.indicated and each.kind != CATEGORY]
        if not asked:
            return self
        w = np.full(len(X), 1.0 / len(X)) if weights is None else weights / weights.sum()
        missing = X[:, np.cumsum(self._widths)[asked] - 1]
        missing = missing - w @ missing
        centred = targets - w @ targets
        centred = np.concatenate([centred, np.abs(centred) - w @ np.abs(centred)], axis=1)
        spread = np.outer(w @ missing**2, w @ centred**2)
        r = ((missing * w[:, None]).T @ centred) ** 2 / np.where(spread > 0, spread, 1.0)
        told = (r > TELLING**2 / (np.count_nonzero(w) - 2 + TELLING**2)).any(axis=1)  # t² = r²(n - 2)/(1 - r²)
        if told.all():
            return self
        special = dict(self.special)
        for j, tells in zip(asked, told, strict=True):
            if not tells:
                special[j] = replace(special[j], indicated=False)
                if special[j].kind == NUMBER:
                    del special[j]
        return replace(self, special=special)

    # -- facts -------------------------------------------------------------------------------------------------------------

    def column(self, j: int, name: str) -> ColumnEncoding:
        """How one column becomes numbers, under a name; arrays have none."""
        if j in self.special:
            return replace(self.special[j], name=name)
        return ColumnEncoding(name, NUMBER, fill=None if math.isnan(self.fill[j]) else float(self.fill[j]))

    def output_names(self, names: Sequence[str]) -> list[str]:
        """Names of the columns of the matrix, given those of the table."""
        return [output for j, name in enumerate(names) for output in self.column(j, name).outputs]

    def kept(self, fewer: TableEncoding) -> np.ndarray:
        """Which columns of the matrix are left in that of the same encoding with fewer indicators."""
        kept = np.ones(self.n_outputs, dtype=bool)
        kept[np.cumsum(self._widths)[self._widths > fewer._widths] - 1] = False
        return kept

    @cached_property
    def _widths(self) -> np.ndarray:
        """Columns of the matrix by column of the table."""
        widths = np.ones(len(self.fill), dtype=np.intp)
        for j, each in self.special.items():
            widths[j] = len(each.outputs)
        return widths

    @property
    def n_outputs(self) -> int:
        """Columns of the matrix."""
        return int(self._widths.sum())

    @property
    def numeric(self) -> bool:
        """Whether all columns hold numbers: arrays, in which NaN is a missing value, are encoded too."""
        return all(each.kind in (NUMBER, EMPTY) for each in self.special.values())

    @property
    def valued(self) -> np.ndarray:
        """Which columns of the matrix hold values; the others say whether they are missing."""
        found = [np.ones(width, dtype=bool) for width in self._widths.tolist()]
        for j, each in self.special.items():
            if each.indicated:
                found[j][-1] = False
        return np.concatenate(found)

    def indicators(self) -> np.ndarray:
        """Which columns of the matrix stand for a category or a missing value."""
        found = [np.arange(width) > 0 for width in self._widths.tolist()]
        for j, each in self.special.items():
            if each.kind == CATEGORY:
                found[j][:] = True
        return np.concatenate(found)

    def roles(self, X: np.ndarray) -> Roles | None:
        """What the columns of the matrix of the training rows stand for; None where all are numbers."""
        ends = np.cumsum(self._widths)
        categories = [j for j, each in self.special.items() if each.kind == CATEGORY]
        blocks = [slice(ends[j] - self._widths[j], ends[j]) for j in categories]
        numbers = ~self.indicators()
        found = category_blocks(X, among=numbers)
        return Roles.of(~numbers, blocks + found) if self.special or found else None

    def owners(self) -> np.ndarray:
        """For every column of the matrix, the number of the column of the table that it comes from."""
        return np.repeat(np.arange(len(self.fill)), self._widths)

    def sources(self) -> np.ndarray:
        """For every column of the matrix, where it comes from: column j of the table, or n_columns + j for its indicator.

        For columns of numbers and truth values only, which are at most two columns of the matrix each.
        """
        p = len(self.fill)
        both = np.stack([np.arange(p), np.arange(p) + p], axis=1)
        return np.asarray(both[np.arange(2) < self._widths[:, None]])

    # -- using -------------------------------------------------------------------------------------------------------------

    def arranged(self, table: Any, names: Sequence[str] | None) -> Any:
        """The data frame with the columns of the training, where it is read by their names; otherwise as it is.

        Parameters
        ----------
        table : data frame or array
        names : sequence of str or None
            Names of the features.

        Returns
        -------
        data frame or array
        """
        if not self.by_name or names is None or not is_frame(table):
            return table
        dates = [date for date in self.dates if not set(date.outputs) <= set(table.columns)]
        if any(date.name in table.columns for date in dates):
            table = with_dates(as_pandas(table), dates)
        absent = [name for name in names if name not in table.columns]
        made = {name: date.name for date in dates for name in date.outputs}
        if absent:
            needed = list(dict.fromkeys(made.get(name, name) for name in absent))
            word = "column" if len(needed) == 1 else "columns"
            raise InputError(f"X lacks the {word} {quoted(needed)} of the training; it has {quoted(map(str, table.columns))}.")
        return table[list(names)]

    def encode(self, columns: Sequence[Column]) -> np.ndarray:
        """The matrix of a table."""
        n = len(columns[0].values) if columns else 0
        matrix, ends = np.empty((n, self.n_outputs)), np.cumsum(self._widths)
        for j, column in enumerate(columns):
            self.column(j, column.name).encode(column, matrix[:, ends[j] - self._widths[j] : ends[j]])
        return self.complete(matrix, columns)

    def complete(self, matrix: np.ndarray, columns: Sequence[Column]) -> np.ndarray:
        """The matrix of a table, in which medians stand in for missing numbers, with what is expected of these instead.

        The matrix is overwritten.
        """
        return matrix if self.expected is None else self._completed(matrix, self._missing(columns))

    def _missing(self, columns: Sequence[Column]) -> np.ndarray:
        """Which numbers are missing, by column of the matrix."""
        missing, starts = np.zeros((len(columns[0].values), self.n_outputs), dtype=bool), np.cumsum(self._widths) - self._widths
        for j, column in enumerate(columns):
            if self.column(j, column.name).kind == NUMBER:
                missing[:, starts[j]] = column.missing
        return missing

    def _completed(self, matrix: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """The matrix with what is expected of missing numbers; ``missing`` says where, by column of the matrix."""
        assert self.expected is not None
        places = np.flatnonzero(self.valued)[self.expected.columns]
        return replace(self.expected, columns=places).fill(matrix, missing[:, places])

    def encode_numbers(self, X: np.ndarray) -> np.ndarray:
        """The matrix of an array of numbers, in which NaN is a missing value; without one, it is the array itself."""
        missing = np.isnan(X)
        if not missing.any() and not self.special:
            return X
        refused = missing.any(axis=0) & np.isnan(self.fill) & (self._widths > 0)
        if not self.numeric or refused.any():
            return self.encode(columns_of_numbers(X))
        matrix = np.ascontiguousarray(np.concatenate([np.where(missing, self.fill, X), missing], axis=1)[:, self.sources()])
        return matrix if self.expected is None else self._completed(matrix, missing[:, self.owners()])


def drawn_rows(n: int, weights: np.ndarray | None, most: int) -> np.ndarray:
    """Up to so many of the rows whose weight is not zero, always the same ones, in their order.

    Examples
    --------
    >>> import numpy as np
    >>> drawn_rows(4, np.array([1.0, 0.0, 2.0, 1.0]), 10), len(drawn_rows(100, None, 10))
    (array([0, 2, 3]), 10)
    """
    rows = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    return rows if len(rows) <= most else np.sort(np.random.default_rng(0).choice(rows, most, replace=False))


def columns_of_numbers(X: np.ndarray, names: Sequence[str] | None = None) -> list[Column]:
    """The columns of an array, in which NaN is a missing value."""
    called = [f"x{j}" for j in range(X.shape[1])] if names is None else names
    return [Column(name, NUMBER, X[:, j], range(len(X))) for j, name in enumerate(called)]


# -- learning one column -------------------------------------------------------------------------------------------------------


def _learnt(column: Column, weights: np.ndarray | None) -> ColumnEncoding:
    missing = column.missing
    if missing.all():
        warnings.warn(f"column {column.name!r} holds no values in the training rows and is ignored.", UserWarning, stacklevel=2)
        return ColumnEncoding(column.name, EMPTY)
    kind, indicated = kind_of(column), bool(missing.any())
    if kind == CATEGORY:
        categories = sorted({text for text in texts(column) if text is not None})
        check_categories(column, categories)
        return ColumnEncoding(column.name, kind, tuple(categories), indicated=indicated)
    values = numbers(column) if kind == NUMBER else truth_values(column)
    middle = float(weighted_median(values[~missing, None], None if weights is None else weights[~missing])[0])
    return ColumnEncoding(column.name, kind, fill=middle if kind == NUMBER else float(middle > 0.5), indicated=indicated)


def weighted_median(values: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
    """The median of every column; a row of weight two counts as two rows.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([[3.0], [1.0], [2.0]])
    >>> weighted_median(values, None), weighted_median(values, np.array([3.0, 1.0, 2.0]))
    (array([2.]), array([2.5]))
    """
    if weights is None:
        return np.asarray(np.median(values, axis=0))
    order = np.argsort(values, axis=0)
    total = np.cumsum(weights[order], axis=0)
    places = [(total < 0.5 * total[-1]).sum(axis=0), (total <= 0.5 * total[-1]).sum(axis=0)]
    places = [np.minimum(place, len(values) - 1) for place in places]
    low, high = np.take_along_axis(values, np.take_along_axis(order, np.stack(places), axis=0), axis=0)
    return np.asarray(0.5 * (low + high))


def check_categories(column: Column, categories: list[str]) -> None:
    """Refuse names and free text; say where numbers are spoilt by a few texts, unless the type says that it is categories."""
    known = int((~column.missing).sum())
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
    if 0 < len(odd) < len(categories) and column.declared != CATEGORY:
        warnings.warn(
            f"column {column.name!r} mixes numbers and text ({quoted(odd)}); all its values are taken for categories.",
            UserWarning,
            stacklevel=2,
        )


def unknown_categories(encoding: ColumnEncoding, column: Column) -> np.ndarray:
    """Which rows hold a category that the training rows did not have."""
    known = set(encoding.categories)
    return np.array([text is not None and text not in known for text in texts(column)], dtype=bool)


def refuse_missing(columns: Sequence[Column], remedy: str) -> None:
    """Refuse missing values, naming their columns and rows."""
    gone = {column.name: column.where(missing) for column in columns if (missing := column.missing).any()}
    if gone:
        where = some((f"column {name!r} in {rows(found)}" for name, found in gone.items()), 3)
        raise InputError(f"values are missing: {where}. {remedy}")


def as_dict(columns: Sequence[ColumnEncoding]) -> list[dict[str, Any]]:
    """Column encodings for JSON."""
    return [vars(column) | {"categories": list(column.categories)} for column in columns]
