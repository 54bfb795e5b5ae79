"""First layers at rows they were not trained on: what is left of them once training is over.

Prediction averages over several iterates, and all of them expand on the same training rows. So they are kept together: a
kernel value is computed once for all iterates and all units, and training rows whose coefficients are all zero are dropped.
What is kept is float64, and small: the support vectors and their coefficients. With these on a device
(:meth:`Expansion.placed`), kernel values are computed, multiplied and forgotten there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from kstonet._arrays import Array, like, to_numpy, zeros
from kstonet._records import storable
from kstonet.gram.blocks import row_blocks
from kstonet.gram.kernels import Kernel


@storable(used="int q", coef="float t m q", units="int m", basis="int q | float q p")
@dataclass(frozen=True)
class ExpansionPart:
    """Units that share one kernel.

    Parameters
    ----------
    kernel : Kernel or None
        None for units that are linear in the features.
    basis : ndarray
        (q, p) training rows; the numbers of the q columns that matter where a row of X holds the values themselves (linear
        units, precomputed kernels).
    used : ndarray of int
        Which training rows (or features) these are.
    coef : ndarray of shape (iterates, units, q)
    units : ndarray of int
        Which units of the layer these are.
    """

    kernel: Kernel | None
    basis: np.ndarray
    used: np.ndarray
    coef: np.ndarray
    units: np.ndarray

    @classmethod
    def of(cls, kernel: Kernel | None, X: np.ndarray, coef: np.ndarray, units: np.ndarray) -> ExpansionPart:
        """Keep the training rows (or features) that have a coefficient anywhere; ``coef`` has one column for each of them."""
        used = np.flatnonzero((coef != 0).any(axis=(0, 1)))
        basis = used if kernel is None else kernel.basis(X, used)
        return cls(kernel, basis, used, np.ascontiguousarray(coef[:, :, used]), units)

    @property
    def holds_values(self) -> bool:
        """Whether a row of X holds the features themselves, so that the basis is column numbers."""
        return self.kernel is None or self.kernel.precomputed

    @property
    def width(self) -> int:
        """Kernel values that one new row asks for at once."""
        return int(self.coef.shape[2])

    @property
    def support(self) -> np.ndarray:
        """The training rows (or features) that are kept."""
        return self.used

    def placed(self, place: Callable[[np.ndarray], Array]) -> ExpansionPart:
        """The part with its arrays where ``place`` puts them; one whose features are given has little to compute and stays."""
        return self if self.holds_values else replace(self, basis=place(self.basis), coef=place(self.coef))

    def features(self, X: np.ndarray) -> Array:
        """The values the coefficients multiply, shape (rows, q), where the coefficients are."""
        if self.kernel is None:
            return np.asarray(X[:, self.basis])
        return self.kernel.features(X if self.holds_values else like(self.basis, X), self.basis)

    def values(self, X: np.ndarray, features: Array) -> np.ndarray:
        """The functions at rows whose :meth:`features` are given, shape (iterates, rows, units)."""
        iterates, units, width = self.coef.shape
        product = to_numpy(features @ self.coef.reshape(iterates * units, width).T)  # one product for all iterates
        return np.asarray(product.reshape(len(product), iterates, units).swapaxes(0, 1))

    def pulled(self, X: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """Gradients of sums Σ pull·function over iterates and units, the pulls of every row held fixed.

        Parameters
        ----------
        X : ndarray of shape (rows, p)
        pull : ndarray of shape (iterates, rows, sums, units)

        Returns
        -------
        ndarray of shape (rows, sums, p)
        """
        coef = combined(pull, self.coef)
        if self.kernel is None:
            gradients = np.zeros((*coef.shape[:2], X.shape[1]))
            gradients[:, :, self.basis] = coef
            return gradients
        return np.asarray(self.kernel.gradient(X, self.basis, coef))

    def iterate(self, t: int) -> Self:
        """One of the iterates alone."""
        return replace(self, coef=self.coef[t : t + 1])


def combined(pull: np.ndarray, coef: np.ndarray) -> np.ndarray:
    """Coefficients (rows, sums, q) of sums over iterates and units: pulls (iterates, rows, sums, units) times coefficients."""
    iterates, rows, sums, units = pull.shape
    flat = pull.transpose(1, 2, 0, 3).reshape(rows * sums, iterates * units)
    return np.asarray((flat @ coef.reshape(iterates * units, -1)).reshape(rows, sums, -1))


@storable(intercept="float t m")
@dataclass(frozen=True)
class Expansion:
    """The first layers of some iterates.

    Parameters
    ----------
    parts : tuple of ExpansionPart
    intercept : ndarray of shape (iterates, units)
    """

    parts: tuple[ExpansionPart, ...]
    intercept: np.ndarray

    @classmethod
    def of(cls, parts: Iterable[ExpansionPart], intercept: np.ndarray) -> Expansion:
        """Parts that keep the same rows share one copy of them."""
        kept: list[ExpansionPart] = []
        for part in parts:
            twins = (one.basis for one in kept if np.array_equal(one.basis, part.basis))
            kept.append(replace(part, basis=next(twins, part.basis)))
        return cls(tuple(kept), intercept)

    @property
    def block_bytes(self) -> int | None:
        """Bytes of kernel values that are computed at once, where a device has blocks of its own."""
        return None

    def placed(self, place: Callable[[np.ndarray], Array], block_bytes: int) -> Expansion:
        """The expansion with the arrays of its parts where ``place`` puts them, and blocks of a size that suits the place."""
        moved: dict[int, Array] = {}

        def once(values: np.ndarray) -> Array:  # parts may share their rows
            if id(values) not in moved:
                moved[id(values)] = place(values)
            return moved[id(values)]

        return _PlacedExpansion(tuple(part.placed(once) for part in self.parts), self.intercept, block_bytes)

    def blocks(self, X: np.ndarray) -> Iterator[tuple[slice, np.ndarray, list[Array]]]:
        """Yield ``(rows, values, features)`` in blocks of bounded memory.

        Values have shape (iterates, rows, units); features are those of every part, where its coefficients are.
        """
        iterates, units = self.intercept.shape
        width = max(part.width for part in self.parts)
        for rows in row_blocks(len(X), width, block_bytes=self.block_bytes):
            values = np.empty((iterates, rows.stop - rows.start, units))
            features = [part.features(X[rows]) for part in self.parts]
            for part, own in zip(self.parts, features, strict=True):
                values[:, :, part.units] = part.values(X[rows], own)
            yield rows, values + self.intercept[:, None, :], features

    def pulled(self, X: np.ndarray, pull: np.ndarray) -> np.ndarray:
        """Gradients of sums over iterates and units: :meth:`ExpansionPart.pulled` of all parts together."""
        return np.asarray(sum(part.pulled(X, pull[:, :, :, part.units]) for part in self.parts))

    def iterate(self, t: int) -> Expansion:
        """One of the iterates alone."""
        return Expansion(tuple(part.iterate(t) for part in self.parts), self.intercept[t : t + 1])

    @property
    def n_support(self) -> int:
        """Training rows (or features) kept, each counted once."""
        return len(np.unique(np.concatenate([part.support for part in self.parts])))


@dataclass(frozen=True)
class _PlacedExpansion(Expansion):
    """An expansion on a device; never stored."""

    size: int

    @property
    def block_bytes(self) -> int:
        return self.size


def passing_product(kernel: Kernel, X: Array, rows: Array, block_bytes: int | None = None) -> Array:
    """The kernel matrix of X applied to every row: values are computed and forgotten, half of them thanks to symmetry.

    Examples
    --------
    >>> from kstonet.gram.kernels import RBF
    >>> passing_product(RBF(), np.array([[0.0], [1.0]]), np.ones((1, 2))).round(3)
    array([[1.368, 1.368]])
    """
    n, image = len(X), zeros(rows, tuple(rows.shape))
    for block in row_blocks(n, n, block_bytes=block_bytes):
        own = kernel(X[block], X[block.start :])
        image[:, block] += rows[:, block.start :] @ own.T
        image[:, block.stop :] += rows[:, block] @ own[:, block.stop - block.start :]
    return image
