"""Ridge regressions on a dense matrix by its inverse, from which any rows can be left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import numpy as np
from scipy.linalg import cho_solve, cholesky, solve_triangular

from kstonet._arrays import to_numpy
from kstonet.gram.base import Gram
from kstonet.gram.cholesky import with_jitter
from kstonet.gram.halves import CholeskyFactor, mirrored, shared_product
from kstonet.gram.solver_of_rows import SolverOfRows

JITTERS = range(-14, -3)  # powers of ten of the mean diagonal
INVALID = "the kernel matrix is not positive semi-definite; use a valid kernel."


def inverse_of(A: np.ndarray) -> np.ndarray | None:
    """The inverse of a symmetric matrix, in its own memory and precision; None where it is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> inverse_of(np.array([[4.0, 2.0], [2.0, 2.0]])).tolist()
    [[0.5, -0.5], [-0.5, 1.0]]
    """
    factor = CholeskyFactor.of(A, 0.0, overwrite=True)
    return None if factor is None else mirrored(factor.inverse())


class InvertedSolver(SolverOfRows):
    """The solver of K + diag(ridges) by the inverse on its rows.

    Parameters
    ----------
    ridges : ndarray of shape (n,)
        The number that is added to the diagonal for each row; infinite for rows that take no part.
    seen : ndarray of int
        Those that do, ascending.
    inverse : ndarray
        The inverse of the matrix on these rows.
    """

    def __init__(self, ridges: np.ndarray, seen: np.ndarray, inverse: np.ndarray) -> None:
        super().__init__(ridges, seen)
        self._inverse = inverse

    @classmethod
    def of(cls, ridges: np.ndarray, scale: float, regularised: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Self:
        """From what makes a new matrix of some rows with ridges of their own; ``scale`` is that of jitters."""
        seen = np.flatnonzero(np.isfinite(ridges))

        def inverse(jitter: float) -> np.ndarray | None:
            return inverse_of(regularised(seen, ridges[seen] + jitter))

        return cls(ridges, seen, with_jitter(inverse, scale, JITTERS, INVALID))

    @classmethod
    def of_gram(cls, gram: Gram, ridges: np.ndarray) -> Self:
        """For a Gram that hands out columns; rows with an infinite ridge take no part."""

        def regularised(seen: np.ndarray, own: np.ndarray) -> np.ndarray:
            K: np.ndarray = gram.columns(seen)[seen]
            K.flat[:: len(seen) + 1] += own
            return K

        return cls.of(ridges, float(np.mean(to_numpy(gram.diagonal())[np.isfinite(ridges)])), regularised)

    @property
    def nbytes(self) -> int:
        """Bytes of the inverse."""
        return int(self._inverse.nbytes)

    def without(self, ridges: np.ndarray) -> InvertedSolver | None:
        """The solver with infinite ridges in addition, by the same inverse; None where other ridges differ."""
        hidden = np.isinf(ridges)
        if not np.array_equal(np.where(hidden, np.inf, self._ridges), ridges):
            return None
        return _Reduced(self, np.flatnonzero(hidden[self._seen]))

    def _applied(self, own: np.ndarray) -> np.ndarray:
        return shared_product(own, self._inverse)

    def _own_diagonal(self, last: int) -> np.ndarray:
        return np.diagonal(self._inverse)[-last:]


class _Reduced(InvertedSolver):
    """Without some rows: by Schur's complement, a factor of their part of the inverse is enough.

    Parameters
    ----------
    whole : InvertedSolver
        The solver with these rows.
    places : ndarray of int
        Where they are among its rows.
    """

    def __init__(self, whole: InvertedSolver, places: np.ndarray) -> None:
        super().__init__(whole._ridges, whole._seen, whole._inverse)
        self._places = places
        block = self._inverse[np.ix_(places, places)]
        block.flat[:: len(places) + 1] *= 1.0 + 4.0 * np.finfo(block.dtype).eps  # all rows but one may be among them
        self._factor = cholesky(block, lower=True, overwrite_a=True, check_finite=False)

    @property
    def nbytes(self) -> int:
        """Bytes of the factor, which it has for itself."""
        return int(self._factor.nbytes)

    def _applied(self, own: np.ndarray) -> np.ndarray:
        """Targets of the hidden rows become what the others predict for them: their coefficients are zero then."""
        own[:, self._places] = 0.0
        predicted = cho_solve((self._factor, True), self._inverse[self._places] @ own.T, check_finite=False)
        own[:, self._places] = -predicted.T
        out = shared_product(own, self._inverse)
        out[:, self._places] = 0.0
        return out

    def _own_diagonal(self, last: int) -> np.ndarray:
        half = solve_triangular(self._factor, self._inverse[self._places], lower=True, check_finite=False)
        diagonal = np.diagonal(self._inverse) - (half**2).sum(axis=0)
        diagonal[self._places] = 0.0
        return np.asarray(diagonal[-last:])
