"""Feature effects: permutation importance and partial dependence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn import inspection

from kstonet._words import counted
from kstonet.report.charts import axis, chart, chooser, figure, grid, mark, sampled
from kstonet.report.inputs import Subject, Table
from kstonet.report.markup import Markup, number, paragraph

REPEATS = 5
MEASURED = 100  # columns whose importance is measured
MOST_IMPORTANCE_ROWS, MOST_CURVE_ROWS = 1000, 100
KERNEL_VALUES = 1e8  # to compute for the importances, a few seconds; a quarter of it for the curves, which cost more each
SHOWN, CURVES = 20, 6  # columns with an importance in the chart, and with a curve
GRID, LEVELS = 20, 10  # values of a number, and of a category, that a curve is computed at

#: Loss of some rows, from what the model is given and the truth.
Loss = Callable[[Any, np.ndarray], float]
#: Centre, lower and upper bound of what the model predicts, (n,) each, by what it is.
Curves = Callable[[Any], dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]]


@dataclass(frozen=True)
class Importance:
    """Permutation importance, the most important column first.

    Parameters
    ----------
    columns : ndarray of shape (measured,)
        Indices of the measured columns.
    rises : ndarray of shape (measured, repeats)
        Increase of the loss when the column is shuffled.
    n_rows : int
        Number of rows it was measured on.
    """

    columns: np.ndarray
    rises: np.ndarray
    n_rows: int


def permutation_importance(subject: Subject, outputs: np.ndarray, loss: Loss) -> Importance:
    """How much the loss rises when one column is shuffled, before it is encoded (``sklearn.inspection``).

    Parameters
    ----------
    subject : Subject
        Model and rows of the report.
    outputs : ndarray of shape (n, outputs)
        What the model predicts; of many columns those are measured that go with it most.
    loss : callable
        The loss of some rows.

    Returns
    -------
    Importance
    """
    columns = _related(subject.rows, outputs)
    kept = sampled(subject.n, _affordable(subject, len(columns) * REPEATS, KERNEL_VALUES, MOST_IMPORTANCE_ROWS))
    rows = subject.rows.taken(kept)

    def score(model: Any, part: Any, y: np.ndarray) -> float:
        return -loss(rows.with_part(columns, part).encoded(), y)

    found = inspection.permutation_importance(
        subject.model, rows.part(columns), subject.y[kept], scoring=score, n_repeats=REPEATS, random_state=0
    )
    order = np.argsort(-found.importances_mean, kind="stable")
    return Importance(np.array(columns)[order], found.importances[order], len(kept))


def _related(rows: Table, outputs: np.ndarray) -> list[int]:
    """The columns to measure: all, or those that explain most of the variance of some output, taken as ten groups each."""
    everything = list(range(len(rows.names)))
    if len(everything) <= MEASURED:
        return everything
    return sorted(sorted(everything, key=lambda j: -explained(rows.column(j), outputs))[:MEASURED])


def explained(values: np.ndarray, outputs: np.ndarray) -> float:
    """The largest share of the variance of an output that lies between groups of the values: levels, or tenths of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> outputs = np.array([[1.0], [1.0], [3.0], [3.0]])
    >>> explained(np.array(["a", "a", "b", "b"], dtype=object), outputs)
    1.0
    >>> explained(np.array([0.0, 1.0, 0.0, 1.0]), outputs)
    0.0
    """
    if values.dtype == object:
        groups = np.unique(values.astype(str), return_inverse=True)[1]
    else:
        edges = np.nanquantile(values, np.linspace(0.1, 0.9, 9)) if np.isfinite(values).any() else []
        groups = np.searchsorted(np.unique(edges), values)
    deviations = outputs - outputs.mean(axis=0)
    sizes = np.bincount(groups)
    sums = np.stack([np.bincount(groups, weights=column) for column in deviations.T])
    between = (sums**2 / np.maximum(sizes, 1)).sum(axis=1)
    return float((between / np.maximum((deviations**2).sum(axis=0), 1e-300)).max())


@dataclass(frozen=True)
class Dependence:
    """Mean prediction and mean bounds, with one feature set to the same value in all rows, for several values."""

    values: np.ndarray  # numbers, or texts
    curves: dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
    n_rows: int


def partial_dependence(subject: Subject, column: int, curves: Curves) -> Dependence | None:
    """The partial dependence on one column, at values that occur in it.

    ``sklearn.inspection`` averages predictions only; here the bounds of the model's intervals are averaged, too.

    Parameters
    ----------
    subject : Subject
        Model and rows of the report.
    column : int
        Index of the column.
    curves : callable
        Function that returns predictions with bounds.

    Returns
    -------
    Dependence or None
        None where all values are missing.
    """
    holders = _grid_rows(subject.rows, column)
    if not len(holders):
        return None
    kept = sampled(subject.n, _affordable(subject, CURVES * GRID, KERNEL_VALUES / 4, MOST_CURVE_ROWS))
    rows = subject.rows.taken(np.tile(kept, len(holders)))
    values = subject.rows.picked(column, np.repeat(holders, len(kept)))
    found = curves(rows.replaced(column, values).encoded())

    def mean(part: np.ndarray) -> np.ndarray:
        return np.asarray(part.reshape(len(holders), len(kept)).mean(axis=1))

    averaged = {name: (mean(centre), mean(low), mean(high)) for name, (centre, low, high) in found.items()}
    return Dependence(subject.rows.column(column)[holders], averaged, len(kept))


def _affordable(subject: Subject, times: int, values: float, most: int) -> int:
    """Number of rows that can be predicted ``times`` times; kernel values of many features cost more."""
    model = subject.model
    cost = 1.0 + model._n_encoded / 200.0
    return int(np.clip(values / (cost * times * max(1, model.trained_.n_support)), 20, most))


def _grid_rows(rows: Table, column: int) -> np.ndarray:
    """Rows whose values in a column make a grid: evenly spaced between its 2nd and 98th percentile, or its common levels."""
    values = rows.column(column)
    if values.dtype == object:
        present = np.array([i for i, value in enumerate(values) if value is not None], dtype=int)
        _, first, sizes = np.unique(values[present].astype(str), return_index=True, return_counts=True)
        return np.asarray(present[first[np.argsort(-sizes, kind="stable")[:LEVELS]]])
    present = np.flatnonzero(np.isfinite(values))
    levels, first = np.unique(values[present], return_index=True)
    if len(levels) > GRID:
        low, high = np.quantile(values[present], [0.02, 0.98])
        wanted = np.linspace(low, high, GRID)
        first = first[np.unique(np.abs(levels[:, None] - wanted).argmin(axis=0))]
    return np.asarray(present[first])


# -- the section ---------------------------------------------------------------------------------------------------------------


def effects_section(subject: Subject, importance: Importance, curves: Curves, words: dict[str, str]) -> list[Markup]:
    """Make both charts.

    Parameters
    ----------
    subject : Subject
        Model and rows of the report.
    importance : Importance
        Importance of the columns.
    curves : callable
        What the model predicts, with bounds.
    words : dict of str
        "loss": name of the loss; "band": sentence about the band of the curves; "style": style of their axis.

    Returns
    -------
    list of Markup
    """
    found = {j: partial_dependence(subject, j, curves) for j in importance.columns[:CURVES].tolist()}
    dependences = {j: dependence for j, dependence in found.items() if dependence is not None}
    first = next(iter(dependences.values()))
    return [
        paragraph(
            f"Importance: how much the {words['loss']} rises when the values of one column are shuffled among the rows. A "
            "column that is correlated with another one can look unimportant."
        ),
        _importance_chart(subject, importance, words["loss"]),
        paragraph(
            f"Partial dependence: the mean prediction over {counted(first.n_rows, 'row')} when one column is set to the same "
            f"value in all of them. {words['band']} Ticks on the axis show the data; all panels have the same scale."
        ),
        chooser("Show the", list(first.curves)) or Markup(),
        grid(*_dependence_figures(subject, dependences, words["style"]), class_="grid small"),
    ]


def _importance_chart(subject: Subject, importance: Importance, loss: str) -> Markup:
    shown, rises = importance.columns[:SHOWN], importance.rises[:SHOWN]
    means, places = rises.mean(axis=1), np.arange(len(shown))
    names = [subject.rows.names[j] for j in shown]
    zero = np.zeros(len(shown))
    marks = [
        mark(
            "bars",
            "shade-2",
            x0=zero,
            x1=means,
            y0=places - 0.3,
            y1=places + 0.3,
            value=means,
            name=f"mean of {REPEATS} shuffles",
        ),
        mark("points", "ink", x=rises.ravel(), y=np.repeat(places, REPEATS), name="one shuffle", small=True),
    ]
    top = ", ".join(f"{name} {number(value)}" for name, value in zip(names[:3], means[:3], strict=True))
    spec = chart(
        f"Rise of the {loss} by column, most important first: {top}.",
        x=axis(f"rise of the {loss}", zero=True),
        y=axis("column", categories=names),
        marks=marks,
        shape="rows",
    )
    sample = f"{importance.n_rows:,} of {subject.n:,} rows, chosen at random" if importance.n_rows < subject.n else "all rows"
    total, measured = len(subject.rows.names), len(importance.columns)
    note = f"Measured on {sample}."
    if measured < total:
        note += f" Of {total:,} columns, the {measured} that are most correlated with the predictions were measured."
    if len(shown) < measured:
        note += f" The {len(shown)} most important columns are shown."
    return figure("Permutation importance", spec, note=note)


def _dependence_figures(subject: Subject, dependences: dict[int, Dependence], style: str) -> list[Markup]:
    ends = [part for each in dependences.values() for bounds in each.curves.values() for part in bounds]
    low, high = min(float(part.min()) for part in ends), max(float(part.max()) for part in ends)
    room = 0.05 * (high - low or 1.0)
    figures = []
    for j, dependence in dependences.items():
        variants = []
        for name, bounds in dependence.curves.items():
            y = axis(name, domain=(low - room, high + room), style=style)
            variants.append(_dependence_chart(subject, j, dependence.values, bounds, y))
        figures.append(figure(subject.rows.names[j], *variants))
    return figures


def _dependence_chart(
    subject: Subject, column: int, values: np.ndarray, bounds: tuple[np.ndarray, np.ndarray, np.ndarray], y: dict[str, Any]
) -> dict[str, Any]:
    centre, low, high = bounds
    name, what = subject.rows.names[column], y["label"]
    alt = f"Mean {what} against {name}: between {number(centre.min())} and {number(centre.max())}."
    spread: dict[str, Any] = {} if np.array_equal(low, high) else {"low": low, "high": high, "range": "95 % band"}
    if values.dtype == object:
        places = np.arange(len(values))
        marks = [mark("segments", x=places, low=low, high=high)] if spread else []
        marks.append(mark("points", x=places, y=centre, **spread))
        return chart(alt, x=axis(name, categories=list(values), silent=True), y=y, marks=marks, name=what)
    data = subject.rows.column(column)[sampled(subject.n, 80)]
    inside = data[(data >= values.min()) & (data <= values.max())]
    marks = [mark("line", x=values, y=centre, **spread), mark("rug", "muted", x=inside)]
    return chart(alt, x=axis(name, silent=True), y=y, marks=marks, name=what)
