"""One Cholesky factor, applied to a few rows at the speed of a matrix product.

LAPACK's triangular solve is slow for a handful of right-hand sides. With the small diagonal blocks inverted once
(n·block² work, nothing beside n³/3) a solve is a sequence of plain products that reads the factor twice by halves:
as fast as multiplying by an explicit inverse, which would cost twice the factorisation again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

import numpy as np

from kstonet._arrays import Array, astype, copy, dots, namespace, zeros
from kstonet.gram.triangles import factor
from kstonet.gram.unlocked import Matrix, call
from kstonet.threads import in_threads, pieces

BLOCK = 512
COLUMNS = 4 * BLOCK  # of an inverted factor that are made at once

Found = TypeVar("Found")


class NotPositiveDefiniteError(np.linalg.LinAlgError):
    """The matrix handed to the factorisation has a pivot that is not positive."""


def with_jitter(factor: Callable[[float], Found | None], scale: float, powers: range, failure: str) -> Found:
    """What ``factor`` makes of the smallest addition to a diagonal for which it makes something.

    Duplicate rows and smooth kernels make a kernel matrix singular in floating point. Where its factorisation fails, a jitter
    on the diagonal cures that: the smallest one distorts least.

    Parameters
    ----------
    factor : callable
        Takes the jitter; returns None, or raises a LinAlgError, where the matrix is not positive definite.
    scale : float
        Typical size of the diagonal.
    powers : range
        After zero, the jitters are scale·10^power.
    failure : str
        Message of the error where all of them fail.

    Raises
    ------
    NotPositiveDefiniteError

    Examples
    --------
    >>> import numpy as np
    >>> ones = np.ones((2, 2))
    >>> with_jitter(lambda jitter: np.linalg.cholesky(ones + jitter * np.eye(2)), 1.0, range(-12, -3), "no kernel").round(6)
    array([[1.e+00, 0.e+00],
           [1.e+00, 1.e-06]])
    """
    for jitter in (0.0, *(10.0**power * scale for power in powers)):
        try:
            found = factor(jitter)
        except np.linalg.LinAlgError:
            continue
        if found is not None:
            return found
    raise NotPositiveDefiniteError(failure)


class BlockedCholesky:
    """Factor ``A = L Lᵀ`` in place and solve for stacked rows.

    A subclass for arrays of another kind says how they are factored, and who does the work.

    Parameters
    ----------
    A : array of shape (n, n), C order
        Symmetric matrix; it is overwritten by L.
    """

    def __init__(self, A: Array) -> None:
        n = len(A)
        self._L, bad = self._factored(A)
        if bad:
            raise NotPositiveDefiniteError(f"pivot {bad} of {n} is not positive")
        self._spans = [(block.start, block.stop) for block in pieces(0, n, BLOCK)]
        self._inverses = self._each(lambda span: self._inverse(self._L[slice(*span), slice(*span)]), self._spans)

    @staticmethod
    def _factored(A: Array) -> tuple[Array, int]:
        """L, whose lower triangle counts, in the memory of A; and the first pivot that is not positive, or zero."""
        return A, factor(Matrix.of(A.T), "U")  # LAPACK, which expects the order of Fortran, sees the upper triangle

    @staticmethod
    def _inverse(corner: Array) -> Array:
        """The inverse of a lower triangle."""
        inverse = np.asfortranarray(np.tril(corner))
        call("trtri", "L", "N", len(inverse), Matrix.of(inverse))
        return np.ascontiguousarray(inverse)

    @staticmethod
    def _each(work: Callable[[Any], Any], items: Sequence[Any], most: int | None = None) -> list[Any]:
        """``work`` of every item, ``most`` of them at once."""
        return in_threads(work, items, most=most)

    @staticmethod
    def _shares(begin: int, end: int) -> Sequence[slice]:
        """The columns from ``begin`` to ``end`` in shares, one for each who works on them."""
        return pieces(begin, end)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._L.nbytes + sum(block.nbytes for block in self._inverses))

    def solve(self, rows: Array) -> Array:
        """Return X with ``X A = rows`` (A symmetric, so every row is solved for)."""
        L, n = self._L, len(self._L)
        X = copy(rows) if rows.dtype == L.dtype else astype(rows, L.dtype)

        def reduce(part: Array, factor: Array, begin: int, end: int) -> None:
            def piece(columns: slice) -> None:
                X[:, columns] -= part @ factor[:, columns]

            self._each(piece, self._shares(begin, end))

        for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
            X[:, start:stop] = part = X[:, start:stop] @ inverse.T
            reduce(part, L[:, start:stop].T, stop, n)
        for (start, stop), inverse in zip(reversed(self._spans), reversed(self._inverses), strict=True):
            X[:, start:stop] = part = X[:, start:stop] @ inverse
            reduce(part, L[start:stop], 0, start)
        return X

    def inverse_diagonal(self, last: int) -> Array:
        """The last entries of the diagonal of A⁻¹: column sums of squares of L⁻¹.

        Some columns at a time are made, which are zero above their own rows.
        """
        L, n, xp = self._L, len(self._L), namespace(self._L)

        def sums_of_squares(own: slice) -> Array:
            begin, width = own.start, own.stop - own.start
            columns, everyone = zeros(L, (n - begin, width)), xp.arange(width)
            columns[everyone, everyone] = 1.0
            found = zeros(L, (width,), xp.float64)
            for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
                if start >= begin:
                    block = columns[start - begin : stop - begin]
                    block -= L[start:stop, begin:start] @ columns[: start - begin]
                    block[:] = inverse @ block
                    found += dots(block, block, axis=0)
            return found

        first = (n - last) // BLOCK * BLOCK
        return xp.concatenate(self._each(sums_of_squares, pieces(first, n, BLOCK), most=COLUMNS // BLOCK))[-last:]

    def leading(self, size: int) -> Self:
        """The factor of the first rows and columns, which is a part of this one; nothing is copied."""
        part = object.__new__(type(self))
        part._L = self._L[:size, :size]
        part._spans = [(start, min(stop, size)) for start, stop in self._spans if start < size]
        own = zip(part._spans, self._inverses[: len(part._spans)], strict=True)
        part._inverses = [inverse[: stop - start, : stop - start] for (start, stop), inverse in own]
        return part
