"""Standardisation inside the estimators."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scaler:
    """Centre and scale of columns; constant columns keep scale one."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray, weights: np.ndarray | None, *, active: bool) -> Scaler:
        """Learn from the columns of ``values``; the identity unless ``active``."""
        columns = values.shape[1]
        if not active:
            return cls(np.zeros(columns), np.ones(columns))
        mean = np.average(values, axis=0, weights=weights)
        spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
        return cls(mean, np.where(spread > 1e-12 * (np.abs(mean) + 1e-300), spread, 1.0))

    def forward(self, values: np.ndarray) -> np.ndarray:
        """To standard units."""
        return np.asarray((values - self.mean) / self.scale)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """Back to the user's units."""
        return np.asarray(values * self.scale + self.mean)
