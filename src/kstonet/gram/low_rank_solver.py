"""Systems with a low-rank matrix, blocks on its diagonal and a ridge of its own for every row.

A = D + FFᵀ with D = blockdiag(R + ridges) is solved by Woodbury's identity: with P = D⁻¹, block by block, and M = I + FᵀPF,

    A⁻¹y = P(y - F v),   v = M⁻¹FᵀPy,        [A⁻¹]ᵢᵢ = Pᵢᵢ - tᵢᵀM⁻¹tᵢ,   T = PF.

F and P are held in float32 and multiplied in float64, block by block. Rounding P makes A⁻¹ nearly, not quite, the inverse:
whoever needs more corrects with a product by the matrix itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from kstonet._arrays import Array, astype, contiguous, in_kind_of, like, low_precision, namespace, to_numpy, widened, zeros
from kstonet._arrays import copy as copy_of
from kstonet.gram.algebra import lower_factor, regularised_inverse, solve_factored, solve_lower
from kstonet.gram.base import DIRECT, EVERY_ROW
from kstonet.gram.cholesky import with_jitter

LOW_PRECISION_FROM = 3e-6  # ridge over the size of a block from which float32 holds its inverse well enough to correct with
MOST_HIDDEN = 0.3  # share of the rows up to which leaving them out of an inverse costs less than another one
JITTERS = range(-14, -4)  # powers of ten of the mean diagonal of the kernel


@dataclass(frozen=True)
class Piece:
    """Some rows: their place among all, their part of F, and the block of D that belongs to them (None: zeros)."""

    place: slice
    factor: Array
    block: Array | None


def as_it_is(values: Array) -> Array:
    """The array itself."""
    return values


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
    keep : callable, optional
        Puts them where they are to be held; by default they stay.
    """

    accuracy = DIRECT

    def __init__(
        self,
        pieces: Sequence[Piece],
        ridges: np.ndarray,
        order: np.ndarray,
        *,
        exact: bool = False,
        keep: Callable[[Array], Array] = as_it_is,
    ) -> None:
        self._pieces, self._order, self._ridges = pieces, order, ridges
        rank = pieces[0].factor.shape[1]
        self.shift = float(ridges.min())
        self._parts: list[_Inverse] = []
        gram = zeros(pieces[0].factor, (rank, rank), namespace(pieces[0].factor).float64)
        for piece in pieces:
            part = _Inverse(keep(_inverse(piece, ridges[piece.place], exact)))
            self._parts.append(part)
            factor = widened(piece.factor)
            gram += factor.T @ part.applied(factor)
        everyone = namespace(gram).arange(rank)
        gram[everyone, everyone] += 1.0
        self._gram = 0.5 * (gram + gram.T)
        self._core = lower_factor(self._gram)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the pieces."""
        return int(self._gram.nbytes + self._core.nbytes + sum(part.nbytes for part in self._parts))

    def without(self, ridges: np.ndarray) -> RegularisedSolver | None:
        """The solver with infinite ridges in addition, by the same inverses; None where another has to be made."""
        own = ridges[self._order]
        hidden = np.isinf(own) & np.isfinite(self._ridges)
        if not np.array_equal(np.where(hidden, np.inf, self._ridges), own) or hidden.mean() > MOST_HIDDEN:
            return None
        new = copy(self)
        new._ridges, new._parts, new._gram = own, [], self._gram
        try:
            for piece, part in zip(self._pieces, self._parts, strict=True):
                reduced, less = part.without(np.flatnonzero(hidden[piece.place]), piece.factor)
                new._parts.append(reduced)
                new._gram = new._gram - less
            new._core = lower_factor(new._gram)
        except (np.linalg.LinAlgError, RuntimeError):  # PyTorch's is the latter: rounding has eaten what is left
            return None
        new.__dict__.pop("_diagonal", None)
        return new

    def solve(self, rows: Array) -> Array:
        """Apply the inverse to every row; the result is where the rows are."""
        columns = contiguous(like(self._core, rows)[:, self._order].T)
        projected = zeros(columns, (len(self._core), columns.shape[1]))
        for piece, part in zip(self._pieces, self._parts, strict=True):
            projected += widened(piece.factor).T @ part.applied(columns[piece.place])
        inner = solve_factored(self._core, projected)
        solved = zeros(columns, tuple(columns.shape))
        for piece, part in zip(self._pieces, self._parts, strict=True):
            solved[piece.place] = part.applied(columns[piece.place] - widened(piece.factor) @ inner)
        out = zeros(columns, tuple(rows.shape))
        out[:, self._order] = solved.T
        return in_kind_of(rows, out)

    def diagonal(self, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """The diagonal of the inverse at some rows, by default all; zero for rows that take no part."""
        return np.asarray(self._diagonal[rows])

    @cached_property
    def _diagonal(self) -> np.ndarray:
        values = np.empty(len(self._order))
        for piece, part in zip(self._pieces, self._parts, strict=True):
            half = solve_lower(self._core, part.applied(widened(piece.factor)).T)
            values[self._order[piece.place]] = to_numpy(part.diagonal() - (half**2).sum(0))
        return np.asarray(np.maximum(values, 0.0))


@dataclass(frozen=True)
class _Inverse:
    """The inverse of a block of D, on the rows that take part; zero elsewhere.

    Rows that are left out afterwards get the right-hand sides with which they have no coefficients: by Schur's complement, a
    factor of their part of the inverse is enough.

    Parameters
    ----------
    values : array of shape (b, b), or (b,) without a block
    hidden : ndarray of int, optional
        Places of rows that were left out afterwards.
    factor : array, optional
        The lower Cholesky factor of the inverse at these places.
    """

    values: Array
    hidden: np.ndarray | None = None
    factor: Array | None = None

    @property
    def nbytes(self) -> int:
        return int(self.values.nbytes if self.factor is None else self.factor.nbytes)

    def applied(self, columns: Array) -> Array:
        """The inverse times columns, in float64."""
        wide = widened(self.values)
        if wide.ndim == 1:
            return wide[:, None] * columns
        if self.hidden is None:
            return wide @ columns
        own = copy_of(columns)
        own[self.hidden] = 0.0
        own[self.hidden] = -solve_factored(self.factor, wide[self.hidden] @ own)
        out = wide @ own
        out[self.hidden] = 0.0
        return out

    def without(self, hidden: np.ndarray, factor: Array) -> tuple[_Inverse, Array | float]:
        """The inverse without some rows, and by how much FᵀPF is less then; a LinAlgError where rounding does not allow it."""
        if not len(hidden):
            return self, 0.0
        if self.values.ndim == 1:
            values, own = copy_of(self.values), widened(factor[hidden])
            values[hidden] = 0.0
            return _Inverse(values), own.T @ (self.values[hidden][:, None] * own)
        rows = widened(self.values[hidden])
        corner = rows[:, hidden]
        lower = lower_factor(0.5 * (corner + corner.T))
        half = solve_lower(lower, rows @ widened(factor))
        return _Inverse(self.values, hidden, lower), half.T @ half

    def diagonal(self) -> Array:
        """The diagonal of the inverse."""
        if self.values.ndim == 1:
            return self.values
        own = widened(self.values.diagonal())
        if self.hidden is not None:
            own = own - (solve_lower(self.factor, widened(self.values[self.hidden])) ** 2).sum(0)
            own[self.hidden] = 0.0
        return own


def _inverse(piece: Piece, ridges: np.ndarray, exact: bool) -> Array:
    """(block + diag(ridges))⁻¹ on the rows with finite ridges, zero elsewhere."""
    seen, block = np.flatnonzero(np.isfinite(ridges)), piece.block
    if block is None:
        return like(widened(piece.factor[:0]), np.divide(1.0, ridges, out=np.zeros_like(ridges), where=np.isfinite(ridges)))
    if not len(seen):
        return zeros(block, tuple(block.shape), low_precision(block))
    whole = len(seen) == len(block)
    matrix = widened(block if whole else block[np.ix_(seen, seen)])
    # Of the kernel, not of what the landmarks leave over: rounding F makes the block indefinite by that much.
    size = float((abs(block.diagonal()) + (piece.factor**2).sum(1)).mean())
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
