"""Columns of a category, made by the estimators or by somebody else: found, kept unscaled, and of one length scale."""

import numpy as np
import pandas as pd
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.tables import TableEncoding, columns_of
from kstonet.tables.roles import Roles, category_blocks


def shops(n=160, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({
        "area": rng.normal(size=n),
        "city": pd.Categorical(rng.choice(list("abcde"), n)),
        "kind": pd.Categorical(rng.choice(["old", "new"], n)),
        "age": rng.normal(size=n),
    })  # fmt: skip
    effect = table["city"].cat.codes.to_numpy() * np.where(table["kind"] == "new", 1.0, -1.0)
    return table, np.sin(2 * table["area"].to_numpy()) + effect + 0.1 * rng.normal(size=n)


def dummies(table):
    """The same columns in the same order, made by hand."""
    parts = [table[["area"]], *(pd.get_dummies(table[name], dtype=float) for name in ("city", "kind")), table[["age"]]]
    return np.ascontiguousarray(np.hstack(parts))


def brute_force(X):
    """Blocks by trying all of them, the leftmost and shortest first."""
    found, start = [], 0
    while start < X.shape[1]:
        for stop in range(start + 2, X.shape[1] + 1):
            block = X[:, start:stop]
            if np.isin(block, (0.0, 1.0)).all() and (block.sum(axis=1) == 1.0).all():
                found.append(slice(start, stop))
                start = stop - 1
                break
        start += 1
    return found


def test_blocks_are_those_of_brute_force():
    rng = np.random.default_rng(0)
    for _ in range(200):
        parts, n = [], 6
        for _ in range(rng.integers(1, 6)):
            kind = rng.integers(4)
            if kind == 0:
                parts.append(rng.normal(size=(n, 1)))
            elif kind == 1:
                parts.append(rng.integers(0, 2, size=(n, 1)).astype(float))
            elif kind == 2:
                parts.append(np.eye(3)[rng.integers(0, 3, n)])
            else:
                parts.append(np.eye(4)[rng.integers(0, 4, n)][:, 1:])  # one category is left out: no block
        X = np.hstack(parts)
        assert category_blocks(X) == brute_force(X)


@pytest.mark.parametrize("X", [np.zeros((0, 3)), np.zeros((4, 0)), np.ones((3, 1)), np.full((3, 2), np.nan)])
def test_there_may_be_none(X):
    assert category_blocks(X) == []


def test_a_late_row_counts():
    X = np.eye(2)[np.arange(2000) % 2]
    assert category_blocks(X) == [slice(0, 2)]
    X[-1] = 1.0
    assert category_blocks(X) == []


def test_roles_of_a_table():
    table, _ = shops()
    table.loc[3, "area"] = np.nan
    encoding = TableEncoding.of(columns_of(table))
    roles = encoding.roles(encoding.encode(columns_of(table)))
    assert roles.indicators.tolist() == [False, True, *[True] * 7, False]
    assert roles.groups.tolist() == [0, 1, 2, 2, 2, 2, 2, 3, 3, 4]
    assert TableEncoding.of_numbers(np.random.default_rng(0).normal(size=(9, 2))).roles(np.zeros((9, 2))) is None


def test_groups_are_numbered_from_zero():
    roles = Roles.of(np.zeros(5, dtype=bool), [slice(1, 3)])
    assert roles.groups.tolist() == [0, 1, 1, 2, 3]
    assert roles.indicators.tolist() == [False, True, True, False, False]


@pytest.mark.parametrize("estimator", [KStoNetRegressor, KStoNetClassifier])
def test_a_frame_and_its_indicators_give_the_same_model(estimator):
    table, y = shops()
    y = y if estimator is KStoNetRegressor else (y > 0).astype(int)
    made = dummies(table)
    model, other = (estimator(random_state=0, residuals=None).fit(X[:120], y[:120]) for X in (table, made))
    np.testing.assert_array_equal(model.predict(table[120:]), other.predict(made[120:]))


def test_categories_share_a_scale_and_stay_unscaled():
    table, y = shops()
    model = KStoNetRegressor(tuning="fast", kernel="matern32", random_state=0, residuals=None).fit(table, y)
    scale = model.trained_.scaler.scale
    assert (scale[1:8] == 1.0).all()
    assert scale[0] != 1.0
    for kernel in np.atleast_1d(model.tuned_["kernel"]):
        if kernel.projection is None:
            scales = np.array(kernel.length_scale)
            assert len(np.unique(scales[1:6])) == len(np.unique(scales[6:8])) == 1


def test_rows_of_weight_zero_do_not_break_a_category():
    table, y = shops()
    X = dummies(table)
    spoiled = np.vstack([X, X[:1]])
    spoiled[-1, 1:6] = 1.0
    weights = np.r_[np.ones(len(X)), 0.0]
    model = KStoNetRegressor(tuning="none", max_iter=2, residuals=None).fit(spoiled, np.r_[y, 0.0], sample_weight=weights)
    assert (model.trained_.scaler.scale[1:8] == 1.0).all()
