"""Predictive distributions: Student's t or normal, with the variance by source."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import gammaln
from scipy.stats import t
from sklearn.utils import check_random_state

from kstonet.metrics import crps_student, nll_student
from kstonet.uncertainty.conformal import Factor, StudentFactor, student_radius, unit_scale
from kstonet.uncertainty.online import OnlineFactor
from kstonet.uncertainty.regions import JointFactor, PredictiveRegion, shrunk

NOISE, BETWEEN = "noise", "between iterations"


@dataclass(frozen=True)
class PredictiveDistribution:
    """The distribution of new observations at some rows, in the units of the targets: Student's t, or normal.

    Made by ``predict_dist``. Arrays have shape (n,), or (n, k) for several targets.

    Parameters
    ----------
    means : ndarray of shape (n, k)
    parts : dict of ndarray of shape (n, k, k)
        Covariance by source: "noise", "first layer", "regression layers", "between iterations".
    single : bool
        Whether there is one target, given without an axis of its own.
    df : float
        Degrees of freedom, shared by the targets of a row; infinite for the normal distribution.
    factor : factor of :mod:`kstonet.uncertainty.conformal`, optional
        How many standard deviations a central interval reaches below and above the mean, where that is not the distribution's
        own: a conformal one. It is in ``interval`` and ``ppf`` only.
    joint : JointFactor, optional
        The radii of joint regions, where these are not the distribution's own.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.uncertainty.distribution import PredictiveDistribution
    >>> d = PredictiveDistribution(np.array([[0.0], [1.0]]), {"noise": np.full((2, 1, 1), 4.0)}, single=True)
    >>> d.std
    array([2., 2.])
    >>> d.interval(0.95).round(2)
    array([[-3.92,  3.92],
           [-2.92,  4.92]])
    """

    means: np.ndarray
    parts: dict[str, np.ndarray]
    single: bool
    df: float = np.inf
    factor: Factor | OnlineFactor | None = None
    joint: JointFactor | None = None

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values[:, 0]) if self.single else values

    @property
    def mean(self) -> np.ndarray:
        """Predicted means."""
        return self._shaped(self.means)

    @cached_property
    def covariance(self) -> np.ndarray:
        """Covariance of the targets at every row, shape (n, k, k)."""
        return np.asarray(sum(self.parts.values()))

    @cached_property
    def deviations(self) -> np.ndarray:
        """Standard deviations, shape (n, k) also for a single target."""
        return np.asarray(np.sqrt(np.maximum(np.diagonal(self.covariance, axis1=1, axis2=2), 0.0)))

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of new observations."""
        return self._shaped(self.deviations)

    @property
    def variance_by_source(self) -> dict[str, np.ndarray]:
        """Variance from the noise, the first layer, the regression layers and the iterations; they add up to std²."""
        return {source: self._shaped(np.diagonal(part, axis1=1, axis2=2)) for source, part in self.parts.items()}

    @property
    def of_mean(self) -> PredictiveDistribution:
        """The distribution of the mean alone: without the noise, and normal, for confidence intervals."""
        return PredictiveDistribution(self.means, {s: p for s, p in self.parts.items() if s != NOISE}, self.single)

    @property
    def uncalibrated(self) -> PredictiveDistribution:
        """The same with its own quantiles, those of Student's t, instead of conformal ones."""
        return replace(self, factor=None, joint=None)

    def take(self, rows: np.ndarray, factor: Factor | OnlineFactor | None) -> PredictiveDistribution:
        """The distribution at some of the rows, with another factor of intervals."""
        parts = {source: part[rows] for source, part in self.parts.items()}
        return PredictiveDistribution(self.means[rows], parts, self.single, self.df, factor)

    def interval(self, coverage: Any = 0.95) -> np.ndarray:
        """Central intervals.

        Parameters
        ----------
        coverage : float or sequence of float

        Returns
        -------
        ndarray of shape (n, 2), (n, 2, levels), (n, k, 2) or (n, k, 2, levels)
        """
        levels = probabilities("coverage", coverage)
        below, above = self._reaches(levels)  # (n, k, levels) each
        bounds = np.stack([self.means[:, :, None] - below, self.means[:, :, None] + above], axis=2)
        bounds = bounds if np.ndim(coverage) else bounds[..., 0]
        return self._shaped(bounds)

    def region(self, coverage: Any = 0.95) -> PredictiveRegion:
        """Ellipsoids that hold all targets at once.

        Parameters
        ----------
        coverage : float or sequence of float

        Returns
        -------
        PredictiveRegion
        """
        levels, (n, k) = probabilities("coverage", coverage), self.means.shape
        if k == 1:
            raise ValueError("a region is for several targets, and the model has one; its intervals say the same.")
        if self.joint is None:
            radius, covariance = student_radius(levels, self.df, k), self.covariance
        else:
            radius, covariance = self.joint.factor.tails(levels)[1][:, 0], shrunk(self.covariance, self.joint.shrinkage)
        return PredictiveRegion(self.means, covariance, np.tile(radius, (n, 1)), single=not np.ndim(coverage))

    def ppf(self, q: Any) -> np.ndarray:
        """Quantiles; shape (n,) or (n, k), with one more axis (levels,) where ``q`` is a sequence."""
        levels = probabilities("q", q)
        below, above = self._reaches(np.abs(2.0 * levels - 1.0))
        values = self.means[:, :, None] + np.where(levels < 0.5, -below, above)
        return self._shaped(values if np.ndim(q) else values[..., 0])

    def _reaches(self, levels: np.ndarray) -> list[np.ndarray]:
        """How far central intervals reach below and above the mean, shape (n, k, levels) each."""
        tails = (self.factor or StudentFactor(self.df)).tails(levels)  # (levels,), or (levels, k)
        shape = (len(levels), self.means.shape[1])
        spread = (np.broadcast_to(tail[:, None] if tail.ndim == 1 else tail, shape) for tail in tails)
        return [np.asarray(self.deviations[:, :, None] * tail.T) for tail in spread]

    def cdf(self, y: Any) -> np.ndarray:
        """P(observation ≤ y) for every row (and target)."""
        return np.asarray(t.cdf(np.asarray(y, dtype=np.float64), self.df, self.mean, self.std * unit_scale(self.df)))

    def logpdf(self, y: Any) -> np.ndarray:
        """Log-density of observations, jointly over the targets of a row, shape (n,)."""
        error = np.asarray(y, dtype=np.float64).reshape(self.means.shape) - self.means
        _, logdet = np.linalg.slogdet(self.covariance)
        square = (error * np.linalg.solve(self.covariance, error[:, :, None])[:, :, 0]).sum(axis=1)
        k, df = self.means.shape[1], self.df
        if np.isinf(df):
            return np.asarray(-0.5 * (square + logdet + k * np.log(2.0 * np.pi)))
        constant = gammaln(0.5 * (df + k)) - gammaln(0.5 * df) - 0.5 * k * np.log((df - 2.0) * np.pi)
        return np.asarray(constant - 0.5 * logdet - 0.5 * (df + k) * np.log1p(square / (df - 2.0)))

    def nll(self, y: np.ndarray, column: int = 0) -> float | None:
        """Mean negative log-density of observations (n,) of one target; None where there is no variance."""
        mean, std = self.means[:, column], self.deviations[:, column]
        return float(nll_student(y, mean, std, self.df)) if (std > 0).all() else None

    def crps(self, y: np.ndarray, column: int = 0) -> float:
        """Mean continuous ranked probability score of observations (n,) of one target."""
        return float(crps_student(y, self.means[:, column], self.deviations[:, column], self.df))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> np.ndarray:
        """Draws, shape (n, n_samples) or (n, k, n_samples), as in scikit-learn's Gaussian processes."""
        values, vectors = np.linalg.eigh(self.covariance)
        root = vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
        n, k = self.means.shape
        rng = check_random_state(random_state)
        draws = rng.standard_normal(size=(n, k, n_samples))
        if np.isfinite(self.df):  # the targets of an observation share the size of its error
            draws *= np.sqrt((self.df - 2.0) / rng.chisquare(self.df, size=(n, 1, n_samples)))
        return self._shaped(self.means[:, :, None] + root @ draws)


def probabilities(name: str, values: Any) -> np.ndarray:
    """One or several numbers strictly between 0 and 1, as an array."""
    try:
        levels = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        levels = np.array([np.nan])
    if levels.ndim != 1 or not ((levels > 0) & (levels < 1)).all():
        raise ValueError(
            f"{name}={values!r} must lie strictly between 0 and 1 (95 % is 0.95), one number or a sequence of them."
        )
    return levels
