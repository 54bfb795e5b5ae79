"""Where intervals cover and where they do not: by the quantiles of a feature, by groups, and in the worst slab of X."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from kstonet._checks import Floats, check_like, check_numbers, require, whole_number
from kstonet.metrics.intervals import inside

STEPS = 50  # of the iteration for the smallest mean, which ends after about five
ENTRIES = 4_000_000  # of the matrix of projections that are sorted together


@dataclass(frozen=True)
class PartialCoverage:
    """Coverage in parts of the rows.

    Parameters
    ----------
    parts : ndarray of shape (parts,)
        The value of a group, or the largest value of a quantile's part.
    coverage : ndarray of shape (parts,)
        Share of the observations inside their intervals.
    width : ndarray of shape (parts,)
        Mean width of the intervals.
    count : ndarray of int of shape (parts,)
        Number of rows.
    """

    parts: NDArray[Any]
    coverage: Floats
    width: Floats
    count: NDArray[np.int64]

    @property
    def worst(self) -> float:
        """The smallest coverage of a part."""
        return float(self.coverage.min())

    @property
    def standard_error(self) -> Floats:
        """Of each coverage, were it that of all rows: sqrt(c(1 - c)/count)."""
        overall = float(np.average(self.coverage, weights=self.count))
        return np.asarray(np.sqrt(overall * (1.0 - overall) / self.count))


def coverage_by_quantile(y_true: ArrayLike, interval: ArrayLike, values: ArrayLike, *, n_parts: int = 3) -> PartialCoverage:
    """Coverage where some quantity is small, middling or large: a feature, a prediction, a width.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed values.
    interval : array of shape (n, 2)
        Lower and upper bounds, as ``predict_interval`` returns them.
    values : array of shape (n,)
        What the rows are sorted by. Equal values stay together, so that parts differ in size where there are ties.
    n_parts : int, default=3
        Number of parts: thirds by default. Parts without a row are left out.

    Returns
    -------
    PartialCoverage

    See Also
    --------
    coverage_by_group, worst_slab_coverage

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 9)
    >>> interval = np.column_stack([np.zeros(9), np.ones(9)])
    >>> found = coverage_by_quantile(2 * x, interval, x)
    >>> found.coverage.round(2), found.parts.round(2)
    (array([1.  , 0.67, 0.  ]), array([0.25, 0.62, 1.  ]))
    """
    covered, width = inside(y_true, interval, single=True)
    key = check_like("values", check_numbers("values", values), covered.shape)
    n_parts = whole_number("n_parts", n_parts, 2)
    ends = np.unique(np.quantile(key, np.arange(1, n_parts + 1) / n_parts, method="inverted_cdf"))
    return _by_code(covered, width, np.searchsorted(ends, key), ends)


def coverage_by_group(y_true: ArrayLike, interval: ArrayLike, groups: ArrayLike) -> PartialCoverage:
    """Coverage within groups of rows.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed values.
    interval : array of shape (n, 2)
        Lower and upper bounds, as ``predict_interval`` returns them.
    groups : array of shape (n,)
        The group of every row: numbers or strings.

    Returns
    -------
    PartialCoverage

    See Also
    --------
    coverage_by_quantile

    Examples
    --------
    >>> found = coverage_by_group([1.0, 2.0, 3.0], [[0, 2], [2, 5], [4, 5]], ["a", "a", "b"])
    >>> found.parts.tolist(), found.coverage.tolist(), found.count.tolist()
    (['a', 'b'], [1.0, 0.0], [2, 1])
    """
    covered, width = inside(y_true, interval, single=True)
    labels = np.asarray(groups)
    if labels.shape != covered.shape:
        raise ValueError(f"groups has shape {labels.shape}; it must be {covered.shape}, one group per row.")
    parts, codes = np.unique(labels, return_inverse=True)
    return _by_code(covered, width, codes, parts)


def _by_code(covered: NDArray[np.bool_], width: Floats, codes: NDArray[Any], parts: NDArray[Any]) -> PartialCoverage:
    count = np.bincount(codes, minlength=len(parts))
    sums = (np.bincount(codes, values, minlength=len(parts)) for values in (covered, width))
    shares, widths = (np.asarray(total / count) for total in sums)
    return PartialCoverage(parts, shares, widths, count)


def worst_slab_coverage(
    y_true: ArrayLike,
    interval: ArrayLike,
    X: ArrayLike,
    *,
    mass: float = 0.1,
    n_directions: int = 1000,
    test_size: float = 0.75,
    random_state: Any = None,
) -> float:
    """Coverage in the slab of the feature space in which intervals cover least.

    A slab holds the rows with a ≤ v·x ≤ b for a direction v. Of all slabs along random directions that hold at least a share
    ``mass`` of the rows, that of the smallest coverage is found on one part of the rows, and its coverage is measured on the
    other: without that division the result would be far below the nominal coverage by chance alone. Intervals that are right
    conditionally have their nominal coverage there.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed values.
    interval : array of shape (n, 2)
        Lower and upper bounds, as ``predict_interval`` returns them.
    X : array of shape (n, p)
        Features. Standardise them: directions are uniform on the sphere.
    mass : float, default=0.1
        Smallest share of the rows that a slab holds.
    n_directions : int, default=1000
        Number of directions.
    test_size : float, default=0.75
        Share of the rows that the coverage is measured on. With 0 the slab is found and measured on all rows, a value that is
        biased downwards.
    random_state : int, RandomState or None
        Seed of the directions and of the division.

    Returns
    -------
    float

    References
    ----------
    Cauchois, Gupta and Duchi (2021), Knowing what you know: valid and validated confidence sets in multiclass and multilabel
    prediction; Romano, Sesia and Candès (2020), Classification with valid and adaptive coverage.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 2))
    >>> y = X[:, 0] * rng.normal(size=2000)
    >>> interval = np.tile([-1.0, 1.0], (2000, 1))  # one width for all rows
    >>> bool(worst_slab_coverage(y, interval, X, random_state=0) < np.mean(np.abs(y) <= 1) - 0.1)
    True
    """
    covered, _ = inside(y_true, interval, single=True)
    rows = check_numbers("X", X)
    if rows.ndim != 2 or len(rows) != len(covered):
        raise ValueError(f"X has shape {rows.shape}; it must be ({len(covered)}, p), one row for each of y_true.")
    require("mass", mass, lambda v: 0 < v <= 1, "in (0, 1]")
    require("test_size", test_size, lambda v: 0 <= v < 1, "in [0, 1)")
    n_directions = whole_number("n_directions", n_directions)
    rng = check_random_state(random_state)
    order = rng.permutation(len(rows))
    finding = order[: max(1, round((1.0 - test_size) * len(rows)))]
    measuring = order[len(finding) :] if test_size else finding
    directions = rng.standard_normal(size=(n_directions, rows.shape[1]))
    best, (direction, low, high) = np.inf, (directions[0], -np.inf, np.inf)
    size = max(1, ENTRIES // len(finding))
    for start in range(0, n_directions, size):
        block = directions[start : start + size]
        projected = block @ rows[finding].T
        places = np.argsort(projected, axis=1, kind="stable")
        found, first, last = _smallest_means(covered[finding][places].astype(np.float64), int(np.ceil(mass * len(finding))))
        k = int(np.argmin(found))
        if found[k] < best:
            ordered = projected[k, places[k]]
            best, (direction, low, high) = float(found[k]), (block[k], ordered[first[k]], ordered[last[k]])
    along = rows[measuring] @ direction
    slab = (low <= along) & (along <= high)
    return float(covered[measuring][slab].mean()) if slab.any() else float(covered[measuring].mean())


def _smallest_means(values: Floats, length: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    """For every row of ``values``, the smallest mean of at least ``length`` neighbours, and the first and last of them.

    Dinkelbach's iteration: the segment of the smallest sum of (value - mean), found with a running maximum of prefix sums, has
    a smaller mean, until it is the smallest.
    """
    m, n = values.shape
    rows = np.arange(m)
    first, last = np.zeros(m, dtype=np.int64), np.full(m, n - 1, dtype=np.int64)
    totals = np.concatenate([np.zeros((m, 1)), np.cumsum(values, axis=1)], axis=1)
    mean = totals[:, -1] / n
    for _ in range(STEPS):
        sums = totals - mean[:, None] * np.arange(n + 1)
        before = sums[:, : n + 1 - length]
        peaks = np.maximum.accumulate(before, axis=1)
        end = np.argmin(sums[:, length:] - peaks, axis=1)
        start = np.argmax(before >= peaks[rows, end][:, None], axis=1)
        new = (totals[rows, end + length] - totals[rows, start]) / (end + length - start)
        better = new < mean - 1e-12
        if not better.any():
            break
        mean = np.where(better, new, mean)
        first, last = np.where(better, start, first), np.where(better, end + length - 1, last)
    return mean, first, last
