"""Stationary kernels as functions of a distance, with their slopes, for the search of widths and of relevant features.

A kernel object of :mod:`kstonet.gram` answers k(X, Y); what a search needs beside it is the derivative with respect to the
distance, and distances that change with the scale of every feature. All features are multiplied by ``scales`` (the inverse
length scales, width included), so that no kernel here has a width of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from kstonet.gram.halves import half_times, mirrored, upper_blocks
from kstonet.gram.kernels import RBF, Kernel, Laplacian, Matern
from kstonet.gram.kernels.base import two_values

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
        distances = np.empty((len(X), len(X)), dtype=X.dtype)
        for rows, columns, block in self._distance_blocks(X * scales):
            distances[rows, columns] = block
        return mirrored(distances)

    def _distance_blocks(self, scaled: np.ndarray) -> Iterator[tuple[slice, slice, np.ndarray]]:
        """Rows, columns and distances of the blocks that cover the upper half: what is done to a block stays in the cache."""
        n = len(scaled)
        two = two_values(scaled) if self.absolute else None
        seen = scaled if two is None else two.flags(scaled) * np.sqrt(two.gaps)
        p = seen.shape[1]  # |x|² - 2xy + |y|² as one product, of centred rows: it cancels badly far from the origin
        left, right = np.empty((n, p + 2), dtype=scaled.dtype), np.empty((n, p + 2), dtype=scaled.dtype)
        np.subtract(seen, seen.mean(axis=0), out=right[:, :p])
        np.multiply(right[:, :p], -2.0, out=left[:, :p])
        left[:, p] = right[:, p + 1] = np.einsum("ij,ij->i", right[:, :p], right[:, :p])
        left[:, p + 1] = right[:, p] = 1.0
        others = scaled.T[:0] if two is None else scaled.T[~two.which]
        for rows, columns in upper_blocks(n):
            block = left[rows] @ right[columns].T
            np.maximum(block, 0.0, out=block)
            np.fill_diagonal(block, 0.0)
            column = np.empty_like(block) if len(others) else block
            for values in others:
                np.subtract(values[rows, None], values[columns], out=column)
                block += np.abs(column, out=column)
            yield rows, columns, block

    def width(self, X: np.ndarray, scales: np.ndarray) -> float:
        """The median distance (not squared) between the rows of X."""
        distances = self.distances(X, scales)
        pairs = np.concatenate([row[place + 1 :] for place, row in enumerate(distances)])
        typical = float(np.median(pairs)) or float(pairs.mean()) or 1.0  # more than half of the rows may be the same
        return typical if self.absolute else float(np.sqrt(typical))

    def upper_half(
        self, X: np.ndarray, scales: np.ndarray, out: tuple[np.ndarray, np.ndarray] | None = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The kernel matrix of the rows of X and its derivative with respect to the distances; what is below is of no use.

        A climb gives both matrices again and again (``out``): the system makes new ones slowly, page by page.
        """
        K, slopes = halves(X) if out is None else out
        for rows, columns, block in self._distance_blocks(X * scales):
            K[rows, columns], slopes[rows, columns] = self.value_and_slope(block)
        return K, slopes

    def matrix(self, X: np.ndarray, scales: np.ndarray) -> np.ndarray:
        """The kernel matrix of the rows of X."""
        return mirrored(self.upper_half(X, scales)[0])

    def pull(self, G: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        """Σᵢⱼ Gᵢⱼ·∂dᵢⱼ/∂log s for the scale s of every feature, where G is symmetric, given by its upper half.

        Examples
        --------
        >>> import numpy as np
        >>> FAMILIES["laplacian"].pull(np.array([[0.0, 1.0], [1.0, 0.0]]), np.array([[0.0], [3.0]]))
        array([6.])
        """
        if self.absolute:  # |sᵢ - sⱼ| has the logarithmic derivative one; of two values it is a square over their gap
            two, pulled = two_values(scaled), np.zeros(scaled.shape[1])
            pulled[two.which] = 0.5 * two.gaps * self._pull_of_squares(G, two.flags(scaled))
            for rows, columns in upper_blocks(len(scaled) if not two.which.all() else 0):
                block = np.triu(G[rows, columns])
                column = np.empty_like(block)
                for feature in np.flatnonzero(~two.which):
                    values = scaled[:, feature]
                    np.subtract(values[rows, None], values[columns], out=column)
                    pulled[feature] += 2.0 * np.vdot(block, np.abs(column, out=column))
            return pulled
        return self._pull_of_squares(G, scaled)

    @staticmethod
    def _pull_of_squares(G: np.ndarray, scaled: np.ndarray) -> np.ndarray:
        """2·Σᵢⱼ Gᵢⱼ(sᵢ - sⱼ)² of every feature: a squared difference has the logarithmic derivative two."""
        # Σ Gᵢⱼ(sᵢ - sⱼ)² = 2·Σ(rowsum·s²) - 2·sᵀGs
        scaled = np.column_stack([scaled - scaled.mean(axis=0), np.ones(len(scaled), dtype=scaled.dtype)])
        image = half_times(G, scaled)
        return np.asarray(4.0 * (image[:, -1] @ scaled[:, :-1] ** 2 - (scaled * image)[:, :-1].sum(axis=0)))

    def kernel(self, scales: np.ndarray) -> Kernel:
        """The kernel object that has the same values."""
        return self.make(tuple((1.0 / scales).tolist()))


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two matrices of all pairs of rows of X, of zeros."""
    n = len(X)
    return np.zeros((n, n), dtype=X.dtype), np.zeros((n, n), dtype=X.dtype)


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
