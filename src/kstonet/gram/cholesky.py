"""One Cholesky factor, applied to a few rows at the speed of a matrix product.

LAPACK's triangular solve is slow for a handful of right-hand sides. With the small diagonal blocks inverted once
(n·block² work, nothing beside n³/3) a solve is a sequence of plain products that reads the factor twice by halves:
as fast as multiplying by an explicit inverse, which would cost twice the factorisation again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import numpy as np
from scipy.linalg import get_lapack_funcs

BLOCK = 512
COLUMNS = 4 * BLOCK  # of an inverted factor that are made at once
# LAPACK's potrf, handed the whole matrix, was seen to crash inside OpenBLAS at n = 20,000 with two threads. Above this size the
# factor is built block by block, at two thirds of LAPACK's speed.
LAPACK_UP_TO = 12_000

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


def _require_positive(info: int, before: int, n: int) -> None:
    if info != 0:
        raise NotPositiveDefiniteError(f"pivot {before + info} of {n} is not positive")


class BlockedCholesky:
    """Factor ``A = L Lᵀ`` in place and solve for stacked rows.

    Parameters
    ----------
    A : ndarray of shape (n, n), C order
        Symmetric matrix; its lower triangle is overwritten by L.
    """

    def __init__(self, A: np.ndarray) -> None:
        potrf, trtri = get_lapack_funcs(("potrf", "trtri"), (A,))
        n = A.shape[0]
        self._L = A
        self._spans = [(start, min(start + BLOCK, n)) for start in range(0, n, BLOCK)]
        self._inverses = []
        whole = n <= LAPACK_UP_TO
        if whole:
            # A is C-ordered: LAPACK sees Aᵀ = A, and its upper factor U is our L, in place.
            _, info = potrf(A.T, lower=0, overwrite_a=1, clean=0)
            _require_positive(info, 0, n)
        for start, stop in self._spans:
            corner = np.tril(A[start:stop, start:stop])
            if not whole:  # left-looking by block columns, one large product each
                if start:
                    A[start:, start:stop] -= A[start:, :start] @ A[start:stop, :start].T
                corner, info = potrf(A[start:stop, start:stop], lower=1, clean=1)
                _require_positive(info, start, n)
                A[start:stop, start:stop] = corner
            inverse = np.ascontiguousarray(trtri(corner, lower=1)[0])
            self._inverses.append(inverse)
            if not whole:
                A[stop:, start:stop] = A[stop:, start:stop] @ inverse.T

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return self._L.nbytes + sum(block.nbytes for block in self._inverses)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """Return X with ``X A = rows`` (A symmetric, so every row is solved for)."""
        L = self._L
        X = rows.astype(L.dtype)
        for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
            part = X[:, start:stop]
            if start:
                part = part - X[:, :start] @ L[start:stop, :start].T
            X[:, start:stop] = part @ inverse.T
        for (start, stop), inverse in zip(reversed(self._spans), reversed(self._inverses), strict=True):
            part = X[:, start:stop] @ inverse
            X[:, start:stop] = part
            if start:
                X[:, :start] -= part @ L[start:stop, :start]
        return X

    def inverse_diagonal(self, last: int) -> np.ndarray:
        """The last entries of the diagonal of A⁻¹: column sums of squares of L⁻¹.

        Some columns at a time are made, which are zero above their own rows.
        """
        L, n = self._L, len(self._L)
        first = (n - last) // BLOCK * BLOCK
        diagonal = np.zeros(n - first)
        for begin in range(first, n, COLUMNS):
            columns = np.eye(n - begin, min(COLUMNS, n - begin), dtype=L.dtype)
            for (start, stop), inverse in zip(self._spans, self._inverses, strict=True):
                if start >= begin:
                    own = columns[start - begin : stop - begin]
                    own -= L[start:stop, begin:start] @ columns[: start - begin]
                    own[:] = inverse @ own
                    diagonal[begin - first : begin - first + COLUMNS] += np.einsum("ij,ij->j", own, own)
        return diagonal[-last:]

    def leading(self, size: int) -> BlockedCholesky:
        """The factor of the first rows and columns, which is a part of this one; nothing is copied."""
        part = object.__new__(BlockedCholesky)
        part._L = self._L[:size, :size]
        part._spans = [(start, min(stop, size)) for start, stop in self._spans if start < size]
        own = zip(part._spans, self._inverses[: len(part._spans)], strict=True)
        part._inverses = [inverse[: stop - start, : stop - start] for (start, stop), inverse in own]
        return part
