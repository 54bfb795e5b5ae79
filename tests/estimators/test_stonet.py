"""StoNets: a first layer that is linear in the features or in the kernel matrix."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.linear_model import LinearRegression

from kstonet import StoNetClassifier, StoNetRegressor


def network_data(n=700, seed=0):
    """A small tanh network of the kind the model assumes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    hidden = np.tanh(X @ rng.normal(size=(6, 4)))
    return X, hidden @ np.array([1.0, -2.0, 1.5, 1.0]) + 0.1 * rng.normal(size=n)


@pytest.mark.parametrize("sizes", [(5,), (8, 5)])
def test_learns_what_a_line_cannot(sizes):
    X, y = network_data()
    line = LinearRegression().fit(X[:500], y[:500]).score(X[500:], y[500:])
    for seed in range(3):
        model = StoNetRegressor(sizes, "tanh", max_iter=60, residuals=None, random_state=seed).fit(X[:500], y[:500])
        assert model.score(X[500:], y[500:]) > line + 0.5 * (1 - line)
        assert sum(record["n_shrinks"] for record in model.history_) == 0
        assert np.isnan(model.history_[-1]["svr_gap"])  # there is no SVR


def test_gram_matrix_as_input(few_folds):
    """The variant of the paper's discussion: it must beat the linear StoNet where the function is not a small network."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(300, 2))
    y = np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])
    arguments = {"penalty": "ridge", "alpha": 1e-4, "max_iter": 20, "random_state": 0}
    gram = StoNetRegressor(kernel="rbf", gamma=1.0, **arguments).fit(X[:200], y[:200])
    linear = StoNetRegressor(**arguments).fit(X[:200], y[:200])
    assert gram.score(X[200:], y[200:]) > 0.8 > linear.score(X[200:], y[200:])
    scale = gram.trained_.scaler.forward
    K = gram.trained_.kernel(scale(X), scale(X[:200]))
    given = StoNetRegressor(kernel="precomputed", **arguments).fit(K[:200], y[:200])
    assert given.score(K[200:], y[200:]) > 0.8


def test_lasso_drops_features_that_no_unit_uses(few_folds):
    X, y = network_data()
    X = np.column_stack([X, np.random.default_rng(1).normal(size=(len(X), 10))])
    model = StoNetRegressor((4,), "tanh", alpha=0.1, max_iter=20, n_average=1, random_state=0).fit(X[:500], y[:500])
    kept = model.trained_.expansion.parts[0].basis
    assert set(range(6)) >= set(kept[kept < 6].tolist())
    assert len(kept) < 16


def test_classification(few_folds):
    X, y = load_breast_cancer(return_X_y=True)
    model = StoNetClassifier(random_state=0, max_iter=40).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.92
    X, y = load_iris(return_X_y=True)
    model = StoNetClassifier(random_state=0, max_iter=60).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.9


def test_schedules_reach_the_first_layer_too():
    X, y = network_data(200)
    states = []
    StoNetRegressor(alpha=[0.5, 0.25, 0.01], max_iter=3, callback=states.append, random_state=0).fit(X, y)
    assert [[layer.alpha for layer in state.network.layers] for state in states] == [[0.5] * 2, [0.25] * 2, [0.01] * 2]
