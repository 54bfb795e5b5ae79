"""Stationary kernels as functions of a distance, with their slopes, for the search of widths and of relevant features.

A kernel object of :mod:`kstonet.gram` answers k(X, Y); what a search needs beside it is the derivative with respect to the
distance, and distances that change with the scale of every feature. All features are multiplied by ``scales`` (the inverse
length scales, width included), so that no kernel here has a width of its own.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from kstonet.gram.kernels import RBF, Kernel, Laplacian, Matern, squared_distances

NEAR = 1e-6  # distances of the kernel with a kink below which two rows count as one: its slope has no limit there


@dataclass(frozen=True)
class Family:
    """A kernel k(d), where d is a squared Euclidean distance or a sum of absolute differences.

    Parameters
    ----------
    name : str
        As :func:`kstonet.gram.make_kernel` knows it.
    value_and_slope : callable
        k and dk/dd.
    make : callable
        The kernel object for a tuple of length scales.
    absolute : bool
        Whether d is the sum of absolute differences.
    """

    name: str
    value_and_slope: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    make: Callable[[tuple[float, ...]], Kernel]
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
        distances, one = np.zeros((len(X), len(X))), np.empty((len(X), len(X)))
        for column in scaled.T:
            np.subtract(column[:, None], column, out=one)
            distances += np.abs(one, out=one)
        return distances

    def width(self, X: np.ndarray, scales: np.ndarray) -> float:
        """The median distance (not squared) between the rows of X."""
        pairs = self.distances(X, scales)[np.triu_indices(len(X), 1)]
        typical = float(np.median(pairs)) or float(pairs.mean()) or 1.0  # more than half of the rows may be the same
        return typical if self.absolute else float(np.sqrt(typical))

    def matrix(self, X: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The kernel matrix of the rows of X."""
        return self.value_and_slope(self.distances(X, scales))[0]

    def kernel(self, scales: np.ndarray) -> Kernel:
        """The kernel object that has the same values."""
        return self.make(tuple((1.0 / scales).tolist()))


def _laplacian(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = np.exp(-d)
    return k, -k


def _matern12(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(d)
    k = np.exp(-r)
    return k, np.where(r > NEAR, -0.5 * k / np.maximum(r, NEAR), 0.0)


def _matern32(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(3.0 * d)
    decay = np.exp(-r)
    return (1.0 + r) * decay, -1.5 * decay


def _matern52(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r = np.sqrt(5.0 * d)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, -5.0 / 6.0 * (1.0 + r) * decay


def _rbf(d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    k = np.exp(-0.5 * d)
    return k, -0.5 * k


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
