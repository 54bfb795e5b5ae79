"""The Tanimoto kernel: what two rows share over what either of them has."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from kstonet._arrays import Array, like, namespace
from kstonet.gram.kernels.base import GraphValue, Kernel
from kstonet.gram.kernels.registry import register_kernel

TRACE = 1e-30  # added to both sides of the quotient: two rows of zeros are alike


@dataclass(frozen=True)
class Tanimoto(Kernel):
    """(x·y / (|x|² + |y|² - x·y))^exponent, with k(x, x) = 1.

    For bits it is the number of those that both rows have over the number of those that either has: the similarity of
    molecules. Rows of counts and pixels have it, too; features that both rows lack do not make them alike. It is positive
    semi-definite for real features (Ralaivola et al. 2005), and so are its powers.

    Parameters
    ----------
    length_scale : tuple of float, optional
        One length scale per feature.
    exponent : int, default=2
        Power of the similarity; a larger one makes the kernel narrower.
    origin : tuple of float, optional
        Added to the features before they are divided: where these were centred, what they were centred by.

    Examples
    --------
    >>> import numpy as np
    >>> bits = np.array([[1.0, 1.0, 0.0], [1.0, 0.0, 0.0]])
    >>> Tanimoto(exponent=1)(bits, bits)
    array([[1. , 0.5],
           [0.5, 1. ]])
    """

    exponent: int = 2
    origin: tuple[float, ...] | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        """Check the parameters."""
        if self.exponent < 1 or int(self.exponent) != self.exponent:
            raise ValueError(f"exponent={self.exponent!r} must be a whole number >= 1 to be positive semi-definite.")
        object.__setattr__(self, "exponent", int(self.exponent))

    @property
    def _shift(self) -> np.ndarray | float:
        """The origin as the formula sees it."""
        if self.origin is None:
            return 0.0
        return np.array(self.origin) / (1.0 if self.length_scale is None else np.array(self.length_scale))

    def _moved(self, X: Array) -> Array:
        return X if self.origin is None else X + like(X, self._shift)

    def _parts(self, X: Array, Y: Array) -> tuple[Array, Array]:
        """What two rows share, and what either has."""
        shared = X @ Y.T
        either = (X * X).sum(1)[:, None] + (Y * Y).sum(1) - shared
        return shared + TRACE, namespace(X).clip(either, 0.0, None) + TRACE

    def _block(self, X: Array, Y: Array) -> Array:
        shared, either = self._parts(self._moved(X), self._moved(Y))
        shared /= either
        return shared**self.exponent

    def _diagonal(self, X: Array) -> Array:
        return namespace(X).ones_like(X[:, 0])

    def _gradient(self, X: Array, basis: Array, coef: Array) -> Array:
        """∂T/∂x = ((shared + either)·y - 2·shared·x)/either²; rows of zeros, between which it is not smooth, are left out."""
        xp = namespace(X)
        X, basis = self._moved(X), self._moved(basis)
        shared, either = self._parts(X, basis)
        slope = self.exponent * (shared / either) ** (self.exponent - 1) / either
        slope = xp.where(either > 2.0 * TRACE, slope, xp.zeros_like(slope))
        along_y, along_x = slope * (1.0 + shared / either), slope * (shared / either)
        each = []
        for unit in range(coef.shape[-2]):
            own = coef[..., unit, :]
            each.append((along_y * own) @ basis - 2.0 * (along_x * own).sum(1)[:, None] * X)
        return xp.stack(each, 1)

    def _graph(self, x: GraphValue, basis: np.ndarray) -> GraphValue:
        if self.origin is not None:
            shift = np.asarray(self._shift)
            x, basis = x + shift[:, None], basis + shift
        shared = x.left_product(basis)
        either = (x.sum_of_squares() - shared + (basis**2).sum(axis=1, keepdims=True)).maximum(0.0)
        return ((shared + TRACE) / (either + TRACE)) ** self.exponent

    def _graph_diagonal(self, x: GraphValue) -> float:
        return 1.0


register_kernel("tanimoto", Tanimoto)
