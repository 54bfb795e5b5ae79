"""Kernels of linear combinations of the features, for functions that follow directions and not single features."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._arrays import Array, like
from kstonet._records import storable
from kstonet.gram.kernels.base import GraphValue, Kernel
from kstonet.gram.kernels.distance import RBF


@storable(squash="extended")
@dataclass(frozen=True)
class Projected(Kernel):
    """k(x·D, y·D) for a kernel k and a matrix D of directions.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature: the features are divided by it before they are combined.
    part : Kernel, default=RBF()
        The kernel of the combinations, with length scales of its own; not a precomputed one.
    directions : tuple of tuple of float
        A row per feature, a column per combination.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram.kernels import RBF, Projected
    >>> kernel = Projected(part=RBF(gamma=0.5), directions=((1.0,), (1.0,)))
    >>> kernel(np.array([[0.0, 0.0]]), np.array([[1.0, -1.0], [1.0, 0.0]])).round(3)
    array([[1.   , 0.607]])
    """

    part: Kernel = RBF()  # noqa: RUF009  # frozen
    directions: tuple[tuple[float, ...], ...] = ()

    def __post_init__(self) -> None:
        """Check the directions."""
        widths = {len(row) for row in self.directions}
        if len(widths) != 1 or widths == {0}:
            raise ValueError("directions must be a matrix with a row per feature and at least one column.")
        if self.part.precomputed:
            raise ValueError("the kernel of projected features is precomputed; project the features yourself.")

    @property
    def positive_semidefinite(self) -> bool:  # type: ignore[override]  # it depends on the part
        """Whether the kernel of the combinations guarantees it."""
        return self.part.positive_semidefinite

    def _block(self, X: Array, Y: Array) -> Array:
        D = like(X, self.directions)
        return self.part(X @ D, Y @ D)

    def _diagonal(self, X: Array) -> Array:
        return self.part.diagonal(X @ like(X, self.directions))

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        D = like(X, self.directions)
        return self.part.gradient(X @ D, basis @ D, coef) @ D.T

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        D = np.array(self.directions)
        return self.part.graph_values(x.left_product(D.T), basis @ D)

    def _graph_diagonal(self, x: GraphValue) -> GraphValue | float:
        return self.part.graph_diagonal(x.left_product(np.array(self.directions).T))
