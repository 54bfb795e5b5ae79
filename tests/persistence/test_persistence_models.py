"""Saved models predict the same bits; what a file cannot hold is refused with the reason."""

import pickle
import warnings
from dataclasses import replace

import joblib
import numpy as np
import pytest
from model_files import CASES, LABELS, NEW, X, Y, assert_same, quick
from sklearn.exceptions import NotFittedError

from kstonet import KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.persistence import load, save
from kstonet.targets import ClassTargets


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_model_answers_with_the_same_bits(name, fitted, tmp_path):
    model, new = fitted(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # also: every attribute of a model is known to its layout
        save(model, tmp_path / "m.kstonet")
        loaded = load(tmp_path / "m.kstonet")
    assert type(loaded) is type(model)
    assert_same(model, loaded, new)
    for parameter, value in model.get_params().items():
        got = loaded.get_params()[parameter]
        assert type(got) is type(value), parameter
        np.testing.assert_array_equal(got, value) if isinstance(value, np.ndarray) else np.testing.assert_equal(got, value)
    save(loaded, tmp_path / "again.kstonet")
    assert (tmp_path / "again.kstonet").read_bytes() == (tmp_path / "m.kstonet").read_bytes()
    assert list(tmp_path.glob(".*")) == []


@pytest.mark.parametrize("name", ["two targets, conformal", "StoNet, classes", "SVR, length scales"])
def test_pickle_and_joblib_give_the_same(name, fitted, tmp_path):
    model, new = fitted(name)
    assert_same(model, pickle.loads(pickle.dumps(model)), new)
    joblib.dump(model, tmp_path / "m.joblib")
    assert_same(model, joblib.load(tmp_path / "m.joblib"), new)
    save(model, tmp_path / "m.kstonet")
    assert_same(pickle.loads(pickle.dumps(load(tmp_path / "m.kstonet"))), model, new)


def test_a_loaded_model_can_be_calibrated_and_fitted(fitted, few_folds, tmp_path):
    model, new = fitted("rbf")
    save(model, tmp_path / "m.kstonet")
    loaded = load(tmp_path / "m.kstonet")
    assert not any(hasattr(loaded, gone) for gone in ("_resume", "_X_fit"))
    assert_same(model.calibrate(X[:9] + 0.01, Y[:9, 0]), loaded.calibrate(X[:9] + 0.01, Y[:9, 0]), new)
    np.testing.assert_array_equal(loaded.fit(X, Y[:, 0]).predict(new), model.predict(new))


def test_a_loaded_svr_can_be_refitted(fitted, tmp_path):
    model, new = fitted("SVR")
    save(model, tmp_path / "m.kstonet")
    assert_same(pickle.loads(pickle.dumps(model)).refit(Y), load(tmp_path / "m.kstonet").refit(Y), new)


def test_leftovers_of_an_earlier_fit_are_not_stored(tmp_path):
    model = quick(StoNetRegressor).fit(X, Y)
    for residuals in ("training", None):
        model.set_params(residuals=residuals, hidden_layer_sizes=(2,)).fit(X[:, :2], Y[:, 0])
        save(model, tmp_path / "m.kstonet")
        assert_same(model, load(tmp_path / "m.kstonet"), NEW[:, :2])


def test_a_model_that_contradicts_itself_is_not_stored(tmp_path):
    model = quick(StoNetClassifier, residuals=None).fit(X, LABELS)
    model.trained_ = replace(model.trained_, targets=ClassTargets(model.classes_[:2]))
    with pytest.raises(ValueError, match=r"changed after fit.*outputs of the network.*fit it again"):
        save(model, tmp_path / "m.kstonet")


def test_arrays_are_stored_once(fitted, tmp_path):
    model, _ = fitted("rbf")
    save(model, tmp_path / "m.kstonet")
    rows = model.trained_.expansion.parts[0].basis
    assert (tmp_path / "m.kstonet").read_bytes().count(rows.tobytes()) == 1


# -- what cannot be stored ----------------------------------------------------------------------------------------------------


def user_kernel(A, B):
    return np.exp(-((A[:, None] - B) ** 2).sum(axis=2))


@pytest.mark.parametrize(
    "model", [MultiTargetSVR(kernel=user_kernel), quick(KStoNetRegressor, kernel=user_kernel, residuals=None)]
)
def test_a_user_kernel_is_refused(model, tmp_path):
    model.fit(X, Y)
    with pytest.raises(TypeError, match=r"kernel holds <function user_kernel.*precomputed.*pickle"):
        save(model, tmp_path / "m.kstonet")
    model.kernel = "rbf"  # the fitted kernel is still the function
    with pytest.raises(TypeError, match=r"kernel_ holds|trained_ holds"):
        save(model, tmp_path / "m.kstonet")
    assert list(tmp_path.iterdir()) == []


def test_functions_of_training_become_their_defaults(tmp_path, few_folds, few_steps):
    model = quick(KStoNetRegressor, callback=lambda state: None, C=lambda i: 5.0, random_state=np.random.RandomState(0))
    model.fit(X, Y)
    with pytest.warns(UserWarning, match=r"C=<function.*stored: None.*callback=<function.*random_state=RandomState.*set them"):
        save(model, tmp_path / "m.kstonet")
    loaded = load(tmp_path / "m.kstonet")
    assert (loaded.C, loaded.callback, loaded.random_state) == (None, None, None)
    assert_same(model, loaded, NEW)


def test_other_models_and_unfitted_ones_are_refused(fitted, tmp_path):
    class Mine(MultiTargetSVR):
        pass

    with pytest.raises(TypeError, match=r"model is a Mine.*stores KStoNetRegressor"):
        save(Mine().fit(X, Y), tmp_path / "m.kstonet")
    with pytest.raises(NotFittedError):
        save(KStoNetRegressor(tuning="none"), tmp_path / "m.kstonet")
    model, _ = fitted("means only")
    model.note = "mine"
    with pytest.warns(UserWarning, match="not stored: note"):
        save(model, tmp_path / "m.kstonet")
    del model.note
    labels = quick(StoNetClassifier, residuals=None).fit(X, LABELS)
    classes = np.array([(1,), (2,), (3,), None], dtype=object)[:3]
    labels.trained_ = replace(labels.trained_, targets=ClassTargets(classes))
    with pytest.raises(TypeError, match=r"trained_ holds \(1,\).*strings, numbers"):
        save(labels, tmp_path / "m.kstonet")
