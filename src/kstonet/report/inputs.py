"""What a report is about: a fitted model, the rows to judge it on, and the rows it was trained on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_is_fitted

from kstonet._arrays import rows_in
from kstonet._checks import both_or_neither
from kstonet.estimators.base import BaseStoNet
from kstonet.plotting.inputs import chosen_column
from kstonet.tables.frames import as_pandas, is_frame, object_table

FEWEST_ROWS = 10  # fewer rows do not allow an evaluation
Encoder = Callable[[Any], Any]


@dataclass(frozen=True)
class Table:
    """Rows in their original form and in the form that the model needs.

    Parameters
    ----------
    values : pandas.DataFrame or ndarray of shape (n, columns)
        Rows in their original form.
    names : tuple of str
        Names of the columns.
    encode : callable, optional
        Function that turns ``values`` into what the model takes.
    read : callable
        Function that turns what the model takes into the matrix that it was trained on.

    Examples
    --------
    >>> import numpy as np
    >>> table = Table(np.array([[1.0, 2.0], [3.0, 4.0]]), ("a", "b"))
    >>> table.replaced(1, table.picked(1, [1, 0])).encoded()
    array([[1., 4.],
           [3., 2.]])
    """

    values: Any
    names: tuple[str, ...]
    encode: Encoder | None = None
    read: Encoder = np.asarray

    @classmethod
    def of(cls, name: str, X: Any, encode: Encoder | None, model: BaseStoNet) -> Table:
        """Read X; frames that are neither pandas' nor polars' are read as arrays."""
        if is_frame(X) and object_table(X) is not None:
            X = as_pandas(X)
        if hasattr(X, "iloc"):
            table = cls(X, tuple(map(str, X.columns)), encode, model._check_X)
        else:
            array = X if isinstance(X, np.ndarray) else np.asarray(X)
            if array.ndim != 2:
                raise ValueError(f"{name} has shape {array.shape}; it must be a table of rows and columns.")
            known = getattr(X, "columns", None)
            if known is None and encode is None:
                known = getattr(model, "feature_names_in_", None)
            if known is None or len(known) != array.shape[1]:
                known = [f"x{j}" for j in range(array.shape[1])]
            table = cls(array, tuple(map(str, known)), encode, model._check_X)
        if len(table) < FEWEST_ROWS:
            raise ValueError(f"{name} holds {len(table)} rows; a report needs at least {FEWEST_ROWS}.")
        return table

    def __len__(self) -> int:
        return len(self.values)

    def encoded(self) -> Any:
        """Input of the model."""
        return self.values if self.encode is None else self.encode(self.values)

    def matrix(self) -> np.ndarray:
        """The matrix that the model makes of its input."""
        return np.asarray(self.read(self.encoded()))

    def taken(self, rows: Any) -> Table:
        """Some of the rows, or some of them several times."""
        values = self.values.iloc[rows] if hasattr(self.values, "iloc") else self.values[rows]
        return replace(self, values=values)

    def picked(self, column: int, rows: Any) -> Any:
        """The values of one column in some rows, in the column's own type."""
        return self.values.iloc[rows, column].array if hasattr(self.values, "iloc") else self.values[rows, column]

    def replaced(self, column: int, values: Any) -> Table:
        """The same rows with other values in one column."""
        changed = self.values.copy()
        if hasattr(changed, "isetitem"):
            changed.isetitem(column, values)
        else:
            changed[:, column] = values
        return replace(self, values=changed)

    def part(self, columns: list[int]) -> Any:
        """Some of the columns alone; those of a frame are numbered, as two of them may have the same name."""
        if not hasattr(self.values, "iloc"):
            return self.values[:, columns]
        part = self.values.iloc[:, columns]
        return part.set_axis(range(len(columns)), axis=1)

    def with_part(self, columns: list[int], part: Any) -> Table:
        """The same rows with other values in some columns, given as :meth:`part` returns them."""
        changed = self.values.copy()
        if hasattr(changed, "isetitem"):
            for k, column in enumerate(columns):
                changed.isetitem(column, part.iloc[:, k].array)
        else:
            changed[:, columns] = part
        return replace(self, values=changed)

    def labels(self, rows: Any) -> list[str]:
        """Labels of some rows: the index of the frame, or the position from 0."""
        return [str(label) for label in (self.values.index[rows] if hasattr(self.values, "iloc") else rows)]

    def column(self, column: int) -> np.ndarray:
        """One column: float64 with nan for missing values if it holds numbers, else texts with None for missing values."""
        frame = hasattr(self.values, "iloc")
        values = self.values.iloc[:, column] if frame else self.values[:, column]
        if getattr(values.dtype, "kind", "O") in "iuf":
            return np.asarray(values.to_numpy(dtype=np.float64, na_value=np.nan) if frame else values.astype(np.float64))
        missing = np.asarray(values.isna()) if frame else np.array([value is None or value != value for value in values])
        return np.array([None if gone else str(value) for value, gone in zip(values, missing, strict=True)], dtype=object)


@dataclass(frozen=True)
class Subject:
    """Model, rows and targets of a report.

    Parameters
    ----------
    model : fitted estimator
        The fitted model.
    rows : Table
        Rows to evaluate the model on.
    y : ndarray of shape (n,)
        Observed values of one target, or labels.
    target : str
        Name of the target.
    column : int
        Index of the target among those of the model.
    train : Table, optional
        Rows the model was trained on; ``y_train`` has their targets.
    y_train : ndarray, optional
        Targets of the training rows.
    seen : ndarray of bool of shape (n,), optional
        Whether a row has exactly the features of a training row; None if the training rows are not known.
    reference : ndarray, optional
        Training rows, standardised by the model.
    """

    model: Any
    rows: Table
    y: np.ndarray
    target: str
    column: int
    train: Table | None
    y_train: np.ndarray | None
    seen: np.ndarray | None
    reference: np.ndarray | None

    @property
    def name(self) -> str:
        """Name of the model: K-StoNet or StoNet."""
        return "K-StoNet" if type(self.model).__name__.startswith("K") else "StoNet"

    @property
    def n(self) -> int:
        """Number of rows to evaluate the model on."""
        return len(self.rows)

    @property
    def n_train(self) -> int | None:
        """Number of rows the model was trained on, if known."""
        return None if self.reference is None else len(self.reference)

    @property
    def on_training_rows(self) -> bool:
        """Whether all rows are training rows."""
        return self.seen is not None and bool(self.seen.all())

    @property
    def has_intervals(self) -> bool:
        """Whether the model was fitted with intervals."""
        return bool(self.model.trained_.has_intervals)


def unwrapped(model: Any, encode: Encoder | None) -> tuple[Any, Encoder | None]:
    """The estimator inside searches and pipelines, and what the steps before it make of rows."""
    while hasattr(model, "best_estimator_") or isinstance(model, Pipeline):
        if not isinstance(model, Pipeline):
            model = model.best_estimator_
            continue
        if encode is not None:
            raise ValueError("encode is given, but model is a Pipeline, whose steps encode the rows; leave encode out.")
        check_is_fitted(model)
        encode = model[:-1].transform if len(model.steps) > 1 else None
        model = model[-1]
    return model, encode


def read_subject(
    model: Any, X: Any, y: Any, *, encode: Encoder | None, X_train: Any, y_train: Any, target: int | None
) -> Subject:
    """Validate the arguments of a report."""
    if not isinstance(model, BaseStoNet):
        raise TypeError(f"model is a {type(model).__name__}; a report is about a fitted KStoNet or StoNet estimator.")
    check_is_fitted(model)
    if model.trained_.pairwise:
        raise ValueError("kernel='precomputed': the columns of X are kernel values; a report needs features.")
    both_or_neither(X_train, y_train, ("X_train", "y_train"), "a report")
    rows = Table.of("X", X, encode, model)
    column = 0 if hasattr(model, "classes_") else chosen_column(target, model.trained_.targets.n_outputs)
    observed = _targets("y", y, len(rows), column, model)
    width = np.shape(rows.encoded())[1]
    if width != model.n_features_in_:
        source = "X" if encode is None else "encode(X)"
        raise ValueError(
            f"{source} has {width} columns, the model was fitted on {model.n_features_in_}; give the columns of the "
            "training, and encode where they have to be made numeric first."
        )
    matrix = rows.matrix()
    train, known, reference = None, None, getattr(model, "_X_fit", None)
    if X_train is not None:
        train = Table.of("X_train", X_train, encode, model)
        known = _targets("y_train", y_train, len(train), column, model)
        reference = model.trained_.scaler.forward(train.matrix())
    seen = None if reference is None else rows_in(model.trained_.scaler.forward(matrix), reference)
    return Subject(model, rows, observed, _target_name(y, column), column, train, known, seen, reference)


def _targets(name: str, y: Any, n: int, column: int, model: Any) -> np.ndarray:
    """One target, or labels the model knows."""
    if y is None:
        raise ValueError(f"{name}=None: a report compares predictions with what was observed; give the targets of the rows.")
    labels = hasattr(model, "classes_")
    values = np.asarray(y) if labels else check_array(y, dtype=np.float64, ensure_2d=False, input_name=name)
    if len(values) != n:
        raise ValueError(f"{name} holds {len(values)} values for {n} rows; give one for every row.")
    if not labels:
        table = values.reshape(n, -1)
        if table.shape[1] != model.trained_.targets.n_outputs:
            raise ValueError(
                f"{name} holds {table.shape[1]} targets, the model was fitted on "
                f"{model.trained_.targets.n_outputs}; give all of them."
            )
        return np.asarray(table[:, column])
    unknown = sorted({str(value) for value in set(values.ravel().tolist()) - set(model.classes_.tolist())})
    if values.ndim != 1 or unknown:
        what = f"the labels {unknown[:5]}" if unknown else f"an array of shape {values.shape}"
        raise ValueError(f"{name} holds {what}; it must hold one label per row out of {model.classes_.tolist()}.")
    return values


def _target_name(y: Any, column: int) -> str:
    name = y.columns[column] if hasattr(y, "columns") else getattr(y, "name", None)
    return "target" if name is None else str(name)
