"""The column to predict, or several of them, and whether they need regression or classification."""

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


def find_columns(table: pd.DataFrame, wanted: str | None) -> list[str]:
    """The names of one column, or of several that are separated by commas.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"a": [1], "b": [2], "c, d": [3]})
    >>> find_columns(table, "a"), find_columns(table, "a,-2"), find_columns(table, "c, d")
    (['a'], ['a', 'b'], ['c, d'])
    """
    if wanted is None:
        raise InputError(f"say which column to predict: --target COLUMN; the table has {quoted(table.columns)}.")
    if "," not in wanted or wanted in table.columns:
        return [find_column(table, wanted)]
    names = [find_column(table, part.strip()) for part in wanted.split(",") if part.strip()]
    twice = [name for name in names if names.count(name) > 1]
    if twice:
        raise InputError(f"--target {wanted!r} names the column {twice[0]!r} twice.")
    return names


@dataclass(frozen=True)
class Target:
    """The column to predict, or several columns of numbers.

    Parameters
    ----------
    name : str
        Name of the column; of several, all names.
    task : {"regression", "classification"}
        Kind of the problem.
    whole : bool
        Whether classes are whole numbers; otherwise they are text.
    reason : str
        Reason for the choice of the task.
    names : tuple of str
        Names of several columns; empty for one.

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
    names: tuple[str, ...] = ()

    @classmethod
    def of_table(cls, table: pd.DataFrame, names: list[str], task: str = "auto") -> Target:
        """Choose the task for one or several columns; several are a regression."""
        if len(names) == 1:
            return cls.of(table[names[0]], task)
        parts = [cls.of(table[name], "auto" if kind_of(table[name]) != NUMBER else REGRESSION) for name in names]
        classes = [part.name for part in parts if part.task == CLASSIFICATION]
        if classes or task == CLASSIFICATION:
            which = quoted(classes) if classes else "as --task says"
            raise InputError(
                f"several targets are a regression, and all of them must hold numbers; classes ({which}) are predicted one "
                "column at a time: train a model for each."
            )
        return cls(", ".join(names), REGRESSION, False, f"{len(names)} targets", tuple(names))

    @classmethod
    def known_to(cls, model: Any, names: list[str]) -> Target:
        """The target of a model that was saved from Python, which does not know what its target is called."""
        classes, outputs = getattr(model, "classes_", None), model.trained_.targets.n_outputs
        expected = 1 if classes is not None else outputs
        if len(names) != expected:
            raise InputError(f"--target names {counted(len(names), 'column')}, the model predicts {expected}.")
        whole = classes is not None and np.asarray(classes).dtype.kind in "iuf"
        task = REGRESSION if classes is None else CLASSIFICATION
        return cls(", ".join(names), task, whole, "as you said", tuple(names) if len(names) > 1 else ())

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of all columns."""
        return self.names or (self.name,)

    def of_rows(self, table: pd.DataFrame, known: np.ndarray | None = None) -> np.ndarray:
        """Values of the target in a table: shape (n_rows,), or (n_rows, n_targets); see :meth:`values`."""
        absent = [name for name in self.columns if name not in table.columns]
        if absent:
            word = "target" if len(absent) == 1 else "targets"
            raise InputError(f"the table lacks the {word} {quoted(absent)}; it has {quoted(table.columns)}.")
        found = [self.values(table[name], known) for name in self.columns]
        return np.column_stack(found) if self.names else found[0]

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
            raise InputError(f"the target {str(column.name)!r} is missing in {rows(missing)}; leave these rows out.")
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
        if known is not None and known.dtype.kind == "b":
            labels = np.array([text == "True" for text in labels]) if np.isin(labels, ["True", "False"]).all() else labels
        strange = np.zeros(len(labels), dtype=bool) if known is None else ~np.isin(labels, known)
        if strange.any():
            raise InputError(
                f"the target {self.name!r} holds {labels[strange][0].item()!r} in {rows(list(column.index[strange]))}, a class "
                f"the model does not know; it knows {quoted(map(str, np.asarray(known)))}."
            )
        if known is not None:
            return labels.astype(known.dtype)
        return labels.astype(np.int64) if self.whole else labels

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"names": list(self.names)}
