"""Importances: closed forms for functions whose derivatives are known, tables, iterates, units, files and selection."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV, StoNetRegressor
from kstonet.interpretation import outer_product
from kstonet.interpretation.importance import shares

RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, 4)) * [1.0, 10.0, 0.1, 5.0]
FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "residuals": None, "random_state": 0}
PLAIN = {"tuning": "none", **FAST}


def test_a_linear_function_has_the_shares_of_its_coefficients():
    y = 3.0 * X[:, 0] - 0.2 * X[:, 1] + 10.0 * X[:, 2]
    expected = np.array([3.0, 2.0, 1.0, 0.0]) / 6.0
    found = KStoNetRegressor(max_iter=3, residuals=None, random_state=0).fit(X, y).feature_importance()
    np.testing.assert_allclose(found.importances, expected, atol=0.02)
    assert found.names == found.encoded_names == ("x0", "x1", "x2", "x3")
    assert np.isclose(found.importances.sum(), 1.0)
    assert (found.std >= 0).all()
    assert (found.std < 0.02).all()
    assert found.n_rows == 200


def test_importances_are_those_of_the_gradients():
    """By their definition, from gradients in the units of X and of several targets."""
    Y = np.column_stack([np.sin(X[:, 0]), 100.0 * X[:, 1] * X[:, 3]])
    model = KStoNetRegressor((3,), **PLAIN).fit(X, Y)
    gradients = model.predict_gradient(X) / Y.std(axis=0)[:, None]
    sizes = np.sqrt((gradients**2).sum(axis=1).mean(axis=0)) * X.std(axis=0)
    np.testing.assert_allclose(model.feature_importance(X).importances, sizes / sizes.sum(), rtol=1e-6)
    few = np.random.default_rng(0).choice(300, 200, replace=False)
    sizes = np.sqrt((gradients[few] ** 2).sum(axis=1).mean(axis=0)) * X[few].std(axis=0)
    np.testing.assert_allclose(model.feature_importances_, sizes / sizes.sum(), rtol=1e-6)
    assert np.array_equal(model.feature_importances_, model.feature_importance().importances)


def test_iterates_and_units():
    y = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    model = KStoNetRegressor((3,), kernel=["rbf", "linear", "rbf"], **PLAIN).fit(X, y)
    found = model.feature_importance(X)
    each = [replace(model.trained_, sample=None).iterate(t) for t in range(2)]
    np.testing.assert_allclose(sum(network.mean(X) for network in each) / 2, model.predict(X), rtol=1e-10)
    rows = model.trained_.scaler.forward(X)
    own = [shares(outer_product(network, rows), np.cov(rows.T, bias=True), np.arange(4), 4) for network in each]
    np.testing.assert_allclose(found.std, np.std(own, axis=0, ddof=1), rtol=1e-9)
    step = 1e-5 * X.std(axis=0)
    moved = np.stack([(model.transform(X + e) - model.transform(X - e)) / (2e-5) for e in np.diag(step)], axis=-1)
    sizes = np.sqrt((moved**2).mean(axis=0))  # derivative times standard deviation
    np.testing.assert_allclose(found.units, sizes / sizes.sum(axis=1, keepdims=True), rtol=1e-5)


def test_columns_of_a_table_have_one_importance_each():
    n = 400
    colour, size = RNG.choice(["red", "green", "blue"], n), RNG.normal(size=n)
    table = pd.DataFrame({"colour": colour, "size": size, "other": RNG.normal(size=n), "spare": RNG.choice(["a", "b"], n)})
    model = KStoNetRegressor(max_iter=3, residuals=None, random_state=0).fit(table, 2.0 * (colour == "red") + 0.5 * size)
    found = model.feature_importance()
    assert found.names == ("colour", "size", "other", "spare")
    assert model.feature_importances_.shape == (4,)
    assert len(found.encoded_names) == len(found.encoded_importances) == len(found.encoded_std) == 7
    # the standard deviations of both parts of the target: 2·√(2/9) and 0.5
    truth = np.array([2.0 * np.sqrt(2.0 / 9.0), 0.5])
    np.testing.assert_allclose(found.importances[:2], truth / truth.sum(), atol=0.06)
    assert found.importances[2:].max() < 0.05


def test_steps_that_no_row_can_make_do_not_count():
    """One function of three indicators has many forms: a constant may move from one column to the others."""
    indicators = np.eye(3)[RNG.integers(3, size=500)]
    covariance, owners = np.cov(indicators.T, bias=True), np.zeros(3, dtype=int)
    one, other = np.array([1.0, 0.0, 0.0]), np.array([0.0, -1.0, -1.0])

    def size(gradient):
        return float((np.outer(gradient, gradient) * covariance).sum())

    assert np.isclose(size(one), size(other))
    assert shares(np.outer(one, one), covariance, owners, 1) == pytest.approx([1.0])


def test_classes_and_linear_layers():
    labels = np.digitize(X[:, 1], [-4.0, 4.0])
    assert KStoNetClassifier((3,), **PLAIN).fit(X, labels).feature_importances_.argmax() == 1
    assert StoNetRegressor((3,), **FAST).fit(X, X[:, 3]).feature_importances_.argmax() == 3


def test_a_constant_prediction_has_no_important_column():
    model = StoNetRegressor((2,), alpha=1e6, **FAST).fit(X, X[:, 0])
    assert np.array_equal(model.feature_importances_, np.zeros(4))


@pytest.mark.parametrize("estimator", [KStoNetRegressor((3,), **PLAIN), StoNetRegressor((3,), **FAST)])
def test_loaded_models_keep_their_importances(tmp_path, estimator):
    model = estimator.fit(X, X[:, 0] ** 2)
    kstonet.save(model, tmp_path / "m.kstonet")
    assert np.array_equal(kstonet.load(tmp_path / "m.kstonet").feature_importances_, model.feature_importances_)


def test_old_models_ask_for_rows():
    model = KStoNetRegressor((3,), **PLAIN).fit(X, X[:, 0])
    model.trained_ = replace(model.trained_, sample=None)
    assert not hasattr(model, "feature_importances_")
    assert model.feature_importance(X).importances.argmax() == 0


def test_rows_are_kept_by_their_weights():
    weights = np.where(X[:, 0] > 0, 1.0, 1e-12)
    model = StoNetRegressor((3,), **FAST).fit(np.tile(X, (3, 1)), np.tile(X[:, 0], 3), np.tile(weights, 3))
    assert len(model.trained_.sample) == 200
    assert (model.trained_.sample * model.trained_.scaler.scale + model.trained_.scaler.mean)[:, 0].min() > 0


def test_what_uses_importances_finds_them():
    with pytest.raises(NotFittedError):
        KStoNetRegressor().feature_importances_  # noqa: B018
    selected = SelectFromModel(KStoNetRegressor((3,), **PLAIN), max_features=1).fit(X, np.sin(X[:, 0]))
    assert selected.get_support().tolist() == [True, False, False, False]
    one = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [10], "hidden_layer_sizes": [(3,)], "cv": 2}
    search = KStoNetRegressorCV(KStoNetRegressor(**PLAIN), **one).fit(X, X[:, 1])
    assert search.feature_importances_.argmax() == search.feature_importance().importances.argmax() == 1
