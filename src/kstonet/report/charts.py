"""Charts as data: axes and marks, drawn in the browser by ``static/chart.js``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kstonet.report.markup import Markup, element, json_script

Mark = dict[str, Any]
MOST_POINTS = 600  # in a scatter plot: more hide each other, and make the page heavy


def axis(
    label: str,
    *,
    domain: tuple[float, float] | None = None,
    categories: Sequence[str] | None = None,
    style: str | None = None,
    zero: bool = False,
    silent: bool = False,
    rank: bool = False,
) -> dict[str, Any]:
    """An axis: its label, and the range it shows where that does not follow from the marks.

    ``style`` is "percent" or "count"; ``zero`` makes sure that zero is shown; categories stand at 0, 1, 2, ...;
    ``silent`` axes show their label in tooltips only, axes of ``rank`` never there.
    """
    given = {
        "label": label,
        "domain": domain,
        "categories": categories,
        "style": style,
        "zero": zero,
        "silent": silent,
        "rank": rank,
    }
    return {key: value for key, value in given.items() if value not in (None, False)}


def mark(kind: str, role: str = "accent", **values: Any) -> Mark:
    """A mark of a chart.

    Parameters
    ----------
    kind : str
        "line" and "points" (x, y; a line may have a band from ``low`` to ``high``), "band" (x, low, high), "segments" (x, low,
        high, or y, low, high for horizontal ones), "bars" (x0, x1, y0, y1, and ``value`` for the tooltip), "rug" (x), "span"
        (x0, x1: the whole height).
    role : str
        Colour: "accent" for the main mark, "ink", "muted" and "faint" for the others, "shade-1" to "shade-4" for parts of a
        whole.
    **values
        Also ``name`` for the legend, ``tips`` for the first line of every tooltip, ``range`` to call low and high, ``dash``.

    Returns
    -------
    dict
    """
    return {"kind": kind, "role": role, **{key: value for key, value in values.items() if value is not None}}


def chart(
    alt: str, *, x: dict[str, Any], y: dict[str, Any], marks: list[Mark], shape: str = "wide", name: str = ""
) -> dict[str, Any]:
    """A chart.

    Parameters
    ----------
    alt : str
        Description of the chart for screen readers.
    x, y : dict
        Axes, made by :func:`axis`.
    marks : list of dict
        Marks, made by :func:`mark`; later ones are drawn on top.
    shape : {"wide", "square", "rows"}
        "rows" grows with the categories on the y axis.
    name : str
        Name of the variant, if a figure has several.

    Returns
    -------
    dict
    """
    return {"name": name, "alt": alt, "x": x, "y": y, "marks": marks, "shape": shape}


def figure(title: str, *variants: dict[str, Any], note: str | None = None) -> Markup:
    """A chart with its title and a note below; of several variants the first is shown until another one is chosen."""
    return element(
        "figure",
        element("figcaption", title),
        element("div", class_="plot"),
        None if note is None else element("p", note, class_="note"),
        json_script(list(variants)),
        class_="chart",
    )


def chooser(label: str, names: Sequence[str]) -> Markup | None:
    """A control that chooses the variant of all charts in the grid after it."""
    if len(names) < 2:
        return None
    options = (element("option", name, value=name) for name in names)
    return element("label", f"{label} ", element("select", *options, class_="chooser"), class_="control")


def grid(*figures: Markup | None, class_: str = "grid") -> Markup:
    """Charts side by side where there is room."""
    return element("div", *figures, class_=class_)


def sampled(n: int, most: int = MOST_POINTS) -> np.ndarray:
    """Indices of the rows to draw: all, or a fixed random sample of ``most``, in order."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, size=most, replace=False))


def sample_note(drawn: int, n: int) -> str | None:
    """A note if not all rows are drawn."""
    return None if drawn == n else f"{drawn:,} of {n:,} rows are drawn, chosen at random."
