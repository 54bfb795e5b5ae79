"""Candidates of an automatic choice, and the rows they are judged on."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kstonet.gram import Kernel
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.relevance_gradient import RIDGE_BOUNDS, SINGLE_FROM, Objective, learn_scales
from kstonet.tuning.screening_ridge import MIDDLE, RIDGES, RidgeFit, allows_single, best_ridge, ridge_fit
from kstonet.tuning.stationary import Family
from kstonet.tuning.views import View

WIDTHS = (1 / 32, 1 / 16, 1 / 8, 1 / 4, 0.5, 1.0, 2.0, 4.0, 8.0)  # of the median distance
NARROW, FIRST_WIDTH = 4, 6  # so many are tried only where the others show little; the one that is tried first
LITTLE = 0.5  # of the loss without features: a larger one shows little
PRIOR = 1.0  # of log scales; 0.5 and 1.5 differ by less than a hundredth, in favour of 1.5 where rows are few
RIDGE_STEP = 3.0  # factor between the ridges that a candidate is tried with
NARROWER = 1.5  # factor of the scales of a candidate on more rows
HARDLY_LUCK = 0.5  # standard errors by which that has to lower the loss
MOST_STEPS = 12


@dataclass(frozen=True)
class Candidate:
    """A kernel with what its ridge regression on some rows has shown.

    Parameters
    ----------
    family : Family
    scales : ndarray of shape (p,)
        What the features are multiplied by.
    relevance : {"none", "evidence", "leave-one-out", "both", "gradients", "directions"}
        What the scales were learned by.
    fit : RidgeFit
    centre : ndarray of shape (p,)
        Logarithm of the one scale for all features that suits the family: where scales stay that the data do not know.
    view : View
        What was done to the features before.
    """

    family: Family
    scales: np.ndarray
    relevance: str
    fit: RidgeFit
    centre: np.ndarray
    view: View = field(default_factory=View)

    @property
    def kernel(self) -> Kernel:
        """The kernel object, for standardised features."""
        return self.view.kernel(self.family, self.scales)

    @property
    def score(self) -> float:
        """The mean squared leave-one-out error, or the log loss of left-out classes."""
        return self.fit.score

    def blended(self, other: Candidate) -> Candidate:
        """Between two candidates of one family whose scales were learned on different rows; not judged yet.

        What only one set of rows suggests counts half: the scales fit neither set as closely, and new rows often better.
        """
        scales, ridge = np.sqrt(self.scales * other.scales), float(np.sqrt(self.fit.ridge * other.fit.ridge))
        return replace(self, scales=scales, relevance="both", fit=replace(self.fit, ridge=ridge))

    def row(self) -> dict[str, Any]:
        """Of the table of candidates."""
        return {
            "kernel": self.family.name,
            "gamma": self.family.make(None).gamma,  # type: ignore[attr-defined]
            "relevance": self.relevance,
            "ridge": self.fit.ridge,
            "score": self.score,
            "rows": len(self.fit.coef),
        }


@dataclass(frozen=True)
class Rows:
    """Some of the training rows, as candidates see them; with a loss where their targets are classes.

    Features of the same number in ``groups`` share a scale.
    """

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None
    loss: LeftOutLogLoss | None = None
    view: View = field(default_factory=View)
    groups: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.X)

    @property
    def n_scales(self) -> int:
        """How many scales there are to be learned."""
        return self.X.shape[1] if self.groups is None else int(self.groups.max()) + 1

    def take(self, rows: np.ndarray) -> Rows:
        """Some of these."""
        weights = None if self.weights is None else self.weights[rows]
        loss = None if self.loss is None else self.loss.take(rows)
        return replace(self, X=self.X[rows], Y=self.Y[rows], weights=weights, loss=loss)

    def multiplied(self, unit: np.ndarray) -> Rows:
        """The rows with every feature multiplied by a number; candidates on them do not know it."""
        return replace(self, X=self.X * unit)

    def seen_as(self, view: View) -> Rows:
        """The rows, until now seen as they are, in another view."""
        return replace(self, X=view(self.X), view=view)

    def turned(self, directions: np.ndarray) -> Rows:
        """The rows with their features combined into directions, given by the columns of a matrix."""
        before = self.view.directions
        view = replace(self.view, directions=directions if before is None else before @ directions)
        return replace(self, X=self.X @ directions, view=view, groups=None)

    def judge(self, candidate: Candidate) -> Candidate | None:
        """A candidate with what its regression shows on these rows."""
        K = candidate.family.upper_half(self.X, candidate.scales)[0]
        fit = ridge_fit(K, self.Y, candidate.fit.ridge, self.weights, self.loss, overwrite=True, single_from=SINGLE_FROM)
        return None if fit is None else replace(candidate, fit=fit)

    def with_best_ridge(self, candidate: Candidate) -> Candidate:
        """A candidate on these rows, with three times more or less ridge as long as that is better."""
        low, high = RIDGE_BOUNDS
        ridge = candidate.fit.ridge
        powers = range(-MOST_STEPS, MOST_STEPS + 1)
        ridges = [ridge * RIDGE_STEP**power for power in powers if power == 0 or low <= ridge * RIDGE_STEP**power <= high]
        K = candidate.family.upper_half(self.X, candidate.scales)[0]
        fit = best_ridge(K, self.Y, self.weights, tuple(ridges), ridges.index(ridge), loss=self.loss, single_from=SINGLE_FROM)
        return candidate if fit is None else replace(candidate, fit=fit)

    def narrowed(self, candidate: Candidate) -> Candidate:
        """A candidate for classes that was judged on these rows, narrower as long as the log loss says so.

        A width that was found on fewer rows smooths away what nearer neighbours show. (Of 26 kernels of 20 tables that would
        have changed their widths, 23 became narrower.)
        """
        best = candidate
        for _ in range(MOST_STEPS):
            other = self.judge(replace(best, scales=best.scales * NARROWER))
            if other is None or ahead(other, best) <= HARDLY_LUCK:
                break
            best = other
        return candidate if best is candidate else self.with_best_ridge(best)

    def learned(self, start: Candidate, objective: Objective, max_iter: int) -> Candidate:
        """A candidate with the scales and the ridge that an objective prefers on these rows; not judged yet."""
        scales, ridge = learn_scales(
            self.X, self.Y, self.weights, start.family, (start.scales, start.fit.ridge),
            objective=objective, prior=PRIOR, centre=start.centre, max_iter=max_iter, loss=self.loss, groups=self.groups,
        )  # fmt: skip
        relevance = "evidence" if objective == "evidence" else "leave-one-out"
        return replace(start, scales=scales, relevance=relevance, fit=replace(start.fit, ridge=ridge))

    def best_width(self, family: Family, like: Candidate | None = None) -> Candidate:
        """One width for all features and a ridge, by a climb from neighbour to neighbour, in float32 where the ridge allows it.

        A function that oscillates looks like noise to every kernel that is wider than its waves: where a climb ends with
        little, another one begins from narrow kernels. Its end has to show more than that: by luck it is often a little better.

        Parameters
        ----------
        family : Family
        like : Candidate, optional
            Another family's, from which the climb starts.
        """
        ones = np.ones(self.X.shape[1])
        width = family.width(self.X, ones)
        widths = width * np.array(WIDTHS)
        here = (FIRST_WIDTH, MIDDLE)
        if like is not None:
            typical = width if like.family.absolute == family.absolute else like.family.width(self.X, ones)
            share = 1.0 / (like.scales[0] * typical)
            here = (int(np.argmin(np.abs(np.log(share / WIDTHS)))), RIDGES.index(like.fit.ridge))
        matrices: dict[tuple[int, bool], np.ndarray] = {}
        tried: dict[tuple[int, int], RidgeFit | None] = {}

        def score(place: tuple[int, int]) -> float:
            width, ridge = place
            if not (0 <= width < len(WIDTHS) and 0 <= ridge < len(RIDGES)) or (width < NARROW and not narrow):
                return np.inf
            if place not in tried:
                single = allows_single(RIDGES[ridge], self.weights, SINGLE_FROM)
                if (width, single) not in matrices:
                    scaled = (self.X / widths[width]).astype(np.float32 if single else np.float64)
                    matrices[width, single] = family.upper_half(scaled, np.ones_like(scaled[0]))[0]
                tried[place] = ridge_fit(matrices[width, single], self.Y, RIDGES[ridge], self.weights, self.loss)
            fit = tried[place]
            return np.inf if fit is None else fit.score

        def climbed(here: tuple[int, int]) -> tuple[int, int]:
            while score(here) == np.inf and here[1] < len(RIDGES) - 1:  # singular here: more ridge
                here = (here[0], here[1] + 1)
            while True:
                around = [(here[0], here[1] + 1), (here[0], here[1] - 1), (here[0] + 1, here[1]), (here[0] - 1, here[1])]
                better = next((place for place in around if score(place) < score(here)), None)
                if better is None:
                    return here
                here = better

        narrow = here[0] < NARROW
        here = climbed(here)
        if score(here) > LITTLE and not narrow:
            narrow = True
            other = climbed(min(((width, MIDDLE) for width in range(NARROW)), key=score))
            here = other if score(other) <= LITTLE else here
        fit, scales = tried[here], ones / widths[here[0]]
        assert fit is not None  # with the largest ridge every kernel matrix is positive definite
        return Candidate(family, scales, "none", fit, np.log(scales), self.view)


def best_of_families(candidates: list[Candidate]) -> list[Candidate]:
    """The best candidate of every family, the best of all first."""
    first: dict[str, Candidate] = {}
    for one in sorted(candidates, key=lambda one: one.score):
        first.setdefault(one.family.name, one)
    return list(first.values())


def ahead(one: Candidate, rival: Candidate) -> float:
    """By how many standard errors the log loss of a candidate for classes is below that of another on the same rows."""
    gain = np.subtract(rival.fit.losses, one.fit.losses)  # type: ignore[arg-type]
    return float(gain.mean() / max(gain.std() / np.sqrt(len(gain)), 1e-12))
