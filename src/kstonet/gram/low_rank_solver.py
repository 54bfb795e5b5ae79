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

from kstonet._arrays import Array, astype, contiguous, in_kind_of, like, low_precision, namespace, to_numpy, widened, zeros
from kstonet.gram.algebra import lower_factor, regularised_inverse, solve_factored, solve_lower
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.cholesky import with_jitter

LOW_PRECISION_FROM = 3e-6  # ridge over the size of a block from which float32 holds its inverse well enough to correct with
JITTERS = range(-14, -4)  # powers of ten of the mean diagonal of a block


@dataclass(frozen=True)
class Piece:
    """Some rows: their place among all, their part of F, and the block of D that belongs to them (None: zeros)."""

    place: slice
    factor: Array
    block: Array | None


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
        self._inverses: list[Array] = []  # (b, b), or (b,) without a block
        gram = zeros(pieces[0].factor, (rank, rank), namespace(pieces[0].factor).float64)
        for piece in pieces:
            inverse = _inverse(piece, ridges[piece.place], exact)
            self._inverses.append(inverse)
            factor = widened(piece.factor)
            gram += factor.T @ _applied(inverse, factor)
        everyone = namespace(gram).arange(rank)
        gram[everyone, everyone] += 1.0
        self._core = lower_factor(0.5 * (gram + gram.T))

    @property
    def nbytes(self) -> int:
        """Bytes held beside the pieces."""
        return int(self._core.nbytes + sum(inverse.nbytes for inverse in self._inverses))

    def without(self, ridges: np.ndarray) -> None:
        """A solver with other rows is made anew."""

    def solve(self, rows: Array) -> Array:
        """Apply the inverse to every row; the result is where the rows are."""
        columns = contiguous(like(self._core, rows)[:, self._order].T)
        projected = zeros(columns, (len(self._core), columns.shape[1]))
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            projected += widened(piece.factor).T @ _applied(inverse, columns[piece.place])
        inner = solve_factored(self._core, projected)
        solved = zeros(columns, tuple(columns.shape))
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            solved[piece.place] = _applied(inverse, columns[piece.place] - widened(piece.factor) @ inner)
        out = zeros(columns, tuple(rows.shape))
        out[:, self._order] = solved.T
        return in_kind_of(rows, out)

    def diagonal(self, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """The diagonal of the inverse at some rows, by default all; zero for rows that take no part."""
        return np.asarray(self._diagonal[rows])

    @cached_property
    def _diagonal(self) -> np.ndarray:
        values = np.empty(len(self._order))
        for piece, inverse in zip(self._pieces, self._inverses, strict=True):
            half = solve_lower(self._core, _applied(inverse, widened(piece.factor)).T)
            own = inverse if inverse.ndim == 1 else inverse.diagonal()
            values[self._order[piece.place]] = to_numpy(own - (half**2).sum(0))
        return np.asarray(np.maximum(values, 0.0))


def _applied(inverse: Array, columns: Array) -> Array:
    """One block of P times columns, in float64."""
    wide = widened(inverse)
    return wide[:, None] * columns if wide.ndim == 1 else wide @ columns


def _inverse(piece: Piece, ridges: np.ndarray, exact: bool) -> Array:
    """(block + diag(ridges))⁻¹ on the rows with finite ridges, zero elsewhere."""
    seen, block = np.flatnonzero(np.isfinite(ridges)), piece.block
    if block is None:
        return like(widened(piece.factor[:0]), np.divide(1.0, ridges, out=np.zeros_like(ridges), where=np.isfinite(ridges)))
    if not len(seen):
        return zeros(block, tuple(block.shape), low_precision(block))
    whole = len(seen) == len(block)
    matrix = widened(block if whole else block[np.ix_(seen, seen)])
    size = float(abs(matrix.diagonal()).mean())
    invalid = "a block of the kernel matrix is not positive semi-definite; use a valid kernel."
    inverse = with_jitter(lambda jitter: regularised_inverse(matrix, ridges[seen] + jitter), size, JITTERS, invalid)
    low = not exact and ridges[seen].min() > LOW_PRECISION_FROM * _size(matrix)
    if whole:
        return astype(inverse, low_precision(block)) if low else inverse
    kept = zeros(block, tuple(block.shape), low_precision(block) if low else matrix.dtype)
    kept[np.ix_(seen, seen)] = astype(inverse, kept.dtype)
    return kept


def _size(matrix: Array) -> float:
    """A bound of the largest eigenvalue."""
    return float(abs(matrix).sum(1).max())
