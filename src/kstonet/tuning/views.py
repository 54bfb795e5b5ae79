"""How a candidate sees the features: as they are, with heavy tails drawn in, or combined into directions."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet.gram import Kernel
from kstonet.gram.kernels.squash import Squash, squashed
from kstonet.tuning.stationary import Family


@dataclass(frozen=True)
class View:
    """What is done to standardised features before a kernel's own scales.

    Parameters
    ----------
    squash : tuple, optional
        Which features are drawn in, and how.
    units : ndarray of shape (p,), optional
        What the features are divided by afterwards.
    directions : ndarray of shape (p, q), optional
        How they are then combined.
    """

    squash: Squash | None = None
    units: np.ndarray | None = None
    directions: np.ndarray | None = None

    @classmethod
    def drawn_in(cls, X: np.ndarray, squash: Squash) -> View:
        """With heavy tails drawn in; these features get unit variance again."""
        heavy = np.isfinite([spread for _, spread in squash])
        return cls(squash, np.where(heavy, squashed(X, squash).std(axis=0), 1.0))

    def __call__(self, X: np.ndarray) -> np.ndarray:
        """The features as the candidate sees them."""
        X = X if self.squash is None else squashed(X, self.squash)
        X = X if self.units is None else X / self.units
        return X if self.directions is None else X @ self.directions

    def kernel(self, family: Family, scales: np.ndarray) -> Kernel:
        """The kernel, for features as they are, of a family on what is seen multiplied by ``scales``."""
        if self.directions is None:
            kernel = family.kernel(scales if self.units is None else scales / self.units)
            return kernel if self.squash is None else replace(kernel, squash=self.squash)
        directions = self.directions if self.units is None else self.directions / self.units[:, None]
        return replace(family.kernel(scales), squash=self.squash, projection=tuple(map(tuple, directions.tolist())))
