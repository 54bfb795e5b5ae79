"""The first hidden layer with a squared loss: one kernel ridge regression per unit, Gaussian noise, everything in closed form.

The ε-insensitive loss of eq. (SVRdist) estimates medians. Where the noise is Gaussian, or the targets are indicators of
classes, means are what is wanted: least-squares support vector regressions (Suykens & Vandewalle 1999). Their coefficients are
a linear map of the targets that stays the same for the whole training, α = Q·y, so a refit is one matrix product for all units;
values with rows left out, one or a fold of them, follow from the same Q.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kstonet._arrays import Array
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.expansion import Expansion
from kstonet.layers.exact_refits import NOISE_RATIO, NOISE_SHARE, ExactRefits
from kstonet.layers.kernel import FittedRows, UnitGroup, functions_at
from kstonet.layers.ridge_map import RidgeMap
from kstonet.layers.svr_uncertainty import MarginUncertainty

ALIKE = 1e-9  # difference of latent values, over the largest, that is rounding


@dataclass(frozen=True)
class RidgeLayer(ExactRefits, FittedRows):
    """Y₁ = b + β φ(x) + e with Gaussian noise: least-squares support vector regressions on fixed training rows.

    Parameters
    ----------
    groups : tuple of UnitGroup
        The Grams, each with the units it serves.
    maps : tuple of RidgeMap
        One per group: kernel, ridge and weights.
    variance : float
        Variance of the noise.
    ratio : float
        The variance of this layer's noise over that of the layers above.
    noise_share : float
        The variance of the noise above over the mean squared residual.
    latent_noise : float, optional
        Standard deviation of this layer's noise, where it does not follow the residual.
    left_out : bool
        Whether the layer above is fitted on values with the row itself left out: labels tell more about latent values that
        have followed them than about those of new rows.
    coef : ndarray of shape (units, n)
        Kernel coefficients of the last refit.
    intercept : ndarray of shape (units,)
        Constants of the last refit.
    fitted : ndarray of shape (n, units)
        Values on the training rows, kept by the refit.
    """

    groups: tuple[UnitGroup, ...]
    maps: tuple[RidgeMap, ...]
    variance: float = 1.0
    ratio: float = NOISE_RATIO
    noise_share: float = NOISE_SHARE
    latent_noise: float | None = None
    left_out: bool = False
    coef: np.ndarray | None = None
    intercept: np.ndarray | None = None
    fitted: np.ndarray | None = None

    @property
    def n_outputs(self) -> int:
        return sum(len(group.units) for group in self.groups)

    def certificate(self) -> dict[str, float]:
        """Closed-form solutions are exact, and every row supports them."""
        return {"svr_gap": 0.0, "svr_iterations": 0.0, "n_support": float(self.groups[0].gram.n)}

    def log_density(self, inputs: Any, outputs: Array) -> Array:
        squared = ((outputs - self.mean(inputs)) ** 2).sum(axis=1)
        return -0.5 * squared / self.variance - 0.5 * self.n_outputs * float(np.log(2.0 * np.pi * self.variance))

    def score_output(self, inputs: Any, outputs: Array) -> Array:
        return (self.mean(inputs) - outputs) / self.variance

    def curvature_output(self) -> np.ndarray:
        return np.full(self.n_outputs, 1.0 / self.variance)

    def kernel_gap(self) -> None:
        """A squared loss has no bound of this kind: the plan says how much of the kernel is left out."""

    def among(self, X: np.ndarray, rows: np.ndarray) -> Self:
        """The layer before its first refit, on some of the rows alone."""
        maps = tuple(ridge.among(X, rows) for ridge in self.maps)
        groups = tuple(UnitGroup(ridge.gram, group.units) for ridge, group in zip(maps, self.groups, strict=True))
        return replace(self, groups=groups, maps=maps, coef=None, intercept=None, fitted=None)

    # -- what is automatic -------------------------------------------------------------------------------------------------

    def noise_above(self, residual: float, slope: float) -> float:
        """A fraction of the mean squared residual (Gaussian noise has no dead zone), or what goes with ``latent_noise``."""
        return self.noise_share * residual**2 if self.latent_noise is None else self.latent_noise**2 / self.ratio

    def with_noise(self, variance: float) -> Self:
        return replace(self, variance=self.ratio * variance)

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Self:
        """The penalty of this layer is its ridge."""
        return self

    # -- refits ------------------------------------------------------------------------------------------------------------

    def refit(self, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        coef, intercept = np.empty((self.n_outputs, len(outputs))), np.empty(self.n_outputs)
        fitted = np.empty((len(outputs), self.n_outputs))
        for group, ridge in zip(self.groups, self.maps, strict=True):
            own, constants, image = ridge.regress(outputs[:, group.units], sample_weight)
            coef[group.units], intercept[group.units] = own.T, constants
            fitted[:, group.units] = image + constants
        return replace(self, coef=coef, intercept=intercept, fitted=fitted)

    def values_above(self, latents: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        """The latent values, or the values of this layer with every row left out of its regression in turn."""
        if not self.left_out:
            return latents
        values = np.empty_like(latents)
        for group, ridge in zip(self.groups, self.maps, strict=True):
            residuals = _solved(self.coef)[group.units].T / ridge.diagonal(sample_weight)[:, None]
            values[:, group.units] = latents[:, group.units] - residuals
        return values

    # -- beyond the training rows --------------------------------------------------------------------------------------------

    def expansion(self, versions: Sequence[Self], inputs: Any) -> Expansion:
        coef = np.stack([_solved(version.coef) for version in versions])
        parts = [group.gram.expansion(coef[:, group.units], group.units) for group in self.groups]
        return Expansion.of(parts, np.stack([_solved(version.intercept) for version in versions]))

    def values_at(self, X: np.ndarray) -> Callable[[Self], np.ndarray]:
        functions = [functions_at(group.gram, X) for group in self.groups]

        def values(version: Self) -> np.ndarray:
            first = np.empty((len(X), version.n_outputs))
            for group, own in zip(version.groups, functions, strict=True):
                first[:, group.units] = own(_solved(version.coef)[group.units])
            return np.asarray(first + _solved(version.intercept))

        return values

    def left_out_shifts(self, spans: np.ndarray, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """What leaving a row out of the refit changes at that row, shape (n, units): ridge·α/w - α/Qᵢᵢ."""
        coef = _solved(self.coef).T[rows]
        shifts = np.zeros_like(coef)
        for group, ridge in zip(self.groups, self.maps, strict=True):
            ridges = ridge.row_ridges[rows]
            change = ridges - 1.0 / ridge.diagonal(rows=rows)
            change[np.isinf(ridges)] = 0.0  # these are left out already
            shifts[:, group.units] = coef[:, group.units] * change[:, None]
        return shifts

    def left_out_variance(self, sample_weight: np.ndarray | None) -> np.ndarray:
        """Variance of every row's values with that row left out, (n, units), over the noise's; 0 for rows that do not count."""
        found: np.ndarray = np.zeros_like(self.mean())
        for group, ridge in zip(self.groups, self.maps, strict=True):
            counted = np.flatnonzero(np.isfinite(ridge.row_ridges))
            own = 1.0 / ridge.diagonal(sample_weight)[counted] - ridge.row_ridges[counted]
            found[np.ix_(counted, group.units)] = np.maximum(own, 0.0)[:, None] / ridge.ridge
        return found

    def uncertainty(
        self, expansion: Expansion, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None
    ) -> MarginUncertainty:
        """Every row pins the functions down, up to the ridge: the variance of Gaussian process regression.

        Its errors are linear in the noise of the latent values: units that have the same values have the same noise.
        """
        margins = []
        for group, ridge, part in zip(self.groups, self.maps, expansion.parts, strict=True):
            counted = np.isfinite(ridge.row_ridges) & (True if sample_weight is None else sample_weight > 0)
            counted &= np.isin(np.arange(len(outputs)), part.used)  # all but coefficients that happen to be exactly zero
            margins.append((group.gram, group.units, np.tile(counted, (len(group.units), 1))))
        return MarginUncertainty.of(margins, expansion, [ridge.row_ridges for ridge in self.maps], _signs(outputs))


def _signs(latents: np.ndarray) -> np.ndarray | None:
    """Signs with which all units have the latent values of the first; None where a unit has others.

    Examples
    --------
    >>> values = np.array([[1.0, -1.0], [0.5, -0.5]])
    >>> _signs(values), _signs(values + [[0.0, 0.1]])
    (array([ 1., -1.]), None)
    """
    first = latents[:, :1]
    signs = np.where(first[:, 0] @ latents < 0.0, -1.0, 1.0)
    alike = latents.shape[1] > 1 and np.allclose(latents, first * signs, rtol=0.0, atol=ALIKE * float(np.abs(first).max()))
    return signs if alike else None


def _solved(values: np.ndarray | None) -> np.ndarray:
    if values is None:
        raise ValueError("the kernel layer has no solution yet: refit it first.")
    return values
