"""What an automatic choice comes to: the best candidates alone, or several that are better together."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from kstonet.tuning.choice import Choice
from kstonet.tuning.judging import Candidate, Rows
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.stacking import greedy_stack

SIGNAL, SIGNAL_FOR_CLASSES = 1.0, 0.0  # standard errors by which the best candidate has to be better than the mean
ROUNDING = 5e-4  # of the loss of the mean: factors in float32 do not tell a smaller gain from none
NO_SIGNAL = 1e3  # ridge where nothing is better than the mean
PICKS = 20  # of candidates that are better together: as many as a regression has units


def choice_of(best: list[Candidate], rows: Rows, seen: str, table: list[dict[str, Any]]) -> Choice:
    """The best two, unless the mean of the targets is as good.

    A signal that is missed costs more than one that is not there (``benchmarks/weak_signals.py``): with two standard errors
    asked for, real tables of 60 rows lost up to a tenth of the error or of the log loss, and intervals of probabilities that
    were taken for constant held half of the true ones. Where there is no signal at all, 60 rows cost less than a hundredth of
    the error, and up to a fourteenth of the log loss.
    """
    first = best[0]
    n = len(rows.Y)
    if rows.loss is None:
        mean = np.average(rows.Y, axis=0, weights=rows.weights)
        constant = (((rows.Y - mean) * n / max(n - 1, 1)) ** 2).mean(axis=1)  # left out of its own mean
        own = (first.fit.errors**2).mean(axis=1)
    else:  # squared errors can be large where the log loss is small
        constant, own = rows.loss.of_rows(np.zeros_like(rows.Y), rows.weights)[1], np.asarray(first.fit.losses)
    gain = constant - own
    alone = float(np.average(constant, weights=rows.weights))
    table.append(
        {"kernel": "constant", "gamma": None, "relevance": "none", "ridge": np.inf, "score": alone, "rows": n}
    )  # fmt: skip
    needed = SIGNAL if rows.loss is None else SIGNAL_FOR_CLASSES
    signal = bool(np.average(gain, weights=rows.weights) > max(needed * gain.std() / np.sqrt(n), ROUNDING * alone))
    if not signal:
        best = [
            replace(one, fit=fit)
            for one in best[:1]
            if (fit := ridge_fit(one.family.matrix(rows.X, one.scales), rows.Y, NO_SIGNAL, rows.weights, rows.loss))
        ]
    tried = len(table)
    by, of = ("error", "the variance of the targets") if rows.loss is None else ("log loss", "that of the class frequencies")
    reason = (
        f"{first.family.name}, relevance of features: {first.relevance}, ridge {first.fit.ridge:.3g}: the smallest "
        f"leave-one-out {by} of {tried} candidates, {first.fit.score:.3g} of {of} on {n} rows{seen}"
    )
    if not signal:
        reason = f"no kernel of {tried} candidates is better than the mean of the targets on {n} rows"
    return Choice(
        kernels=tuple(one.kernel for one in best),
        ridges=tuple(one.fit.ridge for one in best),
        strengths=tuple(one.fit.strength for one in best),
        noises=tuple(one.fit.root for one in best),
        signal=signal,
        table=table,
        reason=reason,
    )


def stacked_choice(alone: Choice, candidates: list[Candidate], rows: Rows, together: int, worth: float) -> Choice:
    """The choice of up to so many candidates that are better together, where they are worth it.

    Parameters
    ----------
    alone : Choice
        The choice of the best one.
    candidates : list of Candidate
        Judged on the same rows.
    rows : Rows
    together : int
    worth : float
        Share of the squared error by which they have to be better than the best of them.

    Returns
    -------
    Choice
    """
    stack = greedy_stack(candidates, rows, PICKS, together)
    best = min((one for one, _ in stack), key=lambda one: one.score)
    if worth and _error(stack, rows) > (1.0 - worth) * best.score:
        return replace(_stacked(alone, [(best, PICKS)], rows), shares=(1.0,))
    return _stacked(alone, stack, rows)


def _error(stack: list[tuple[Candidate, int]], rows: Rows) -> float:
    """Mean squared leave-one-out error of candidates together, judged on some rows."""
    together = np.average([one.fit.errors for one, _ in stack], axis=0, weights=[times for _, times in stack])
    return float(np.average((together**2).mean(axis=1), weights=rows.weights))


def _stacked(alone: Choice, stack: list[tuple[Candidate, int]], rows: Rows) -> Choice:
    """The choice of several kernels that are better together, or of one that is better than the best alone was."""
    members = [one for one, _ in stack]
    shares = tuple(times / PICKS for _, times in stack)
    if members[0].kernel == alone.kernel and len(members) == 1:
        return alone
    if len(members) == 1:
        return replace(
            alone,
            kernels=(members[0].kernel, alone.kernel),
            ridges=(members[0].fit.ridge, alone.ridges[0]),
            strengths=(members[0].fit.strength, alone.strengths[0]),
            noises=(members[0].fit.root, alone.noises[0]),
            reason=f"{alone.reason}; {members[0].family.name} ({members[0].relevance}) errs less: {_error(stack, rows):.3g}",
        )
    names = ", ".join(f"{share:.0%} {one.family.name} ({one.relevance})" for one, share in zip(members, shares, strict=True))
    return replace(
        alone,
        kernels=tuple(one.kernel for one in members),
        ridges=tuple(one.fit.ridge for one in members),
        strengths=tuple(one.fit.strength for one in members),
        noises=tuple(one.fit.root for one in members),
        shares=shares,
        reason=f"{alone.reason}; together {names} err less: {_error(stack, rows):.3g}",
    )
