"""Which features have tails so heavy that a kernel may see them better when they are drawn in."""

from __future__ import annotations

import numpy as np

from kstonet.gram.kernels.squash import Squash

KURTOSIS = 3.0  # in excess of a normal distribution's: that of the Laplace distribution
FEWEST_VALUES = 10  # features with fewer different values have no tails
MOST_ROWS = 12_000  # so many, or up to twice as many, tell a tail


def telling(X: np.ndarray) -> np.ndarray:
    """Some of very many rows, as many as tell a tail."""
    return X[:: max(1, len(X) // MOST_ROWS)]


def heavy_tails(X: np.ndarray) -> Squash | None:
    """Centre and spread of the features with heavy tails; None where there is no such feature.

    Examples
    --------
    >>> import numpy as np
    >>> normal = np.random.default_rng(0).normal(size=(100, 1))
    >>> heavy_tails(normal) is None
    True
    >>> [bool(np.isfinite(spread)) for _, spread in heavy_tails(np.hstack([normal, np.exp(2 * normal)]))]
    [False, True]
    """
    X = telling(X)
    away = X - X.mean(axis=0)
    square = np.maximum((away**2).mean(axis=0), 1e-300)
    centre = np.median(X, axis=0)
    distance = np.abs(X - centre)
    spread = np.where(np.median(distance, axis=0) > 0, np.median(distance, axis=0), distance.mean(axis=0))
    heavy = (away**4).mean(axis=0) > (3.0 + KURTOSIS) * square**2
    heavy &= np.array([len(np.unique(column)) > FEWEST_VALUES for column in X.T])
    if not heavy.any():
        return None
    return tuple(zip(centre.tolist(), np.where(heavy, spread, np.inf).tolist(), strict=True))
