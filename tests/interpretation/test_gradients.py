"""Gradients of predictions against central finite differences, for every kernel and every kind of estimator."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import kstonet
from kstonet import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)
from kstonet.gram import LowRank, kernel_names, make_kernel
from kstonet.uncertainty.calibration import ProbabilityCalibration

RNG = np.random.default_rng(0)
CENTRE, SPREAD = np.array([0.0, 500.0, -0.02]), np.array([1.0, 20.0, 0.003])
Z = RNG.normal(size=(60, 3))
X, NEW = CENTRE + SPREAD * Z, CENTRE + SPREAD * RNG.normal(size=(5, 3))
Y = 100.0 * (np.sin(Z[:, 0]) + Z[:, 1] * Z[:, 2])
CLASSES = np.digitize(Y, [-40.0, 40.0])
FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "residuals": None, "random_state": 0}
PLAIN = {"tuning": "none", **FAST}
ONE = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [10], "hidden_layer_sizes": [(3,)], "cv": 2}


def differences(function, X, step=1e-6):
    """Central differences by every column, in the units of X."""
    each = []
    for j, size in enumerate(X.std(axis=0)):
        move = np.zeros(X.shape[1])
        move[j] = step * size
        each.append((function(X + move) - function(X - move)) / (2.0 * step * size))
    return np.stack(each, axis=-1)


def assert_gradient(model, at, function=None, **options):
    found, expected = model.predict_gradient(at), differences(function or model.predict, at, **options)
    assert found.shape == expected.shape
    per_column = np.abs(expected).reshape(-1, at.shape[1]).max(axis=0)
    np.testing.assert_allclose(found / per_column, expected / per_column, atol=2e-5)


@pytest.mark.parametrize("kernel", sorted(set(kernel_names()) - {"precomputed", "cosine"}))  # "cosine": of tests of extensions
def test_every_kernel(kernel):
    assert_gradient(KStoNetRegressor((3, 2), kernel=kernel, gamma=0.3, **PLAIN).fit(X, Y), NEW)


@pytest.mark.parametrize("kernel", ["matern12", "laplacian", "exponential"])
def test_at_a_training_row_a_kink_has_the_slope_halfway_between_its_sides(kernel):
    """The kernel's own difference quotient vanishes there by symmetry, so central differences agree."""
    model = KStoNetRegressor(kernel=kernel, gamma=0.3, **PLAIN).fit(X, Y)
    assert_gradient(model, X[:5], step=1e-6 if kernel == "laplacian" else 1e-4)  # rounding sees the kink from afar


@pytest.mark.parametrize("activation", ["softplus", "tanh", "sigmoid", "gelu", "identity"])
def test_every_smooth_activation(activation):
    assert_gradient(KStoNetRegressor((4, 3, 2), activation=activation, **PLAIN).fit(X, Y), NEW)


@pytest.mark.parametrize(
    "options",
    [
        {"length_scale": (0.5, 2.0, 9.0)},
        {"kernel": ["rbf", "laplacian", "matern32"], "gamma": [0.1, 0.3, 1.0], "C": [1.0, 10.0, 10.0]},
        {"loss": "squared"},
        {"loss": "squared", "solver": LowRank(rank=10, leaf_rows=0)},
        {"loss": "squared", "solver": LowRank(rank=10, leaf_rows=20)},
        {"n_chains": 2},
    ],
    ids=["length scales", "units of their own", "squared", "landmarks", "leaves", "chains"],
)
def test_every_first_layer(options):
    assert_gradient(KStoNetRegressor((3,), **PLAIN | options).fit(X, Y), NEW)


def test_features_with_heavy_tails():
    squash = ((0.1, 0.5), (0.0, np.inf), (-0.3, 2.0))
    kernel = replace(make_kernel("rbf", Z, gamma=0.3), squash=squash)
    assert_gradient(KStoNetRegressor(kernel=kernel, **PLAIN).fit(X, Y), NEW)


def test_rows_that_are_not_standardised():
    assert_gradient(KStoNetRegressor((3,), standardize=False, **PLAIN).fit(Z, Y), Z[:4] + 0.1)


def test_the_first_call():
    assert_gradient(KStoNetRegressor(max_iter=2, random_state=0).fit(X, Y), NEW)


def test_several_targets():
    model = KStoNetRegressor((3,), **PLAIN).fit(X, np.column_stack([Y, Z[:, 0] ** 2]))
    assert model.predict_gradient(NEW).shape == (5, 2, 3)
    assert_gradient(model, NEW)


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_stonets(kernel):
    assert_gradient(StoNetRegressor((4, 3), kernel=kernel, **FAST).fit(X, Y), NEW)
    model = StoNetClassifier((4, 3), kernel=kernel, **FAST).fit(X, CLASSES)
    assert_gradient(model, NEW, model.predict_proba)


@pytest.mark.parametrize("labels", [CLASSES, Y > 0], ids=["three classes", "two classes"])
@pytest.mark.parametrize("tempered", [False, True])
def test_probabilities_of_classes(labels, tempered):
    model = KStoNetClassifier((3,), **PLAIN).fit(X, labels)
    if tempered:
        model.trained_ = replace(model.trained_, calibration=ProbabilityCalibration(temperature=1.7))
    assert_gradient(model, NEW, model.predict_proba)
    np.testing.assert_allclose(model.predict_gradient(NEW).sum(axis=1) * SPREAD, 0.0, atol=1e-12)


def test_ordered_classes():
    model = KStoNetClassifier((3,), ordinal=True, **PLAIN).fit(X, CLASSES)
    assert_gradient(model, NEW, model.predict_proba)


def test_searches_and_support_vector_regressions():
    assert_gradient(KStoNetRegressorCV(KStoNetRegressor(**PLAIN), **ONE).fit(X, Y), NEW)
    search = KStoNetClassifierCV(KStoNetClassifier(**PLAIN), **ONE).fit(X, CLASSES)
    assert_gradient(search, NEW, search.predict_proba)
    assert_gradient(MultiTargetSVR(C=100.0, gamma=0.3).fit(Z, Y), Z[:4] + 0.1)
    assert_gradient(MultiTargetSVR(C=100.0, gamma=0.3).fit(Z, np.column_stack([Y, -Y])), Z[:4] + 0.1)


def test_many_rows_go_in_blocks(monkeypatch):
    model = KStoNetClassifier((3,), **PLAIN).fit(X, CLASSES)
    expected = model.predict_gradient(X)
    monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * 60 * 25)  # a few rows at a time
    np.testing.assert_allclose(model.predict_gradient(X), expected, rtol=1e-9, atol=1e-12)


def test_loaded_models_have_the_same_gradients(tmp_path):
    model = KStoNetRegressor(**PLAIN).fit(X, Y)
    kstonet.save(model, tmp_path / "m.kstonet")
    assert np.array_equal(kstonet.load(tmp_path / "m.kstonet").predict_gradient(NEW), model.predict_gradient(NEW))


def test_tables_have_a_derivative_for_every_encoded_column():
    table = pd.DataFrame({"size": X[:, 0], "colour": np.where(Z[:, 1] > 0, "red", "blue"), "weight": X[:, 2]})
    table.loc[::7, "weight"] = np.nan
    model = KStoNetRegressor((3,), **PLAIN).fit(table, Y)
    names = model.feature_importance().encoded_names
    found = model.predict_gradient(table)
    assert found.shape == (60, len(names))
    present = table.iloc[1:6]
    moved = [model.predict(present.assign(size=present["size"] + sign * 1e-4)) for sign in (1, -1)]
    np.testing.assert_allclose(found[1:6, names.index("size")], (moved[0] - moved[1]) / 2e-4, rtol=1e-4)


def test_kernel_values_have_no_gradient():
    model = KStoNetRegressor(kernel="precomputed", **PLAIN).fit(Z @ Z.T, Y)
    with pytest.raises(TypeError, match="no features to differentiate by"):
        model.predict_gradient(Z @ Z.T)
    with pytest.raises(ValueError, match="keeps no training rows"):
        model.feature_importance()
    assert not hasattr(model, "feature_importances_")
