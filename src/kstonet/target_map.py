"""Monotone maps of a target: skewed numbers, such as prices and counts, are often easier to learn as roots or logarithms.

Training sees z = T(y), standardised. What is asked in the units of y is answered by the inverse. It keeps order, so intervals
and quantiles are those of z, mapped back, and cover what they covered. A mean is not: the mean of T⁻¹(z + error) over errors is
taken, normal ones of the size that they have out of sample (Duan's smearing estimate, 1983, smoothed).

Beyond the largest training target the inverse goes on along its tangent: an exponential would make of a small excess in z a
prediction far from everything that was seen. Below zero there is nothing: targets that a root or logarithm can take are not
negative, and neither are predictions.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._records import storable

ROOT, LOGARITHM = "sqrt", "log"
MAPS = (ROOT, LOGARITHM)
NAMES = {ROOT: "square root", LOGARITHM: "logarithm"}
OFFSET = 0.1  # of the mean of the targets, added before the logarithm: counts may be zero, and small values are not far away
# Integrals are sums over normal scores, each with its share: the trapezoidal rule, exact for what is smooth.
SCORES = np.linspace(-5.5, 5.5, 45)
SHARES = np.exp(-0.5 * SCORES**2) / np.exp(-0.5 * SCORES**2).sum()
BISECTIONS = 60  # until a double is as near as it can be


@storable(offset="nonnegative", top="positive", spread="positive", error="nonnegative")
@dataclass(frozen=True)
class TargetMap:
    """A monotone map of a target that is never negative.

    Parameters
    ----------
    kind : {"sqrt", "log"}
    offset : float
        What is added before the logarithm.
    top : float
        The largest training target; from there on the map is its tangent.
    spread : float
        Standard deviation of the training targets.
    error : float
        Root mean squared error of z out of sample, in units of z; zero until a training has ended.

    Examples
    --------
    >>> import numpy as np
    >>> y = np.array([0.0, 1.0, 4.0, 9.0])
    >>> roots = TargetMap.of("sqrt", y)
    >>> roots.forward(y)
    array([0., 1., 2., 3.])
    >>> roots.backward(np.array([-1.0, 2.0, 4.0]))  # nothing is negative, and 4 is beyond the largest
    array([ 0.,  4., 15.])
    >>> float(roots.with_error(0.25).mean(np.array([2.0]))[0].round(4))  # 2² + 0.25²
    4.0625
    """

    kind: str
    offset: float
    top: float
    spread: float
    error: float = 0.0

    @classmethod
    def of(cls, kind: str, y: np.ndarray, weights: np.ndarray | None = None) -> TargetMap:
        """For training targets (n,) and the weights of their rows."""
        smallest, largest = float(y.min()), float(y.max())
        if smallest < 0.0:
            raise ValueError(
                f"target_transform={kind!r} is for targets that are never negative, and the smallest of y is {smallest:.6g}; "
                "give target_transform='none', or add a constant to y."
            )
        mean = float(np.average(y, weights=weights))
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weights)))
        return cls(kind, OFFSET * mean or 1.0, largest or 1.0, spread or 1.0)

    def with_error(self, error: float) -> TargetMap:
        """The map with the size of the errors of z."""
        return replace(self, error=error)

    def _inside(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(np.sqrt(y) if self.kind == ROOT else np.log(y + self.offset))

    @property
    def tangent(self) -> tuple[float, float]:
        """Where the tangent begins: z of the largest training target, and dy/dz there."""
        z = float(self._inside(np.array(self.top)))
        return z, 2.0 * z if self.kind == ROOT else self.top + self.offset

    def forward(self, y: np.ndarray) -> np.ndarray:
        """From y to z."""
        slope = self.tangent[1]
        return np.asarray(self._inside(np.clip(y, 0.0, self.top)) + np.maximum(y - self.top, 0.0) / slope)

    def backward(self, z: np.ndarray) -> np.ndarray:
        """From z to y."""
        end, slope = self.tangent
        inside = np.minimum(z, end)
        y = np.maximum(inside, 0.0) ** 2 if self.kind == ROOT else np.maximum(np.exp(inside) - self.offset, 0.0)
        return np.asarray(y + slope * np.maximum(z - end, 0.0))

    def slope(self, z: np.ndarray) -> np.ndarray:
        """dy/dz, zero where y is zero and stays so."""
        end, slope = self.tangent
        inside = 2.0 * np.maximum(z, 0.0) if self.kind == ROOT else np.exp(np.minimum(z, end))
        known = z > (0.0 if self.kind == ROOT else np.log(self.offset))
        return np.asarray(np.where(z > end, slope, np.where(known, inside, 0.0)))

    def mean(self, z: np.ndarray) -> np.ndarray:
        """The mean of y where z is the mean of T(y)."""
        return self._smeared(self.backward, z)

    def mean_slope(self, z: np.ndarray) -> np.ndarray:
        """The derivative of :meth:`mean`."""
        return self._smeared(self.slope, z)

    def of_mean(self, y: np.ndarray) -> np.ndarray:
        """The inverse of :meth:`mean`, by bisection: a mean lies between the values at the outermost errors."""
        reach = self.error * SCORES[-1]
        low, high = self.forward(y) - reach, self.forward(y) + reach
        for _ in range(BISECTIONS if self.error else 0):
            middle = 0.5 * (low + high)
            below = self.mean(middle) < y
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return np.asarray(0.5 * (low + high))

    def _smeared(self, of: Any, z: np.ndarray) -> np.ndarray:
        if self.error == 0.0:
            return np.asarray(of(z))
        total = np.zeros_like(z, dtype=np.float64)
        for score, share in zip(SCORES, SHARES, strict=True):  # one at a time, in the memory of the predictions
            total += share * of(z + self.error * score)
        return total
