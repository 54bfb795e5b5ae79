"""A choice that is made again without parts of the rows: all of these choices share the first layer.

What is chosen from few rows fits these rows: with a length scale per feature, other rows of the same table give another kernel.
The mean of the regressions that several choices lead to errs less than the one whose choice knows all rows. A choice counts by
one over its mean squared leave-one-out error on all rows, to a power that grows with their number (as in a pseudo-likelihood):
the more rows, the less say has one that missed what the others saw. On 15 benchmark sets (training rows) and 36 to 90 other
real tables, errors on other rows fell to 0.97 and 0.99 of those of one choice at 120 rows and five parts, to 0.98 and 0.99 at
250 rows and three, to 0.99 and 0.99 at 450 rows, to 0.99 and 0.997 at 950 rows and two parts (geometric means without the tenth
of the tables at either end).

The same choices say by how much left-out residuals are too small, without any further training: at rows that a choice has not
seen, its residuals are as large as those of new rows, and at the others they are smaller by what the choice fits. So they also
say whether the mean is better at all: its left-out errors may be larger than those of the choice that has seen all rows, by
what that fits more and by two standard errors. Beyond that the latter stays alone. (Half of the cells of a grid of designs show
another function than all of them.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kstonet._words import counted
from kstonet.gram import Kernel
from kstonet.gram.base import EVERY_ROW
from kstonet.tuning.choice import Choice
from kstonet.tuning.contest import MOST_ROWS
from kstonet.tuning.relevance_gradient import SINGLE_FROM
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.spread import by_target

FEW_ROWS, FEW_PARTS = 200, 5  # of fewer rows, each of so many parts is hidden in turn
MIDDLE_ROWS, MIDDLE_PARTS = 600, 3
PARTS, MOST_JOINED = 2, 1_000  # of more rows, up to so many: at 1,400 rows errors fell by 0.3 %, for twice the time of a fit,
FEW_PER_SCALE, MANY_ROWS = 40, 2_400  # or, up to so many, where they are few for the features
FEWEST_ROWS = 10  # fewer have nothing to choose by
TEMPERED = 250  # rows that make one power of the mean squared errors by which choices count
CLEARLY = 2.0  # standard errors
LARGEST_GROWTH = 2.0
# Fewer rows are fitted so much that only residuals at hidden rows count, of single choices: 90 % intervals of 20 rows of
# Friedman's function with eight features then cover 87 %, 75 % otherwise; of 32 rows 94 %.
TINY_ROWS, LARGEST_OF_TINY = 50, 5.0
EXACT = 1e-30  # squared error of standardised targets that is none


def parts_to_hide(n: int, n_scales: int = 1, *, joined: bool = True) -> int:
    """How many parts of the rows are hidden from a choice in turn; 0 where the rows are enough for one, or too few for any.

    Parameters
    ----------
    n : int
        Rows.
    n_scales : int
        Features whose relevance is chosen.
    joined : bool
        Whether the choices share the first layer. Otherwise they only say by how much left-out errors are too small, which from
        ``MIDDLE_ROWS`` on matters where rows are few for the features.

    Examples
    --------
    >>> [parts_to_hide(n) for n in (12, 50, 300, 1000, 2000)], parts_to_hide(2000, n_scales=100)
    ([0, 5, 3, 2, 0], 2)
    >>> parts_to_hide(300, joined=False), parts_to_hide(1000, joined=False)
    (3, 0)
    """
    wide = min(n, MOST_ROWS) < FEW_PER_SCALE * n_scales and n < MANY_ROWS
    enough = n > MOST_JOINED if joined else n >= MIDDLE_ROWS
    if enough and not wide:
        return 0
    parts = FEW_PARTS if n < FEW_ROWS else MIDDLE_PARTS if n < MIDDLE_ROWS else PARTS
    return parts if n - n / parts >= FEWEST_ROWS else 0


@dataclass(frozen=True)
class _Member:
    """One of the choices, with what the mean of its regressions shows on all rows."""

    choice: Choice
    errors: np.ndarray  # leave-one-out errors (n, k)
    square: float  # their mean square

    @property
    def sizes(self) -> np.ndarray:
        """Absolute errors of the rows, (n,): few large ones do not decide their mean."""
        return _sizes(self.errors)


def joined_choice(
    choose: Callable[[np.ndarray], Choice], X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, parts: int, most: int
) -> Choice:
    """The choice from all rows, joined by those that are made without one part of them.

    Parameters
    ----------
    choose : callable
        Makes a choice from the rows of these numbers.
    X : ndarray of shape (n, p)
        Standardised features, or kernel values (n, n).
    Y : ndarray of shape (n, k)
        Standardised targets.
    weights : ndarray of shape (n,), optional
        Weights of the rows, all positive.
    parts : int
        Number of parts.
    most : int
        How many kernels may share the first layer. With one, the choice from all rows stays alone, and the others only say by
        how much its left-out errors are too small.

    Returns
    -------
    Choice
        Its ``growth`` says how many times larger errors of new rows are than left-out errors.
    """
    every, part_of = np.arange(len(Y)), np.empty(len(Y), dtype=int)
    part_of[by_target(Y)] = every % parts
    first = choose(every)
    if not first.signal:  # the mean of the targets, which fits nothing
        return first
    alone = _judged(first, X, Y, weights)
    made = [_judged(choose(every[part_of != part]), X, Y, weights) for part in range(parts)]
    others = [(part, one) for part, one in enumerate(made) if one is not None]
    if alone is None or not others:
        return first
    hidden = np.array([_mean(one.sizes, weights, part_of == part) for part, one in others])
    gaps = hidden - [_mean(one.sizes, weights, part_of != part) for part, one in others]
    fitted = max(float(np.average(gaps, weights=_shares([one for _, one in others]))), 0.0)
    chosen, together, seen = first, alone.sizes, 1.0
    if most > 1:
        members = [alone, *(one for _, one in others)]
        shares = _shares(members)
        sizes = _sizes(np.tensordot(shares, [one.errors for one in members], axes=1))
        unseen = shares[1:].sum() / parts
        if _mean(sizes - alone.sizes, weights) <= unseen * fitted + CLEARLY * _standard_error(sizes - alone.sizes, weights):
            chosen, together, seen = _together(members, shares, most), sizes, 1.0 - unseen
    size = max(_mean(together, weights), EXACT)
    if len(Y) < TINY_ROWS:
        return replace(chosen, growth=float(np.clip(hidden.mean() / size, 1.0, LARGEST_OF_TINY)))
    return replace(chosen, growth=min(1.0 + seen * fitted / size, LARGEST_GROWTH))


def _judged(choice: Choice, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> _Member | None:
    """A choice with its errors on all rows; None where a kernel is singular on them."""
    errors = np.zeros(Y.shape)
    for kernel, ridge, share in zip(choice.kernels, choice.ridges, choice.parts, strict=False):
        values = X if kernel.precomputed else np.asarray(kernel(X, X))
        fit = ridge_fit(values, Y, ridge, weights, single_from=SINGLE_FROM)
        if fit is None:
            return None
        errors += share * fit.errors
    return _Member(choice, errors, float(np.average((errors**2).mean(axis=1), weights=weights)))


def _shares(members: Sequence[_Member]) -> np.ndarray:
    """What each of the choices counts, together one."""
    n = len(members[0].errors)
    logs = -max(1.0, n / TEMPERED) * np.log([max(one.square, EXACT) for one in members])
    shares = np.exp(logs - logs.max())
    return np.asarray(shares / shares.sum())


def _sizes(errors: np.ndarray) -> np.ndarray:
    return np.asarray(np.abs(errors).mean(axis=1))


def _mean(values: np.ndarray, weights: np.ndarray | None, rows: np.ndarray | slice = EVERY_ROW) -> float:
    return float(np.average(values[rows], weights=None if weights is None else weights[rows]))


def _standard_error(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Of their mean."""
    own = np.full(len(values), 1.0 / len(values)) if weights is None else weights / weights.sum()
    return float(np.sqrt(np.sum((own * (values - own @ values)) ** 2)))


def _together(members: Sequence[_Member], shares: np.ndarray, most: int) -> Choice:
    """The kernels of all choices, by their shares; of more than ``most`` those that have the largest."""
    first = members[0].choice
    found: dict[tuple[Kernel, float], list[float]] = {}  # share, strength, noise
    for member, share in zip(members, shares, strict=True):
        own = member.choice
        each = zip(own.kernels, own.ridges, own.strengths, own.noises, own.parts, strict=False)
        for kernel, ridge, strength, noise, part in each:
            found.setdefault((kernel, ridge), [0.0, strength, noise])[0] += float(share) * part
    kept = sorted(found.items(), key=lambda one: -one[1][0])[:most]
    total = sum(share for _, (share, _, _) in kept)
    others = counted(len(members) - 1, "choice")
    return replace(
        first,
        kernels=tuple(kernel for (kernel, _), _ in kept),
        ridges=tuple(ridge for (_, ridge), _ in kept),
        strengths=tuple(strength for _, (_, strength, _) in kept),
        noises=tuple(noise for _, (_, _, noise) in kept),
        shares=tuple(share / total for _, (share, _, _) in kept),
        reason=f"{first.reason}; with {others} without a part of the rows: {counted(len(kept), 'kernel')}",
    )
