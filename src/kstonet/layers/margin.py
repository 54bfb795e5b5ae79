"""The variance of one support vector regression, eq. (SVRvareq), at new rows and, left out, at its own rows.

    σ_f²(z) = K_zz - K_zM K_MM⁻¹ K_Mz + (1 - 1ᵀK_MM⁻¹K_Mz)² / (1ᵀK_MM⁻¹1)

with the margin set M: the free support vectors, which pin the function down. The last term, which the paper leaves out, is
the variance of the unpenalised intercept (universal kriging); it is small unless the margin set is.

The same factor gives what leaving a training row out does to the function there, with the margin set held fixed (the span of
support vectors, Chapelle & Vapnik 1999): f(x_i) - f₋ᵢ(x_i) = coef_i · S_i², where S_i² is the variance above without row i,
1/[K̃⁻¹]_ii for rows of the margin set itself.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import cholesky, solve_triangular

from kstonet._arrays import Array, to_numpy
from kstonet.gram.cholesky import with_jitter
from kstonet.gram.unlocked import Matrix, call
from kstonet.threads import in_threads, pieces

MOST_ROWS = 800  # of a margin set: beyond it evenly spaced ones, so that a variance costs at most their square
ROUNDING = 1e-10  # of k(z, z): what is left of it where the margin set explains a row, as with kernels of finite rank
JITTERS = range(-13, -3)  # powers of ten of the mean diagonal
NO_VARIANCE = (
    "the kernel matrix is not positive semi-definite on the rows that pin the function down, so it has no variance. Is your "
    "kernel a kernel? residuals=None trains without intervals."
)


@dataclass(frozen=True)
class MarginFactor:
    """A factored margin set.

    Parameters
    ----------
    columns : ndarray of int
        The rows of the margin set, as columns of the kernel values that will be handed in.
    factor : ndarray
        Lower Cholesky factor L of K_MM, in the order of Fortran.
    ones : ndarray
        L⁻¹1.
    """

    columns: np.ndarray
    factor: np.ndarray
    ones: np.ndarray

    @classmethod
    def of(cls, matrix: np.ndarray, columns: np.ndarray) -> MarginFactor:
        """Factor K_MM, the rows and columns of ``matrix`` (K on the rows that ``columns`` names)."""
        scale = float(np.mean(np.diagonal(matrix))) if matrix.any() else 1.0  # of constant rows, the linear kernel is zero

        def factored(jitter: float) -> np.ndarray:
            return np.asfortranarray(cholesky(matrix + jitter * np.eye(len(matrix)), lower=True, check_finite=False))

        factor = with_jitter(factored, scale, JITTERS, NO_VARIANCE)
        return cls(columns, factor, solve_triangular(factor, np.ones(len(matrix)), lower=True, check_finite=False))

    def variance(self, values: Array, diagonal: np.ndarray, *, intercept: bool = True) -> np.ndarray:
        """σ_f² at rows with the kernel values ``values`` (rows, all columns) and ``diagonal`` k(z, z)."""
        if not len(self.columns):
            return np.array(diagonal, dtype=np.float64)
        whole, own = to_numpy(values[:, self.columns]), Matrix.of(self.factor)

        def of_some(rows: slice) -> np.ndarray:
            half = np.array(whole[rows].T, dtype=np.float64, order="F")
            call("trsm", "L", "L", "N", "N", *half.shape, 1.0, own, Matrix.of(half))
            variance = diagonal[rows] - (half**2).sum(axis=0)
            variance = np.where(variance > ROUNDING * diagonal[rows], variance, 0.0)
            if intercept:
                variance = variance + (1.0 - self.ones @ half) ** 2 / (self.ones @ self.ones)
            return np.asarray(variance)

        return np.concatenate(in_threads(of_some, pieces(0, len(whole)) or [slice(0, 0)]))

    def left_out(self, values: np.ndarray, diagonal: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """S² at training rows; ``rows`` holds, for every member of the margin set, its place among them."""
        return self.spans(self.variance(values, diagonal), diagonal, rows)

    def spans(self, variance: np.ndarray, diagonal: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """S² from the :meth:`variance` at all training rows."""
        if len(self.columns):
            inverse = solve_triangular(self.factor, np.eye(len(self.factor)), lower=True, check_finite=False)
            precision = (inverse**2).sum(axis=0) - (inverse.T @ self.ones) ** 2 / (self.ones @ self.ones)
            variance[rows] = 1.0 / np.maximum(precision, 1e-300)
        furthest = 1e6 * np.maximum(diagonal, 1e-300)  # a margin set of one row: nothing is left
        return np.asarray(np.minimum(variance, furthest))


def thinned(members: np.ndarray) -> np.ndarray:
    """At most ``MOST_ROWS`` of the members, evenly spaced."""
    if len(members) <= MOST_ROWS:
        return members
    return np.asarray(members[np.linspace(0, len(members) - 1, MOST_ROWS).round().astype(int)])
