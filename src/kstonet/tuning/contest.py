"""The steps of an automatic choice: how candidates go on from few rows to all (:mod:`kstonet.tuning.automatic` says why)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from typing import Any

import numpy as np

from kstonet.gram.kernels.base import two_values
from kstonet.gram.memory import release_memory
from kstonet.threads import in_threads
from kstonet.tuning.directions import along_gradients, feature_machine
from kstonet.tuning.heavy_tails import heavy_tails, telling
from kstonet.tuning.judging import Candidate, Rows, ahead, best_of_families
from kstonet.tuning.opening import FEW_ROWS, LEAD, MORE_ROWS, Opening, opened, warped
from kstonet.tuning.sparse import relevant_out_of_sample
from kstonet.tuning.spread import spread_order
from kstonet.tuning.stationary import FAMILIES, Family
from kstonet.tuning.views import View

Work = Callable[[], Candidate | None]

MIDDLE_ROWS, MOST_ROWS = 600, 1600
THOROUGH_ROWS = 1000
MOST_ROWS_OF_CLASSES = 3200  # few rows decide a log loss: the last judgement of classes needs more of them
CLASS_ROWS = 1200  # the evidence of regressions on indicators misses much that the log loss of so many rows shows
ENOUGH_ROWS = 1500  # the leave-one-out error as a guide needs rows that have not been used yet: with 200 it misleads,
ENOUGH_PER_SCALE = 80  # unless there are few scales to be learned
PLENTY_PER_SCALE = 150  # where it may lead further than the evidence, which takes structure of a short range for noise
NEXT_STEPS, PLENTY_STEPS = 8, 20  # iterations of a climb that goes on from relevant features
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
MOST_FEATURES_TURNED = 100  # directions are a matrix of so many columns
MACHINES = ("matern32", "matern12", "rbf")  # families of recursive feature machines; the others of a thorough choice only


class Contest:
    """Candidates on their way from few rows to all; every step returns those that go on.

    Parameters
    ----------
    every : Rows
    kernels, thorough, n_jobs
        As in :func:`~kstonet.tuning.automatic.automatic_choice`.
    several : bool
        Whether several kernels may be chosen together.
    """

    def __init__(self, every: Rows, kernels: Sequence[str], *, thorough: bool, several: bool, n_jobs: int | None) -> None:
        self.kernels, self.thorough, self.n_jobs = kernels, thorough, n_jobs
        self.all_families = thorough and several
        self.table: list[dict[str, Any]] = []
        self.classes = every.loss is not None
        self.n, self.n_features = every.X.shape
        self.n_scales = every.n_scales
        self.per_scale = min(self.n, MOST_ROWS) / self.n_scales  # of the rows that scales are learned from
        self.many = self.per_scale >= FEWEST_PER_SCALE
        asked = [FAMILIES[name] for name in kernels]
        looped = np.count_nonzero(~two_values(every.X).which)
        self.families = [family for family in asked if not family.absolute or looped <= MOST_FEATURES_ABSOLUTE] or asked
        self.lead = next((family for family in self.families if family.name == LEAD), self.families[0])
        tails = heavy_tails(every.X)
        views = [View()] if tails is None else [View(), View.drawn_in(telling(every.X), tails)]
        self.order = spread_order(every.Y)
        last_rows, final_rows = max(THOROUGH_ROWS, CLASS_ROWS), MOST_ROWS_OF_CLASSES if self.classes else MOST_ROWS
        if self.n > final_rows + last_rows:  # no others are used
            every = every.take(np.concatenate([self.order[:final_rows], self.order[-last_rows:]]))
            self.order = np.arange(len(every))
        self.openings, self.opening = self._opened(every, views)
        self.every = self.opening.rows
        sizes = (FEW_ROWS, MORE_ROWS, MOST_ROWS, final_rows)
        self.few, self.more, self.most, self.final = (self.every.take(self.order[:size]) for size in sizes)

    def _opened(self, every: Rows, views: list[View]) -> tuple[list[Opening], Opening]:
        """All openings, and the best of them, in doubt that of the rows as they are."""
        openings = in_threads(lambda view: opened(every, view, self.order, self.lead, self.many), views, self.n_jobs)
        opening, drawn_in = openings[0], openings[-1]
        if drawn_in.guide.score < DRAWN_IN * opening.guide.score:
            opening = drawn_in
        if self.many and not self.classes:
            bent = warped(every, self.order, opening)
            if bent is not None:
                openings.append(bent)
                if bent.guide.score < WARPED * opening.guide.score:
                    opening = bent
        self.table.extend(one.row() for each_of in openings for one in (each_of.first, each_of.guide))
        return openings, opening

    # -- work --------------------------------------------------------------------------------------------------------------

    def done(self, *groups: Sequence[Work]) -> list[list[Candidate]]:
        """What comes out of each group, the best first; a kernel whose matrix is singular does not. All share the threads."""
        made = in_threads(lambda work: work(), [work for group in groups for work in group], self.n_jobs)
        release_memory()  # every thread keeps the matrices that it has freed
        left = iter(made)
        found = [[one for one in islice(left, len(group)) if one is not None] for group in groups]
        for group in found:
            group.sort(key=lambda one: one.score)
            self.table.extend(one.row() for one in group)
        return found

    def each(self, work: Callable[[Any], Candidate | None], items: Iterable[Any]) -> list[Candidate]:
        """What comes out of the same work for each of some items, the best first."""
        return self.done([partial(work, item) for item in items])[0]

    # -- steps -------------------------------------------------------------------------------------------------------------

    def on_few_rows(self) -> tuple[list[Candidate], list[Candidate]]:
        """Every family with one width for all features, and those that are worth it with a scale per feature."""
        first, guide = self.opening.first, self.opening.guide
        rivals = [family for family in self.families if family is not self.lead]
        plain = [first, *self.each(lambda family: self.few.best_width(family, first), rivals)]
        learned: list[Candidate] = []
        if self.many:

            def after_lead(start: Candidate) -> Candidate | None:
                start = replace(start, scales=start.scales * (guide.scales / first.scales), fit=guide.fit)
                return self.more.judge(self.few.learned(start, "evidence", NEXT_STEPS))

            learned = sorted([guide, *self.each(after_lead, plain[1:])], key=lambda one: one.score)
        plain.sort(key=lambda one: one.score)
        if self.n > FEW_ROWS:
            plain = self.each(self.more.judge, plain[:FINALISTS])
        if self.classes:
            return plain, [one for one in learned if ahead(one, plain[0]) > HOPEFUL_FOR_CLASSES]
        return plain, _trusted(learned, plain, self.per_scale)

    def on_more_rows(self, learned: list[Candidate]) -> list[Candidate]:
        """The best of those with a scale per feature, which learn from more rows."""
        if self.n <= FEW_ROWS or not learned:
            return learned
        hopeful = learned if self.all_families else _hopeful(learned[:LAST])
        return self.each(lambda start: self.more.judge(self.more.learned(start, "evidence", NEXT_STEPS)), hopeful)

    def sparse(self, plain: list[Candidate]) -> list[Candidate]:
        """With the relevance that gradients show, where a regression has few rows for its features."""
        if self.classes or self.per_scale >= SAFE_PER_SCALE:
            return []
        euclidean = [one for one in plain if not one.family.absolute]
        return self.each(lambda one: relevant_out_of_sample(self.more, one.family, one), euclidean[:LAST])

    def otherwise(self, learned: list[Candidate]) -> tuple[list[Work], list[Work]]:
        """What sees the features otherwise than the best single candidate, along directions or in another opening.

        The first are recursive feature machines, which take longest.
        """
        machines: list[Work] = []
        aside: list[Work] = []
        euclidean = [one for one in learned if not one.family.absolute]
        if euclidean and self.n_features <= MOST_FEATURES_TURNED:
            names = [name for name in (MACHINES if self.thorough else MACHINES[:1]) if name in self.kernels]
            machines = [partial(self._by_machine, FAMILIES[name]) for name in names]
            aside.append(lambda: self._along(along_gradients(self.more, euclidean[0])))
        if self.many:
            aside += [partial(self._in_opening, one) for one in self.openings if one is not self.opening]
        return machines, aside

    def _by_machine(self, family: Family) -> Candidate | None:
        return self._along(feature_machine(self.more, family, self.opening.first))

    def _along(self, found: tuple[np.ndarray, Candidate] | None) -> Candidate | None:
        """A candidate along directions instead of features."""
        return None if found is None else self.most.turned(found[0]).judge(found[1])

    def _in_opening(self, other: Opening) -> Candidate | None:
        """The guide of another opening."""
        rows, all_rows = (other.rows.take(self.order[:size]) for size in (MORE_ROWS, MOST_ROWS))
        return all_rows.judge(rows.learned(other.guide, "evidence", NEXT_STEPS))

    def to_polish(
        self, finalists: list[Candidate], plain: list[Candidate], learned: list[Candidate]
    ) -> tuple[list[Candidate], list[Work]]:
        """The finalists that are left, and the work of learning their scales by the error itself, where rows suffice."""
        rows_of_scales = self.n / (self.n_scales + 1)
        plenty = self.thorough or rows_of_scales >= PLENTY_PER_SCALE
        enough = self.n >= ENOUGH_ROWS or rows_of_scales >= ENOUGH_PER_SCALE or (self.all_families and self.n > FEW_ROWS)
        if not self.many or not enough or (self.classes and not learned):
            return finalists, []
        better = self.classes and any(ahead(one, plain[0]) > 0.0 for one in learned)  # worth the price of more
        if not self.all_families:
            finalists = _hopeful(finalists[: FINALISTS if plenty or better else LAST])
        rows = THOROUGH_ROWS if self.thorough else MIDDLE_ROWS if plenty else MORE_ROWS
        if self.classes and not self.thorough:
            rows = max(rows, min(SAFE_PER_SCALE * self.n_scales, CLASS_ROWS)) if better else MIDDLE_ROWS
        last = self.every.take(self.order[-rows:])
        steps = PLENTY_STEPS if plenty else NEXT_STEPS
        return finalists, [partial(self._polished, last, steps, start) for start in finalists]

    def _polished(self, rows: Rows, steps: int, start: Candidate) -> Candidate | None:
        return self.most.judge(rows.learned(start, "loo", steps))

    def blended(self, finalists: list[Candidate], polished: list[Candidate]) -> list[Candidate]:
        """The finalists before and after, and half way between both."""
        of_family = {one.family.name: one for one in finalists}
        blends = [of_family[one.family.name].blended(one) for one in polished]
        unseen = finalists if self.n > MORE_ROWS else []
        judged = self.each(self.most.judge, [*blends, *unseen])
        return [*polished, *judged, *([] if unseen else finalists)]

    def settled(self, finalists: list[Candidate], plain: list[Candidate]) -> list[Candidate]:
        """The best two of different families, with their best ridges; for classes with widths that suit all rows."""
        best = self.each(self._with_best_ridge, best_of_families(finalists)[:LAST])
        if self.classes and best[0].relevance != "none":
            needed = CLEARLY_WITH_MANY if self.per_scale >= ENOUGH_PER_SCALE else CLEARLY_FOR_CLASSES
            best = _clearly_better(best, self.each(self._with_best_ridge, plain[:LAST]), needed)
        if self.classes and self.n > MORE_ROWS:
            best = self.each(lambda one: self.final.narrowed(one) if one.relevance == "none" else one, best)
        return best

    def _with_best_ridge(self, one: Candidate) -> Candidate | None:
        if self.classes:
            return self.final.with_best_ridge(one)
        found = self.more.with_best_ridge(one)
        judged = found.fit.ridge == one.fit.ridge and len(one.fit.coef) == len(self.most)
        return one if judged else self.most.judge(found) if self.n > MORE_ROWS else found

    def on_most_rows(self, candidates: list[Candidate]) -> list[Candidate]:
        """All of them judged on the same rows."""
        return self.each(lambda one: one if len(one.fit.coef) == len(self.most) else self.most.judge(one), candidates)


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
    return [one for one in best if one.relevance == "none" or ahead(one, plain[0]) > needed] or plain
