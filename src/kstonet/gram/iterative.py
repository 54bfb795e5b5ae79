"""A Gram for many rows without approximation: the kernel's own matrix, never held, and systems solved by conjugate gradients.

Kernel values are computed and forgotten in every product, half of them thanks to symmetry. The landmarks and leaves of a
:class:`~kstonet.gram.low_rank.LowRankGram` precondition: K̂ + diag(ridges), which Woodbury's identity inverts, differs from
K + diag(ridges) by what leaves far from each other have in common beyond the landmarks, and a few dozen products mend that.
Memory is that of the low-rank Gram; a product takes O(n²p) operations, which a GPU does in a second for 300,000 rows.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import Array, in_kind_of, low_precision, namespace, to_numpy
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.blocks import row_blocks
from kstonet.gram.conjugate import conjugate_gradients
from kstonet.gram.dense import cross_blocks
from kstonet.gram.devices import fused_product
from kstonet.gram.expansion import ExpansionPart, passing_product
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.low_rank_solver import RegularisedSolver

LEFT_OVER = 0.01  # of the largest entry of a right-hand side
ACCURACY = 1e-3  # of solutions for ones
MOST_STEPS = 300
PRECISE = 1e-12  # of the right-hand side, where full precision is asked for


class IterativeGram:
    """The kernel's own matrix, whose values are computed for every product and held nowhere.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Training rows.
    near : LowRankGram
        The preconditioner, on the same rows; the kernel is the same, too.
    place : callable, optional
        Puts NumPy arrays where both Grams live; by default they stay.
    block_bytes : int, optional
        Bytes of kernel values that are computed at once.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import Iterative, make_gram, make_kernel
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> gram = make_gram(X, make_kernel("rbf", X, gamma=50.0), solver=Iterative(rank=5, leaf_rows=50))
    >>> solved = gram.shifted(0.1).solve(np.ones((1, 400)))
    >>> bool(np.abs(gram.product(solved) + 0.1 * solved - 1.0).max() < 0.01)
    True
    """

    below = True  # the kernel's matrix is this one

    def __init__(
        self,
        X: np.ndarray,
        near: LowRankGram,
        place: Callable[[np.ndarray], Array] = np.asarray,
        block_bytes: int | None = None,
    ) -> None:
        self.n, self.kernel, self.near, self._block_bytes = len(X), near.kernel, near, block_bytes
        self._X = place(np.asarray(X, dtype=np.float64))
        self._rows_bytes = 0 if self._X is X else self._X.nbytes
        self._fused = fused_product(self.kernel, self._X)
        self.dtype = namespace(self._X).float64 if self._fused is None else low_precision(self._X)
        self._shifted: IterativeSolver | None = None

    def array(self, values: Any) -> Array:
        """``values`` as a float64 array, where the Gram lives."""
        return self.near.array(values)

    # -- the matrix ----------------------------------------------------------------------------------------------------------

    def product(self, rows: Array) -> Array:
        """K applied to every row: in float64, or with kernel values in float32 where a GPU fuses them with their product."""
        if self._fused is not None:
            return self._fused(rows)
        return passing_product(self.kernel, self._X, rows, self._block_bytes)

    def exact_product(self, rows: np.ndarray) -> np.ndarray:
        """The same, as NumPy arrays."""
        return to_numpy(self.product(self.array(rows)))

    def columns(self, indices: np.ndarray) -> np.ndarray:
        """Kernel values of all training rows against some of them, shape (n, q)."""
        return to_numpy(self.kernel(self._X[indices], self._X).T)

    def column_blocks(self, indices: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(rows, K[rows, indices])`` in blocks of bounded memory."""
        for block in row_blocks(self.n, len(indices)):
            yield np.arange(self.n)[block], to_numpy(self.kernel(self._X[indices], self._X[block]).T)

    def diagonal(self) -> Array:
        """k(x, x) for every training row."""
        return self.array(self.kernel.diagonal(self._X))

    @cached_property
    def norm_bound(self) -> float:
        """The trace, a bound of the largest eigenvalue that takes no pass over the matrix."""
        return float(self.diagonal().sum())

    # -- systems -------------------------------------------------------------------------------------------------------------

    def regularised(self, ridges: np.ndarray) -> IterativeSolver:
        """The solver of K + diag(ridges); rows with an infinite ridge take no part."""
        return IterativeSolver(self, self.near.regularised(ridges), ridges)

    def shifted(self, shift: float) -> IterativeSolver:
        """The solver of K + shift·I; made anew only when the shift changed."""
        if self._shifted is None or self._shifted.shift != shift:
            self._shifted = None  # release the old one before the new one is made
            self._shifted = IterativeSolver(self, self.near.shifted(shift), np.full(self.n, float(shift)))
        return self._shifted

    def solve_on(self, indices: Array, shift: float, rows: Array) -> Array:
        """(K[indices, indices] + shift·I)⁻¹ applied to every row, as precisely as the products allow."""
        members = to_numpy(indices)
        ridges = np.full(self.n, np.inf)
        ridges[members] = max(shift, 1e-7 * float(self.diagonal().mean()))  # the smallest that its preconditioner bears
        everywhere = np.zeros((len(rows), self.n))
        everywhere[:, members] = to_numpy(rows)
        return self.array(self.regularised(ridges).solve(everywhere, precise=True)[:, members])

    # -- other rows ----------------------------------------------------------------------------------------------------------

    def cross(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield ``(rows, k(X[rows], training rows))`` in blocks of bounded memory."""
        return cross_blocks(self.kernel, X, self._X)

    def at(self, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function that takes coefficients (m, n) to values (rows, m) at new rows."""

        def values(coef: np.ndarray) -> np.ndarray:
            there = self.array(coef).T
            return np.concatenate([to_numpy(block @ there) for _, block in self.cross(X)])

        return values

    def expansion(self, coef: np.ndarray, units: np.ndarray) -> ExpansionPart:
        """What prediction at new rows needs: the training rows and their coefficients."""
        return ExpansionPart.of(self.kernel, to_numpy(self._X), coef, units)

    # -- what it is ----------------------------------------------------------------------------------------------------------

    @property
    def landmarks(self) -> np.ndarray:
        """The training rows that are landmarks of the preconditioner, ascending."""
        return self.near.landmarks

    @property
    def held_shift(self) -> float | None:
        """Shift of the solver in the cache, if there is one."""
        return self.near.held_shift

    @property
    def n_factorizations(self) -> int:
        """How many preconditioners have been made so far."""
        return self.near.n_factorizations

    @property
    def nbytes(self) -> int:
        """Bytes held, preconditioner included."""
        return int(self._rows_bytes + self.near.nbytes + getattr(self._fused, "nbytes", 0))


class IterativeSolver:
    """(K + diag(ridges))⁻¹ by conjugate gradients; rows with an infinite ridge take no part.

    Parameters
    ----------
    gram : IterativeGram
    near : RegularisedSolver
        The preconditioner: the low-rank matrix with the same ridges.
    ridges : ndarray of shape (n,)
    """

    accuracy = ACCURACY

    def __init__(self, gram: IterativeGram, near: RegularisedSolver, ridges: np.ndarray) -> None:
        self._gram, self._near = gram, near
        self._seen = gram.array(np.isfinite(ridges))
        self._finite = gram.array(np.where(np.isfinite(ridges), ridges, 0.0))

    @property
    def shift(self) -> float:
        """The smallest ridge."""
        return self._near.shift

    @property
    def nbytes(self) -> int:
        """Bytes of the preconditioner."""
        return self._near.nbytes

    def _image(self, rows: Array) -> Array:
        return self._seen * self._gram.product(rows) + self._finite * rows

    def solve(self, rows: Array, *, precise: bool = False) -> Array:
        """The inverse applied to every row; the result is where the rows are.

        Two digits at a time: whoever needs more corrects with a product, and knows when to end.
        """
        right = self._seen * self._gram.array(rows)
        most = (PRECISE if precise else LEFT_OVER) * _largest(right)
        found = conjugate_gradients(
            right, self._image, self._near.solve, lambda left: bool((_largest(left) <= most).all()), MOST_STEPS
        )
        if not found.enough and not precise:
            near = self._gram.near
            warnings.warn(
                f"{MOST_STEPS} steps of conjugate gradients did not solve the regressions of {self._gram.n:,} rows: the last "
                f"step is taken. More landmarks than {near.rank:,} or larger leaves than {near.leaf_rows:,} rows need fewer "
                "steps: solver=Iterative(rank=..., leaf_rows=...).",
                ConvergenceWarning,
                stacklevel=2,
            )
        return in_kind_of(rows, found.rows)

    def diagonal(self, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """The diagonal of the preconditioner: within its leaf and by the landmarks, a row's neighbours are in it."""
        return self._near.diagonal(rows)

    def without(self, ridges: np.ndarray) -> IterativeSolver | None:
        """The solver with infinite ridges in addition, by the same inverses; None where another has to be made."""
        near = self._near.without(ridges)
        return None if near is None else IterativeSolver(self._gram, near, ridges)


def _largest(rows: Array) -> Array:
    """The largest entry of every row, without its sign."""
    return namespace(rows).amax(abs(rows), 1)
