"""Sufficient directions: known truths, the number of directions, units, classes and files."""

import numpy as np
import pytest

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV, StoNetRegressor

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(300, 5))
SCALE = np.array([1.0, 10.0, 0.1, 5.0, 1.0])
X = 3.0 + Z * SCALE
FIRST, SECOND = np.array([0.6, 0.8, 0.0, 0.0, 0.0]), np.array([0.0, 0.0, 0.6, 0.0, -0.8])
NOISE = 0.1 * RNG.normal(size=300)
FAST = {"residuals": None, "random_state": 0}


def degrees(truth, found):
    """The largest angle between two spaces, given by columns."""
    bases = [np.linalg.qr(np.asarray(one).reshape(5, -1))[0] for one in (truth, found)]
    return np.degrees(np.arccos(np.clip(np.linalg.svd(bases[0].T @ bases[1])[1].min(), -1.0, 1.0)))


def test_a_single_index():
    y = np.sin(2.0 * Z @ FIRST) + NOISE
    model = KStoNetRegressor(**FAST).fit(X, y)
    found = model.sufficient_directions(X, y)
    assert found.n_directions == 1
    assert degrees(FIRST, found.directions[:, 0] * X.std(axis=0)) < 10
    assert [test["directions"] for test in found.tests] == [1]
    assert found.tests[0]["p_value"] > 0.01
    assert np.isclose(found.eigenvalues.sum(), 1.0)
    assert abs(np.corrcoef(found.transform(X)[:, 0], Z @ FIRST)[0, 1]) > 0.98


def test_a_product_of_two_directions():
    """One direction alone says nothing here: the second has to be seen together with it."""
    y = (Z @ FIRST) * (Z @ SECOND) + NOISE
    found = KStoNetRegressor(**FAST).fit(X, y).sufficient_directions(X, y)
    assert found.n_directions == 2
    assert degrees(np.column_stack([FIRST, SECOND]), found.directions * X.std(axis=0)[:, None]) < 15
    assert found.tests[0]["p_value"] < 0.01
    assert found.tests[1]["error"] < 0.5 * found.tests[0]["error"]


def test_a_given_number_and_other_models(tmp_path):
    y = Z @ FIRST
    model = StoNetRegressor((3,), **FAST).fit(X, y)
    found = model.sufficient_directions(X, n_directions=2)
    assert found.n_directions == 2
    assert found.tests == []
    assert degrees(FIRST, found.directions[:, 0] * X.std(axis=0)) < 3
    kstonet.save(model, tmp_path / "m.kstonet")
    again = kstonet.load(tmp_path / "m.kstonet").sufficient_directions(X, n_directions=2)
    assert np.array_equal(again.directions, found.directions)
    labels = np.where(y > 0, "high", "low")
    classes = KStoNetClassifier(max_iter=2, **FAST).fit(X, labels).sufficient_directions(X, labels)
    assert classes.n_directions == 1
    assert degrees(FIRST, classes.directions[:, 0] * X.std(axis=0)) < 15
    one = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [10], "hidden_layer_sizes": [(3,)], "cv": 2}
    search = KStoNetRegressorCV(KStoNetRegressor(max_iter=2, **FAST), **one).fit(X, y)
    assert search.sufficient_directions(X, n_directions=1).n_directions == 1


def test_what_is_missing_is_said():
    model = KStoNetRegressor((3,), tuning="none", max_iter=2, **FAST).fit(X, Z[:, 0])
    with pytest.raises(ValueError, match="needs the targets y"):
        model.sufficient_directions(X)
    with pytest.raises(ValueError, match="n_directions=9 must be 'auto' or at most"):
        model.sufficient_directions(X, n_directions=9)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.sufficient_directions(X, Z[:9, 0])
    labels = np.where(Z[:, 0] > 0, "high", "low")
    classifier = KStoNetClassifier((2,), tuning="none", max_iter=2, **FAST).fit(X, labels)
    with pytest.raises(ValueError, match="a class the model was not fitted on"):
        classifier.sufficient_directions(X, np.full(300, "other"))
