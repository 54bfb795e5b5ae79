"""Where intervals are wrong: their coverage in parts of the rows, by prediction and by feature."""

from __future__ import annotations

import numpy as np

from kstonet.metrics import (
    PartialCoverage,
    conditional_coverage_error,
    coverage_by_group,
    coverage_by_quantile,
    worst_slab_coverage,
)
from kstonet.report.cautions import chance_range
from kstonet.report.charts import sampled
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup, element, join, number, paragraph, percent, table

LEVEL = 0.9
FEWEST = 20  # rows of a part that says something
ENOUGH, MOST_ROWS = 200, 5000  # rows that say something about all columns together, and more than are needed
MOST_GROUPS = 12  # categories of a column
MOST_FEATURES = 6  # parts of features that are shown, those of the most unlikely coverage
THIRDS = ("lowest third", "middle third", "highest third")


def conditional_table(subject: Subject, mean: np.ndarray, bounds: np.ndarray) -> Markup:
    """Coverage of 90 % intervals in thirds of the predictions, and in the parts of features where it is most unlikely.

    Parameters
    ----------
    subject : Subject
        Model and rows of the report.
    mean : ndarray of shape (n,)
        Predictions.
    bounds : ndarray of shape (n, 2)
        Their 90 % intervals.

    Returns
    -------
    Markup
    """
    predicted = _rows("prediction", coverage_by_quantile(subject.y, bounds, mean), quantiles=True)
    features = []
    for j, name in enumerate(subject.rows.names):
        values = subject.rows.column(j)
        if values.dtype.kind in "iuf" and len(np.unique(values)) > MOST_GROUPS:
            seen = np.isfinite(values)
            found = coverage_by_quantile(subject.y[seen], bounds[seen], values[seen]) if seen.any() else None
        else:
            texts = values.astype(str)
            found = coverage_by_group(subject.y, bounds, texts) if 1 < len(np.unique(texts)) <= MOST_GROUPS else None
        if found is not None:
            features += _rows(str(name), found, quantiles=values.dtype.kind in "iuf" and len(np.unique(values)) > MOST_GROUPS)
    features.sort(key=lambda part: -part[0])
    shown = predicted + features[:MOST_FEATURES]
    if not shown:
        return join()
    head = ["part of the rows", "rows", "covered", "by chance", "mean width"]
    return join(
        paragraph(
            "Intervals can be right on average and wrong somewhere. These are the thirds of the predictions and the parts of "
            f"columns in which the coverage is furthest from {percent(LEVEL, 0)}; what chance does not explain is bold. Of a "
            "hundred parts, one is bold by chance."
        ),
        table(head, [cells for _, cells in shown], caption=f"Where {percent(LEVEL, 0)} intervals cover"),
        _all_columns(subject, bounds),
    )


def _all_columns(subject: Subject, bounds: np.ndarray) -> Markup | None:
    """Coverage as it depends on all columns of numbers together."""
    rows = sampled(len(bounds), MOST_ROWS)
    columns = [subject.rows.column(j) for j in range(len(subject.rows.names))]
    numbers = [values[rows] for values in columns if values.dtype.kind in "iuf" and np.isfinite(values).all()]
    spread = [values for values in numbers if np.ptp(values) > 0.0]
    if len(rows) < ENOUGH or not spread:
        return None
    X = np.column_stack([(values - values.mean()) / values.std() for values in spread])
    y, own = subject.y[rows], bounds[rows]
    slab = worst_slab_coverage(y, own, X, n_directions=200, random_state=0)
    error = max(conditional_coverage_error(y, own, X, LEVEL), 0.0)
    return paragraph(
        f"By all columns of numbers together: among slabs of a tenth of the rows, {percent(slab)} are covered in that which "
        f"covers least (found on a quarter of the rows, measured on the others). A classifier that learns from the columns "
        f"whether a row is covered finds the coverage to be at least {percent(error)} away from {percent(LEVEL, 0)} on average "
        "(excess risk of the target coverage; 0 % where intervals are right everywhere).",
        class_="note",
    )


def _rows(name: str, found: PartialCoverage, *, quantiles: bool) -> list[tuple[float, list[Markup | str]]]:
    """Cells of a table, with how many standard errors the coverage is from the nominal one."""
    rows: list[tuple[float, list[Markup | str]]] = []
    for k, (part, share, width, count) in enumerate(zip(found.parts, found.coverage, found.width, found.count, strict=True)):
        if count < FEWEST:
            continue
        low, high = chance_range(int(count), LEVEL)
        said = percent(float(share))
        if not low <= share <= high:
            said = element("b", said)
        third = THIRDS[k] if len(found.parts) == len(THIRDS) else f"part {k + 1}"
        label = f"{name}: {third}, up to {number(float(part))}" if quantiles else f"{name}: {part}"
        away = abs(float(share) - LEVEL) / np.sqrt(LEVEL * (1.0 - LEVEL) / count)
        rows.append((away, [label, f"{count:,}", said, f"{percent(low)} to {percent(high)}", number(float(width))]))
    return rows
