"""Validation parts: rows to fit on and rows to validate on, all of them training rows."""

from __future__ import annotations

import numpy as np

Part = tuple[np.ndarray, np.ndarray]

MOST_ROWS = 3000  # of a part, so that many candidates can be tried
LAST_ROWS = 12_000  # of the part that the best of them are tried on once more
FEWEST_ROWS = 5
SHARE = 0.2  # of the rows of a part that are validated on


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
        Class of every row; every class gives its share (to one row) of the rows to validate on, and keeps at least one.
    repeats : int, optional
        Number of parts; by default more where there are few rows.

    Returns
    -------
    list of (fit, validation)
        Row numbers.

    Examples
    --------
    >>> [(len(fit), len(held_out)) for fit, held_out in validation_parts(1000, seed=0)]
    [(800, 200), (800, 200), (800, 200), (800, 200)]
    """
    groups = _groups(n, classes)
    draws = [np.random.default_rng([seed, repeat]) for repeat in range(default_repeats(n) if repeats is None else repeats)]
    return [_part(rng, groups, MOST_ROWS) for rng in draws]


def larger_part(n: int, seed: int, classes: np.ndarray | None = None) -> Part | None:
    """A part of up to ``LAST_ROWS`` rows, where there are at least twice as many as the others have.

    What suits 3,000 rows need not suit 40,000: more rows carry shorter scales.

    Examples
    --------
    >>> [len(rows) for rows in larger_part(7000, seed=0)], larger_part(5000, seed=0)
    ([5600, 1400], None)
    """
    if n < 2 * MOST_ROWS:
        return None
    return _part(np.random.default_rng([seed, LAST_ROWS]), _groups(n, classes), LAST_ROWS)


def search_sizes(n: int) -> tuple[int, int, int]:
    """How many parts a search has, how many rows each is fitted on, and how many the larger one; 0 where there is none.

    Examples
    --------
    >>> search_sizes(2_000), search_sizes(10_000)
    ((2, 1600, 0), (2, 2400, 8000))
    """
    last = int((1.0 - SHARE) * min(n, LAST_ROWS)) if n >= 2 * MOST_ROWS else 0
    return default_repeats(n), int((1.0 - SHARE) * min(n, MOST_ROWS)), last


def _groups(n: int, classes: np.ndarray | None) -> np.ndarray:
    """The class of every row; without classes the same for all."""
    distinct = 1 if classes is None else len(np.unique(classes))
    if n < FEWEST_ROWS or n == distinct:  # one row of every class is always fitted on
        rows = f"n_samples={n}" if n < FEWEST_ROWS else "every class has one row only"
        raise ValueError(
            f"{rows}: to choose parameters by validation takes {FEWEST_ROWS} rows of positive weight, and a class with two. "
            "Give the parameters values."
        )
    return np.zeros(n) if classes is None else np.asarray(classes)


def _part(rng: np.random.Generator, groups: np.ndarray, most: int) -> Part:
    """Rows to fit on and rows to validate on, at most ``most`` together."""
    n = len(groups)
    order = rng.permutation(n)
    order = order[np.argsort(groups[order], kind="stable")]
    first = np.unique(groups[order], return_index=True)[1]
    if len(first) == 1:
        kept = order[:most]
        cut = max(1, int(SHARE * len(kept)))
        return np.sort(kept[cut:]), np.sort(kept[:cut])
    spare = n - len(first)
    others = np.delete(order, first)
    others = others[_evenly(rng, spare, max(1, min(spare, most - len(first))))]
    validated = _evenly(rng, len(others), min(len(others), max(1, int(SHARE * (len(first) + len(others))))))
    fit = np.concatenate([order[first], np.delete(others, validated)])
    return np.sort(fit), np.sort(others[validated])


def _evenly(rng: np.random.Generator, n: int, wanted: int) -> np.ndarray:
    """``wanted`` of n places at even distances from a random start: of a run of rows of one class, its share."""
    return np.asarray((np.arange(wanted) + rng.random()) * n // wanted, dtype=int)
