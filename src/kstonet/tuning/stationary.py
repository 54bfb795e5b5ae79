"""Stationary kernels as functions of a distance, with their slopes, for the search of widths and of relevant features.

A kernel object of :mod:`kstonet.gram` answers k(X, Y); what a search needs beside it is the derivative with respect to the
distance, and distances that change with the scale of every feature. All features are multiplied by ``scales`` (the inverse
length scales, width included), so that no kernel here has a width of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import get_blas_funcs

from kstonet.gram.halves import mirrored, upper_blocks
from kstonet.gram.kernels import RBF, Kernel, Laplacian, Matern, squared_distances

NEAR, NEAR_SINGLE = (
    1e-6,
    1e-2,
)  # distances of the kernel with a kink below which rows count as one: its slope has no limit there


@dataclass(frozen=True)
class Family:
    """A kernel k(d), where d is a squared Euclidean distance or a sum of absolute differences.

    Parameters
    ----------
    name : str
        As :func:`kstonet.gram.make_kernel` knows it.
    value_and_slope : callable
        k and dk/dd; overwrites d.
    make : callable
        The kernel object for a tuple of length scales, or for None where features are scaled already.
    absolute : bool
        Whether d is the sum of absolute differences.
    """

    name: str
    value_and_slope: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    make: Callable[[tuple[float, ...] | None], Kernel]
    absolute: bool = False

    def distances(self, X: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The distance d of all pairs of rows of X.

        Examples
        --------
        >>> import numpy as np
        >>> FAMILIES["rbf"].distances(np.array([[0.0], [3.0]]), np.array([2.0]))
        array([[ 0., 36.],
               [36.,  0.]])
        """
        scaled = X * scales
        if not self.absolute:
            distances = squared_distances(scaled, scaled)
            np.fill_diagonal(distances, 0.0)
            return np.asarray(distances)
        distances = np.zeros((len(X), len(X)), dtype=scaled.dtype)
        for rows, columns in upper_blocks(len(X)):
            block, column = distances[rows, columns], np.empty_like(distances[rows, columns])
            for values in scaled.T:
                np.subtract(values[rows, None], values[columns], out=column)
                block += np.abs(column, out=column)
        return mirrored(distances)

    def width(self, X: np.ndarray, scales: np.ndarray) -> float:
        """The median distance (not squared) between the rows of X."""
        pairs = self.distances(X, scales)[np.triu_indices(len(X), 1)]
        typical = float(np.median(pairs)) or float(pairs.mean()) or 1.0  # more than half of the rows may be the same
        return typical if self.absolute else float(np.sqrt(typical))

    def matrix(self, X: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The kernel matrix of the rows of X."""
        return self.value_and_slope(self.distances(X, scales))[0]

    def pull(self, G: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        """Σᵢⱼ Gᵢⱼ·∂dᵢⱼ/∂log s for the scale s of every feature, where G is symmetric, given by its upper half.

        Examples
        --------
        >>> import numpy as np
        >>> FAMILIES["laplacian"].pull(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [3.0]]))
        array([6.])
        """
        if self.absolute:  # |sᵢ - sⱼ| has the logarithmic derivative one
            pulled = np.zeros(scaled.shape[1])
            for rows, columns in upper_blocks(len(scaled)):
                block = np.triu(G[rows, columns])
                column = np.empty_like(block)
                for feature, values in enumerate(scaled.T):
                    np.subtract(values[rows, None], values[columns], out=column)
                    pulled[feature] += np.vdot(block, np.abs(column, out=column))
            return 2.0 * pulled
        # a squared difference two; Σ Gᵢⱼ(sᵢ - sⱼ)² = 2·Σ(rowsum·s²) - 2·sᵀGs
        scaled = np.column_stack([scaled - scaled.mean(axis=0), np.ones(len(scaled), dtype=scaled.dtype)])
        (symm,) = get_blas_funcs(("symm",), (G, scaled))
        image = symm(1.0, G.T, scaled, lower=1)
        return np.asarray(4.0 * (image[:, -1] @ scaled[:, :-1] ** 2 - (scaled * image)[:, :-1].sum(axis=0)))

    def kernel(self, scales: np.ndarray) -> Kernel:
        """The kernel object that has the same values."""
        return self.make(tuple((1.0 / scales).tolist()))


def _laplacian(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = _decay(d)
    return k, -k


def _matern12(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(d, out=d)
    k = np.exp(-r)
    slope = np.divide(k, r, out=np.zeros_like(r), where=r > (NEAR if d.dtype == np.float64 else NEAR_SINGLE))
    slope *= -0.5
    return k, slope


def _matern32(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d *= 3.0
    r = np.sqrt(d, out=d)
    slope = np.exp(-r)
    r += 1.0
    r *= slope
    slope *= -1.5
    return r, slope


def _matern52(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d *= 5.0
    r = np.sqrt(d)
    decay = np.exp(-r)
    r += 1.0
    d *= 1.0 / 3.0
    d += r
    d *= decay
    r *= decay
    r *= -5.0 / 6.0
    return d, r


def _rbf(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    d *= 0.5
    k = _decay(d)
    return k, -0.5 * k


def _decay(d: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(np.negative(d, out=d), out=d))


FAMILIES = {
    family.name: family
    for family in (
        Family("laplacian", _laplacian, lambda scale: Laplacian(scale, gamma=1.0), absolute=True),
        Family("matern12", _matern12, lambda scale: Matern(scale, gamma=0.5, nu=0.5)),
        Family("matern32", _matern32, lambda scale: Matern(scale, gamma=0.5, nu=1.5)),
        Family("matern52", _matern52, lambda scale: Matern(scale, gamma=0.5, nu=2.5)),
        Family("rbf", _rbf, lambda scale: RBF(scale, gamma=0.5)),
    )
}
