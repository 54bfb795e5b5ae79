"""A last candidate for classes: features that keep their own unit, judged by the log loss of left-out rows like the others.

Standardised features count the same, however little they vary. Pixels, bits and counts share a unit; in it a feature counts as
much as it varies, and those that are nearly constant say next to nothing. Such a kernel has one width to be learned instead of
one per feature. On digits (validation rows) it has half of the log loss that learned scales have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kstonet.problem import Problem
from kstonet.tuning.automatic import FEW_ROWS, MOST_ROWS
from kstonet.tuning.choice import Choice
from kstonet.tuning.judging import WIDTHS, Candidate, Rows
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.screening_ridge import best_ridge, ridge_fit
from kstonet.tuning.stationary import FAMILIES, Family

TRIED = ("rbf", "matern52")
LEAST_RANGE = 1.5  # ratio of the largest to the smallest spread; below it, the unit makes no difference


def with_shared_unit(
    problem: Problem, columns: np.ndarray, loss: LeftOutLogLoss, found: Choice, names: tuple[str, ...], seed: int
) -> Choice:
    """The choice, or a kernel in the unit that the features share, whichever has the smaller log loss.

    Parameters
    ----------
    problem : Problem
        Training rows of classes.
    columns : ndarray of shape (n, k)
        Those that kernels are judged by.
    loss : LeftOutLogLoss
        What judges them.
    found : Choice
        The automatic choice.
    names : tuple of str
        The families to choose from.
    seed : int
        Seed of the choice of rows.

    Returns
    -------
    Choice
    """
    spread = problem.scaler.scale
    if not found.signal or spread.max() < LEAST_RANGE * spread.min():
        return found
    order = np.random.default_rng(seed).permutation(len(columns))
    every = Rows(problem.X, columns, problem.weights, loss)
    few, most = every.take(order[:FEW_ROWS]), every.take(order[:MOST_ROWS])
    unit = spread / np.sqrt(np.mean(spread**2))
    starts = [_best_width(few, FAMILIES[name], unit) for name in TRIED if name in names]
    judged = [one for start in starts if start is not None and (one := most.judge(start)) is not None]
    kernel, ridge = found.kernels[0], found.ridges[0]
    present = ridge_fit(np.asarray(kernel(most.X, most.X)), most.Y, ridge, most.weights, most.loss)
    if not judged or present is None:
        return found
    best = min(judged, key=lambda one: one.score)
    if best.score >= present.score:
        return replace(found, table=[*found.table, best.row()])
    best = most.with_best_ridge(best)
    reason = (
        f"{best.family.name} in the unit that the features share, ridge {best.fit.ridge:.3g}: a log loss of {best.score:.3g} "
        f"on {len(most)} rows that were left out, {present.score:.3g} with standardised features ({found.reason})"
    )
    fit = best.fit
    only = {"kernels": (best.kernel,), "ridges": (fit.ridge,), "strengths": (fit.strength,), "noises": (fit.root,)}
    return replace(found, **only, table=[*found.table, best.row()], reason=reason)  # type: ignore[arg-type]


def _best_width(rows: Rows, family: Family, unit: np.ndarray) -> Candidate | None:
    """One width for all features; very small and very large ones are left to learned scales."""
    typical = family.width(rows.X, unit)
    tried = []
    for width in WIDTHS[1:4]:
        scales = unit / (typical * width)
        fit = best_ridge(family.matrix(rows.X, scales), rows.Y, rows.weights, loss=rows.loss)
        if fit is not None:
            tried.append(Candidate(family, scales, "shared unit", fit, np.log(scales)))
    return min(tried, key=lambda one: one.score, default=None)
