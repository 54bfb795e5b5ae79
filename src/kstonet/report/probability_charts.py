"""Charts of probabilities: reliability, distribution and intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from kstonet._words import counted
from kstonet.metrics import reliability_curve
from kstonet.plotting.reliability import share_interval
from kstonet.report.charts import axis, chart, figure, mark, sample_note, sampled
from kstonet.report.inputs import Table
from kstonet.report.markup import Markup, percent

GROUPS = 10  # of equally many rows
DRAWN = 60  # intervals
PROBABILITY = "probability of the predicted class"


def reliability_figure(right: np.ndarray, p: np.ndarray) -> Markup:
    """Share of correct predictions against the predicted probability.

    Parameters
    ----------
    right : ndarray of bool of shape (n,)
        Whether the predicted class of a row is correct.
    p : ndarray of shape (n,)
        Probability of the predicted class.

    Returns
    -------
    Markup
    """
    curve = reliability_curve(right.astype(int), p, label=1, n_bins=GROUPS, strategy="quantile")
    sizes = np.round(curve.weight * len(p))
    marks = [
        mark("line", "muted", x=[0.0, 1.0], y=[0.0, 1.0], dash=True, silent=True),
        mark("line", x=curve.predicted, y=curve.observed, silent=True),
        *_shares(curve.predicted, curve.observed, sizes),
    ]
    spec = chart(
        f"Share of correct predictions against the probability, {counted(len(sizes), 'group')} of rows.",
        x=axis(PROBABILITY, style="percent", domain=(0.0, 1.0)),
        y=axis("share predicted correctly", style="percent", domain=(0.0, 1.0)),
        marks=marks,
        shape="square",
    )
    note = "Groups of equally many rows, with 95 % intervals. Below the diagonal the model is overconfident."
    return figure("Reliability", spec, note=note)


def confidence_figure(right: np.ndarray, p: np.ndarray) -> Markup:
    """Number of correct and wrong predictions against the predicted probability."""
    edges = np.linspace(0.0, 1.0, 21)
    edges = edges[np.searchsorted(edges, p.min(), side="right") - 1 :] if p.min() < 1.0 else edges[-2:]
    below, marks = np.zeros(len(edges) - 1), []
    for name, role, own in _right_and_wrong(right):
        sizes = np.histogram(p[own], edges)[0]
        bars = {"x0": edges[:-1], "x1": edges[1:], "y0": below, "y1": below + sizes, "value": sizes}
        marks.append(mark("bars", role, name=name, **bars))
        below = below + sizes
    share = percent(float((p > 0.9).mean()), 0)
    spec = chart(
        f"Distribution of the predicted probability: {share} of the rows have more than 90 %.",
        x=axis(PROBABILITY, style="percent", domain=(float(edges[0]), 1.0)),
        y=axis("rows", style="count", zero=True),
        marks=marks,
        shape="square",
    )
    return figure("Predicted probabilities", spec, note=f"{share} of the rows have more than 90 %.")


def interval_figure(right: np.ndarray, p: np.ndarray, bounds: np.ndarray, rows: Table) -> Markup:
    """Probabilities of some rows with their intervals (n, 2), from the least to the most probable."""
    chosen = sampled(len(p), DRAWN)
    order = chosen[np.argsort(p[chosen], kind="stable")]
    labels = np.array([f"row {label}" for label in rows.labels(order)], dtype=object)
    places, marks = np.arange(1, len(order) + 1), []
    for name, role, own in _right_and_wrong(right[order]):
        low, high = bounds[order[own]].T
        marks.append(mark("segments", role, x=places[own], low=low, high=high))
        spread = {"low": low, "high": high, "range": "95 % interval"}
        marks.append(mark("points", role, x=places[own], y=p[order[own]], name=name, tips=list(labels[own]), **spread))
    spec = chart(
        f"Probability of the predicted class with its 95 % interval, {counted(len(order), 'row')} in order.",
        x=axis("rows, from the least to the most probable", style="count", domain=(0.0, len(order) + 1.0), rank=True),
        y=axis(PROBABILITY, style="percent", domain=(0.0, 1.0)),
        marks=marks,
    )
    return figure("Probabilities with their intervals", spec, note=sample_note(len(order), len(p)))


def width_figure(right: np.ndarray, bounds: np.ndarray) -> Markup:
    """Share of errors among rows of narrow and of wide intervals (n, 2)."""
    width = bounds[:, 1] - bounds[:, 0]
    groups = np.array_split(np.argsort(width, kind="stable"), max(1, min(GROUPS, len(width) // 10)))
    centre, wrong = (np.array([values[rows].mean() for rows in groups]) for values in (width, ~right))
    sizes = np.array([float(len(rows)) for rows in groups])
    spec = chart(
        f"Wrong predictions: {percent(wrong[0])} of the narrowest intervals, {percent(wrong[-1])} of the widest.",
        x=axis("mean width of the interval", style="percent", zero=True),
        y=axis("predicted wrong", style="percent", zero=True),
        marks=_shares(centre, wrong, sizes),
    )
    return figure("Width against error", spec, note="Where intervals are wide, errors should be frequent.")


def _right_and_wrong(right: np.ndarray) -> list[tuple[str, str, np.ndarray]]:
    return [("correct", "muted", right), ("wrong", "accent", ~right)]


def _shares(x: np.ndarray, share: np.ndarray, sizes: np.ndarray) -> list[dict[str, Any]]:
    """Shares of groups of rows with their 95 % confidence intervals."""
    low, high = share_interval(share, sizes)
    tips = [counted(int(size), "row") for size in sizes]
    return [
        mark("segments", x=x, low=low, high=high),
        mark("points", x=x, y=share, big=True, tips=tips, low=low, high=high, range="95 % interval"),
    ]
