"""The table of the rows a model finds hardest: sorted and filtered in the browser by ``static/table.js``."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._words import counted
from kstonet.report.inputs import Subject
from kstonet.report.markup import DASH, Markup, element, fixed, number, paragraph, places_for, scrolling

MOST = 100
MOST_FEATURES = 10


@dataclass(frozen=True)
class Column:
    """A column of the table: numbers, with so many decimals, or texts."""

    name: str
    values: np.ndarray
    places: int | None = None

    def cells(self, rows: np.ndarray) -> list[Markup]:
        """The cells of some rows; ``data-value`` is what they are sorted by."""
        chosen = self.values[rows]
        if chosen.dtype.kind not in "iuf":
            return [element("td", DASH if value is None else str(value)) for value in chosen]
        places = places_for(self.values) if self.places is None else self.places
        return [element("td", fixed(value, places), class_="number", data_value=f"{float(value):.6g}") for value in chosen]

    @property
    def numeric(self) -> bool:
        """Whether it holds numbers."""
        return self.values.dtype.kind in "iuf"


def hardest_section(
    subject: Subject,
    difficulty: np.ndarray,
    columns: list[Column],
    shown: np.ndarray,
    *,
    what: str,
    flagged: tuple[str, np.ndarray] | None,
) -> list[Markup]:
    """The rows of the largest difficulty, with some features.

    Parameters
    ----------
    subject : Subject
        Model and rows of the report.
    difficulty : ndarray of shape (n,)
        Size of the error of every row.
    columns : list of Column
        Observation and prediction of every row.
    shown : ndarray of int
        Indices of the features to show, the most important first.
    what : str
        Name of the difficulty.
    flagged : tuple of str and ndarray of bool, optional
        Label of a switch, and the rows that it selects.

    Returns
    -------
    list of Markup
    """
    rows = np.argsort(-difficulty, kind="stable")[:MOST]
    names = subject.rows.names
    features = np.sort(shown) if len(shown) <= MOST_FEATURES else shown[:MOST_FEATURES]
    everything = [*columns, *(Column(names[j], subject.rows.column(int(j))) for j in features)]
    labels = subject.rows.labels(rows)
    cells = list(zip(*(column.cells(rows) for column in everything), strict=True))
    body = [
        element("tr", element("th", label, scope="row"), *own, data_flag=flagged is not None and bool(flagged[1][row]))
        for row, label, own in zip(rows, labels, cells, strict=True)
    ]
    heads = [_head("row", numeric=False), *(_head(column.name, column.numeric) for column in everything)]
    caption = f"The {counted(len(rows), 'row')} with the largest {what}"
    inner = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *heads)),
        element("tbody", *body),
        class_="sortable",
    )
    compared = next(column for column in reversed(everything) if column.numeric)
    example = f"any text, or {compared.name} > {number(np.nanmedian(compared.values), 2)}"
    switch = None if flagged is None else _switch(flagged[0])
    return [
        paragraph(
            "Click a heading to sort."
            + (
                f" Of {len(names):,} columns the {len(features)} most important are shown."
                if len(features) < len(names)
                else ""
            )
        ),
        element(
            "div",
            element("label", "Filter ", element("input", type="search", class_="filter", placeholder=example)),
            switch,
            element("output", f"{len(rows)} rows", class_="shown", aria_live="polite"),
            class_="controls",
        ),
        scrolling(inner, caption),
    ]


def _head(name: str, numeric: bool) -> Markup:
    button = element("button", name, type="button")
    return element("th", button, scope="col", class_="number" if numeric else None, aria_sort="none")


def _switch(text: str) -> Markup:
    return element("label", element("input", type="checkbox", class_="flagged"), f" {text}")
