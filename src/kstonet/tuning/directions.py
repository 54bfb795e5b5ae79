"""A last candidate: directions of the features instead of single ones, from the gradients of the best regression so far.

A scale per feature finds the features that matter. Where the targets follow sums of features (single-index and multi-index
truths), no scales do: the average gradient outer product E ∇f∇fᵀ of the regression has the directions as its leading
eigenvectors (Radhakrishnan et al. 2024, "Mechanism for feature learning in neural networks and backpropagation-free machine
learning models"). In its eigenbasis scales are learned as before, starting at the roots of the eigenvalues; the kernel keeps
the basis as its projection. The regression in the new basis gives a better one, a few times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.gram import Kernel
from kstonet.gram.kernels.squash import squashed
from kstonet.tuning.automatic import (
    FEW_ROWS,
    LAST,
    MORE_ROWS,
    MOST_ROWS,
    NEXT_STEPS,
    SAFE_PER_SCALE,
)
from kstonet.tuning.choice import Choice
from kstonet.tuning.judging import Candidate, Rows, best_of_families
from kstonet.tuning.screening_ridge import RidgeFit, ridge_fit
from kstonet.tuning.stationary import FAMILIES, Family

MOST_FEATURES = 64  # more of them have too many directions for the rows that a choice sees
FLOOR = 1e-3  # added to eigenvalues over the largest: a direction that looks irrelevant may become relevant again
ROUNDS = 2  # a third one changes little
WORTH_IT = 0.97  # score with directions over that without, on some of the rows, above which they are given up
SURE = 2.0  # standard errors by which directions have to be better
TRIED = ("matern32", "matern52", "rbf")  # families of Euclidean distances; others know no directions


@dataclass(frozen=True)
class _Basis:
    """Rows in a basis of directions, and the map to them."""

    rows: Rows
    projection: np.ndarray
    start: np.ndarray

    def kernel(self, candidate: Candidate, like: Kernel) -> Kernel:
        projection = tuple(map(tuple, self.projection.tolist()))
        return replace(candidate.family.kernel(candidate.scales), squash=like.squash, projection=projection)


def with_directions(
    X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None, found: Choice, names: tuple[str, ...], seed: int
) -> Choice:
    """The choice, or kernels of directions where their leave-one-out error is clearly smaller.

    Parameters
    ----------
    X, Y, weights : ndarray
        Standardised rows, the columns that kernels are judged by, and sample weights.
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
    n, p = X.shape
    families = [FAMILIES[name] for name in names if name in TRIED]
    if not (families and found.signal and 1 < p <= MOST_FEATURES and min(n, MOST_ROWS) >= SAFE_PER_SCALE * p):
        return found
    order = np.random.default_rng(seed).permutation(n)[:MOST_ROWS]
    most = Rows(X, Y, weights).take(order)
    present = ridge_fit(np.asarray(found.kernel(most.X, most.X)), most.Y, found.ridges[0], most.weights)
    if present is None:
        return found
    kernel, fit, best = found.kernel, present, None
    tried: list[Candidate] = []
    for _ in range(ROUNDS):
        basis = _basis(most, kernel, fit)
        if basis is None:
            break
        few, more = (basis.rows.take(np.arange(len(most))[:rows]) for rows in (FEW_ROWS, MORE_ROWS))
        starts = [_start(few, basis.start, family) for family in families]
        judged = [more.judge(few.learned(start, "evidence", NEXT_STEPS)) for start in starts]
        learned = best_of_families([one for one in judged if one is not None])[:LAST]
        tried += learned
        if not learned or (best is None and learned[0].score > WORTH_IT * _score_on(most, kernel, fit.ridge, len(more))):
            break
        last = basis.rows.take(np.arange(len(most))[max(0, len(most) - MORE_ROWS) :])
        climbed = last.learned(more.learned(learned[0], "evidence", NEXT_STEPS), "loo", NEXT_STEPS)
        ended = [basis.rows.judge(one) for one in (*learned, climbed)]
        found_here = best_of_families([one for one in ended if one is not None])
        tried += found_here
        if not found_here or found_here[0].score >= fit.score:
            break
        best = (basis, found_here)
        kernel, fit = basis.kernel(found_here[0], found.kernel), found_here[0].fit
    table = [*found.table, *(one.row() | {"relevance": "directions"} for one in tried)]
    gain = (present.errors**2 - fit.errors**2).mean(axis=1)
    share = np.ones(len(gain)) if most.weights is None else most.weights
    mean = np.average(gain, weights=share)
    sure = mean > SURE * np.linalg.norm(share * (gain - mean)) / share.sum()
    if best is None or not sure or fit.score > WORTH_IT * present.score:
        return replace(found, table=table)
    basis, finalists = best
    return replace(
        found,
        kernels=tuple(basis.kernel(one, found.kernel) for one in finalists[:LAST]),
        ridges=tuple(one.fit.ridge for one in finalists[:LAST]),
        strengths=tuple(one.fit.strength for one in finalists[:LAST]),
        noises=tuple(one.fit.root for one in finalists[:LAST]),
        table=table,
        reason=(
            f"{finalists[0].family.name} of directions of the features, ridge {fit.ridge:.3g}: a leave-one-out error of "
            f"{fit.score:.3g} of the variance on {len(most)} rows, {present.score:.3g} with single features ({found.reason})"
        ),
    )


def _basis(rows: Rows, kernel: Kernel, fit: RidgeFit) -> _Basis | None:
    """The eigenbasis of the average gradient outer product of a regression, leading directions first; None where it is flat."""
    X = rows.X if kernel.squash is None else squashed(rows.X, kernel.squash)
    units = np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    gradients = replace(kernel, squash=None).gradient(X, X, fit.coef.T) * units
    flat = gradients.reshape(-1, X.shape[1])
    values, vectors = np.linalg.eigh(flat.T @ flat)
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    if values[0] <= 0.0:
        return None
    projection = vectors / units[:, None]
    return _Basis(replace(rows, X=X @ projection), projection, np.sqrt(values / values[0] + FLOOR))


def _start(rows: Rows, scales: np.ndarray, family: Family) -> Candidate:
    """One width in the metric that the scales make."""
    found = replace(rows, X=rows.X * scales).best_width(family)
    return replace(found, scales=found.scales * scales, centre=found.centre + np.log(scales))


def _score_on(rows: Rows, kernel: Kernel, ridge: float, n: int) -> float:
    some = rows.take(np.arange(n))
    fit = ridge_fit(np.asarray(kernel(some.X, some.X)), some.Y, ridge, some.weights)
    return np.inf if fit is None else fit.score
