"""Features with heavy tails, drawn in before a kernel sees them: x becomes asinh((x - centre)/spread).

Near the centre that is linear, far out a logarithm on both sides: values that differ by orders of magnitude keep distances that
one width can serve.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from kstonet._arrays import Array, copy, like, namespace

#: Centre and spread of every feature; a feature of infinite spread stays as it is.
Squash = tuple[tuple[float, float], ...]


def squashed(X: Array, squash: Squash) -> Array:
    """The rows with their heavy features drawn in.

    Examples
    --------
    >>> import numpy as np
    >>> squashed(np.array([[5.0, 5.0]]), ((0.0, 0.1), (0.0, np.inf))).round(2)
    array([[4.61, 5.  ]])
    """
    columns, centre, spread = _heavy(squash)
    drawn = copy(X)
    drawn[:, columns] = namespace(X).arcsinh((X[:, columns] - like(X, centre)) / like(X, spread))
    return drawn


def squash_slopes(X: Array, squash: Squash) -> Array:
    """Derivative of every drawn feature with respect to the feature, in the shape of X."""
    columns, centre, spread = _heavy(squash)
    slopes = namespace(X).ones_like(X)
    steps = (X[:, columns] - like(X, centre)) / like(X, spread)
    slopes[:, columns] = 1.0 / (namespace(X).sqrt(1.0 + steps * steps) * like(X, spread))
    return slopes


def graph_squashed(x: Any, squash: Squash) -> Any:
    """The same in an ONNX graph, for the columns of x (p, n)."""
    heavy = np.array([math.isfinite(spread) for _, spread in squash], dtype=float)[:, None]
    centre = np.array([centre for centre, _ in squash])[:, None]
    spread = np.array([spread if math.isfinite(spread) else 1.0 for _, spread in squash])[:, None]
    steps = (x - centre) / spread
    drawn = steps.sign() * (abs(steps) + (steps * steps + 1.0).sqrt()).log()
    return drawn * heavy + x * (1.0 - heavy)


def _heavy(squash: Squash) -> tuple[list[int], list[float], list[float]]:
    """Numbers, centres and spreads of the features that are drawn in."""
    found = [(column, *pair) for column, pair in enumerate(squash) if math.isfinite(pair[1])]
    columns, centre, spread = zip(*found, strict=True) if found else ((), (), ())
    return list(columns), list(centre), list(spread)
