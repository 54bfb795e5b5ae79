"""Coverage in parts of the rows, against counting by hand and against an exhaustive search."""

from __future__ import annotations

import numpy as np
import pytest

from kstonet.metrics import PartialCoverage, coverage, coverage_by_group, coverage_by_quantile, worst_slab_coverage
from kstonet.metrics.conditional import _smallest_means


def data(n=60, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    return X, y, np.column_stack([np.full(n, -1.0), np.full(n, 1.0)])


def test_groups_are_counted_on_their_own():
    X, y, interval = data()
    groups = np.where(X[:, 0] > 0.3, "b", "a")
    found = coverage_by_group(y, interval, groups)
    assert found.parts.tolist() == ["a", "b"]
    for part, share, count in zip(found.parts, found.coverage, found.count, strict=True):
        assert share == coverage(y[groups == part], interval[groups == part])
        assert count == (groups == part).sum()
    assert found.worst == found.coverage.min()
    assert (found.width == 2.0).all()
    np.testing.assert_allclose(np.average(found.coverage, weights=found.count), coverage(y, interval))
    overall = coverage(y, interval)
    np.testing.assert_allclose(found.standard_error, np.sqrt(overall * (1 - overall) / found.count))


def test_quantiles_are_groups_of_sorted_rows():
    X, y, interval = data()
    found = coverage_by_quantile(y, interval, X[:, 0], n_parts=4)
    place = np.argsort(np.argsort(X[:, 0])) // 15
    np.testing.assert_allclose(found.coverage, coverage_by_group(y, interval, place).coverage)
    assert found.count.tolist() == [15] * 4
    assert isinstance(found, PartialCoverage)


def test_ties_stay_together():
    found = coverage_by_quantile(np.zeros(10), np.tile([0.0, 1.0], (10, 1)), [0] * 8 + [1, 2], n_parts=3)
    assert found.parts.tolist() == [0.0, 2.0]
    assert found.count.tolist() == [8, 2]


@pytest.mark.parametrize("length", [1, 3, 12])
def test_smallest_mean_of_neighbours_is_that_of_an_exhaustive_search(length):
    values = np.random.default_rng(length).integers(0, 2, size=(40, 12)).astype(float)
    found, first, last = _smallest_means(values, length)
    for row, mean, start, stop in zip(values, found, first, last, strict=True):
        every = [row[a:b].mean() for a in range(12) for b in range(a + length, 13)]
        assert mean == pytest.approx(min(every)) == pytest.approx(row[start : stop + 1].mean())


def test_worst_slab_of_all_rows_is_that_of_an_exhaustive_search():
    """One feature has two directions, which have the same slabs."""
    X, y, interval = data(40)
    order = np.argsort(X[:, 0])
    inside = (np.abs(y) <= 1.0)[order]
    every = [inside[a:b].mean() for a in range(40) for b in range(a + 4, 41)]
    assert worst_slab_coverage(y, interval, X[:, :1], test_size=0, random_state=0) == pytest.approx(min(every))


def test_conditional_intervals_have_their_coverage_in_the_worst_slab_and_others_do_not():
    """Standard errors are about 0.02 with 3,000 measured rows of which 300 to 1,000 are in the slab: four of them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 3))
    size = np.exp(1.5 * X[:, 0])
    y = size * rng.normal(size=4000)
    right = 1.645 * np.column_stack([-size, size])
    width = np.quantile(np.abs(y), 0.9)
    same = np.tile([-width, width], (4000, 1))
    assert abs(worst_slab_coverage(y, right, X, random_state=0) - 0.9) < 0.08
    assert worst_slab_coverage(y, same, X, random_state=0) < 0.75
    assert worst_slab_coverage(y, right, X, random_state=0) == worst_slab_coverage(y, right, X, random_state=0)


def test_wrong_input_is_named():
    X, y, interval = data()
    with pytest.raises(ValueError, match="one output at a time"):
        coverage_by_group(np.zeros((5, 2)), np.zeros((5, 2, 2)), np.zeros(5))
    with pytest.raises(ValueError, match="groups has shape"):
        coverage_by_group(y, interval, [0, 1])
    with pytest.raises(ValueError, match="values has shape"):
        coverage_by_quantile(y, interval, X)
    with pytest.raises(ValueError, match="X has shape"):
        worst_slab_coverage(y, interval, X[:5])
    with pytest.raises(ValueError, match="mass=2"):
        worst_slab_coverage(y, interval, X, mass=2)
    with pytest.raises(ValueError, match="n_parts=1"):
        coverage_by_quantile(y, interval, X[:, 0], n_parts=1)
