"""Ridge regressions on a dense matrix that is too large, or too far away, to be inverted: by a Cholesky factor."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kstonet._arrays import Array, to_numpy


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

    def inverse_diagonal(self) -> Array:
        """The diagonal of A⁻¹."""
        ...


class FactoredSolver:
    """The solver of K + diag(ridges), in the precision of its factor.

    Parameters
    ----------
    n : int
        All rows.
    seen : ndarray of int
        Those that take part, in the order of the factor.
    ridges : ndarray
        The number that is added to the diagonal for each of them.
    factor : Factor
        Cholesky factor of the matrix on these rows.
    array : callable
        Makes what the factor takes of NumPy arrays.
    """

    def __init__(self, n: int, seen: np.ndarray, ridges: np.ndarray, factor: Factor, array: Callable[[Any], Array]) -> None:
        self._n, self._seen, self._ridges, self._factor, self._array = n, seen, ridges, factor, array

    @property
    def nbytes(self) -> int:
        """Bytes of the factor."""
        return self._factor.nbytes

    def begins_with(self, seen: np.ndarray, ridges: np.ndarray) -> bool:
        """Whether these are the first of its rows, with the same ridges."""
        size = len(seen)
        return np.array_equal(self._seen[:size], seen) and np.array_equal(self._ridges[:size], ridges)

    def leading(self, size: int) -> FactoredSolver:
        """The solver of its first rows, by the same factor."""
        if size == len(self._seen):
            return self
        return FactoredSolver(self._n, self._seen[:size], self._ridges[:size], self._factor.leading(size), self._array)

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """The inverse applied to every row; zero for rows that take no part."""
        out = np.zeros((len(rows), self._n))
        out[:, self._seen] = to_numpy(self._factor.solve(self._array(rows[:, self._seen])))
        return out

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The diagonal of the inverse; zero for rows that take no part."""
        out = np.zeros(self._n)
        out[self._seen] = to_numpy(self._factor.inverse_diagonal())
        return out
