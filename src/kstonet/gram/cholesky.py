"""One Cholesky factor, applied to a few rows at the speed of a matrix product.

LAPACK's triangular solve is slow for a handful of right-hand sides. With the small diagonal blocks inverted once
(n·block² work, nothing beside n³/3) a solve is a sequence of plain products that reads the factor twice by halves:
as fast as multiplying by an explicit inverse, which would cost twice the factorisation again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np

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

    Parameters
    ----------
    A : ndarray of shape (n, n), C order
        Symmetric matrix; its lower triangle is overwritten by L.
    """

    def __init__(self, A: np.ndarray) -> None:
        n = len(A)
        bad = factor(Matrix.of(A.T), "U")  # LAPACK, which expects the order of Fortran, sees the upper triangle
        if bad:
            raise NotPositiveDefiniteError(f"pivot {bad} of {n} is not positive")
        self._L = A
        self._spans = [(block.start, block.stop) for block in pieces(0, n, BLOCK)]

        def inverse(span: tuple[int, int]) -> np.ndarray:
            corner = np.asfortranarray(np.tril(A[slice(*span), slice(*span)]))
            call("trtri", "L", "N", len(corner), Matrix.of(corner))
            return np.ascontiguousarray(corner)

        self._inverses = in_threads(inverse, self._spans)

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._L.nbytes + sum(block.nbytes for block in self._inverses)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """Return X with ``X A = rows`` (A symmetric, so every row is solved for)."""
        L, n = self._L, len(self._L)
        X = rows.astype(L.dtype)

        def reduce(part: np.ndarray, factor: np.ndarray, begin: int, end: int) -> None:
            def piece(columns: slice) -> None:
                X[:, columns] -= part @ factor[:, columns]

            in_threads(piece, pieces(begin, end))

        for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
            X[:, start:stop] = part = X[:, start:stop] @ inverse.T
            reduce(part, L[:, start:stop].T, stop, n)
        for (start, stop), inverse in zip(reversed(self._spans), reversed(self._inverses), strict=True):
            X[:, start:stop] = part = X[:, start:stop] @ inverse
            reduce(part, L[start:stop], 0, start)
        return X

    def inverse_diagonal(self, last: int) -> np.ndarray:
        """The last entries of the diagonal of A⁻¹: column sums of squares of L⁻¹.

        Some columns at a time are made, which are zero above their own rows.
        """
        L, n = self._L, len(self._L)

        def sums_of_squares(own: slice) -> np.ndarray:
            begin = own.start
            columns = np.eye(n - begin, own.stop - begin, dtype=L.dtype)
            found = np.zeros(own.stop - begin)
            for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
                if start >= begin:
                    block = columns[start - begin : stop - begin]
                    block -= L[start:stop, begin:start] @ columns[: start - begin]
                    block[:] = inverse @ block
                    found += np.einsum("ij,ij->j", block, block)
            return found

        first = (n - last) // BLOCK * BLOCK
        return np.concatenate(in_threads(sums_of_squares, pieces(first, n, BLOCK), most=COLUMNS // BLOCK))[-last:]

    def leading(self, size: int) -> BlockedCholesky:
        """The factor of the first rows and columns, which is a part of this one; nothing is copied."""
        part = object.__new__(BlockedCholesky)
        part._L = self._L[:size, :size]
        part._spans = [(start, min(stop, size)) for start, stop in self._spans if start < size]
        own = zip(part._spans, self._inverses[: len(part._spans)], strict=True)
        part._inverses = [inverse[: stop - start, : stop - start] for (start, stop), inverse in own]
        return part
