"""The order of rows that a choice looks at."""

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.tuning.spread import spread_order


@pytest.mark.parametrize("n", [1, 2, 7, 64, 1000, 1337])
def test_every_beginning_and_every_end_is_spread_over_the_targets(n):
    """A share of the first or last rows below any target differs from that of all rows by a few rows: log n, not root n."""
    target = np.random.default_rng(n).standard_exponential(n)
    order = spread_order(target[:, None])
    assert sorted(order) == list(range(n))
    shares = np.argsort(np.argsort(target))[order] / n
    for size in {max(1, n // 7), n // 3, n // 2} - {0}:
        for part in (shares[:size], shares[-size:]):
            rank = (np.arange(size) + 0.5) / size
            assert np.abs(np.sort(part) - rank).max() * size < 1.5 + np.log2(n) / 2


def test_classes_are_spread_in_proportion():
    codes = np.repeat([0, 1, 2], [800, 150, 50])
    indicators = (codes[:, None] == np.arange(3)).astype(float)
    order = spread_order(indicators / indicators.std(axis=0))
    for part in (order[:100], order[-100:]):
        assert np.abs(np.bincount(codes[part], minlength=3) - [80, 15, 5]).max() <= 3
    drawn = np.sort(order[codes[order] == 0][:100])  # rows of a class at random, not the first of them
    assert np.diff(drawn).std() > 3.0


def test_targets_decide_and_not_the_order_of_the_rows():
    target = np.random.default_rng(0).normal(size=(500, 1))
    shuffled = np.random.default_rng(1).permutation(500)
    np.testing.assert_array_equal(target[spread_order(target)], target[shuffled][spread_order(target[shuffled])])


@pytest.mark.parametrize("estimator", [KStoNetRegressor, KStoNetClassifier])
def test_the_seed_does_not_decide_what_is_chosen(estimator):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(450, 4))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=450)
    y = y if estimator is KStoNetRegressor else y > 0
    quick = {"max_iter": 2, "n_average": 1, "residuals": None} if estimator is KStoNetRegressor else {"max_iter": 2}
    one, two = (estimator(random_state=seed, **quick).fit(X, y) for seed in (0, 1))
    assert one.tuned_ == two.tuned_
