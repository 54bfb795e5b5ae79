"""The Gram protocol: all that the library asks of a kernel matrix.

Vectors are stacked as *rows*: an array of shape (m, n) is m vectors, one per hidden unit. A product of a few rows with
a large symmetric matrix reads the matrix once and keeps every unit's data contiguous.

Arrays that go in and out are of the Gram's own kind, which :meth:`Gram.array` makes: NumPy arrays, or tensors on some device.
Methods said to return NumPy do so wherever the Gram lives: prediction and uncertainty run on the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Protocol, runtime_checkable

import numpy as np

from kstonet._arrays import Array
from kstonet.gram.expansion import ExpansionPart
from kstonet.gram.kernels import Kernel


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
    """A positive semi-definite n×n matrix, wherever and however it is stored.

    The contract that an implementation has to satisfy is written as tests, in ``tests/gram/contract.py``.

    See Also
    --------
    kstonet.gram.make_gram : Choose and make a Gram.
    kstonet.gram.register_gram : Make an implementation available as ``solver=name``.
    """

    n: int
    dtype: Any
    kernel: Kernel

    def array(self, values: Any) -> Array:
        """``values`` as a float64 array of the kind, and on the device, that the methods of this Gram take."""
        ...

    def product(self, rows: Array) -> Array:
        """K applied to every row, exact for the stored matrix."""
        ...

    def shifted(self, shift: float) -> ShiftedSolver:
        """Return the solver for K + shift·I, from the cache when the shift is unchanged."""
        ...

    def solve_on(self, indices: Array, shift: float, rows: Array) -> Array:
        """(K[indices, indices] + shift·I)⁻¹ applied to every row, in full precision."""
        ...

    def columns(self, indices: np.ndarray) -> np.ndarray:
        """Kernel values of all training rows against some of them, as a float64 NumPy array of shape (n, q)."""
        ...

    def diagonal(self) -> Array:
        """k(x, x) for every training row."""
        ...

    def cross(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Blocks of k(X, training rows), a bounded number of rows at a time."""
        ...

    def expansion(self, coef: np.ndarray, units: np.ndarray) -> ExpansionPart:
        """What prediction at new rows needs, from NumPy dual coefficients of shape (iterates, units, n)."""
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


EVERY_ROW = slice(None)
DIRECT = 1e-6  # accuracy of solvers whose corrections are one product and one application of a factor


class DiagonalSolver(Protocol):
    """Applies (K + diag(ridges))⁻¹, nearly; the caller refines with products."""

    accuracy: float  # what corrected solutions for ones may leave over: less where a correction costs little

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """The inverse applied to every row."""
        ...

    def diagonal(self, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """The diagonal of the inverse at some rows, by default all; zero for rows that take no part."""
        ...

    @property
    def nbytes(self) -> int:
        """Bytes held beside the Gram's."""
        ...

    def without(self, ridges: np.ndarray) -> DiagonalSolver | None:
        """The solver with infinite ridges in addition, where what is held serves it; None where one has to be made."""
        ...


@runtime_checkable
class RegularisedGram(Gram, Protocol):
    """A Gram that solves ridge regressions itself; for others, the matrix of their columns is inverted."""

    def regularised(self, ridges: np.ndarray) -> DiagonalSolver:
        """A new solver of K + diag(ridges); rows with an infinite ridge take no part."""
        ...


@runtime_checkable
class StructuredGram(RegularisedGram, Protocol):
    """A Gram of more rows than a matrix could hold: what else is asked of a kernel matrix then, without n² numbers.

    See Also
    --------
    kstonet.gram.LowRank : The one that the package has.
    """

    @property
    def landmarks(self) -> np.ndarray:
        """Training rows that stand for all of them, ascending: expansions keep them, and intervals are measured from them."""
        ...

    @property
    def below(self) -> bool:
        """Whether the kernel's matrix less this one is positive semi-definite."""
        ...

    def exact_product(self, rows: np.ndarray) -> np.ndarray:
        """The kernel's own matrix applied to every row: n² kernel values, computed and forgotten."""
        ...

    def column_blocks(self, indices: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(rows, K[rows, indices])`` in blocks of bounded memory; ``rows`` are numbers of training rows."""
        ...

    def at(self, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function that takes coefficients (m, n) to values (rows, m) at new rows."""
        ...
