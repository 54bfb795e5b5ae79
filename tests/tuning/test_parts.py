import numpy as np
import pytest

from kstonet.tuning.parts import LAST_ROWS, MOST_ROWS, default_repeats, larger_part, validation_parts

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [5, 6, 23, 499, 1000, 2999, 3001, 20_000])
@pytest.mark.parametrize("classes", [None, 2, 4])
def test_parts_are_disjoint_rows_a_fifth_to_look_at(n, classes):
    labels = None if classes is None else np.arange(n) % classes
    parts = validation_parts(n, seed=1, classes=labels)
    assert len(parts) == default_repeats(n)
    for fit, look in parts:
        rows = np.concatenate([fit, look])
        assert len(np.unique(rows)) == len(rows) == min(n, MOST_ROWS)
        assert rows.min() >= 0
        assert rows.max() < n
        assert len(look) == max(1, int(0.2 * len(rows)))
        if labels is not None:
            assert set(labels[fit]) == set(labels)
    assert n < 10 or not np.array_equal(parts[0][1], parts[1][1])


@pytest.mark.parametrize("n", [100, 5000])
def test_every_class_gives_its_share(n):
    labels = RNG.permutation(np.repeat(["many", "some", "few"], [n * 6 // 10, n * 3 // 10, n // 10]))
    for fit, look in validation_parts(n, seed=2, classes=labels):
        for label in np.unique(labels):
            share = min(1.0, MOST_ROWS / n) * (labels == label).sum()
            assert abs((labels[look] == label).sum() - 0.2 * share) <= 1
            assert abs((labels[fit] == label).sum() - 0.8 * share) <= 2


def test_a_class_of_one_row_is_fitted_on():
    labels = np.array(["a"] * 20 + ["b"] * 9 + ["c"])
    for seed in range(20):
        for fit, look in validation_parts(30, seed, labels):
            assert 29 in fit
            assert len(look) == 6
    rare = np.concatenate([np.arange(2000), np.full(2000, 5)])  # nearly as many classes as rows are looked at
    for fit, look in validation_parts(4000, 0, rare):
        assert len(fit) + len(look) == MOST_ROWS
        assert set(rare[fit]) == set(rare)


def test_small_classes_are_looked_at_too():
    """Four rows of each class: a fifth of a class is less than a row, a fifth of all rows is not."""
    labels = np.repeat([0, 1, 2], 4)
    looked = np.concatenate([look for seed in range(20) for _, look in validation_parts(12, seed, labels)])
    assert len(looked) == 20 * 5 * 2
    assert set(labels[looked]) == {0, 1, 2}


def test_every_row_has_the_same_chance():
    counts = np.zeros(10)
    for seed in range(400):
        for _, look in validation_parts(10, seed):
            counts[look] += 1
    np.testing.assert_allclose(counts, 400, atol=5 * np.sqrt(400 * 0.8))  # 2000 parts, a fifth of the rows


def test_the_seed_decides():
    one, same, other = (validation_parts(40, seed, repeats=2) for seed in (3, 3, 4))
    np.testing.assert_array_equal(one[1][1], same[1][1])
    assert not np.array_equal(one[1][1], other[1][1])


@pytest.mark.parametrize(
    ("n", "labels", "message"), [(4, None, "n_samples=4"), (4, [0, 0, 1, 1], "n_samples=4"), (6, range(6), "one row only")]
)
def test_too_few_rows_are_named(n, labels, message):
    with pytest.raises(ValueError, match=f"{message}.*takes 5 rows.*Give the parameters values"):
        validation_parts(n, 0, None if labels is None else np.array(labels))


@pytest.mark.parametrize("classes", [None, 3])
def test_a_larger_part_where_there_are_many_rows(classes):
    for n in (100, 2 * MOST_ROWS - 1):
        assert larger_part(n, 0) is None
    for n in (2 * MOST_ROWS, 50_000):
        labels = None if classes is None else RNG.integers(classes, size=n)
        fit, look = larger_part(n, 0, labels)
        rows = np.concatenate([fit, look])
        assert len(np.unique(rows)) == len(rows) == min(n, LAST_ROWS)
        assert len(look) == int(0.2 * len(rows))
        assert not np.array_equal(look, larger_part(n, 1, labels)[1])
