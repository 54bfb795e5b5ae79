"""Weighted sums of kernels: for functions with a smooth and a rough part, or with parts that follow different features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._arrays import Array
from kstonet._records import storable
from kstonet.gram.kernels.base import GraphValue, Kernel


@storable(squash="extended", weights="positive")
@dataclass(frozen=True)
class KernelSum(Kernel):
    """Σ_j weights_j k_j(x, y).

    A Gaussian process with this kernel is a sum of independent ones, a share of its variance for each. One kernel matrix, and
    one inverse of it, serves all of them.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature: the features are divided by it before the parts see them.
    parts : tuple of Kernel
        Kernels with length scales of their own; none that is precomputed.
    weights : tuple of float
        A positive number for every part.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram.kernels import RBF, KernelSum, Laplacian
    >>> kernel = KernelSum(parts=(RBF(gamma=0.5), Laplacian(gamma=1.0)), weights=(0.75, 0.25))
    >>> kernel(np.array([[0.0]]), np.array([[0.0], [1.0]])).round(3)
    array([[1.   , 0.547]])
    """

    parts: tuple[Kernel, ...] = ()
    weights: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Check the parts."""
        if not self.parts or len(self.parts) != len(self.weights):
            raise ValueError(f"a sum of kernels needs one weight per part; got {len(self.parts)} and {len(self.weights)}.")
        if not all(np.isfinite(weight) and weight > 0 for weight in self.weights):
            raise ValueError(f"weights={self.weights!r} must be positive; leave out parts that have none.")
        if any(part.precomputed for part in self.parts):
            raise ValueError("a sum of kernels has no precomputed parts: add the kernel matrices yourself.")

    @property
    def positive_semidefinite(self) -> bool:  # type: ignore[override]  # of a sum it depends on the parts
        """Whether every part guarantees it."""
        return all(part.positive_semidefinite for part in self.parts)

    def _block(self, X: Array, Y: Array) -> Array:
        return sum(weight * part(X, Y) for weight, part in zip(self.weights, self.parts, strict=True))

    def _diagonal(self, X: Array) -> Array:
        return sum(weight * part.diagonal(X) for weight, part in zip(self.weights, self.parts, strict=True))

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        return sum(weight * part.gradient(X, basis, coef) for weight, part in zip(self.weights, self.parts, strict=True))

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        first, *others = (part.graph_values(x, basis) * weight for weight, part in zip(self.weights, self.parts, strict=True))
        return sum(others, start=first)

    def _graph_diagonal(self, x: GraphValue) -> GraphValue | float:
        values = [part.graph_diagonal(x) * weight for weight, part in zip(self.weights, self.parts, strict=True)]
        first, *others = sorted(values, key=lambda value: isinstance(value, float))  # a number has no operators of a graph
        return sum(others, start=first)
