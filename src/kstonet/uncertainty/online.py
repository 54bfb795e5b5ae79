"""Intervals of a series that adapt to its errors as they arrive: adaptive conformal inference.

Conformal intervals assume that new rows are exchangeable with those that they were calibrated on. In a series that drifts they
are not. Adaptive conformal inference (Gibbs and Candès 2021) corrects the probability α of a miss that the next interval is
made for: it is raised by step·α after an observation inside its interval, and lowered by step·(1 - α) after a miss, so that the
share of misses approaches the nominal one whatever the series does; the difference after T rows is at most
(1 + step)/(step·T). A large step follows abrupt changes, a small one makes steadier intervals. "auto" lets eight steps compete
(DtACI, Gibbs and Candès 2024): their levels are averaged with weights that fall with the pinball loss they have suffered.

All levels of a grid are followed at once, so that intervals of any coverage are there at any time; levels between those of the
grid are interpolated. Levels that have crossed are sorted, so that intervals of a higher coverage hold those of a lower one.
The scores are the last ``WINDOW`` ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet.uncertainty.conformal import ConformalFactor, SkewedFactor, beyond

TIE = 1e-12  # levels that differ by less are equal
WINDOW = 500  # the scores that are kept, and the time in which the steps compete
STEPS = np.array([0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.064, 0.128])  # those of Gibbs and Candès
#: Probabilities of a miss that are followed: those of usual coverages, for one side or for both.
MISSES = np.array([
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.075, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.35,
    0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95,
])  # fmt: skip


@storable(levels="float l s c", weights="nonnegative l s c", steps="positive s")
@dataclass(frozen=True)
class AdaptiveLevels:
    """The probabilities of a miss that the next intervals are made for.

    Parameters
    ----------
    levels : ndarray of shape (probabilities, steps, columns)
        For every nominal probability of :data:`MISSES`, step and column of scores.
    weights : ndarray like ``levels``
        What the steps weigh; they add up to one.
    steps : ndarray of shape (steps,)
        One for plain adaptive conformal inference, several that compete.
    """

    levels: np.ndarray
    weights: np.ndarray
    steps: np.ndarray

    @classmethod
    def start(cls, columns: int, steps: np.ndarray) -> AdaptiveLevels:
        """At the nominal probabilities."""
        shape = (len(MISSES), len(steps), columns)
        return cls(np.broadcast_to(MISSES[:, None, None], shape).copy(), np.full(shape, 1.0 / len(steps)), steps)

    def after(self, p: np.ndarray) -> AdaptiveLevels:
        """After an observation: ``p`` (columns,) are the largest probabilities of a miss whose intervals would have held it.

        Algorithm 1 of Gibbs and Candès (2024), with the η and σ of their Section 3 for an interval of ``WINDOW`` rows.
        """
        nominal, k = MISSES[:, None, None], len(self.steps)
        away = p - self.levels
        loss = nominal * away - np.minimum(away, 0.0)  # pinball loss
        size = (1.0 - nominal) ** 2 * nominal**3 + nominal**2 * (1.0 - nominal) ** 3
        rate = np.sqrt(3.0 / WINDOW * (np.log(k * WINDOW) + 2.0) / size)
        weights = self.weights * np.exp(-rate * (loss - loss.min(axis=1, keepdims=True)))
        weights /= weights.sum(axis=1, keepdims=True)
        share = 1.0 / (2.0 * WINDOW)
        levels = self.levels + self.steps[:, None] * (nominal - (away <= TIE))
        return AdaptiveLevels(levels, (1.0 - share) * weights + share / k, self.steps)

    def at(self, misses: np.ndarray) -> np.ndarray:
        """Levels (columns, probabilities) for nominal probabilities of a miss: at most 1; not positive where all is held."""
        mean = np.sort((self.levels * self.weights).sum(axis=1), axis=0)  # rearranged, so that intervals are nested
        known = np.concatenate([[0.0], MISSES, [1.0]])
        found = []
        for column in mean.T:
            ends = np.concatenate([[min(0.0, column[0])], column, [max(1.0, column[-1])]])
            found.append(np.interp(misses, known, ends))
        return np.asarray(np.minimum(np.array(found), 1.0))


@storable(scores="float n c", df="extended")
@dataclass(frozen=True)
class OnlineFactor:
    """How far intervals of a series reach, in standard deviations: quantiles of recent scores, at adaptive levels.

    Parameters
    ----------
    scores : ndarray of shape (n, columns)
        In the order of their arrival: absolute ones of every output, or, where ``skewed``, how far observations lie below the
        mean, of every output, and then how far above it.
    adaptive : AdaptiveLevels
        One column for each of the scores.
    skewed : bool
        Whether the two tails of an interval have quantiles of their own.
    n_seen : int
        Rows that have arrived.
    df : float, optional
        Degrees of freedom of Student's t that goes on beyond the scores.
    dimension : int, default=1
        Number of targets that a score is the distance of.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> factor = OnlineFactor.of(ConformalFactor(np.sort(np.abs(rng.normal(size=(200, 1))), axis=0)))
    >>> before, after = factor, factor.seen(5 * rng.normal(size=(100, 1)))
    >>> [float(each.tails(np.array([0.9]))[1][0, 0]) > 4 for each in (before, after)]
    [False, True]
    """

    scores: np.ndarray
    adaptive: AdaptiveLevels
    skewed: bool
    n_seen: int = 0
    df: float | None = None
    dimension: int = 1

    @classmethod
    def of(cls, factor: ConformalFactor | SkewedFactor, step: float | str = "auto") -> OnlineFactor:
        """From the scores of a calibration, which have no order of their own: they leave the window in a random one."""
        scores = factor.scores.reshape(len(factor.scores), -1)
        scores = scores[np.random.default_rng(0).permutation(len(scores))][-WINDOW:]
        skewed = isinstance(factor, SkewedFactor)
        if skewed:
            scores = np.concatenate([-scores, scores], axis=1)
        adaptive = AdaptiveLevels.start(scores.shape[1], _steps(step))
        return cls(scores, adaptive, skewed, df=factor.df, dimension=getattr(factor, "dimension", 1))

    def with_step(self, step: float | str) -> OnlineFactor:
        """The same rows with another step, from the nominal levels on; itself where the step is the same."""
        steps = _steps(step)
        if np.array_equal(steps, self.adaptive.steps):
            return self
        return replace(self, adaptive=AdaptiveLevels.start(self.scores.shape[1], steps))

    def seen(self, standard: np.ndarray) -> OnlineFactor:
        """After the standardised errors (m, k) of rows that have arrived, in their order."""
        new = np.concatenate([-standard, standard], axis=1) if self.skewed else np.abs(standard)
        scores, adaptive = self.scores, self.adaptive
        for row in new:
            # an interval of level α reaches to the ⌈(n + 1)(1 - α)⌉-th score; it holds the row if α is below this p
            above = (scores >= row).sum(axis=0)
            p = (1.0 + above) / (len(scores) + 1.0)
            # beyond all scores Student's t goes on, finitely: what is there counts as missed, so that no miss is overlooked
            adaptive = adaptive.after(p if self.df is None else np.where(above > 0, p, 0.0))
            scores = np.concatenate([scores[max(0, len(scores) + 1 - WINDOW) :], row[None]])
        return replace(self, scores=scores, adaptive=adaptive, n_seen=self.n_seen + len(new))

    def tails(self, coverage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far an interval reaches below and above the mean, in standard deviations, shape (levels, k) each."""
        misses = 1.0 - np.asarray(coverage)
        levels = self.adaptive.at(0.5 * misses if self.skewed else misses)
        reach = np.stack([self._reach(j, level) for j, level in enumerate(levels)], axis=1)
        half = reach.shape[1] // 2
        return (reach[:, :half], reach[:, half:]) if self.skewed else (reach, reach)

    def _reach(self, column: int, level: np.ndarray) -> np.ndarray:
        """Of one column of scores, for probabilities of a miss; infinite for those that are not positive."""
        central = 1.0 - (2.0 * level if self.skewed else level)  # Student's t knows central intervals
        scores = np.sort(self.scores[:, column])
        n = len(scores)
        rank = np.ceil((n + 1) * (1.0 - level) - 1e-9)
        found = np.append(scores, np.inf)[np.clip(rank, 1, n + 1).astype(int) - 1]
        if self.df is not None:
            further = beyond(np.clip(central, 0.5, 1.0 - 1e-12), self.df, n, self.dimension)
            found = np.where(np.isinf(found), np.maximum(further, scores[-1]), found)
        return np.asarray(np.where(level <= 0.0, np.inf, found))


def _steps(step: float | str) -> np.ndarray:
    return STEPS if isinstance(step, str) else np.array([float(step)])


def adapting(factor: Any, step: float | str) -> OnlineFactor | None:
    """The factor that adapts from here on; None where there are no scores to begin with."""
    if isinstance(factor, OnlineFactor):
        return factor.with_step(step)
    return OnlineFactor.of(factor, step) if isinstance(factor, ConformalFactor | SkewedFactor) else None
