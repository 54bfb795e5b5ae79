"""The predictive distribution of a target that is learned as its square root or logarithm."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import ndtr
from scipy.stats import t

from kstonet.target_map import SCORES, SHARES, TargetMap
from kstonet.uncertainty.conformal import Factor, unit_scale
from kstonet.uncertainty.distribution import PredictiveDistribution, probabilities
from kstonet.uncertainty.online import OnlineFactor
from kstonet.uncertainty.regions import PredictiveRegion

PROBABILITIES = ndtr(SCORES)  # of the quantiles that moments and scores are sums over, with ``SHARES``


@dataclass(frozen=True)
class MappedDistribution:
    """The distribution of new observations at some rows, in the units of the target, which was learned under a monotone map.

    Made by ``predict_dist``; it answers what :class:`~kstonet.uncertainty.distribution.PredictiveDistribution` answers.

    Parameters
    ----------
    plain : PredictiveDistribution
        The distribution of the mapped target.
    map : TargetMap
        The map.
    of_means : bool, default=False
        Whether it is the distribution of the mean of new observations.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.target_map import TargetMap
    >>> from kstonet.uncertainty.distribution import PredictiveDistribution
    >>> from kstonet.uncertainty.mapped import MappedDistribution
    >>> roots = PredictiveDistribution(np.array([[2.0]]), {"noise": np.full((1, 1, 1), 0.01)}, single=True)
    >>> d = MappedDistribution(roots, TargetMap.of("sqrt", np.array([0.0, 100.0])).with_error(0.1))
    >>> d.mean.round(3), d.interval(0.95).round(2), d.cdf(4.0)
    (array([4.01]), array([[3.25, 4.82]]), array([0.5]))
    """

    plain: PredictiveDistribution
    map: TargetMap
    of_means: bool = False

    @property
    def single(self) -> bool:
        """Whether the target was given without an axis of its own."""
        return self.plain.single

    @property
    def _back(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.map.mean if self.of_means else self.map.backward

    @property
    def _forth(self) -> Callable[[np.ndarray], np.ndarray]:
        return self.map.of_mean if self.of_means else self.map.forward

    @property
    def means(self) -> np.ndarray:
        """Predicted means, shape (n, 1)."""
        return self.map.mean(self.plain.means)

    @property
    def mean(self) -> np.ndarray:
        """Predicted means."""
        return self._shaped(self.means)

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values[:, 0]) if self.single else values

    def _quantiles(self) -> Iterator[np.ndarray]:
        """Those of ``PROBABILITIES``, of the distribution itself, without a conformal factor; (n, 1), one after the other."""
        for reach in standard_quantiles(self.plain.df):
            yield self._back(self.plain.means + reach * self.plain.deviations)

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations, shape (n, 1)."""
        about, first, second = self._back(self.plain.means), 0.0, 0.0
        for share, quantile in zip(SHARES, self._quantiles(), strict=True):
            away = quantile - about
            first, second = first + share * away, second + share * away**2
        return np.asarray(np.sqrt(np.maximum(second - np.square(first), 0.0)))

    @property
    def covariance(self) -> np.ndarray:
        """Variance of the target at every row, shape (n, 1, 1)."""
        return np.asarray(self.deviations[:, :, None] ** 2)

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of new observations."""
        return self._shaped(self.deviations)

    @property
    def variance_by_source(self) -> dict[str, np.ndarray]:
        """The variance, shared out as that of the mapped target is; the parts add up to std²."""
        total = np.maximum(self.plain.covariance[:, :, 0], 1e-300)
        return {source: self._shaped(self.deviations**2 * part[:, :, 0] / total) for source, part in self.plain.parts.items()}

    @property
    def of_mean(self) -> MappedDistribution:
        """The distribution of the mean alone: without the noise, for confidence intervals."""
        return MappedDistribution(self.plain.of_mean, self.map, of_means=True)

    @property
    def uncalibrated(self) -> MappedDistribution:
        """The same with its own quantiles instead of conformal ones."""
        return replace(self, plain=self.plain.uncalibrated)

    def take(self, rows: np.ndarray, factor: Factor | OnlineFactor | None) -> MappedDistribution:
        """The distribution at some of the rows, with another factor of intervals."""
        return MappedDistribution(self.plain.take(rows, factor), self.map, self.of_means)

    def interval(self, coverage: Any = 0.95) -> np.ndarray:
        """Central intervals, of the shapes that :class:`PredictiveDistribution` gives them."""
        return self._back(self.plain.interval(coverage))

    def region(self, coverage: Any = 0.95) -> PredictiveRegion:
        """Ellipsoids are for several targets, and a map is for one: an error says so."""
        return self.plain.region(coverage)

    def ppf(self, q: Any) -> np.ndarray:
        """Quantiles; shape (n,) or (n, 1), with one more axis (levels,) where ``q`` is a sequence."""
        probabilities("q", q)
        return self._back(self.plain.ppf(q))

    def cdf(self, y: Any) -> np.ndarray:
        """P(observation ≤ y) for every row."""
        y = np.asarray(y, dtype=np.float64)
        return np.where(y < 0.0, 0.0, self.plain.cdf(self._forth(np.maximum(y, 0.0))))

    def logpdf(self, y: Any) -> np.ndarray:
        """Log-density of observations, shape (n,); where they are zero, the logarithm of the probability that they are."""
        y = np.broadcast_to(np.asarray(y, dtype=np.float64), self.mean.shape)
        z = self._forth(np.maximum(y, 0.0))
        with np.errstate(divide="ignore"):
            slope = self.map.mean_slope(z) if self.of_means else self.map.slope(z)
            dense = self.plain.logpdf(z) - np.log(slope).reshape(len(z))
            found = np.where((y > 0.0).reshape(len(z)), dense, np.log(self.cdf(0.0)).reshape(len(z)))
        return np.where((y < 0.0).reshape(len(z)), -np.inf, found)

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draws, shape (n, n_samples) or (n, 1, n_samples)."""
        return self._back(self.plain.sample(n_samples, random_state))

    def nll(self, y: np.ndarray, column: int = 0) -> float:
        """Mean negative log-density of observations (n,)."""
        return float(-np.mean(self.logpdf(y.reshape(self.mean.shape))))

    def crps(self, y: np.ndarray, column: int = 0) -> float:
        """Mean continuous ranked probability score of observations (n,): twice the mean pinball loss of all quantiles."""
        total, y = 0.0, y.reshape(-1, 1)
        for p, share, quantile in zip(PROBABILITIES, SHARES, self._quantiles(), strict=True):
            away = y - quantile
            total += 2.0 * share * float(np.mean(np.maximum(p * away, (p - 1.0) * away)))
        return total


def standard_quantiles(df: float) -> np.ndarray:
    """Quantiles of ``PROBABILITIES`` of Student's t of variance one."""
    return np.asarray(t.ppf(PROBABILITIES, df) * unit_scale(df))
