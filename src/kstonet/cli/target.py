"""The column to predict, and whether it needs regression or classification."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from kstonet._words import counted, did_you_mean, quoted, rows
from kstonet.tables import InputError
from kstonet.tables.columns import BOOLEAN, BOOLEANS, LARGEST_WHOLE, NUMBER, kind_of, numbers, texts

REGRESSION, CLASSIFICATION = "regression", "classification"
TASKS = ("auto", REGRESSION, CLASSIFICATION)
MOST_WHOLE_CLASSES = 10  # whole numbers with more different values are quantities
ROWS_PER_CLASS = 10


def find_column(table: pd.DataFrame, wanted: str) -> str:
    """The name of a column given by name or by number: from 1, or from -1 at the end.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [1], "b": [2]})
    >>> find_column(table, "a"), find_column(table, "2"), find_column(table, "-1")
    ('a', 'b', 'b')
    """
    names = [str(name) for name in table.columns]
    if wanted in names:
        return wanted
    try:
        number = int(wanted)
    except ValueError:
        raise InputError(
            f"there is no column {wanted!r}; the table has {quoted(names)}.{did_you_mean(wanted, names)}"
        ) from None
    if number == 0 or abs(number) > len(names):
        raise InputError(f"there is no column number {number}; the table has columns 1 to {len(names)} (or -1, the last).")
    return names[number - 1 if number > 0 else number]


@dataclass(frozen=True)
class Target:
    """The column to predict.

    Parameters
    ----------
    name : str
        Name of the column.
    task : {"regression", "classification"}
        Kind of the problem.
    whole : bool
        Whether classes are whole numbers; otherwise they are text.
    reason : str
        Reason for the choice of the task.

    Examples
    --------
    >>> import pandas as pd
    >>> target = Target.of(pd.Series(["yes", "no"] * 20, name="sold"))
    >>> target.task, target.reason
    ('classification', "'sold' holds text, 2 classes")
    """

    name: str
    task: str
    whole: bool
    reason: str

    @classmethod
    def of(cls, column: pd.Series, task: str = "auto") -> Target:
        """Choose the task for a column."""
        name = str(column.name)
        missing = list(column.index[column.isna()])
        if missing:
            raise InputError(f"the target {name!r} is missing in {rows(missing)}; leave these rows out.")
        kind = kind_of(column)
        different = len(set(texts(column)))
        values = numbers(column) if kind == NUMBER else None
        whole = values is not None and bool(np.all((values == np.round(values)) & (np.abs(values) <= LARGEST_WHOLE)))
        classes = f"{counted(different, 'class', 'classes')}"
        if kind != NUMBER:
            decided, reason = CLASSIFICATION, f"{name!r} holds {'true and false' if kind == BOOLEAN else 'text'}, {classes}"
        elif whole and different <= min(MOST_WHOLE_CLASSES, max(2, len(column) // ROWS_PER_CLASS)):
            decided, reason = CLASSIFICATION, f"{name!r} holds {counted(different, 'different whole number')}"
        else:
            decided, reason = REGRESSION, f"{name!r} holds {counted(different, 'different number')}"
        if task != "auto":
            decided, reason = task, "as you said"
        if decided == CLASSIFICATION and different < 2:
            raise InputError(f"the target {name!r} has one class only, {texts(column)[0]!r}; a classifier needs at least two.")
        if decided == CLASSIFICATION and different > max(2, len(column) // 2):
            raise InputError(
                f"the target {name!r} has {counted(different, 'different value')} in {counted(len(column), 'row')}, too many "
                "for classes; choose another target, or use --task regression if they are numbers."
            )
        return cls(name, decided, whole, reason)

    def values(self, column: pd.Series, known: np.ndarray | None = None) -> np.ndarray:
        """Values of the target: numbers, or class labels.

        Parameters
        ----------
        column : Series
            The target column of a table.
        known : ndarray, optional
            Classes of the model; other values are an error.

        Returns
        -------
        ndarray of shape (n_rows,)
        """
        missing = list(column.index[column.isna()])
        if missing:
            raise InputError(f"the target {self.name!r} is missing in {rows(missing)}; leave these rows out.")
        if self.task == REGRESSION:
            try:
                return numbers(column)
            except InputError as error:
                raise InputError(
                    f"{str(error).rstrip('.')}; regression needs numbers, for classes use --task classification."
                ) from None
        if self.whole:
            labels = numbers(column)
        else:
            labels = np.array([BOOLEANS.get(str(text).lower(), text) for text in texts(column)], dtype=str)
        strange = np.zeros(len(labels), dtype=bool) if known is None else ~np.isin(labels, known)
        if strange.any():
            raise InputError(
                f"the target {self.name!r} holds {labels[strange][0].item()!r} in {rows(list(column.index[strange]))}, a class "
                f"the model does not know; it knows {quoted(map(str, np.asarray(known)))}."
            )
        return labels.astype(np.int64) if self.whole else labels

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)
