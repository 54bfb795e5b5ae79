"""Choices without parts of the rows: their regressions together, and what a choice fits."""

import dataclasses

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.gram.kernels import RBF, Laplacian
from kstonet.tuning import fast
from kstonet.tuning.choice import Choice
from kstonet.tuning.joined import (
    FEW_ROWS,
    LARGEST_GROWTH,
    MANY_ROWS,
    MIDDLE_ROWS,
    MOST_JOINED,
    TINY_ROWS,
    joined_choice,
    parts_to_hide,
)


def choice(*kernels, ridge=0.1, signal=True, **given):
    n = len(kernels)
    return Choice(kernels, (ridge,) * n, (1.0,) * n, (0.5,) * n, signal, [], shares=(1.0 / n,) * n, **given)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * rng.normal(size=60)
    return X, (y - y.mean())[:, None] / y.std()


def left_out(kernel, X, Y, ridge):
    """Leave-one-out errors of a kernel ridge regression with an intercept, by so many regressions."""
    n, errors = len(Y), np.empty(Y.shape)
    for k in range(n):
        rest = np.arange(n) != k
        system = np.ones((n, n))
        system[:-1, :-1] = kernel(X[rest], X[rest]) + ridge * np.eye(n - 1)
        system[-1, -1] = 0.0
        solved = np.linalg.solve(system, np.vstack([Y[rest], np.zeros((1, Y.shape[1]))]))
        errors[k] = Y[k] - kernel(X[[k]], X[rest])[0] @ solved[:-1] - solved[-1]
    return errors


@pytest.mark.parametrize("n", [TINY_ROWS - 2, 60])
def test_growth_and_shares_are_those_of_errors_by_brute_force(rows, n):
    X, Y = (values[:n] for values in rows)
    kernels, ridges = [RBF(0.5), RBF(2.0), Laplacian(1.0), RBF(8.0)], [0.1, 0.3, 0.05, 1e-3]
    hidden, errors = [], [left_out(kernel, X, Y, ridge) for kernel, ridge in zip(kernels, ridges, strict=True)]

    def choose(seen):
        hidden.append(np.setdiff1d(np.arange(n), seen))
        return choice(kernels[len(hidden) - 1], ridge=ridges[len(hidden) - 1])

    found = joined_choice(choose, X, Y, None, 3, 8)
    assert len(hidden[0]) == 0
    assert sorted(np.concatenate(hidden[1:]).tolist()) == list(range(n))  # every row is hidden once
    shares = np.array([1.0 / np.mean(own**2) for own in errors])
    shares /= shares.sum()
    together = np.mean(np.abs(sum(share * own for share, own in zip(shares, errors, strict=True))))
    gaps, unseen = [], []
    for own, part in zip(errors[1:], hidden[1:], strict=True):
        size = np.abs(own[:, 0])
        unseen.append(size[part].mean())
        gaps.append(unseen[-1] - np.delete(size, part).mean())
    seen = shares[0] + 2 / 3 * shares[1:].sum()
    expected = 1.0 + seen * np.average(gaps, weights=shares[1:]) / together
    if n < TINY_ROWS:
        expected = np.mean(unseen) / together
    assert found.growth == pytest.approx(min(max(expected, 1.0), LARGEST_GROWTH), rel=1e-4)
    by_kernel = dict(zip(found.kernels, found.shares, strict=True))
    np.testing.assert_allclose([by_kernel[kernel] for kernel in kernels], shares, rtol=1e-4)
    assert dict(zip(found.kernels, found.ridges, strict=True)) == dict(zip(kernels, ridges, strict=True))


def test_a_choice_that_missed_the_signal_has_no_say(rows):
    X, Y = rows
    made = iter([choice(RBF(0.5)), choice(RBF(0.5), ridge=1e3), choice(RBF(0.6))])
    found = joined_choice(lambda seen: next(made), X, Y, None, 2, 8)
    assert dict(zip(found.ridges, found.shares, strict=True))[1e3] < 0.2
    assert "2 choices without a part of the rows: 3 kernels" in found.reason


def test_same_kernels_are_one_and_small_shares_go(rows):
    X, Y = rows
    made = iter([choice(RBF(0.5), RBF(0.7)), choice(RBF(0.5)), choice(RBF(0.5), Laplacian(1.0))])
    found = joined_choice(lambda seen: next(made), X, Y, None, 2, 2)
    assert found.kernels[0] == RBF(0.5)
    assert len(found.kernels) == 2
    assert sum(found.shares) == pytest.approx(1.0)


def test_a_mean_stays_alone(rows):
    X, Y = rows
    asked = []
    found = joined_choice(lambda seen: asked.append(seen) or choice(RBF(0.5), signal=False), X, Y, None, 3, 8)
    assert len(asked) == 1
    assert found.growth is None


def test_one_kernel_learns_what_it_fits_and_stays_alone(rows):
    X, Y = rows
    made = iter([choice(RBF(0.5)), choice(RBF(3.0)), choice(RBF(0.3))])
    found = joined_choice(lambda seen: next(made), X, Y, None, 2, 1)
    assert found.kernels == (RBF(0.5),)
    assert 1.0 <= found.growth <= LARGEST_GROWTH


def test_errors_do_not_grow_where_nothing_was_fitted(rows):
    X, Y = rows
    found = joined_choice(lambda seen: choice(RBF(0.5)), X, Y, None, 3, 8)
    assert found.growth < 1.05  # the same kernel whatever was seen: only luck differs between parts


def test_growth_is_that_of_a_choice_that_learns_noise():
    """Widths by the best of many random features: left-out errors of the chosen one are too small, by what growth says."""
    ratios = []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(560, 60))
        Y = X[:, :1] + 1.5 * rng.normal(size=(560, 1))
        train, test = np.arange(60), np.arange(60, 560)

        def choose(seen, X=X, Y=Y):
            pairs = [RBF(tuple(np.where(np.isin(np.arange(60), (0, k)), 1.0, 1e4)), 0.1) for k in range(1, 60)]
            sizes = [np.mean(left_out_fast(kernel, X[seen], Y[seen], 0.5) ** 2) for kernel in pairs]
            return choice(pairs[int(np.argmin(sizes))], ridge=0.5)

        found = joined_choice(choose, X[train], Y[train], None, 3, 8)
        new, old = np.zeros((500, 1)), np.zeros((60, 1))
        for kernel, share in zip(found.kernels, found.shares, strict=True):
            new += share * (Y[test] - predicted(kernel, X[train], Y[train], X[test], 0.5))
            old += share * left_out_fast(kernel, X[train], Y[train], 0.5)
        ratios.append(np.abs(new).mean() / np.abs(old).mean() / found.growth)
    assert np.mean(ratios) == pytest.approx(1.0, abs=3 * np.std(ratios) / np.sqrt(20) + 0.02)


def _centred(K):
    n = len(K)
    return np.linalg.inv(np.block([[K, np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]]))


def left_out_fast(kernel, X, Y, ridge):
    inverse = _centred(kernel(X, X) + ridge * np.eye(len(X)))[:-1, :-1]
    return inverse @ Y / np.diag(inverse)[:, None]


def predicted(kernel, X, Y, new, ridge):
    solved = _centred(kernel(X, X) + ridge * np.eye(len(X)))[:, :-1] @ Y
    return kernel(new, X) @ solved[:-1] + solved[-1]


def test_numbers_of_parts():
    assert [parts_to_hide(n) for n in (12, 13, FEW_ROWS, MIDDLE_ROWS, MOST_JOINED, MOST_JOINED + 1)] == [0, 5, 3, 2, 2, 0]
    assert [parts_to_hide(n, 1000) for n in (MANY_ROWS - 1, MANY_ROWS)] == [2, 0]
    assert [parts_to_hide(1100, p) for p in (27, 28)] == [0, 2]
    assert [parts_to_hide(n, joined=False) for n in (MIDDLE_ROWS - 1, MIDDLE_ROWS)] == [3, 0]


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(90, 3))
    return X, np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=90)


def test_a_network_is_the_mean_of_all_regressions(table):
    """The first call predicts what the shares of its kernels say, each by a regression of its own."""
    X, y = table
    model = KStoNetRegressor(random_state=0).fit(X, y)
    assert model.trained_.hidden_layer_sizes == (40,)
    kernels, C = model.tuned_["kernel"], model.tuned_["C"]
    assert len({(kernel, own) for kernel, own in zip(kernels, C, strict=True)}) > 3
    Z, Y = (X - X.mean(axis=0)) / X.std(axis=0), (y - y.mean())[:, None] / y.std()
    expected = np.mean([predicted(kernel, Z, Y, Z, 1.0 / own) for kernel, own in zip(kernels, C, strict=True)], axis=0)
    np.testing.assert_allclose(model.predict(X), y.mean() + y.std() * expected[:, 0], atol=2e-3 * y.std())


def test_the_order_of_rows_does_not_matter(table):
    X, y = table
    order = np.random.default_rng(0).permutation(len(y))
    first, second = (KStoNetRegressor(random_state=0, residuals=None).fit(X[o], y[o]) for o in (np.arange(len(y)), order))
    np.testing.assert_allclose(first.predict(X), second.predict(X), rtol=1e-4, atol=1e-4)


def test_choices_are_made_as_often_as_they_are_needed(table, monkeypatch):
    X, y = table
    asked = []
    choose = fast.automatic_choice
    monkeypatch.setattr(fast, "automatic_choice", lambda X, *args, **kwargs: asked.append(len(X)) or choose(X, *args, **kwargs))

    def of(target=y, **parameters):
        asked.clear()
        KStoNetRegressor(max_iter=2, random_state=0, **parameters).fit(X, target)
        return list(asked)

    assert of() == of(residuals=None) == [90, 72, 72, 72, 72, 72]
    assert of(hidden_layer_sizes=(5,)) == [90, 72, 72, 72, 72, 72]  # for its intervals
    assert of(hidden_layer_sizes=(5,), residuals=None) == [90]
    assert of(np.column_stack([y, X[:, 1]]), residuals=None) == [90]
    assert of(tuning="none") == []


def test_intervals_grow_with_what_a_choice_fits(table, monkeypatch):
    X, y = table
    widths = {}
    join = fast.joined_choice
    for growth in (1.0, 1.5):

        def joined(*args, growth=growth):
            found = join(*args)
            assert found.growth is not None
            return dataclasses.replace(found, growth=growth)

        monkeypatch.setattr(fast, "joined_choice", joined)
        model = KStoNetRegressor(kernel="rbf", random_state=0).fit(X, y)
        assert model.tuning_["growth"] == growth
        widths[growth] = np.diff(model.predict_interval(X, 0.9)).mean()
    assert widths[1.5] == pytest.approx(1.5 * widths[1.0], rel=0.05)


def test_precomputed_kernels(table):
    X, y = table
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    model = KStoNetRegressor(kernel="precomputed", random_state=0).fit(K, y)
    assert model.tuning_["growth"] >= 1.0
    assert model.score(K, y) > 0.7
