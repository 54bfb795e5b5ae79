"""Kernels k(x, y), written once for NumPy arrays and PyTorch tensors.

A kernel is a small frozen object: calling it gives the block ``k(X, Y)``, :meth:`Kernel.diagonal` gives ``k(x, x)``
exactly. :func:`make_kernel` turns what a user writes (``"rbf"``, ``gamma="scale"``, a callable) into one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import Array, like, namespace, to_numpy


@dataclass(frozen=True)
class Kernel:
    """Base of all kernels. ``length_scale`` divides the features before the kernel sees them."""

    length_scale: tuple[float, ...] | None = None

    #: True where the formula itself guarantees a positive semi-definite Gram matrix.
    positive_semidefinite = True

    def __call__(self, X: Array, Y: Array) -> Array:
        """k(X, Y) for all pairs of rows."""
        return self._block(self._scaled(X), self._scaled(Y))

    def diagonal(self, X: Array) -> Array:
        """k(x, x) for every row of X, without rounding from the off-diagonal formula."""
        return self._diagonal(self._scaled(X))

    def _scaled(self, X: Array) -> Array:
        return X if self.length_scale is None else X / like(X, self.length_scale)

    def _block(self, X: Array, Y: Array) -> Array:
        raise NotImplementedError

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).ones_like(X[:, 0])  # stationary kernels: k(x, x) = 1


def squared_distances(X: Array, Y: Array) -> Array:
    """Squared Euclidean distances, never negative.

    Both sides are centred first: the expansion |x|² + |y|² - 2xy cancels badly for data far from the origin.
    """
    xp = namespace(X)
    centre = Y.mean(0)
    X, Y = X - centre, Y - centre
    D = X @ Y.T
    D *= -2.0
    D += (X * X).sum(1)[:, None]
    D += (Y * Y).sum(1)
    return xp.clip(D, 0.0, None, out=D)


@dataclass(frozen=True)
class RBF(Kernel):
    """exp(-gamma |x - y|²), the kernel of the paper."""

    gamma: float = 1.0

    def _block(self, X: Array, Y: Array) -> Array:
        D = squared_distances(X, Y)
        D *= -self.gamma
        return namespace(X).exp(D, out=D)


@dataclass(frozen=True)
class Laplacian(Kernel):
    """exp(-gamma |x - y|_1)."""

    gamma: float = 1.0

    def _block(self, X: Array, Y: Array) -> Array:
        xp = namespace(X)
        D = xp.abs(X[:, :1] - Y[:, 0])
        for j in range(1, X.shape[1]):
            D += xp.abs(X[:, j : j + 1] - Y[:, j])
        D *= -self.gamma
        return xp.exp(D, out=D)


@dataclass(frozen=True)
class Matern(Kernel):
    """Matérn kernel of smoothness ``nu`` in {1/2, 3/2, 5/2}.

    ``gamma`` means what it means for the RBF kernel, the limit nu → ∞: the length scale is 1/√(2·gamma).
    """

    gamma: float = 1.0
    nu: float = 1.5

    def _block(self, X: Array, Y: Array) -> Array:
        xp = namespace(X)
        D = squared_distances(X, Y)
        D *= 2.0 * self.nu * 2.0 * self.gamma
        R = xp.sqrt(D, out=D)
        if self.nu == 0.5:
            polynomial = 1.0
        elif self.nu == 1.5:
            polynomial = 1.0 + R
        else:
            polynomial = 1.0 + R + R * R / 3.0
        return polynomial * xp.exp(-R)


@dataclass(frozen=True)
class Linear(Kernel):
    """x·y."""

    def _block(self, X: Array, Y: Array) -> Array:
        return X @ Y.T

    def _diagonal(self, X: Array) -> Array:
        return (X * X).sum(1)


@dataclass(frozen=True)
class Polynomial(Kernel):
    """(gamma x·y + coef0)^degree."""

    gamma: float = 1.0
    coef0: float = 1.0
    degree: int = 3

    def _block(self, X: Array, Y: Array) -> Array:
        K = X @ Y.T
        K *= self.gamma
        K += self.coef0
        return K**self.degree

    def _diagonal(self, X: Array) -> Array:
        return (self.gamma * (X * X).sum(1) + self.coef0) ** self.degree


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


@dataclass(frozen=True)
class UserKernel(Kernel):
    """A callable ``k(X, Y)`` given by the user; its positive semi-definiteness is checked, not assumed."""

    function: Callable[[Array, Array], Array] | None = None
    positive_semidefinite = False

    def _block(self, X: Array, Y: Array) -> Array:
        assert self.function is not None
        K = like(X, self.function(X, Y))
        expected = (X.shape[0], Y.shape[0])
        if tuple(K.shape) != expected:
            raise ValueError(
                f"kernel={self.function!r} returned shape {tuple(K.shape)} for inputs of {expected[0]} and {expected[1]} "
                f"rows; it must return k(X, Y) of shape {expected}."
            )
        return K

    def _diagonal(self, X: Array) -> Array:
        blocks = [self._block(X[i : i + 1], X[i : i + 1])[0] for i in range(X.shape[0])]
        return namespace(X).concatenate(blocks)


@dataclass(frozen=True)
class Precomputed(Kernel):
    """The rows handed in are already rows of kernel values against the training set."""

    positive_semidefinite = False

    def _block(self, X: Array, Y: Array) -> Array:
        if X.shape[1] != Y.shape[0]:
            raise ValueError(
                f"kernel='precomputed' needs one column per training row: got {X.shape[1]} columns, expected {Y.shape[0]}."
            )
        return X

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).diagonal(X)


KERNEL_NAMES = (
    "rbf", "laplacian", "matern12", "matern32", "matern52", "poly", "linear", "arccos0", "arccos1", "arccos2", "precomputed",
)  # fmt: skip


def resolve_gamma(gamma: float | str, X: Array, sample_weight: np.ndarray | None = None) -> float:
    """Turn ``"scale"``, ``"auto"``, ``"median"`` or a number into a number.

    ``"scale"`` is 1/(p·Var x), the paper's default and scikit-learn's; ``"auto"`` is 1/p; ``"median"`` is one over the
    median squared distance between training rows (at most 1,000 of them, evenly spaced). Weights enter the variance, and
    rows of weight zero count nowhere, so that a weight of two is a row given twice.
    """
    if not isinstance(gamma, str):
        try:
            value = float(gamma)
        except (TypeError, ValueError):
            value = math.nan
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"gamma={gamma!r} must be a positive finite number, or one of 'scale', 'auto', 'median'.")
        return value
    if gamma == "auto":
        return 1.0 / int(X.shape[1])
    if gamma == "scale":
        values = to_numpy(X).astype(np.float64)
        mean = float(np.average(values, axis=0, weights=sample_weight).mean())
        variance = float(np.average((values - mean) ** 2, axis=0, weights=sample_weight).mean())
        return 1.0 / (X.shape[1] * variance) if variance > 0 else 1.0
    if gamma == "median":
        present = to_numpy(X) if sample_weight is None else to_numpy(X)[sample_weight > 0]
        rows = np.unique(np.linspace(0, len(present) - 1, min(len(present), 1000)).astype(int))
        sample = present[rows].astype(np.float64)
        distances = squared_distances(sample, sample)[np.triu_indices(len(rows), 1)]
        distances = distances[distances > 0]
        return 1.0 / float(np.median(distances)) if distances.size else 1.0
    raise ValueError(f"gamma={gamma!r} is unknown; use a positive number, 'scale', 'auto' or 'median'.")


def make_kernel(
    kernel: str | Callable[[Array, Array], Array] | Kernel,
    X: Array,
    *,
    gamma: float | str = "scale",
    degree: int = 3,
    coef0: float = 1.0,
    length_scale: Any = None,
    sample_weight: np.ndarray | None = None,
) -> Kernel:
    """Build the kernel a user asked for, resolving ``gamma`` on the training rows ``X``.

    Parameters
    ----------
    kernel : str, callable or Kernel
        One of ``KERNEL_NAMES``, a callable ``k(X, Y)`` or a finished kernel.
    X : array of shape (n, p)
        Training rows.
    gamma : float or {"scale", "auto", "median"}
        Inverse squared width.
    degree, coef0 : int, float
        Of the polynomial kernel.
    length_scale : array of shape (p,), optional
        One length scale per feature: the features are divided by it first.
    sample_weight : array of shape (n,), optional
        Of the training rows, for ``gamma="scale"`` and ``"median"``.

    Returns
    -------
    Kernel

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0], [1.0]])
    >>> make_kernel("rbf", X, gamma=0.5)(X, X).round(4)
    array([[1.    , 0.6065],
           [0.6065, 1.    ]])
    """
    if isinstance(kernel, Kernel):
        return kernel
    if not callable(kernel) and kernel not in KERNEL_NAMES:
        raise ValueError(f"kernel={kernel!r} is unknown; use one of {', '.join(KERNEL_NAMES)}, or a callable k(X, Y).")
    if length_scale is not None:
        length_scale = np.asarray(length_scale, dtype=np.float64)
        if length_scale.shape != (X.shape[1],) or not (np.isfinite(length_scale).all() and (length_scale > 0).all()):
            raise ValueError(
                f"length_scale must hold {X.shape[1]} positive numbers, one per feature of X; got {length_scale!r}."
            )
        if kernel == "precomputed":
            raise ValueError("length_scale has no meaning with kernel='precomputed': scale the features yourself.")
        X = X / like(X, length_scale)
        length_scale = tuple(length_scale.tolist())
    if callable(kernel):
        return UserKernel(length_scale, function=kernel)
    if kernel == "precomputed":
        return Precomputed()
    if kernel == "linear":
        return Linear(length_scale)
    if kernel.startswith("arccos"):
        return ArcCosine(length_scale, degree=int(kernel[-1]))
    number = resolve_gamma(gamma, X, sample_weight)
    if kernel == "poly":
        if degree < 1 or int(degree) != degree or coef0 < 0:
            raise ValueError(
                f"degree={degree!r}, coef0={coef0!r}: the polynomial kernel needs a whole degree >= 1 and coef0 >= 0 "
                "to be positive semi-definite."
            )
        return Polynomial(length_scale, gamma=number, coef0=float(coef0), degree=int(degree))
    if kernel.startswith("matern"):
        return Matern(length_scale, gamma=number, nu=int(kernel[-2]) / 2.0)
    return {"rbf": RBF, "laplacian": Laplacian}[kernel](length_scale, gamma=number)
