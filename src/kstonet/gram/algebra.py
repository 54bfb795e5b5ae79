"""Symmetric positive definite matrices, factored and inverted: what SciPy and PyTorch spell differently."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from kstonet._arrays import Array, like, namespace
from kstonet.gram.halves import CholeskyFactor, mirrored


def regularised_inverse(matrix: Array, ridges: np.ndarray) -> Array | None:
    """(matrix + diag(ridges))⁻¹, or None where that is not positive definite in floating point.

    Examples
    --------
    >>> import numpy as np
    >>> regularised_inverse(np.array([[1.0, 1.0], [1.0, 1.0]]), np.array([1.0, 1.0])).round(3)
    array([[ 0.667, -0.333],
           [-0.333,  0.667]])
    """
    xp = namespace(matrix)
    if xp is np:
        factor = CholeskyFactor.of(matrix, ridges)
        return None if factor is None else mirrored(factor.inverse())
    work = matrix.clone()
    work.diagonal().add_(like(matrix, ridges))
    lower, failed = xp.linalg.cholesky_ex(work)
    return None if int(failed) else xp.cholesky_inverse(lower)


def lower_factor(matrix: Array) -> Array:
    """L with LLᵀ = matrix; a LinAlgError where there is none."""
    xp = namespace(matrix)
    return cholesky(matrix, lower=True, check_finite=False) if xp is np else xp.linalg.cholesky(matrix)


def solve_factored(lower: Array, columns: Array) -> Array:
    """(LLᵀ)⁻¹ applied to every column."""
    xp = namespace(lower)
    return cho_solve((lower, True), columns, check_finite=False) if xp is np else xp.cholesky_solve(columns, lower)


def solve_lower(lower: Array, columns: Array) -> Array:
    """L⁻¹ applied to every column."""
    xp = namespace(lower)
    if xp is np:
        return solve_triangular(lower, columns, lower=True, check_finite=False)
    return xp.linalg.solve_triangular(lower, columns, upper=False)
