"""Systems with a low-rank matrix, blocks on its diagonal and a ridge of its own for every row.

A = D + FFᵀ with D = blockdiag(R + ridges) is solved by Woodbury's identity: with P = D⁻¹, block by block, and M = I + FᵀPF,

    A⁻¹y = P(y - F v),   v = M⁻¹FᵀPy,        [A⁻¹]ᵢᵢ = Pᵢᵢ - tᵢᵀM⁻¹tᵢ,   T = PF.

F and P are held in float32 and multiplied in float64, block by block. Rounding P makes A⁻¹ nearly, not quite, the inverse:
whoever needs more corrects with a product by the matrix itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from kstonet.gram.cholesky import with_jitter
from kstonet.gram.halves import CholeskyFactor, mirrored

LOW_PRECISION_FROM = 3e-6  # ridge over the size of a block from which float32 holds its inverse well enough to correct with
JITTERS = range(-14, -4)  # powers of ten of the mean diagonal of a block


@dataclass(frozen=True)
class Piece:
    """Some rows: their place among all, their part of F, and the block of D that belongs to them (None: zeros)."""

    place: slice
    factor: np.ndarray
    block: np.ndarray | None


class RegularisedSolver:
    """(FFᵀ + blockdiag + diag(ridges))⁻¹; rows with an infinite ridge take no part.

    Parameters
    ----------
    pieces : sequence of Piece
    ridges : ndarray of shape (n,)
        In the order of the pieces, non-negative.
    order : ndarray of int, shape (n,)
        Numbers of these rows in the arrays that are handed in and out.
    exact : bool
        Whether the inverses of the blocks are kept in float64.
    """

    def __init__(self, pieces: Sequence[Piece], ridges: np.ndarray, order: np.ndarray, *, exact: bool = False) -> None:
        self._pieces, self._order = pieces, order
        rank = pieces[0].factor.shape[1]
        self.shift = float(ridges.min())
        self._inverses: list[np.ndarray] = []  # (b, b), or (b,) without a block
        gram = np.zeros((rank, rank))
        for piece in pieces:
            inverse = _inverse(piece.block, ridges[piece.place], exact)
            self._inverses.append(inverse)
            factor = piece.factor.astype(np.float64)
            gram += factor.T @ _applied(inverse, factor)
        gram.flat[:: rank + 1] += 1.0
        self._core = cho_factor(0.5 * (gram + gram.T), lower=True, overwrite_a=True, check_finite=False)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the pieces."""
        return int(self._core[0].nbytes + sum(inverse.nbytes for inverse in self._inverses))

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """Apply the inverse to every row."""
        columns = np.ascontiguousarray(rows[:, self._order].T, dtype=np.float64)
        projected = np.zeros((len(self._core[0]), columns.shape[1]))
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            projected += piece.factor.astype(np.float64).T @ _applied(inverse, columns[piece.place])
        inner = cho_solve(self._core, projected, check_finite=False)
        solved = np.empty_like(columns)
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            solved[piece.place] = _applied(inverse, columns[piece.place] - piece.factor.astype(np.float64) @ inner)
        out = np.empty(rows.shape)
        out[:, self._order] = solved.T
        return out

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The diagonal of the inverse; zero for rows that take no part."""
        values = np.empty(len(self._order))
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            lifted = _applied(inverse, piece.factor.astype(np.float64))
            half = solve_triangular(self._core[0], lifted.T, lower=True, check_finite=False)
            own = inverse if inverse.ndim == 1 else np.diagonal(inverse)
            values[self._order[piece.place]] = own - (half**2).sum(axis=0)
        return np.asarray(np.maximum(values, 0.0))


def _applied(inverse: np.ndarray, columns: np.ndarray) -> np.ndarray:
    """One block of P times columns, in float64."""
    wide = inverse.astype(np.float64, copy=False)
    return np.asarray(wide[:, None] * columns if wide.ndim == 1 else wide @ columns)


def _inverse(block: np.ndarray | None, ridges: np.ndarray, exact: bool) -> np.ndarray:
    """(block + diag(ridges))⁻¹ on the rows with finite ridges, zero elsewhere."""
    seen = np.flatnonzero(np.isfinite(ridges))
    if block is None:
        return np.asarray(np.divide(1.0, ridges, out=np.zeros_like(ridges), where=np.isfinite(ridges)))
    if not len(seen):
        return np.zeros(block.shape, dtype=np.float32)
    whole = len(seen) == len(block)
    matrix = (block if whole else block[np.ix_(seen, seen)]).astype(np.float64)
    size = float(np.abs(np.diagonal(matrix)).mean())
    invalid = "a block of the kernel matrix is not positive semi-definite; use a valid kernel."
    factor = with_jitter(lambda jitter: CholeskyFactor.of(matrix, ridges[seen] + jitter), size, JITTERS, invalid)
    inverse = mirrored(factor.inverse())
    low = not exact and ridges[seen].min() > LOW_PRECISION_FROM * _size(matrix)
    kept = np.zeros(block.shape, dtype=np.float32 if low else np.float64)
    kept[slice(None) if whole else np.ix_(seen, seen)] = inverse
    return kept


def _size(matrix: np.ndarray) -> float:
    """A bound of the largest eigenvalue."""
    return float(np.abs(matrix).sum(axis=1).max())
