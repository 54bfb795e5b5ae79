"""Kernels of a distance: k(x, y) = profile(s) with s = Σ_j |x_j - y_j|^power, a sum over the features.

The sum makes them fit for length scales learned by the evidence (:mod:`kstonet.tuning.relevance`), which asks for the
derivative of the profile; the same derivative gives gradients of expansions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kstonet._arrays import Array, namespace, zeros
from kstonet.gram.kernels.base import GraphValue, Kernel, absolute_distances, squared_distances
from kstonet.gram.kernels.registry import register_kernel

ROUNDING = 2.0**-46  # of |x|² + |y|²: squared distances below it are rounding errors


class Radial(NamedTuple):
    """A kernel k = (1 + first·r + second·r²)·exp(-r), r = (factor·s)^exponent, of a squared distance s."""

    factor: float
    exponent: float = 1.0
    first: float = 0.0
    second: float = 0.0


@dataclass(frozen=True)
class Stationary(Kernel):
    """Base of the kernels of a distance, with k(x, x) = 1.

    A subclass implements :meth:`profile` and :meth:`slopes`, and for the export ``_graph`` of :meth:`graph_distances`.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature.
    gamma : float, default=1.0
        Inverse width.
    """

    gamma: float = 1.0

    #: s sums the absolute differences of the features to this power: 1 or 2.
    power = 2
    #: gamma multiplies a distance to this power: dividing all features by r is the same as dividing gamma by r^gamma_power.
    gamma_power = 2
    #: Whether the kernel is differentiable at zero distance.
    smooth = True

    def profile(self, s: Array) -> Array:
        """Return k as a function of s; may overwrite s."""
        raise NotImplementedError

    @property
    def radial(self) -> Radial | None:
        """The profile in numbers, for a GPU's own code; None where it has no such form."""
        return None

    def slopes(self, s: Array) -> tuple[Array, Array]:
        """Return k and dk/ds; the derivative is zero where s is zero and the kernel has a kink there."""
        raise NotImplementedError

    def distances(self, X: Array, Y: Array) -> Array:
        """The sums s of all pairs of rows."""
        return squared_distances(X, Y) if self.power == 2 else absolute_distances(X, Y)

    def graph_distances(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        """The sums s in an ONNX graph, for the rows of ``basis`` and the columns of x, as ``_graph`` sees them."""
        return -_graph_squares(x, basis, 1.0) if self.power == 2 else _graph_absolutes(x, basis)

    def _block(self, X: Array, Y: Array) -> Array:
        return self.profile(self.distances(X, Y))

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).ones_like(X[:, 0])

    def _graph_diagonal(self, x: GraphValue) -> float:
        return 1.0

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        xp = namespace(X)
        gradients = zeros(X, (X.shape[0], coef.shape[-2], X.shape[1]))
        s = self.distances(X, basis)
        if self.power == 1:
            _, slope = self.slopes(s)
            for j in range(X.shape[1]):
                slopes = slope * xp.sign(X[:, j : j + 1] - basis[:, j])
                gradients[:, :, j] = slopes @ coef.T if coef.ndim == 2 else (coef @ slopes[:, :, None])[:, :, 0]
            return gradients
        centre = basis.mean(0)
        X, basis = X - centre, basis - centre  # the difference below cancels badly for data far from the origin
        coincide = s <= ROUNDING * ((X * X).sum(1)[:, None] + (basis * basis).sum(1))
        _, slope = self.slopes(s)
        if not self.smooth:
            slope[coincide] = 0.0
        for unit in range(coef.shape[-2]):
            weights = slope * coef[..., unit, :]
            gradients[:, unit] = 2.0 * (weights.sum(1)[:, None] * X - weights @ basis)
        return gradients


def _kinked(slope: Array, s: Array) -> Array:
    """A derivative that is infinite at s = 0, with zeros there: the differences it multiplies are zero."""
    xp = namespace(s)
    return xp.where(s > 0, slope, xp.zeros_like(s))


def _graph_squares(x: GraphValue, basis: np.ndarray, factor: float) -> GraphValue:
    """-factor·|x - y|², never positive; centred first, as in :func:`squared_distances`."""
    centre = basis.mean(axis=0)
    x, basis = x - centre[:, None], basis - centre
    products = x.left_product(2.0 * factor * basis, -factor * (basis**2).sum(axis=1, keepdims=True))
    return (products - factor * x.sum_of_squares()).minimum(0.0)


def _graph_absolutes(x: GraphValue, basis: np.ndarray) -> GraphValue:
    """|x - y|_1, one feature after the other: all at once would take p times the memory of the kernel values."""
    rows = x.split(basis.shape[1])
    total = abs(rows[0] - basis[:, :1])
    for row, values in zip(rows[1:], basis.T[1:, :, None], strict=True):
        total = total + abs(row - values)
    return total


@dataclass(frozen=True)
class RBF(Stationary):
    """exp(-gamma |x - y|²), the kernel of the paper."""

    def profile(self, s: Array) -> Array:
        """Return k as a function of the squared distance."""
        s *= -self.gamma
        return namespace(s).exp(s, out=s)

    @property
    def radial(self) -> Radial:
        """The profile in numbers."""
        return Radial(self.gamma)

    def slopes(self, s: Array) -> tuple[Array, Array]:
        """Return k and its derivative."""
        k = namespace(s).exp(-self.gamma * s)
        return k, -self.gamma * k

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        return _graph_squares(x, basis, self.gamma).exp()


register_kernel("rbf", RBF)


@dataclass(frozen=True)
class Laplacian(Stationary):
    """exp(-gamma |x - y|_1)."""

    power = 1
    gamma_power = 1
    smooth = False

    def profile(self, s: Array) -> Array:
        """Return k as a function of the distance in the 1-norm."""
        s *= -self.gamma
        return namespace(s).exp(s, out=s)

    def slopes(self, s: Array) -> tuple[Array, Array]:
        """Return k and its derivative, which is finite: the kink is that of the distance."""
        k = namespace(s).exp(-self.gamma * s)
        return k, -self.gamma * k

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        return (-self.gamma * _graph_absolutes(x, basis)).exp()


register_kernel("laplacian", Laplacian)


@dataclass(frozen=True)
class Matern(Stationary):
    """Matérn kernel of smoothness ``nu`` in {1/2, 3/2, 5/2}.

    ``gamma`` means what it means for the RBF kernel, the limit nu → ∞: the length scale is 1/√(2·gamma).
    """

    nu: float = 1.5

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the kernel is differentiable at zero distance."""
        return self.nu > 0.5

    @property
    def _factor(self) -> float:
        return 2.0 * self.nu * 2.0 * self.gamma

    def profile(self, s: Array) -> Array:
        """Return k as a function of the squared distance."""
        xp = namespace(s)
        s *= self._factor
        r = xp.sqrt(s, out=s)
        return self._polynomial(r) * xp.exp(-r)

    @property
    def radial(self) -> Radial:
        """The profile in numbers."""
        return Radial(self._factor, 0.5, float(self.nu > 0.5), 1.0 / 3.0 if self.nu == 2.5 else 0.0)

    def _polynomial(self, r: Array) -> Array:
        if self.nu == 0.5:
            return 1.0
        return 1.0 + r if self.nu == 1.5 else 1.0 + r + r * r / 3.0

    def slopes(self, s: Array) -> tuple[Array, Array]:
        """Return k and its derivative with respect to the squared distance."""
        xp = namespace(s)
        r = xp.sqrt(self._factor * s)
        decay = xp.exp(-r)
        if self.nu == 0.5:
            slope = _kinked(-0.5 * self._factor * decay / xp.where(r > 0, r, xp.ones_like(r)), s)
        elif self.nu == 1.5:
            slope = -0.5 * self._factor * decay
        else:
            slope = -self._factor / 6.0 * (1.0 + r) * decay
        return self._polynomial(r) * decay, slope

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        r = (-_graph_squares(x, basis, self._factor)).sqrt()
        decay = (-r).exp()
        return decay if self.nu == 0.5 else self._polynomial(r) * decay


register_kernel("matern12", Matern, nu=0.5)
register_kernel("matern32", Matern, nu=1.5)
register_kernel("matern52", Matern, nu=2.5)


@dataclass(frozen=True)
class Exponential(Stationary):
    """Generalised exponential kernel exp(-(√gamma |x - y|_norm)^exponent).

    ``norm=2, exponent=2`` is the RBF kernel of the same gamma; ``norm=2, exponent=1`` is the Matérn kernel of smoothness 1/2
    and half that gamma; ``norm=1, exponent=1`` is the Laplacian kernel of gamma's square root. Small exponents give rough
    functions that follow single rows closely.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature.
    gamma : float, default=1.0
        Inverse squared width.
    norm : {1, 2}, default=2
        Sum of absolute differences, or Euclidean distance.
    exponent : float, default=1.0
        Positive, at most ``norm``: beyond it the kernel is not positive semi-definite.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram.kernels import Exponential
    >>> Exponential(gamma=0.25, norm=1, exponent=0.5)(np.array([[0.0, 0.0]]), np.array([[1.0, 1.0]])).round(4)
    array([[0.3679]])
    """

    norm: int = 2
    exponent: float = 1.0

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.norm not in (1, 2) or not 0.0 < self.exponent <= self.norm:
            raise ValueError(
                f"norm={self.norm!r}, exponent={self.exponent!r}: the exponential kernel needs norm 1 or 2 and an exponent in "
                "(0, norm] to be positive semi-definite."
            )

    @property
    def power(self) -> int:  # type: ignore[override]
        """Power of the differences that are summed."""
        return self.norm

    @property
    def smooth(self) -> bool:  # type: ignore[override]
        """Whether the kernel is differentiable at zero distance."""
        return self.norm == self.exponent == 2

    @property
    def _factor(self) -> float:
        return self.gamma if self.norm == 2 else math.sqrt(self.gamma)

    def profile(self, s: Array) -> Array:
        """Return k as a function of the squared distance, or of the distance in the 1-norm."""
        s *= self._factor
        return namespace(s).exp(-(s ** (self.exponent / self.norm)))

    @property
    def radial(self) -> Radial:
        """The profile in numbers."""
        return Radial(self._factor, self.exponent / self.norm)

    def slopes(self, s: Array) -> tuple[Array, Array]:
        """Return k and its derivative with respect to that distance."""
        xp = namespace(s)
        power = self.exponent / self.norm
        raised = (self._factor * s) ** power
        k = xp.exp(-raised)
        if power == 1.0:
            return k, -self._factor * k
        return k, _kinked(-power * raised * k / xp.where(s > 0, s, xp.ones_like(s)), s)

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        s = -_graph_squares(x, basis, self._factor) if self.norm == 2 else self._factor * _graph_absolutes(x, basis)
        return (-(s ** (self.exponent / self.norm))).exp()


register_kernel("exponential", Exponential)
