"""Symmetric positive definite matrices of which one half is enough: Cholesky factors, their inverses, and blocks of rows.

Arrays have the order of C, in which LAPACK's lower half is the upper one. Both precisions are served: float32 takes half the
time, and is precise enough while the smallest eigenvalue (the ridge) is not small.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.linalg import get_blas_funcs, get_lapack_funcs

BLOCK = 128  # rows whose values stay in the cache together
LEAF = 64  # rows of a triangle that LAPACK inverts faster than products do


def upper_blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the blocks that cover the upper half of a matrix, the diagonal included."""
    return ((slice(begin, begin + BLOCK), slice(begin, n)) for begin in range(0, n, BLOCK))


def mirrored(A: np.ndarray) -> np.ndarray:
    """A with its upper half copied to the lower one, in place."""
    for rows, _ in upper_blocks(len(A)):
        corner = A[rows, rows]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        A[rows.stop :, rows] = A[rows, rows.stop :].T
    return A


def half_times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A·B, where A is symmetric, given by its upper half."""
    (symm,) = get_blas_funcs(("symm",), (A, B))
    return np.asarray(symm(1.0, A.T, B, lower=1))


def half_of_square(A: np.ndarray) -> np.ndarray:
    """The upper half of A·Aᵀ, for half of the price of a product."""
    (syrk,) = get_blas_funcs(("syrk",), (A,))
    return np.asarray(syrk(1.0, A.T, trans=1, lower=1).T)


def with_squares(A: np.ndarray, B: np.ndarray, *, times: float = 1.0, squares: float = 1.0) -> np.ndarray:
    """times·A + squares·B·Bᵀ, where A is symmetric, given by its upper half, which is overwritten."""
    (syrk,) = get_blas_funcs(("syrk",), (A, B))
    return np.asarray(syrk(squares, B, beta=times, c=A.T, lower=1, overwrite_c=1).T)


def with_products(A: np.ndarray, B: np.ndarray, C: np.ndarray, *, products: float) -> np.ndarray:
    """A + products·(B·Cᵀ + C·Bᵀ), where A is symmetric, given by its upper half, which is overwritten."""
    (syr2k,) = get_blas_funcs(("syr2k",), (A, B, C))
    return np.asarray(syr2k(products, B, C, beta=1.0, c=A.T, lower=1, overwrite_c=1).T)


class CholeskyFactor:
    """The factor of K + ridge·I.

    Parameters
    ----------
    L : ndarray of shape (n, n)
        In LAPACK's order: lower, with zeros above the diagonal.
    """

    def __init__(self, L: np.ndarray) -> None:
        self.L = L

    @classmethod
    def of(cls, K: np.ndarray, ridge: np.ndarray | float, *, overwrite: bool = False) -> CholeskyFactor | None:
        """Factor K + ridge·I, over K where that is allowed; None where it is not positive definite in floating point."""
        A = np.ascontiguousarray(K) if overwrite else K.copy()
        A.flat[:: len(K) + 1] += ridge
        (potrf,) = get_lapack_funcs(("potrf",), (A,))
        L, failed = potrf(A.T, lower=1, overwrite_a=1, clean=1)
        return None if failed else cls(L)

    def log_det(self) -> float:
        """The logarithm of the determinant."""
        return 2.0 * float(np.log(np.diagonal(self.L), dtype=np.float64).sum())

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A⁻¹B."""
        (potrs,) = get_lapack_funcs(("potrs",), (self.L, B))
        return np.asarray(potrs(self.L, B, lower=1)[0])

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of A⁻¹, from the inverse of the factor alone; overwrites the factor."""
        _invert(self.L)
        return np.asarray(np.einsum("ij,ij->i", self.L.T, self.L.T))

    def inverse(self) -> np.ndarray:
        """The upper half of A⁻¹, in the order of C; overwrites the factor."""
        _invert(self.L)
        (lauum,) = get_lapack_funcs(("lauum",), (self.L,))
        return np.asarray(lauum(self.L, lower=1, overwrite_c=1)[0].T)


def _invert(L: np.ndarray) -> None:
    """A lower triangle by halves, in place: LAPACK's own inverse of a triangle is twice as slow."""
    n = len(L)
    if n <= LEAF:
        (trtri,) = get_lapack_funcs(("trtri",), (L,))
        L[:] = trtri(L, lower=1)[0]
        return
    first, second = slice(0, n // 2), slice(n // 2, n)
    _invert(L[first, first])
    _invert(L[second, second])
    (trmm,) = get_blas_funcs(("trmm",), (L,))
    below = trmm(-1.0, L[second, second], L[second, first], lower=1)
    L[second, first] = trmm(1.0, L[first, first], below, side=1, lower=1, overwrite_b=1)
