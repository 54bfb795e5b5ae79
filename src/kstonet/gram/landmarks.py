"""Landmarks: the few training rows that a low-rank Gram is built on, by randomly pivoted Cholesky.

A pivot is drawn with a probability proportional to what the pivots so far leave out of its k(x, x): far from greedy, which runs
after outliers, and far from uniform, which overlooks them (Chen, Epperly, Tropp & Webber, arXiv:2207.06503). Blocks of pivots
are proposed at once and thinned by rejection, so that the accepted ones are distributed as if drawn one after another, at the
speed of matrix products (Epperly, Tropp & Webber, arXiv:2410.03969).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from kstonet._arrays import Array
from kstonet.gram.blocks import row_blocks
from kstonet.gram.cholesky import NotPositiveDefiniteError, with_jitter
from kstonet.gram.kernels import Kernel

BLOCK = 128  # pivots proposed together
ROWS_PER_LANDMARK = 16  # training rows from which a landmark is drawn
ROUNDING = 1e-10  # of k(x, x): a pivot that the others explain so far would only add rounding errors
NEGATIVE = 1e-4  # of k(x, x): what is left out of a valid kernel is never so far below zero
NOT_A_KERNEL = (
    "the kernel is not positive semi-definite on the training rows, so it has no low-rank factor. Use a valid kernel, or "
    "solver='dense' on fewer rows, which says by how much it fails."
)
JITTERS = range(-12, -5)  # powers of ten of the mean diagonal


@dataclass(frozen=True)
class Landmarks:
    """Chosen rows, and the map from kernel values to features φ(x) = k(x, landmarks)·whitening.

    Parameters
    ----------
    indices : ndarray of int
        The rows, ascending.
    basis : ndarray of shape (r, p)
        Their features.
    whitening : ndarray of shape (r, r)
        L⁻ᵀ, with L Lᵀ the kernel matrix of the landmarks: φ(x)·φ(z) is the kernel of Nyström's method.
    """

    indices: np.ndarray
    basis: Array
    whitening: Array

    @property
    def rank(self) -> int:
        """Number of landmarks."""
        return len(self.indices)

    def placed(self, place: Callable[[np.ndarray], Array]) -> Landmarks:
        """The landmarks where ``place`` puts arrays."""
        return replace(self, basis=place(self.basis), whitening=place(self.whitening))

    def features(self, kernel: Kernel, X: Array) -> Array:
        """φ of some rows, shape (rows, r), float64."""
        return kernel.features(X, self.basis) @ self.whitening

    @classmethod
    def choose(cls, X: np.ndarray, kernel: Kernel, most: int, tolerance: float, seed: int) -> Landmarks:
        """At most ``most`` rows, fewer where they leave out no more than a fraction ``tolerance`` of the trace.

        Deterministic for a seed. Among more than ``ROWS_PER_LANDMARK``·most rows a random part is used.
        """
        rng = np.random.default_rng(seed)
        seen = np.arange(len(X))
        if len(X) > ROWS_PER_LANDMARK * most:
            seen = np.sort(rng.choice(len(X), ROWS_PER_LANDMARK * most, replace=False))
        indices = np.sort(seen[_pivots(rng, X[seen], kernel, most, tolerance)])
        basis = np.ascontiguousarray(X[indices])
        return cls(indices, basis, _whitening(np.asarray(kernel(basis, basis)), kernel.diagonal(basis)))


def _pivots(rng: np.random.Generator, X: np.ndarray, kernel: Kernel, most: int, tolerance: float) -> np.ndarray:
    """Row numbers of the pivots."""
    n = len(X)
    most = min(most, n)
    diagonal = np.asarray(kernel.diagonal(X), dtype=np.float64)
    left, factor = diagonal.copy(), np.zeros((n, most))
    pivots: list[int] = []
    while len(pivots) < most and left.sum() > max(tolerance, ROUNDING) * diagonal.sum():
        rank = len(pivots)
        proposed = rng.choice(n, size=min(BLOCK, most - rank), p=left / left.sum())
        proposed = proposed[np.sort(np.unique(proposed, return_index=True)[1])]  # each once, in the order of the draws
        own = factor[proposed, :rank]
        block = np.asarray(kernel(X[proposed], X[proposed])) - own @ own.T
        accepted = proposed[_accepted(rng, block, left[proposed], ROUNDING * diagonal[proposed])]
        if not len(accepted):
            left[proposed] = 0.0  # rounding is all that is left there
            continue
        stop = rank + len(accepted)
        here = factor[accepted, :rank]
        corner = np.asarray(kernel(X[accepted], X[accepted])) - here @ here.T
        corner = cholesky(corner + ROUNDING * np.diag(diagonal[accepted]), lower=True, check_finite=False)
        inverse = solve_triangular(corner, np.eye(len(corner)), lower=True, check_finite=False)
        for rows in row_blocks(n, len(accepted)):
            new = (np.asarray(kernel(X[rows], X[accepted])) - factor[rows, :rank] @ here.T) @ inverse.T
            factor[rows, rank:stop] = new
            after = left[rows] - (new**2).sum(axis=1)
            if (after < -NEGATIVE * diagonal[rows]).any():
                raise ValueError(NOT_A_KERNEL)
            left[rows] = np.maximum(after, 0.0)
        left[accepted] = 0.0
        pivots += accepted.tolist()
    return np.array(pivots, dtype=int)


def _accepted(rng: np.random.Generator, block: np.ndarray, left: np.ndarray, least: np.ndarray) -> np.ndarray:
    """Which proposals stay: each with the share of its diagonal that the accepted ones before it leave."""
    threshold = np.maximum(rng.uniform(size=len(block)) * left, least)
    accepted = []
    for j in range(len(block)):
        if block[j, j] > threshold[j]:
            column = block[j:, j] / np.sqrt(block[j, j])
            block[j:, j:] -= np.outer(column, column)
            accepted.append(j)
    return np.array(accepted, dtype=int)


def _whitening(matrix: np.ndarray, diagonal: np.ndarray) -> np.ndarray:
    """L⁻ᵀ of the kernel matrix, with the smallest jitter that makes it positive definite in floating point."""

    def factored(jitter: float) -> np.ndarray:
        work = matrix.copy()
        work.flat[:: len(work) + 1] = diagonal + jitter
        return np.asarray(cholesky(work, lower=True, check_finite=False))

    try:
        factor = with_jitter(factored, float(np.mean(diagonal)), JITTERS, NOT_A_KERNEL)
    except NotPositiveDefiniteError as error:
        raise ValueError(NOT_A_KERNEL) from error
    return np.ascontiguousarray(solve_triangular(factor, np.eye(len(factor)), lower=True, check_finite=False).T)
