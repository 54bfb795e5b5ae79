"""The automatic choice: kernel, width, relevance of the features and ridge, from the training rows, at a bounded price.

Every candidate is judged by the leave-one-out error of its kernel ridge regression (:mod:`~kstonet.tuning.screening_ridge`):

1. every family with one width for all features, on few rows;
2. every family with a scale per feature, by the evidence, on few rows; the best of them again on more;
3. the best two by the leave-one-out error itself, on rows that the evidence has not seen, where there are enough of them;
4. what is left on all rows (up to a bound), with more and with less ridge.

Where no candidate is clearly better than the mean of the targets, the answer is a kernel with so much ridge that
it nearly predicts the mean.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.utils.parallel import Parallel, delayed

from kstonet.gram import Kernel
from kstonet.tuning.choice import Choice
from kstonet.tuning.relevance_gradient import learn_scales
from kstonet.tuning.screening_ridge import RIDGES, RidgeFit, best_ridge, ridge_fit
from kstonet.tuning.stationary import FAMILIES, Family

FEW_ROWS, MIDDLE_ROWS, MORE_ROWS, MOST_ROWS = 400, 600, 800, 1600
THOROUGH_ROWS = 2000
ENOUGH_ROWS = 1500  # the leave-one-out error as a guide needs rows that have not been used yet: with 200 it misleads,
ENOUGH_PER_SCALE = 80  # unless there are few scales to be learned
PLENTY_PER_SCALE = 150  # where it may lead further than the evidence, which takes structure of a short range for noise
WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0)  # of the median distance
FIRST_WIDTH = 2
MOST_FEATURES_ABSOLUTE = 64  # sums of absolute differences are no matrix product: too expensive with more features
PRIOR = 1.0  # of log scales; 0.5 and 1.5 differ by less than a hundredth, in favour of 1.5 where rows are few
FINALISTS = 3
LAST = 2
FEWEST_PER_SCALE = 8  # rows per feature without which scales learn the rows: one width for all features then
SIGNAL = 2.0  # standard errors by which the best of many candidates has to be better than the mean: one is what luck gives
NO_SIGNAL = 1e3  # ridge where nothing is better than the mean


@dataclass(frozen=True)
class Candidate:
    """A kernel with what its ridge regression on some rows has shown."""

    family: Family
    scales: np.ndarray
    relevance: str  # "none", "evidence" or "leave-one-out"
    fit: RidgeFit

    @property
    def kernel(self) -> Kernel:
        """The kernel object."""
        return self.family.kernel(self.scales)

    def row(self) -> dict[str, Any]:
        """Of the table of candidates."""
        return {
            "kernel": self.family.name,
            "gamma": self.kernel.gamma,  # type: ignore[attr-defined]
            "relevance": self.relevance,
            "ridge": self.fit.ridge,
            "score": self.fit.score,
            "rows": len(self.fit.coef),
        }


@dataclass(frozen=True)
class Rows:
    """Some of the training rows."""

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None

    def take(self, rows: np.ndarray) -> Rows:
        """Some of these."""
        return Rows(self.X[rows], self.Y[rows], None if self.weights is None else self.weights[rows])

    def judge(
        self, family: Family, scales: np.ndarray, relevance: str, ridges: tuple[float, ...], start: int
    ) -> Candidate | None:
        """The candidate with the best of some ridges."""
        fit = best_ridge(family.matrix(self.X, scales), self.Y, self.weights, ridges, start)
        return None if fit is None else Candidate(family, scales, relevance, fit)

    def judge_again(self, candidate: Candidate) -> Candidate | None:
        """A candidate on these rows, with its ridge."""
        return self.judge(candidate.family, candidate.scales, candidate.relevance, (candidate.fit.ridge,), 0)

    def with_other_ridges(self, candidate: Candidate) -> Candidate:
        """A candidate that was judged on these rows, with three times more or less ridge where that is better."""
        K = candidate.family.matrix(self.X, candidate.scales)
        best = candidate.fit
        for factor in (3.0, 1.0 / 3.0):
            while RIDGES[0] <= factor * best.ridge <= RIDGES[-1]:
                other = ridge_fit(K, self.Y, factor * best.ridge, self.weights)
                if other is None or other.score >= best.score:
                    break
                best = other
            if best is not candidate.fit:
                break
        return replace(candidate, fit=best)

    def learned(self, start: Candidate, objective: Any, centre: np.ndarray, max_iter: int) -> tuple[np.ndarray, float]:
        """Scales and ridge that an objective prefers on these rows."""
        return learn_scales(
            self.X, self.Y, self.weights, start.family, (start.scales, start.fit.ridge),
            objective=objective, prior=PRIOR, centre=centre, max_iter=max_iter,
        )  # fmt: skip


def automatic_choice(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    seed: int = 0,
    *,
    classification: bool = False,
    kernels: Sequence[str] = tuple(FAMILIES),
    thorough: bool = False,
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
    seed : int
        Seed of the choice of rows.
    classification : bool
        Whether the columns are indicators of classes: named in the reason only.
    kernels : sequence of str
        Names of the families to choose from.
    thorough : bool
        Whether the leave-one-out error guides the scales of three families on up to ``THOROUGH_ROWS`` rows: several times
        the price, for a better relevance of the features.
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
    every = Rows(np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64), weights)
    if weights is not None:
        every = every.take(np.flatnonzero(weights > 0))
    n, p = every.X.shape
    order = np.random.default_rng(seed).permutation(n)
    few, more, most = (every.take(order[:rows]) for rows in (FEW_ROWS, MORE_ROWS, MOST_ROWS))
    plenty = thorough or n >= PLENTY_PER_SCALE * (p + 1)
    guides = THOROUGH_ROWS if thorough else MIDDLE_ROWS if plenty else MORE_ROWS
    last = every.take(order[max(0, n - guides) :])
    table: list[dict[str, Any]] = []

    def each(work: Callable[[Any], Candidate | None], items: Iterable[Any]) -> list[Candidate]:
        """The candidates that came out, the best first."""
        found = [one for one in Parallel(n_jobs=n_jobs, prefer="threads")(delayed(work)(item) for item in items) if one]
        table.extend(one.row() for one in found)
        return sorted(found, key=lambda one: one.fit.score)

    asked = [FAMILIES[name] for name in kernels]
    families = [family for family in asked if not family.absolute or p <= MOST_FEATURES_ABSOLUTE] or asked
    plain = each(lambda family: _best_width(few, family), families)
    centres = {one.family.name: np.log(one.scales) for one in plain}

    def by_evidence(rows: Rows, judges: Rows, max_iter: int) -> Callable[[Candidate], Candidate | None]:
        def work(start: Candidate) -> Candidate | None:
            scales, ridge = rows.learned(start, "evidence", centres[start.family.name], max_iter)
            return judges.judge(start.family, scales, "evidence", (ridge,), 0)

        return work

    many = n >= FEWEST_PER_SCALE * p
    learned = each(by_evidence(few, more, 25), plain) if many else []
    if n > FEW_ROWS:
        learned = each(by_evidence(more, more, 15), learned[:FINALISTS])
        plain = each(more.judge_again, plain[:FINALISTS])
    finalists = _of_different_families(sorted([*learned, *plain], key=lambda one: one.fit.score))
    finalists = finalists[: FINALISTS if plenty else LAST]
    if n > MORE_ROWS:
        finalists = each(most.judge_again, finalists)
    if many and (n >= ENOUGH_ROWS or n >= ENOUGH_PER_SCALE * (p + 1)):

        def polished(start: Candidate) -> Candidate | None:
            guide = (
                last.take(np.arange(-min(MORE_ROWS, len(last.X)), 0)) if start.family.absolute else last
            )  # no matrix products
            scales, ridge = guide.learned(start, "loo", centres[start.family.name], 20 if plenty else 8)
            return most.judge(start.family, scales, "leave-one-out", (ridge,), 0)

        finalists += each(polished, finalists)
    best = _of_different_families(sorted(finalists, key=lambda one: one.fit.score))[:LAST]
    best = each(most.with_other_ridges, best)
    return _choice(best, most, table, classification)


def _best_width(rows: Rows, family: Family) -> Candidate | None:
    """One width for all features: a climb from the middle."""
    ones = np.ones(rows.X.shape[1])
    typical = family.width(rows.X, ones)
    tried: dict[int, Candidate | None] = {}
    start = len(RIDGES) // 2

    def score(place: int) -> float:
        nonlocal start
        if place not in tried:
            found = tried[place] = rows.judge(family, ones / (typical * WIDTHS[place]), "none", RIDGES, start)
            start = start if found is None else RIDGES.index(found.fit.ridge)
        found = tried[place]
        return np.inf if found is None else found.fit.score

    best = FIRST_WIDTH
    while True:
        step = min((place for place in (best, best + 1, best - 1) if 0 <= place < len(WIDTHS)), key=score)
        if step == best:
            return tried[best]
        best = step


def _of_different_families(ranked: list[Candidate]) -> list[Candidate]:
    """The best of every family."""
    first: dict[str, Candidate] = {}
    for one in ranked:
        first.setdefault(one.family.name, one)
    return list(first.values())


def _choice(best: list[Candidate], rows: Rows, table: list[dict[str, Any]], classification: bool) -> Choice:
    """The best two, unless the mean of the targets is as good."""
    first = best[0]
    n = len(rows.Y)
    mean = np.average(rows.Y, axis=0, weights=rows.weights)
    constant = ((rows.Y - mean) * n / max(n - 1, 1)) ** 2  # left out of its own mean
    gain = (constant - first.fit.errors**2).mean(axis=1)
    table.append(
        {"kernel": "constant", "gamma": None, "relevance": "none", "ridge": np.inf,
         "score": float(np.average(constant.mean(axis=1), weights=rows.weights)), "rows": n}
    )  # fmt: skip
    signal = bool(np.average(gain, weights=rows.weights) > SIGNAL * gain.std() / np.sqrt(n))
    if not signal:
        best = [
            Candidate(one.family, one.scales, one.relevance, fit)
            for one in best[:1]
            if (fit := ridge_fit(one.family.matrix(rows.X, one.scales), rows.Y, NO_SIGNAL, rows.weights))
        ]
    tried, what = len(table), "class indicators" if classification else "targets"
    reason = (
        f"{first.family.name}, relevance of features: {first.relevance}, ridge {first.fit.ridge:.3g}: the smallest "
        f"leave-one-out error of {tried} candidates, {first.fit.score:.3g} of the variance of the {what} on {n} rows"
    )
    if not signal:
        reason = f"no kernel of {tried} candidates is clearly better than the mean of the {what} on {n} rows"
    return Choice(
        kernels=tuple(one.kernel for one in best),
        ridges=tuple(one.fit.ridge for one in best),
        strengths=tuple(one.fit.strength for one in best),
        noises=tuple(one.fit.root for one in best),
        signal=signal,
        table=table,
        reason=reason,
    )
