"""Kernels of the inner product, and kernel values computed by the user."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kstonet._arrays import Array, namespace
from kstonet.gram.kernels.base import REMEDY, GraphValue, Kernel
from kstonet.gram.kernels.registry import register_kernel

PARALLEL = 1e-7  # sine of the angle between rows, below which rounding decides in which direction they differ


@dataclass(frozen=True)
class Linear(Kernel):
    """x·y."""

    def _block(self, X: Array, Y: Array) -> Array:
        return X @ Y.T

    def _diagonal(self, X: Array) -> Array:
        return (X * X).sum(1)

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        return coef @ basis  # the same at every row

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        return x.left_product(basis)

    def _graph_diagonal(self, x: GraphValue) -> GraphValue:
        return x.sum_of_squares()


register_kernel("linear", Linear)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x·y + coef0)^degree.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature.
    gamma : float, default=1.0
        Factor of the inner product.
    coef0 : float, default=1.0
        With 0 all terms are of the same degree: a cubic kernel then knows no linear function and no even one.
    degree : int, default=3
        Degree of the polynomial.
    """

    gamma: float = 1.0
    coef0: float = 1.0
    degree: int = 3

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.degree < 1 or int(self.degree) != self.degree or self.coef0 < 0:
            raise ValueError(
                f"degree={self.degree!r}, coef0={self.coef0!r}: the polynomial kernel needs a whole degree >= 1 and coef0 >= 0 "
                "to be positive semi-definite."
            )
        object.__setattr__(self, "degree", int(self.degree))  # 3.0 is a degree, too
        object.__setattr__(self, "coef0", float(self.coef0))

    def _block(self, X: Array, Y: Array) -> Array:
        K = X @ Y.T
        K *= self.gamma
        K += self.coef0
        return K**self.degree

    def _diagonal(self, X: Array) -> Array:
        return (self.gamma * (X * X).sum(1) + self.coef0) ** self.degree

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        inner = (self.gamma * (X @ basis.T) + self.coef0) ** (self.degree - 1)
        inner *= self.degree * self.gamma
        return namespace(X).stack([(inner * coef[..., unit, :]) @ basis for unit in range(coef.shape[-2])], 1)

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        return (self.gamma * x.left_product(basis) + self.coef0) ** self.degree

    def _graph_diagonal(self, x: GraphValue) -> GraphValue:
        return (self.gamma * x.sum_of_squares() + self.coef0) ** self.degree


register_kernel("poly", Polynomial)


@dataclass(frozen=True)
class ArcCosine(Kernel):
    """Arc-cosine kernel (Cho & Saul): an infinitely wide layer of step (0), ramp (1) or squared-ramp (2) units."""

    degree: int = 1

    def _block(self, X: Array, Y: Array) -> Array:
        xp = namespace(X)
        norm_x, norm_y = xp.sqrt((X * X).sum(1))[:, None], xp.sqrt((Y * Y).sum(1))
        norms = norm_x * norm_y
        zero = norms == 0
        cosine = X @ Y.T / xp.where(zero, xp.ones_like(norms), norms)
        # The origin has no direction: it is orthogonal to everything but itself.
        cosine = xp.where((norm_x == 0) & (norm_y == 0), xp.ones_like(norms), cosine)
        cosine = xp.clip(cosine, -1.0, 1.0)
        theta = xp.arccos(cosine)
        rest = math.pi - theta
        if self.degree == 0:
            return rest / math.pi
        sine = xp.sin(theta)
        if self.degree == 1:
            return norms * (sine + rest * cosine) / math.pi
        return norms**2 * (3.0 * sine * cosine + rest * (1.0 + 2.0 * cosine**2)) / math.pi

    def _diagonal(self, X: Array) -> Array:
        squared = (X * X).sum(1)
        return (1.0, 1.0, 3.0)[self.degree] * squared**self.degree

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        """∂k/∂x = along_x·x/|x| + along_y·y/|y|; parallel rows, where the step kernel has a kink, are left out of its sum."""
        xp = namespace(X)
        norm_x, norm_y = xp.sqrt((X * X).sum(1))[:, None], xp.sqrt((basis * basis).sum(1))
        x = X / xp.where(norm_x == 0, xp.ones_like(norm_x), norm_x)
        y = basis / xp.where(norm_y == 0, xp.ones_like(norm_y), norm_y)[:, None]
        cosine = xp.clip(x @ y.T, -1.0, 1.0)
        rest = math.pi - xp.arccos(cosine)
        sine = xp.sqrt((1.0 - cosine) * (1.0 + cosine))
        if self.degree == 0:
            smooth = (sine > PARALLEL) & (norm_x > 0)
            along_y = smooth / (math.pi * xp.where(smooth, norm_x * sine, xp.ones_like(sine)))
            along_x = -along_y * cosine
        elif self.degree == 1:
            along_x, along_y = norm_y * sine / math.pi, norm_y * rest / math.pi
        else:
            size = norm_x * norm_y**2 / math.pi
            along_y = 4.0 * size * (sine + rest * cosine)
            along_x = 2.0 * size * (3.0 * sine * cosine + rest * (1.0 + 2.0 * cosine**2)) - along_y * cosine
        each = []
        for unit in range(coef.shape[-2]):
            own = coef[..., unit, :]
            each.append((along_x * own).sum(1)[:, None] * x + (along_y * own) @ y)
        return xp.stack(each, 1)

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        norm_x, norm_y = x.sum_of_squares().sqrt(), np.sqrt((basis**2).sum(axis=1, keepdims=True))
        norms = norm_x * norm_y
        cosine = x.left_product(basis) / norms.maximum(1e-300)
        if not norm_y.all():  # the origin has no direction: it is orthogonal to everything but itself
            cosine = cosine + (1.0 - norm_x.sign()) * (norm_y == 0)
        cosine = cosine.minimum(1.0).maximum(-1.0)
        sine = ((1.0 - cosine) * (1.0 + cosine)).sqrt()
        rest = math.pi - cosine.arccos()
        if self.degree == 0:
            return rest / math.pi
        if self.degree == 1:
            return norms * (sine + rest * cosine) / math.pi
        return norms * norms * (3.0 * sine * cosine + rest * (1.0 + 2.0 * cosine * cosine)) / math.pi

    def _graph_diagonal(self, x: GraphValue) -> GraphValue | float:
        squares = x.sum_of_squares()
        return (1.0, squares, 3.0 * squares * squares)[self.degree]


register_kernel("arccos0", ArcCosine, degree=0)
register_kernel("arccos1", ArcCosine, degree=1)
register_kernel("arccos2", ArcCosine, degree=2)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The rows handed in are already rows of kernel values against the training set."""

    positive_semidefinite = False
    precomputed = True

    def basis(self, X: Array, used: Array) -> Array:
        """The columns of kernel values that prediction needs."""
        return used

    def features(self, X: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """These columns of new rows."""
        return np.asarray(X[:, basis])

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        raise TypeError(
            "kernel='precomputed' takes kernel values in the place of X: there are no features to differentiate by."
        )

    def _block(self, X: Array, Y: Array) -> Array:
        if X.shape[1] != Y.shape[0]:
            raise ValueError(
                f"kernel='precomputed' needs one column per training row: got {X.shape[1]} columns, expected {Y.shape[0]}."
            )
        return X

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).diagonal(X)

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        raise TypeError(
            f"kernel='precomputed' takes kernel values in the place of X, and a graph has to start from X. {REMEDY}"
        )


register_kernel("precomputed", Precomputed)
