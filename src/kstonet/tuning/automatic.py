"""The automatic choice: kernel, width, relevance of the features and ridge, from the training rows, at a bounded price.

Every candidate is judged by the leave-one-out error of its kernel ridge regression (:mod:`~kstonet.tuning.screening_ridge`):

1. one family, in the middle between rough and smooth, with one width for all features and then with a scale per feature, by the
   evidence, on few rows; where features have heavy tails, also with these drawn in, and then with features bent as the
   evidence prefers (:mod:`~kstonet.tuning.warping`): the best of these ways is kept;
2. every other family from there: its own width, then a few steps of the evidence, for what is relevant to one family is nearly
   what is relevant to another;
3. the best of them by the evidence on more rows; where these are few for the features, also with the relevance that the
   gradients of a regression show, if it holds on rows it was not learned from (:mod:`~kstonet.tuning.sparse`);
4. the best of these by the leave-one-out error itself, on rows that the evidence has not seen, where there are enough of them,
   and half way between both;
5. what is left on all rows (up to a bound, which is higher for classes), with more and with less ridge;
6. for a regression, the best of them along directions instead of features (:mod:`~kstonet.tuning.directions`), and of all that
   was judged on these rows those that are best together (:mod:`~kstonet.tuning.stacking`).

Where no candidate is better than the mean of the targets, by more than luck, the answer is a kernel with so much ridge that
it nearly predicts the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from kstonet.gram.kernels.base import two_values
from kstonet.gram.memory import release_memory
from kstonet.threads import in_threads
from kstonet.tuning.choice import Choice
from kstonet.tuning.directions import along_gradients, feature_machine
from kstonet.tuning.heavy_tails import heavy_tails, telling
from kstonet.tuning.judging import Candidate, Rows, best_of_families
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.sparse import relevant_out_of_sample
from kstonet.tuning.spread import spread_order
from kstonet.tuning.stacking import greedy_stack
from kstonet.tuning.stationary import FAMILIES, Family
from kstonet.tuning.views import View
from kstonet.tuning.warping import bent

Work = Callable[[], Candidate | None]

FEW_ROWS, MIDDLE_ROWS, MORE_ROWS, MOST_ROWS = 400, 600, 800, 1600
THOROUGH_ROWS = 1000
MOST_ROWS_OF_CLASSES = 3200  # few rows decide a log loss: the last judgement of classes needs more of them
CLASS_ROWS = 1200  # the evidence of regressions on indicators misses much that the log loss of so many rows shows
ENOUGH_ROWS = 1500  # the leave-one-out error as a guide needs rows that have not been used yet: with 200 it misleads,
ENOUGH_PER_SCALE = 80  # unless there are few scales to be learned
PLENTY_PER_SCALE = 150  # where it may lead further than the evidence, which takes structure of a short range for noise
LEAD = "matern32"  # neither rough nor smooth: the family that says first what is relevant
FIRST_STEPS, NEXT_STEPS = 25, 8  # iterations of a climb: to find the relevant features, and to go on from there
PLENTY_STEPS = 20
MOST_FEATURES_ABSOLUTE = 64  # features of more than two values: sums of absolute differences are no matrix product
FINALISTS = 3
HOPEFUL = 1.5  # score over the best one up to which a family may still become the best
LAST = 2
FEWEST_PER_SCALE = 2.5  # rows per feature without which no scales are learned: one width for all features then
ENOUGH_FOR_SCALES, SAFE_PER_SCALE = 8, 20  # rows per feature below which learned scales have to be clearly better,
CLEARLY = 0.7  # in score, than one width for all features,
SIGNAL_SCORE = 0.8  # or where there are enough rows, than the mean of the targets, whose score is one
# The same for classes, in standard errors of the difference of log losses: at first not clearly worse, in the end better, with
# enough rows per scale by less.
HOPEFUL_FOR_CLASSES, CLEARLY_FOR_CLASSES, CLEARLY_WITH_MANY = -3.0, 3.0, 2.0
DRAWN_IN = 0.98  # score with heavy tails drawn in over that without, below which they are
WARPED = 0.95  # the same for features bent as the evidence prefers, which has learned two more numbers for each of them
SIGNAL, SIGNAL_FOR_CLASSES = 1.0, 0.0  # standard errors by which the best candidate has to be better than the mean
ROUNDING = 5e-4  # of the loss of the mean: factors in float32 do not tell a smaller gain from none
NO_SIGNAL = 1e3  # ridge where nothing is better than the mean
PICKS = 20  # of candidates that are better together: as many as a regression has units
MOST_FEATURES_TURNED = 100  # directions are a matrix of so many columns
MACHINES = ("matern32", "matern12", "rbf")  # families of recursive feature machines; the others of a thorough choice only


def automatic_choice(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    groups: np.ndarray | None = None,
    loss: LeftOutLogLoss | None = None,
    kernels: Sequence[str] = tuple(FAMILIES),
    thorough: bool = False,
    together: int = 1,
    worth: float = 0.0,
    directions: bool = False,
    n_jobs: int | None = None,
) -> Choice:
    """Kernel and ridge for standardised rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Standardised features.
    Y : ndarray of shape (n, k)
        Standardised targets; indicators of classes, standardised.
    weights : ndarray of shape (n,), optional
        Weights of the rows; rows of weight zero do not take part.
    groups : ndarray of int of shape (p,), optional
        Features of the same number share a length scale: the columns of a category.
    loss : LeftOutLogLoss, optional
        Judges the candidates by the log loss of left-out classes, where the columns are indicators of classes.
    kernels : sequence of str
        Names of the families to choose from.
    thorough : bool
        Whether the leave-one-out error guides the scales of all families, for more steps and on up to ``THOROUGH_ROWS`` rows,
        and more candidates along directions are tried: several times the price.
    together : int, default=1
        Up to how many kernels may be chosen that are better together than the best alone.
    worth : float, default=0.0
        Share of the squared error by which they have to be better. Where it is not zero, the best is alone otherwise, and does
        not take turns with the second best.
    directions : bool, default=False
        Whether kernels along directions instead of features are tried where one kernel is chosen; with several they always are.
    n_jobs : int, optional
        Number of threads, as in joblib; the result does not depend on it.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> choice = automatic_choice(X, np.sin(2 * X[:, :1]) / 0.7)
    >>> choice.signal, choice.kernel.length_scale[1] > 3 * choice.kernel.length_scale[0]
    (True, True)
    """
    every = Rows(np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64), weights, loss, groups=groups)
    if weights is not None:
        every = every.take(np.flatnonzero(weights > 0))
    n, p = every.X.shape
    order = spread_order(every.Y)
    table: list[dict[str, Any]] = []

    def together_done(*groups: Sequence[Work]) -> list[list[Candidate]]:
        """What comes out of each group, the best first; a kernel whose matrix is singular does not. All share the threads."""
        made = in_threads(lambda work: work(), [work for group in groups for work in group], n_jobs)
        release_memory()  # every thread keeps the matrices that it has freed
        left = iter(made)
        found = [[one for one in islice(left, len(group)) if one is not None] for group in groups]
        for group in found:
            group.sort(key=lambda one: one.score)
            table.extend(one.row() for one in group)
        return found

    def each(work: Callable[[Any], Candidate | None], items: Iterable[Any]) -> list[Candidate]:
        return together_done([partial(work, item) for item in items])[0]

    asked = [FAMILIES[name] for name in kernels]
    looped = np.count_nonzero(~two_values(every.X).which)
    families = [family for family in asked if not family.absolute or looped <= MOST_FEATURES_ABSOLUTE] or asked
    lead = next((family for family in families if family.name == LEAD), families[0])
    scales = every.n_scales
    per_scale = min(n, MOST_ROWS) / scales  # of the rows that scales are learned from
    many = per_scale >= FEWEST_PER_SCALE
    tails = heavy_tails(every.X)
    views = [View()] if tails is None else [View(), View.drawn_in(telling(every.X), tails)]
    last_rows = max(THOROUGH_ROWS, CLASS_ROWS)
    final_rows = MOST_ROWS if loss is None else MOST_ROWS_OF_CLASSES
    if n > final_rows + last_rows:  # no others are used
        every = every.take(np.concatenate([order[:final_rows], order[-last_rows:]]))
        order = np.arange(len(every))
    openings = in_threads(lambda view: opened(every, view, order, lead, many), views, n_jobs)
    opening, drawn_in = openings[0], openings[-1]
    if drawn_in.guide.score < DRAWN_IN * opening.guide.score:
        opening = drawn_in
    if many and loss is None:
        warped = _warped(every, order, opening)
        if warped is not None:
            openings.append(warped)
            if warped.guide.score < WARPED * opening.guide.score:
                opening = warped
    every, first, guide = opening.rows, opening.first, opening.guide
    few, more, most, final = (every.take(order[:rows]) for rows in (FEW_ROWS, MORE_ROWS, MOST_ROWS, final_rows))
    table.extend(one.row() for each_of in openings for one in (each_of.first, each_of.guide))
    plain = [first, *each(lambda family: few.best_width(family, first), [family for family in families if family is not lead])]
    learned: list[Candidate] = []
    if many:

        def after_lead(start: Candidate) -> Candidate | None:
            start = replace(start, scales=start.scales * (guide.scales / first.scales), fit=guide.fit)
            return more.judge(few.learned(start, "evidence", NEXT_STEPS))

        learned = sorted([guide, *each(after_lead, plain[1:])], key=lambda one: one.score)
    plain.sort(key=lambda one: one.score)
    if n > FEW_ROWS:
        plain = each(more.judge, plain[:FINALISTS])
    if loss is None:
        learned = _trusted(learned, plain, per_scale)
    else:
        learned = [one for one in learned if _ahead(one, plain[0]) > HOPEFUL_FOR_CLASSES]
    axes, all_families = learned, thorough and together > 1
    if n > FEW_ROWS and learned:
        hopeful = learned if all_families else _hopeful(learned[:LAST])
        learned = each(lambda start: more.judge(more.learned(start, "evidence", NEXT_STEPS)), hopeful)
    sparse: list[Candidate] = []
    if loss is None and per_scale < SAFE_PER_SCALE:
        euclidean = [one for one in plain if not one.family.absolute]
        sparse = each(lambda one: relevant_out_of_sample(more, one.family, one), euclidean[:LAST])
    finalists = best_of_families([*learned, *plain, *sparse])
    plenty = thorough or n >= PLENTY_PER_SCALE * (scales + 1)
    enough = n >= ENOUGH_ROWS or n >= ENOUGH_PER_SCALE * (scales + 1) or (all_families and n > FEW_ROWS)

    def along(found: tuple[np.ndarray, Candidate] | None) -> Candidate | None:
        """A candidate along directions instead of features."""
        return None if found is None else most.turned(found[0]).judge(found[1])

    def seen_otherwise(other: Opening) -> Candidate | None:
        """The guide of another opening: features as the best single candidate does not see them."""
        rows, all_rows = (other.rows.take(order[:size]) for size in (MORE_ROWS, MOST_ROWS))
        return all_rows.judge(rows.learned(other.guide, "evidence", NEXT_STEPS))

    machines: list[Work] = []
    aside: list[Work] = []
    if (together > 1 or directions) and finalists[0].score < 1.0:  # that of the mean of the targets
        euclidean = [one for one in (*learned, *axes) if not one.family.absolute]
        if euclidean and p <= MOST_FEATURES_TURNED:
            names = [name for name in (MACHINES if thorough else MACHINES[:1]) if name in kernels]
            machines = [lambda name=name: along(feature_machine(more, FAMILIES[name], first)) for name in names]  # type: ignore[misc]
            aside.append(lambda: along(along_gradients(more, euclidean[0])))
        if many:
            aside += [partial(seen_otherwise, one) for one in openings if one is not opening]
    polish: list[Work] = []
    if many and (learned or loss is None) and enough:
        better = loss is not None and any(_ahead(one, plain[0]) > 0.0 for one in learned)  # worth the price of more
        if not all_families:
            finalists = _hopeful(finalists[: FINALISTS if plenty or better else LAST])
        rows = THOROUGH_ROWS if thorough else MIDDLE_ROWS if plenty else MORE_ROWS
        if loss is not None and not thorough:
            rows = max(rows, min(SAFE_PER_SCALE * scales, CLASS_ROWS)) if better else MIDDLE_ROWS
        last = every.take(order[-rows:])
        steps = PLENTY_STEPS if plenty else NEXT_STEPS
        polish = [lambda start=start: most.judge(last.learned(start, "loo", steps)) for start in finalists]  # type: ignore[misc]
    by_machines, polished, others = together_done(machines, polish, aside)  # what takes longest goes first
    others = by_machines + others
    if polish:
        of_family = {one.family.name: one for one in finalists}
        blends = [of_family[one.family.name].blended(one) for one in polished]
        unseen = finalists if n > MORE_ROWS else []
        judged = each(most.judge, [*blends, *unseen])
        finalists = [*polished, *judged, *([] if unseen else finalists)]

    def settled(one: Candidate) -> Candidate | None:
        if loss is not None:
            return final.with_best_ridge(one)
        found = more.with_best_ridge(one)
        judged = found.fit.ridge == one.fit.ridge and len(one.fit.coef) == len(most)
        return one if judged else most.judge(found) if n > MORE_ROWS else found

    best = each(settled, best_of_families(finalists)[:LAST])
    if loss is not None and best[0].relevance != "none":
        needed = CLEARLY_WITH_MANY if per_scale >= ENOUGH_PER_SCALE else CLEARLY_FOR_CLASSES
        best = _clearly_better(best, each(settled, plain[:LAST]), needed)
    chosen = _choice(best, final, opening.seen, table)
    if (together == 1 and not directions) or not chosen.signal:
        return chosen

    def on_most(one: Candidate) -> Candidate | None:
        return one if len(one.fit.coef) == len(most) else most.judge(one)

    stack = greedy_stack([*best, *each(on_most, finalists), *others], most, PICKS, together)
    alone = min((one for one, _ in stack), key=lambda one: one.score)
    if worth and _error(stack, most) > (1.0 - worth) * alone.score:
        return replace(_stacked(chosen, [(alone, PICKS)], most), shares=(1.0,))
    return _stacked(chosen, stack, most)


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


def _warped(every: Rows, order: np.ndarray, before: Opening) -> Opening | None:
    """The same with features bent as the evidence prefers; None where none can be."""
    found = bent(every, order[:FEW_ROWS], before.guide)
    if found is None:
        return None
    rows, start = found
    few, more = (rows.take(order[:size]) for size in (FEW_ROWS, MORE_ROWS))
    first, guide = few.judge(replace(before.first, view=rows.view)), more.judge(start)
    seen = f"; {np.isfinite(rows.view.squash).all(axis=1).sum()} features are bent"  # type: ignore[arg-type]
    return None if first is None or guide is None else Opening(rows, seen, first, guide)


def _hopeful(candidates: list[Candidate]) -> list[Candidate]:
    """Those, the best first, that may still become the best."""
    return [one for one in candidates if one.score <= HOPEFUL * candidates[0].score]


def _trusted(learned: list[Candidate], plain: list[Candidate], per_scale: float) -> list[Candidate]:
    """The candidates with a scale per feature that are not merely lucky: many scales fit few rows, and so do their errors."""
    if per_scale >= SAFE_PER_SCALE:
        return learned
    weakest = SIGNAL_SCORE if per_scale >= ENOUGH_FOR_SCALES else 0.0
    return [one for one in learned if one.score <= max(CLEARLY * plain[0].score, weakest)]


def _clearly_better(best: list[Candidate], plain: list[Candidate], needed: float) -> list[Candidate]:
    """The candidates for classes with a scale per feature that are so many standard errors ahead of one width; else the latter.

    A log loss is decided by few rows, and scales that were learned with these rows fit them: on validation rows of small tables
    such a kernel with two thirds of the left-out loss had twice the loss on new rows. On 42 draws of 20 tables, 200 to 2,000
    rows, it was worse on new rows in 1 of 19 cases where it was three standard errors ahead, in 1 of 7 with two to three, and
    in 10 of 16 with less.
    """
    return [one for one in best if one.relevance == "none" or _ahead(one, plain[0]) > needed] or plain


def _ahead(one: Candidate, rival: Candidate) -> float:
    """By how many standard errors the log loss of a candidate for classes is below that of another on the same rows."""
    gain = np.subtract(rival.fit.losses, one.fit.losses)  # type: ignore[arg-type]
    return float(gain.mean() / max(gain.std() / np.sqrt(len(gain)), 1e-12))


def _choice(best: list[Candidate], rows: Rows, seen: str, table: list[dict[str, Any]]) -> Choice:
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
