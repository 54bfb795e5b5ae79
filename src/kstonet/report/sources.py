"""Sources of the uncertainty."""

from __future__ import annotations

import numpy as np

from kstonet.report.charts import axis, chart, figure, grid, mark
from kstonet.report.markup import Markup, number, paragraph, percent, table

DRAWN = 120
MEANINGS = {
    "noise": "variation of the data around the network; more rows do not reduce it",
    "first layer": "the first layer is not determined by nearby training rows",
    "regression layers": "estimated coefficients of the layers above",
    "between iterations": "the averaged iterations disagree: training has not converged",
}
ROLES = {
    "noise": "muted",
    "first layer": "shade-1",
    "regression layers": "shade-2",
    "between iterations": "shade-3",
}


def sources_section(sources: dict[str, np.ndarray], what: str) -> list[Markup]:
    """Shares of the variance, overall and row by row.

    Parameters
    ----------
    sources : dict of ndarray of shape (n,)
        Variances of every source.
    what : str
        Name of the quantity whose variance is shown.

    Returns
    -------
    list of Markup
    """
    total = np.asarray(sum(sources.values()))
    everything = float(total.sum()) or 1.0
    shares = {name: float(part.sum()) / everything for name, part in sources.items()}
    rows = [[name, percent(shares[name]), number(part.mean()), MEANINGS[name]] for name, part in sources.items()]
    order = np.argsort(total, kind="stable")
    drawn = order[np.unique(np.linspace(0, len(order) - 1, DRAWN).round().astype(int))]
    places, below, marks = np.arange(1, len(drawn) + 1), np.zeros(len(drawn)), []
    for name, part in sources.items():
        above = below + part[drawn]
        bars = {"x0": places - 0.5, "x1": places + 0.5, "y0": below, "y1": above, "value": part[drawn]}
        marks.append(mark("bars", ROLES[name], name=name, **bars))
        below = above
    listed = ", ".join(f"{name} {percent(share, 0)}" for name, share in shares.items())
    spec = chart(
        f"The {what} by source, rows sorted by their total: {listed}.",
        x=axis("rows, sorted by variance", style="count", domain=(0.5, len(drawn) + 0.5), rank=True),
        y=axis(what, zero=True),
        marks=marks,
    )
    note = None if len(drawn) == len(total) else f"{len(drawn)} of {len(total):,} rows are drawn, evenly spaced in this order."
    return [
        paragraph(f"The {what} is the sum of these parts."),
        table(["source", "share", "mean", "meaning"], rows, caption="Variance by source", texts=(0, 3)),
        grid(figure("Variance by source, row by row", spec, note=note), class_="grid one"),
    ]
