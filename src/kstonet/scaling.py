"""Standardisation inside the estimators: centre and scale of columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._records import storable

BLOCK_VALUES = 2**22  # values held at once: a kernel matrix is standardised without a second one beside it


@storable(mean="float p", scale="positive p")
@dataclass(frozen=True)
class Scaler:
    """Affine map of every column; columns that do not vary keep scale one, or what rounding leaves of them, if that is more.

    Examples
    --------
    >>> import numpy as np
    >>> scaler = Scaler.fit(np.array([[1.0, 5.0], [3.0, 5.0]]), None)
    >>> scaler.forward(np.array([[4.0, 5.0]]))
    array([[2., 0.]])
    """

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def identity(cls, columns: int) -> Scaler:
        """Change nothing."""
        return cls(np.zeros(columns), np.ones(columns))

    @classmethod
    def fit(cls, values: np.ndarray, weights: np.ndarray | None, indicators: np.ndarray | None = None) -> Scaler:
        """Mean and standard deviation of the columns, with one weight per row; the ``indicators`` keep scale one.

        Those are columns of 0 and 1 that stand for categories and missing values. Two categories are then as far from each
        other as two values of a standardised number are on average, frequent or rare; divided by its standard deviation, a rare
        one would be far from all others, and nothing would be learnt from them.
        """
        n, columns = values.shape
        w = np.ones(n) if weights is None else np.ldexp(weights, -int(np.frexp(weights.max())[1]))  # exact, and no overflow
        total = w.sum()
        step = max(1, BLOCK_VALUES // columns)
        blocks = [slice(start, start + step) for start in range(0, n, step)]
        mean = sum((w[rows] @ values[rows] for rows in blocks), np.zeros(columns)) / total
        square = sum((w[rows] @ (values[rows] - mean) ** 2 for rows in blocks), np.zeros(columns)) / total
        return cls.of_moments(mean, square, indicators, float(np.finfo(values.dtype).eps))

    @classmethod
    def of_moments(
        cls, mean: np.ndarray, square: np.ndarray, indicators: np.ndarray | None = None, rounding: float = 2.0**-52
    ) -> Scaler:
        """From means and mean squares around them, of values with this unit round-off."""
        spread = np.sqrt(square)
        noise = 10.0 * rounding * np.abs(mean)  # what rounding leaves of a constant column
        scaled = spread > noise if indicators is None else (spread > noise) & ~indicators
        return cls(mean, np.where(scaled, spread, np.maximum(1.0, noise)))

    def forward(self, values: np.ndarray) -> np.ndarray:
        """To standard units."""
        return np.asarray((values - self.mean) / self.scale)

    def forward_in_place(self, values: np.ndarray) -> None:
        """To standard units, overwriting."""
        values -= self.mean.astype(values.dtype)
        values /= self.scale.astype(values.dtype)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """Back to the user's units."""
        return np.asarray(values * self.scale + self.mean)
