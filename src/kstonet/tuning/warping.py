"""How features are bent before a kernel sees them, learned with the relevance of the features.

A kernel with one width per feature is as rough at one end of a feature as at the other. Many features are not like that: a day
more means much for young concrete and little for old, a frequency acts by its logarithm. So every feature becomes
asinh((x - centre)/spread), steep around a centre, flat away from it, and nearly straight where the spread is large. Centres and
spreads are learned together with the scales, by the evidence of the same Gaussian process: the derivative with respect to the
kernel matrix is there anyway, and two matrix products take it to all of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from kstonet.gram.halves import half_times
from kstonet.gram.kernels.squash import Squash
from kstonet.tuning.judging import PRIOR, Candidate, Rows
from kstonet.tuning.relevance_gradient import (
    EDGE,
    NOWHERE,
    RIDGE_BOUNDS,
    SCALE_BOUNDS,
    SINGLE_FROM,
    evidence,
    group_means,
    lowest,
)
from kstonet.tuning.stationary import Family, halves
from kstonet.tuning.views import View

STRAIGHT = 3.0  # spread, in standard deviations, from which the climb starts: a little bent, or it would hardly begin
SPREAD_BOUNDS = (-5.0, 1.0)  # of a log spread, around its start
FEWEST_VALUES = 3  # any monotone function of a feature with two values is a straight line
STEPS = 40


@dataclass(frozen=True)
class Bends:
    """What the objective needs beside its parameters.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        The features as they are.
    Y : ndarray of shape (n, k)
    weights : ndarray of shape (n,) or None
    family : Family
        A kernel of Euclidean distances.
    prior_scales : ndarray of shape (g,)
        Where log scales stay that the data do not know.
    centres, spreads : ndarray of shape (p,)
        Where the climb starts, and where centres and log spreads stay that the data do not know.
    slopes : ndarray of shape (p,)
        Slope of the bent features at their centres, whatever the spread: at the start they have unit variance.
    groups : ndarray of int of shape (p,)
        Features of the same number share a scale.
    """

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None
    family: Family
    prior_scales: np.ndarray
    centres: np.ndarray
    spreads: np.ndarray
    slopes: np.ndarray
    groups: np.ndarray

    @cached_property
    def _space(self) -> tuple[np.ndarray, np.ndarray]:
        """The matrices of an evaluation."""
        return halves(self.X)

    def objective(self, parameters: np.ndarray) -> tuple[float, np.ndarray]:
        """Minus the log evidence with normal priors, and its gradient.

        Parameters
        ----------
        parameters : ndarray of shape (g + 1 + 2p,)
            Log scales of the groups, the log ridge, centres and log spreads.
        """
        g = len(self.prior_scales)
        logs, (centres, widths) = parameters[:g], np.split(parameters[g + 1 :], 2)
        single = self.X.dtype
        ridge, scales = np.exp(parameters[g]), (np.exp(logs)[self.groups] * self.slopes).astype(single)
        noise = np.full(len(self.X), ridge, dtype=single) if self.weights is None else ridge / self.weights
        spreads = np.exp(widths).astype(single)
        steps = (self.X - centres.astype(single)) / spreads
        bent = np.arcsinh(steps) * spreads
        K, slope = self.family.upper_half(bent, scales, self._space)
        found = evidence(K, self.Y, noise)
        if found is None:
            return NOWHERE, np.zeros_like(parameters)
        value, G = found
        gradient = np.empty_like(parameters)
        gradient[g] = np.diagonal(G) @ noise
        G *= slope
        np.fill_diagonal(G, 0.0)
        seen = bent * scales
        image = half_times(G, np.column_stack([seen, np.ones(len(seen), dtype=single)]))
        pull = 4.0 * (image[:, -1:] * seen - image[:, :-1])  # with respect to what the kernel sees
        gradient[:g] = np.bincount(self.groups, (pull * seen).sum(axis=0))
        pull *= scales
        root = np.sqrt(1.0 + steps * steps)
        of_centres, of_widths = -(pull / root).sum(axis=0), (pull * (bent - steps * spreads / root)).sum(axis=0)
        gradient[g + 1 :] = np.concatenate([of_centres, of_widths])
        away = np.concatenate([PRIOR * (logs - self.prior_scales), centres - self.centres, widths - np.log(self.spreads)])
        gradient[:g] += PRIOR * away[:g]
        gradient[g + 1 :] += away[g:]
        return value + 0.5 * float(away @ away), gradient

    def climb(self, start: Candidate, possible: np.ndarray) -> np.ndarray:
        """The parameters that the evidence prefers, from those with which the kernel is that of a candidate.

        Features that cannot be bent stay as they are. The climb begins in float32, and goes on in float64 where the ridge is
        small.
        """
        spreads = np.log(self.spreads)
        parts = [
            (group_means(np.log(start.scales), self.groups), *(self.prior_scales + bound for bound in SCALE_BOUNDS)),
            ([np.log(np.clip(start.fit.ridge, *RIDGE_BOUNDS))], *([np.log(bound)] for bound in RIDGE_BOUNDS)),
            (self.centres, *(np.where(possible, bound, self.centres) for bound in (self.X.min(axis=0), self.X.max(axis=0)))),
            (spreads, *(np.where(possible, spreads + bound, spreads) for bound in SPREAD_BOUNDS)),
        ]
        at, low, high = (np.concatenate(each) for each in zip(*parts, strict=True))
        ridge = len(self.prior_scales)
        if start.fit.ridge > 0.99 * SINGLE_FROM:
            above = low.copy()
            above[ridge] = np.log(SINGLE_FROM)
            weights = None if self.weights is None else self.weights.astype(np.float32)
            single = replace(self, X=self.X.astype(np.float32), Y=self.Y.astype(np.float32), weights=weights)
            at = single.minimum(np.maximum(at, above), above, high)
            if at[ridge] > above[ridge] + EDGE:
                return at
            at[ridge] -= EDGE
        return self.minimum(at, low, high)

    def minimum(self, at: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Where the objective is smallest between bounds, or after so many steps."""
        return lowest(self.objective, at, np.column_stack([low, high]), STEPS)


def bent(every: Rows, learn: np.ndarray, start: Candidate) -> tuple[Rows, Candidate] | None:
    """All rows with their features bent, and a candidate on them that is not judged yet.

    Parameters
    ----------
    every : Rows
        All rows, seen as they are.
    learn : ndarray of int
        Those that are learned from.
    start : Candidate
        With a scale per feature, learned with features as they are or with heavy tails drawn in.

    Returns
    -------
    tuple of (Rows, Candidate) or None
        None where no feature can be bent, or the family is one of absolute differences.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.tuning.stationary import FAMILIES
    >>> x = np.random.default_rng(0).uniform(-1.7, 1.7, size=(100, 1))
    >>> rows = Rows(x, np.sin(3 * np.log(x + 1.75)), None)  # rough below, smooth above
    >>> straight = rows.judge(rows.learned(rows.best_width(FAMILIES["matern32"]), "evidence", 25))
    >>> seen, found = bent(rows, np.arange(100), straight)
    >>> bool(seen.judge(found).score < 0.2 * straight.score)
    True
    """
    possible = np.array([len(np.unique(column)) >= FEWEST_VALUES for column in every.X.T])
    if start.family.absolute or not possible.any():
        return None
    centres, spreads = _start(every.X, start.view.squash)
    unit = np.arcsinh((every.X - centres) / spreads).std(axis=0)
    slopes = 1.0 / (np.where(unit > 0, unit, 1.0) * spreads)
    weights = None if every.weights is None else every.weights[learn]
    groups = np.arange(every.X.shape[1]) if every.groups is None else every.groups
    around = group_means(start.centre, groups)
    problem = Bends(every.X[learn], every.Y[learn], weights, start.family, around, centres, spreads, slopes, groups)
    found = problem.climb(start, possible)
    g = len(around)
    middles, widths = np.split(found[g + 1 :], 2)
    learned = np.exp(widths)
    squash = zip(middles.tolist(), np.where(possible, learned, np.inf).tolist(), strict=True)
    view = View.drawn_in(every.X, tuple(squash))
    seen = every.seen_as(view)
    steep = np.where(possible, slopes * learned * view.units, 1.0)
    fit = replace(start.fit, ridge=float(np.exp(found[g])))
    return seen, replace(start, scales=np.exp(found[:g])[groups] * steep, fit=fit, view=seen.view)


def _start(X: np.ndarray, squash: Squash | None) -> tuple[np.ndarray, np.ndarray]:
    """Centres and spreads: the medians and one spread for all features but those with tails drawn in."""
    centres, spreads = np.median(X, axis=0), np.full(X.shape[1], STRAIGHT)
    if squash is not None:
        drawn = np.isfinite([spread for _, spread in squash])
        centres[drawn], spreads[drawn] = np.array(squash)[drawn].T
    return centres, spreads
