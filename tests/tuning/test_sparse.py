"""Relevance of many features in few rows: found where it is there, and not believed where it is not."""

import numpy as np
import pytest
from sklearn.datasets import make_friedman1

from kstonet import KStoNetRegressor
from kstonet.tuning.judging import Rows
from kstonet.tuning.sparse import relevant, relevant_out_of_sample
from kstonet.tuning.stationary import FAMILIES


def among_others(n, p, seed=0, noise=0.1):
    """Two features that matter, among others."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    y = np.sin(2 * X[:, 0]) + X[:, 1] + noise * rng.normal(size=n)
    return Rows(X, ((y - y.mean()) / y.std())[:, None], None)


@pytest.mark.parametrize("name", ["matern32", "rbf"])
@pytest.mark.parametrize("weighted", [False, True])
def test_features_that_matter_are_found(name, weighted):
    rows = among_others(120, 60)
    if weighted:
        rows = Rows(rows.X, rows.Y, np.random.default_rng(1).uniform(0.5, 2.0, size=120))
    plain = rows.best_width(FAMILIES[name])
    found = relevant(rows, plain)
    assert found.relevance == "gradients"
    assert set(np.argsort(found.scales)[-2:]) == {0, 1}
    assert found.score < 0.7 * plain.score
    assert np.median(found.scales) < 0.1 * found.scales[1]
    assert rows.judge(found).score == pytest.approx(found.score, rel=1e-2)  # the scales are those of the rows themselves
    believed = relevant_out_of_sample(rows, FAMILIES[name])
    np.testing.assert_array_equal(believed.scales, found.scales)


def test_features_of_a_group_share_their_relevance():
    rows = among_others(120, 60)
    groups = np.maximum(np.arange(60) - 1, 0)  # the first two
    together = Rows(rows.X, rows.Y, None, groups=groups)
    found = relevant(together, together.best_width(FAMILIES["matern32"]))
    assert found.scales[0] == found.scales[1] > found.scales[2:].max()


def test_features_that_do_not_matter_are_left_alone():
    """Two standard errors by chance: about one in forty of tables without any signal; three of 30 come in 4 % of runs."""
    believed = 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        believed += (
            relevant_out_of_sample(Rows(rng.normal(size=(60, 30)), rng.normal(size=(60, 1)), None), FAMILIES["rbf"]) is not None
        )
    assert believed <= 3


def test_a_constant_target_has_no_gradients():
    rows = Rows(np.random.default_rng(0).normal(size=(30, 10)), np.zeros((30, 1)), None)
    assert relevant(rows, rows.best_width(FAMILIES["rbf"])).relevance == "none"
    assert relevant_out_of_sample(rows, FAMILIES["rbf"]) is None


def test_a_first_call_finds_five_features_among_a_hundred():
    X, y = make_friedman1(1200, n_features=100, noise=1.0, random_state=0)
    model = KStoNetRegressor(random_state=0, residuals=None).fit(X[:200], y[:200])
    assert "gradients" in model.tuning_["reason"]
    assert model.score(X[200:], y[200:]) > 0.75  # 0.5 with one width for all features
    assert set(np.argsort(model.feature_importances_)[-3:]) <= {0, 1, 2, 3, 4}
