"""Symmetric positive definite matrices of which one half is enough: Cholesky factors, their inverses, and blocks of rows.

Arrays have the order of C, in which LAPACK's lower half is the upper one. Both precisions are served: float32 takes half the
time, and is precise enough while the smallest eigenvalue (the ridge) is not small. Threads do not wait for each other
(:mod:`~kstonet.gram.unlocked`).
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from kstonet.gram.triangles import factor, invert, square
from kstonet.gram.unlocked import Matrix, call
from kstonet.threads import PIECE, in_threads, pieces

BLOCK = 128  # rows whose values stay in the cache together


def upper_blocks(n: int) -> Iterator[tuple[slice, slice]]:
    """Rows and columns of the blocks that cover the upper half of a matrix, the diagonal included."""
    return ((slice(begin, begin + BLOCK), slice(begin, n)) for begin in range(0, n, BLOCK))


@cache
def _below(n: int) -> np.ndarray:
    """Whether a place is below the diagonal."""
    return np.tri(n, k=-1, dtype=bool)


def mirrored(A: np.ndarray) -> np.ndarray:
    """A with its upper half copied to the lower one, in place."""
    for rows, _ in upper_blocks(len(A)):
        corner = A[rows, rows]
        corner[:] = np.triu(corner) + np.triu(corner, 1).T
        A[rows.stop :, rows] = A[rows, rows.stop :].T
    return A


def shared_product(rows: np.ndarray, A: np.ndarray, size: int = PIECE) -> np.ndarray:
    """rows·A, shared out among threads, so many columns of A at a time."""
    out = np.empty((len(rows), A.shape[1]), dtype=np.result_type(rows, A))

    def fill(block: slice) -> None:
        out[:, block] = rows @ A[:, block]

    in_threads(fill, pieces(0, A.shape[1], size))
    return out


def half_times(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A·B, where A is symmetric, given by its upper half."""
    A, B = np.ascontiguousarray(A), np.asfortranarray(B, dtype=A.dtype)
    product = np.zeros_like(B)
    call("symm", "L", "L", *B.shape, 1.0, Matrix.of(A.T), Matrix.of(B), 0.0, Matrix.of(product))
    return product


def half_of_square(A: np.ndarray) -> np.ndarray:
    """The upper half of A·Aᵀ, for half of the price of a product."""
    A = np.ascontiguousarray(A)
    square = np.zeros((len(A), len(A)), dtype=A.dtype)
    call("syrk", "L", "T", *A.shape, 1.0, Matrix.of(A.T), 0.0, Matrix.of(square.T))
    return square


def with_squares(A: np.ndarray, B: np.ndarray, *, times: float = 1.0, squares: float = 1.0) -> np.ndarray:
    """times·A + squares·B·Bᵀ, where A is symmetric, given by its upper half, which is overwritten."""
    A, B = np.ascontiguousarray(A), np.asfortranarray(B, dtype=A.dtype)
    call("syrk", "L", "N", *B.shape, float(squares), Matrix.of(B), float(times), Matrix.of(A.T))
    return A


def with_products(A: np.ndarray, B: np.ndarray, C: np.ndarray, *, products: float) -> np.ndarray:
    """A + products·(B·Cᵀ + C·Bᵀ), where A is symmetric, given by its upper half, which is overwritten."""
    A, B, C = np.ascontiguousarray(A), np.asfortranarray(B, dtype=A.dtype), np.asfortranarray(C, dtype=A.dtype)
    call("syr2k", "L", "N", *B.shape, float(products), Matrix.of(B), Matrix.of(C), 1.0, Matrix.of(A.T))
    return A


class CholeskyFactor:
    """The factor of K + ridge·I.

    Parameters
    ----------
    L : ndarray of shape (n, n)
        In LAPACK's order: lower; what is above the diagonal does not matter.
    """

    def __init__(self, L: np.ndarray) -> None:
        self.L = L

    @classmethod
    def of(cls, K: np.ndarray, ridge: np.ndarray | float, *, overwrite: bool = False) -> CholeskyFactor | None:
        """Factor K + ridge·I, over K where that is allowed; None where it is not positive definite in floating point."""
        A = np.ascontiguousarray(K) if overwrite else K.copy()
        A.flat[:: len(K) + 1] += ridge
        return None if factor(Matrix.of(A.T), "L") else cls(A.T)

    def log_det(self) -> float:
        """The logarithm of the determinant."""
        return 2.0 * float(np.log(np.diagonal(self.L), dtype=np.float64).sum())

    def solve(self, B: np.ndarray) -> np.ndarray:
        """A⁻¹B."""
        solved = np.array(B, dtype=self.L.dtype, order="F")
        call("potrs", "L", *solved.shape, Matrix.of(self.L), Matrix.of(solved))
        return solved

    def inverse_diagonal(self) -> np.ndarray:
        """The diagonal of A⁻¹, from the inverse of the factor alone; overwrites the factor."""
        invert(Matrix.of(self.L))
        half, diagonal = self.L.T, np.empty(len(self.L), dtype=self.L.dtype)
        for rows, columns in upper_blocks(len(half)):
            own = half[rows, columns]
            np.copyto(own[:, : len(own)], 0.0, where=_below(len(own)))
            diagonal[rows] = np.einsum("ij,ij->i", own, own)
        return diagonal

    def inverse(self) -> np.ndarray:
        """The upper half of A⁻¹, in the order of C; overwrites the factor."""
        invert(Matrix.of(self.L))
        square(Matrix.of(self.L))
        return self.L.T
