"""Ridge regressions on a dense matrix that is too large, or too far away, to be inverted: by a Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from kstonet._arrays import Array, like, namespace, to_numpy, zeros
from kstonet.gram.conjugate import conjugate_gradients
from kstonet.gram.solver_of_rows import SolverOfRows


def factor_order(n: int) -> np.ndarray:
    """The order in which rows are factored: the last of them can be left out without another factor.

    Examples
    --------
    >>> sorted(factor_order(4).tolist())
    [0, 1, 2, 3]
    """
    return np.random.default_rng(0).permutation(n)[::-1]


class Factor(Protocol):
    """A Cholesky factor of a matrix A."""

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        ...

    def leading(self, size: int) -> Factor:
        """The factor of the first rows and columns, a part of this one."""
        ...

    def solve(self, rows: Array) -> Array:
        """A⁻¹ applied to every row."""
        ...

    def inverse_diagonal(self, last: int) -> Array:
        """The last entries of the diagonal of A⁻¹, which take a factor of so many rows to the third power."""
        ...


class FactoredSolver(SolverOfRows):
    """The solver of K + diag(ridges), in the precision of its factor.

    Parameters
    ----------
    ridges : ndarray of shape (n,)
        The number that is added to the diagonal for each row; infinite for rows that take no part.
    seen : ndarray of int
        Those that do, in the order of the factor.
    factor : Factor
        Cholesky factor of the matrix on these rows.
    array : callable
        Makes what the factor takes of NumPy arrays.
    """

    def __init__(self, ridges: np.ndarray, seen: np.ndarray, factor: Factor, array: Callable[[Any], Array]) -> None:
        super().__init__(ridges, seen)
        self._factor, self._array = factor, array

    @property
    def nbytes(self) -> int:
        """Bytes of the factor."""
        return self._factor.nbytes

    def without(self, ridges: np.ndarray) -> FactoredSolver | None:
        """The solver with infinite ridges in addition, where these rows are the last of the factor; None otherwise."""
        rows = np.isfinite(ridges)
        size = int(rows.sum())
        seen = self._seen[:size]
        if not rows[seen].all() or not np.array_equal(self._ridges[seen], ridges[seen]):
            return None
        return self._with(ridges, size)

    def _with(self, ridges: np.ndarray, size: int) -> FactoredSolver:
        """The solver by the leading part of the factor."""
        return FactoredSolver(ridges, self._seen[:size], self._factor.leading(size), self._array)

    def _applied(self, own: np.ndarray) -> np.ndarray:
        return to_numpy(self._factor.solve(self._array(own)))

    def _own_diagonal(self, last: int) -> np.ndarray:
        return to_numpy(self._factor.inverse_diagonal(last))


class CorrectedSolver(FactoredSolver):
    """A solver whose factor is not precise enough for corrections by products alone: it preconditions conjugate gradients.

    Parameters
    ----------
    ridges, seen, array
        As in :class:`FactoredSolver`.
    factor : Factor
        The factor of K + diag(ridges) + jitter·I on these rows.
    product : callable
        K, of all rows, applied to every row of an array.
    jitter : float
        What was added to the diagonal of the factor.
    """

    def __init__(
        self,
        ridges: np.ndarray,
        seen: np.ndarray,
        factor: Factor,
        array: Callable[[Any], Array],
        product: Callable[[Array], Array],
        jitter: float,
    ) -> None:
        super().__init__(ridges, seen, factor, array)
        self._product, self._jitter = product, jitter

    def _with(self, ridges: np.ndarray, size: int) -> CorrectedSolver:
        leading = self._factor.leading(size)
        return CorrectedSolver(ridges, self._seen[:size], leading, self._array, self._product, self._jitter)

    def _applied(self, own: np.ndarray) -> np.ndarray:
        return to_numpy(conjugate_gradients(self._array(own), self._image, self._factor.solve).rows)

    def _image(self, own: Array) -> Array:
        """(K + diag(ridges))·own on the rows of the factor."""
        indices = namespace(own).asarray(self._seen)
        everywhere = zeros(own, (len(own), len(self._ridges)))
        everywhere[:, indices] = own
        return self._product(everywhere)[:, indices] + like(own, self._ridges[self._seen]) * own

    def _own_diagonal(self, last: int) -> np.ndarray:
        """A row's share in its own prediction, 1 - ridge·(A⁻¹)ᵢᵢ, hardly depends on the jitter where rows are many."""
        ridges = self._ridges[self._seen[len(self._seen) - last :]]
        return np.asarray(super()._own_diagonal(last) * (ridges + self._jitter) / ridges)
