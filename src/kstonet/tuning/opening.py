"""How an automatic choice begins: one family, in the middle between rough and smooth, says what is relevant.

It sees the rows as they are, with heavy tails drawn in, or with features bent as the evidence prefers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.tuning.judging import Candidate, Rows
from kstonet.tuning.stationary import Family
from kstonet.tuning.views import View
from kstonet.tuning.warping import bent

FEW_ROWS, MORE_ROWS = 400, 800  # what is learned from, and what judges it
LEAD = "matern32"  # neither rough nor smooth: the family that says first what is relevant
FIRST_STEPS = 25  # iterations of the climb that finds the relevant features


@dataclass(frozen=True)
class Opening:
    """What the family that goes first shows of rows as they are, with heavy tails drawn in, or with features bent.

    Parameters
    ----------
    rows : Rows
    seen : str
        What was done to their features, in words.
    first : Candidate
        With one width for all features, on few rows.
    guide : Candidate
        With a scale per feature where there are enough rows, judged on more.
    """

    rows: Rows
    seen: str
    first: Candidate
    guide: Candidate


def opened(every: Rows, view: View, order: np.ndarray, lead: Family, many: bool) -> Opening:
    """What a family shows of the first rows of an order in a view, with a scale per feature where there are ``many``."""
    squash, seen = view.squash, ""
    if squash is not None:
        every, seen = every.seen_as(view), f"; heavy tails of {np.isfinite(squash).all(axis=1).sum()} features are drawn in"
    few, more = (every.take(order[:rows]) for rows in (FEW_ROWS, MORE_ROWS))
    first = few.best_width(lead)
    guide = more.judge(few.learned(first, "evidence", FIRST_STEPS) if many else first)
    return Opening(every, seen, first, first if guide is None else guide)


def warped(every: Rows, order: np.ndarray, before: Opening) -> Opening | None:
    """The same with features bent as the evidence prefers; None where none can be."""
    found = bent(every, order[:FEW_ROWS], before.guide)
    if found is None:
        return None
    rows, start = found
    few, more = (rows.take(order[:size]) for size in (FEW_ROWS, MORE_ROWS))
    first, guide = few.judge(replace(before.first, view=rows.view)), more.judge(start)
    seen = f"; {np.isfinite(rows.view.squash).all(axis=1).sum()} features are bent"  # type: ignore[arg-type]
    return None if first is None or guide is None else Opening(rows, seen, first, guide)
