"""A last candidate for classes: features that keep their own unit, judged by the log loss of left-out rows.

Standardised features count the same, however little they vary. Pixels, bits and counts share a unit; in it a feature counts as
much as it varies, and those that are nearly constant say next to nothing. Such a kernel has one width to be learned instead of
one per feature. Squared errors do not do it justice: learned scales make many small errors smaller, and few large ones larger,
which is what the log loss counts. On digits (validation rows) it has half of the log loss that learned scales have.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kstonet.problem import Problem
from kstonet.solvers.softmax import log_proba
from kstonet.targets import ClassTargets
from kstonet.tuning.automatic import FEW_ROWS, MOST_ROWS
from kstonet.tuning.choice import Choice
from kstonet.tuning.judging import WIDTHS, Candidate, Rows
from kstonet.tuning.screening_ridge import RidgeFit, best_ridge, ridge_fit
from kstonet.tuning.stationary import FAMILIES, Family
from kstonet.uncertainty.logits import best_temperature

TRIED = ("rbf", "matern52")
LEAST_RANGE = 1.5  # ratio of the largest to the smallest spread; below it, the unit makes no difference
SCALE = 10.0  # of scores as logits, before the best temperature is looked for within its bounds


def with_shared_unit(problem: Problem, columns: np.ndarray, found: Choice, names: tuple[str, ...], seed: int) -> Choice:
    """The choice, or a kernel in the unit that the features share, whichever has the smaller log loss.

    Parameters
    ----------
    problem : Problem
        Training rows of classes.
    columns : ndarray of shape (n, k)
        Those that kernels are judged by.
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
    targets, spread = problem.targets, problem.scaler.scale
    assert isinstance(targets, ClassTargets)
    one_each = columns.shape[1] == targets.contrasts(problem.outputs[:1]).shape[1] and not targets.ordinal
    if not (one_each and found.signal) or spread.max() < LEAST_RANGE * spread.min():
        return found
    order = np.random.default_rng(seed).permutation(len(columns))
    every = Rows(problem.X, columns, problem.weights)
    few, most = every.take(order[:FEW_ROWS]), every.take(order[:MOST_ROWS])
    codes = problem.outputs[order[:MOST_ROWS]]
    unit = spread / np.sqrt(np.mean(spread**2))
    starts = [_best_width(few, FAMILIES[name], unit) for name in TRIED if name in names]
    judged = [most.judge(start) for start in starts if start is not None]
    ranked = [(left_out_log_loss(most, one.fit, codes), one) for one in judged if one is not None]
    kernel, ridge = found.kernels[0], found.ridges[0]
    present = ridge_fit(np.asarray(kernel(most.X, most.X)), most.Y, ridge, most.weights)
    if not ranked or present is None:
        return found
    loss, best = min(ranked, key=lambda pair: pair[0])
    before = left_out_log_loss(most, present, codes)
    if loss >= before:
        return replace(found, table=[*found.table, best.row()])
    best = most.with_best_ridge(best)
    reason = (
        f"{best.family.name} in the unit that the features share, ridge {best.fit.ridge:.3g}: a log loss of {loss:.3g} on "
        f"{len(codes)} rows that were left out, {before:.3g} with standardised features ({found.reason})"
    )
    fit = best.fit
    only = {"kernels": (best.kernel,), "ridges": (fit.ridge,), "strengths": (fit.strength,), "noises": (fit.root,)}
    return replace(found, **only, table=[*found.table, best.row()], reason=reason)  # type: ignore[arg-type]


def left_out_log_loss(rows: Rows, fit: RidgeFit, codes: np.ndarray) -> float:
    """Log loss of the left-out values of a ridge regression on indicators, as logits at their best temperature."""
    logits = SCALE * (rows.Y - fit.errors)
    if logits.shape[1] == 1:
        logits = np.column_stack([np.zeros(len(logits)), logits])
    log_p = log_proba(logits / best_temperature(logits, codes, rows.weights))
    return float(-np.average(log_p[np.arange(len(codes)), codes], weights=rows.weights))


def _best_width(rows: Rows, family: Family, unit: np.ndarray) -> Candidate | None:
    """One width for all features; very small and very large ones are left to learned scales."""
    typical = family.width(rows.X, unit)
    tried = []
    for width in WIDTHS[1:4]:
        scales = unit / (typical * width)
        fit = best_ridge(family.matrix(rows.X, scales), rows.Y, rows.weights)
        if fit is not None:
            tried.append(Candidate(family, scales, "shared unit", fit, np.log(scales)))
    return min(tried, key=lambda one: one.score, default=None)
