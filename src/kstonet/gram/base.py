"""The Gram protocol: all that a solver may ask of a kernel matrix.

Vectors are stacked as *rows*: an array of shape (m, n) is m vectors, one per hidden unit. A product of a few rows with
a large symmetric matrix reads the matrix once and keeps every unit's data contiguous.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Protocol, runtime_checkable

from kstonet._arrays import Array


class ShiftedSolver(Protocol):
    """Applies (K + shift·I)⁻¹, possibly in low precision; the caller refines with true products."""

    @property
    def shift(self) -> float:
        """The shift."""
        ...

    def solve(self, rows: Array) -> Array:
        """(K + shift·I)⁻¹ applied to every row."""
        ...


@runtime_checkable
class Gram(Protocol):
    """A positive semi-definite n×n matrix, wherever and however it is stored."""

    n: int
    dtype: Any

    def product(self, rows: Array) -> Array:
        """K applied to every row, in the Gram's own precision."""
        ...

    def shifted(self, shift: float) -> ShiftedSolver:
        """Return the solver for K + shift·I, from the cache when the shift is unchanged."""
        ...

    def solve_on(self, indices: Array, shift: float, rows: Array) -> Array:
        """(K[indices, indices] + shift·I)⁻¹ applied to every row, in full precision."""
        ...

    def diagonal(self) -> Array:
        """k(x, x) for every training row."""
        ...

    def cross(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Blocks of k(X, training rows), a bounded number of rows at a time, for prediction."""
        ...

    @property
    def held_shift(self) -> float | None:
        """Shift of the factor in the cache, if there is one."""
        ...

    @property
    def norm_bound(self) -> float:
        """An upper bound of the largest eigenvalue."""
        ...

    @property
    def n_factorizations(self) -> int:
        """How many factorisations have been paid for so far."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes held, factor included."""
        ...
