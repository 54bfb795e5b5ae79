"""Joint regions of several targets: ellipsoids that hold all targets of a new observation at once.

The predicted covariance Σ of a row gives the ellipsoid { y : (y - mean)ᵀ Σ⁻¹ (y - mean) ≤ r² }; its radius r is the conformal
quantile of the same distances of out-of-sample errors (Johnstone and Cox 2021; Messoudi, Destercke and Rousseau 2022, with one
covariance of the noise for all rows). A box of intervals with Bonferroni's correction ignores the correlation of the targets
and is larger the stronger it is.

The correlations are estimated from n rows and are multiplied by n/(n + k) for k targets, as if k more rows had none: with few
rows, or targets that are functions of each other, a covariance without an inverse would make every distance infinite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaln

from kstonet._checks import check_numbers, whole_number
from kstonet._records import storable
from kstonet.uncertainty.conformal import ConformalFactor
from kstonet.uncertainty.online import OnlineFactor, adapting

SMALLEST = 1e-300  # a standard deviation that is none


@storable(shrinkage="nonnegative")
@dataclass(frozen=True)
class JointFactor:
    """The radii of joint regions.

    Parameters
    ----------
    factor : ConformalFactor or OnlineFactor
        The factor for the distances of out-of-sample errors, of shape (n, 1).
    shrinkage : float
        How much smaller correlations are taken: they are multiplied by one minus it.
    """

    factor: ConformalFactor | OnlineFactor
    shrinkage: float

    @classmethod
    def of(
        cls,
        errors: np.ndarray,
        covariance: np.ndarray,
        df: float | None = None,
        weight: np.ndarray | None = None,
        shrinkage: float | None = None,
    ) -> JointFactor:
        """From out-of-sample errors (n, k), covariances (n, k, k), and weights of the rows; of n rows by default."""
        n, k = errors.shape
        kept = k / (n + k) if shrinkage is None else shrinkage
        scores = distances(errors, shrunk(covariance, kept))
        return cls(ConformalFactor.of(scores[:, None], np.ones((n, 1)), df, weight, dimension=k), kept)

    def seen(self, errors: np.ndarray, covariance: np.ndarray, step: float | str) -> JointFactor:
        """After errors (m, k) of rows of a series, with their covariances (m, k, k)."""
        online = adapting(self.factor, step)
        assert online is not None
        return replace(self, factor=online.seen(distances(errors, shrunk(covariance, self.shrinkage))[:, None]))


def shrunk(covariance: np.ndarray, shrinkage: float) -> np.ndarray:
    """Covariances (n, k, k) with smaller correlations.

    Examples
    --------
    >>> import numpy as np
    >>> shrunk(np.array([[[4.0, 2.0], [2.0, 1.0]]]), 0.1)
    array([[[4. , 1.8],
            [1.8, 1. ]]])
    """
    k = covariance.shape[1]
    return np.asarray(covariance * np.where(np.eye(k, dtype=bool), 1.0, 1.0 - shrinkage))


def _standardised(covariance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations (n, k), and triangular roots (n, k, k) of the correlations."""
    deviations = np.sqrt(np.maximum(np.diagonal(covariance, axis1=1, axis2=2), SMALLEST))
    correlation = covariance / deviations[:, :, None] / deviations[:, None, :]
    diagonal = np.arange(covariance.shape[1])
    correlation[:, diagonal, diagonal] = 1.0
    return deviations, np.linalg.cholesky(correlation)


def distances(errors: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Mahalanobis distances (n,) of errors (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> distances(np.array([[3.0, 0.0]]), np.array([[[9.0, 0.0], [0.0, 1.0]]]))
    array([1.])
    """
    deviations, root = _standardised(covariance)
    standard = np.linalg.solve(root, (errors / deviations)[:, :, None])[:, :, 0]
    return np.asarray(np.sqrt((standard**2).sum(axis=1)))


@dataclass(frozen=True)
class PredictiveRegion:
    """Ellipsoids that hold all targets of new observations, made by ``predict_region``.

    Arrays have one more, last axis (levels,) where a sequence of coverages was asked for.

    Parameters
    ----------
    means : ndarray of shape (n, k)
        Centres.
    covariance : ndarray of shape (n, k, k)
        Shapes.
    radius : ndarray of shape (n, levels)
        In standard deviations.
    single : bool
        Whether one coverage was asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.uncertainty.regions import PredictiveRegion
    >>> circle = PredictiveRegion(np.zeros((1, 2)), np.eye(2)[None], np.array([[2.0]]), single=True)
    >>> circle.contains([[1.0, 1.0]]), circle.contains([[2.0, 1.0]]), circle.volume.round(3)
    (array([ True]), array([False]), array([12.566]))
    """

    means: np.ndarray
    covariance: np.ndarray
    radius: np.ndarray
    single: bool

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return np.asarray(values[..., 0] if self.single else values)

    def contains(self, y: Any) -> np.ndarray:
        """Whether observations (n, k) lie in the regions of their rows, boundary included; shape (n,) or (n, levels)."""
        observed = check_numbers("y", y)
        if observed.shape != self.means.shape:
            raise ValueError(f"y has shape {observed.shape}; it must be {self.means.shape}, all targets of the predicted rows.")
        reached = distances(observed - self.means, self.covariance)
        return self._shaped(reached[:, None] <= self.radius)

    @property
    def log_volume(self) -> np.ndarray:
        """Logarithm of the volume, in the units of the targets."""
        k = self.means.shape[1]
        deviations, root = _standardised(self.covariance)
        shape = np.log(deviations).sum(axis=1) + np.log(np.diagonal(root, axis1=1, axis2=2)).sum(axis=1)
        ball = 0.5 * k * np.log(np.pi) - gammaln(0.5 * k + 1.0)
        with np.errstate(divide="ignore"):  # a radius of zero
            return self._shaped(ball + shape[:, None] + k * np.log(self.radius))

    @property
    def volume(self) -> np.ndarray:
        """Volume, in the units of the targets multiplied: an area for two targets."""
        return np.asarray(np.exp(self.log_volume))

    @property
    def bounds(self) -> np.ndarray:
        """The smallest box around each region, shape (n, k, 2) or (n, k, 2, levels)."""
        half = _standardised(self.covariance)[0][:, :, None] * self.radius[:, None, :]
        return self._shaped(np.stack([self.means[:, :, None] - half, self.means[:, :, None] + half], axis=2))

    def boundary(self, n_points: int = 100) -> np.ndarray:
        """Points on the boundary for two targets, to draw it: shape (n, n_points, 2), or (n, n_points, 2, levels)."""
        if self.means.shape[1] != 2:
            raise ValueError(f"boundary is for two targets; this model has {self.means.shape[1]}. Use bounds.")
        angle = np.linspace(0.0, 2.0 * np.pi, whole_number("n_points", n_points, 3))
        circle = np.column_stack([np.cos(angle), np.sin(angle)])
        deviations, root = _standardised(self.covariance)
        away = (circle @ root.swapaxes(1, 2) * deviations[:, None, :])[..., None] * self.radius[:, None, None, :]
        return self._shaped(self.means[:, None, :, None] + away)
