"""Validation parts: rows to fit on and rows to look at, all of them training rows."""

from __future__ import annotations

import numpy as np

Part = tuple[np.ndarray, np.ndarray]

MOST_ROWS = 3000  # a search looks at no more rows than this
FEWEST_ROWS = 5
SHARE = 0.2  # of the rows of a part that are looked at


def default_repeats(n: int) -> int:
    """How many parts a search averages over: many where few rows make one part a matter of luck."""
    return 5 if n < 500 else 4 if n < 1500 else 2


def validation_parts(n: int, seed: int, classes: np.ndarray | None = None, repeats: int | None = None) -> list[Part]:
    """Random 80/20 parts of at most ``MOST_ROWS`` rows.

    Parameters
    ----------
    n : int
        Number of training rows.
    seed : int
    classes : ndarray of shape (n,), optional
        Class of every row; every class gives its share (to one row) of those looked at, and keeps one at least to fit on.
    repeats : int, optional
        Number of parts; by default more where there are few rows.

    Returns
    -------
    list of (fit, look)
        Row numbers.

    Examples
    --------
    >>> [(len(fit), len(look)) for fit, look in validation_parts(1000, seed=0)]
    [(800, 200), (800, 200), (800, 200), (800, 200)]
    """
    groups = np.zeros(n, dtype=int) if classes is None else np.asarray(classes)
    spare = n - len(np.unique(groups))  # one row of every class is always fitted on
    if n < FEWEST_ROWS or spare == 0:
        rows = f"n_samples={n}" if n < FEWEST_ROWS else "every class has one row only"
        raise ValueError(
            f"{rows}: to choose parameters by validation takes {FEWEST_ROWS} rows of positive weight, and a class with two. "
            "Give the parameters values."
        )
    parts = []
    for repeat in range(default_repeats(n) if repeats is None else repeats):
        rng = np.random.default_rng([seed, repeat])
        order = rng.permutation(n)
        if classes is None:
            kept = order[:MOST_ROWS]
            cut = max(1, int(SHARE * len(kept)))
            parts.append((np.sort(kept[cut:]), np.sort(kept[:cut])))
            continue
        order = order[np.argsort(groups[order], kind="stable")]
        first = np.unique(groups[order], return_index=True)[1]
        others = np.delete(order, first)
        others = others[_evenly(rng, spare, max(1, min(spare, MOST_ROWS - len(first))))]
        looked_at = _evenly(rng, len(others), min(len(others), max(1, int(SHARE * (len(first) + len(others))))))
        fit = np.concatenate([order[first], np.delete(others, looked_at)])
        parts.append((np.sort(fit), np.sort(others[looked_at])))
    return parts


def _evenly(rng: np.random.Generator, n: int, wanted: int) -> np.ndarray:
    """``wanted`` of n places at even distances from a random start: of a run of rows of one class, its share."""
    return np.asarray((np.arange(wanted) + rng.random()) * n // wanted, dtype=int)
