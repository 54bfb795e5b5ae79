"""Saved models predict the same bits; damaged, foreign and newer files are refused; nothing is lost in a crash."""

import ast
import contextlib
import errno
import hashlib
import json
import os
import pickle
import signal
import struct
import subprocess
import sys
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram.kernels import Matern
from kstonet.persistence import ModelFileError, container, load, models, save
from kstonet.persistence.values import RECORDS, Decoder, Encoder, NotStorableError

pytest.importorskip("safetensors")

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=36), X[:, 1] ** 2])
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
NEW = RNG.normal(size=(7, 3))
GRAM, NEW_GRAM = (np.exp(-0.3 * ((A[:, None] - X) ** 2).sum(axis=2)) for A in (X, NEW))
SHORT = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 3, "random_state": 0}


def quick(cls, **parameters):
    return cls(**(SHORT | parameters))


def framed(A):
    return pd.DataFrame(A, columns=["a", "b", "c"])


# name: (model, X, y, X new, what calibrate takes)
NO, SELF, ROWS = "no", "self", "rows"
CASES = {
    "rbf": (quick(KStoNetRegressor), X, Y[:, 0], NEW, NO),
    "two targets, conformal": (quick(KStoNetRegressor, C=np.array([5.0, 6.0, 7.0, 8.0, 9.0])), X, Y, NEW, SELF),
    "deep": (quick(KStoNetRegressor, hidden_layer_sizes=(4, 3, 2), activation="tanh", residuals="loo"), X, Y[:, 0], NEW, NO),
    "gamma per unit": (quick(KStoNetRegressor, hidden_layer_sizes=3, gamma=[0.1, 0.1, 1.0], residuals="loo"), X, Y, NEW, ROWS),
    "kernels per unit": (
        quick(
            KStoNetRegressor,
            hidden_layer_sizes=(6,),
            kernel=["rbf", "laplacian", "matern32", "poly", "arccos1", "linear"],
            residuals="training",
            step_size=[1e-4, 1e-5],
            penalty="ridge",
        ),
        X, Y[:, 0], NEW, ROWS,
    ),
    "kernel object": (quick(KStoNetRegressor, kernel=Matern((1.0, 2.0, 3.0), 0.4, 2.5), residuals="loo"), X, Y, NEW, NO),
    "means only": (quick(KStoNetRegressor, residuals=None, activation="gelu"), X, Y[:, 0], NEW, NO),
    "precomputed": (quick(KStoNetRegressor, kernel="precomputed", residuals="loo"), GRAM, Y[:, 0], NEW_GRAM, SELF),
    "constant target": (quick(KStoNetRegressor, residuals="loo"), X, np.full(36, 3.0), NEW, NO),
    "not standardised, named": (
        quick(KStoNetRegressor, standardize=False, warm_start=True, residuals="loo"), framed(X), Y, framed(NEW), NO,
    ),
    "classes": (quick(KStoNetClassifier), X, LABELS, NEW, SELF),
    "two classes": (quick(KStoNetClassifier, penalty="mcp", residuals="loo"), X, X[:, 0] > 0, NEW, ROWS),
    "float classes": (quick(KStoNetClassifier, residuals="training"), X, np.where(X[:, 1] > 0, 2.0, -1.0), NEW, NO),
    "classes, no intervals": (quick(KStoNetClassifier, residuals=None), X, LABELS == "low", NEW, NO),
    "object classes": (
        quick(KStoNetClassifier, kernel="precomputed", residuals="loo"), GRAM, LABELS.astype(object), NEW_GRAM, NO,
    ),
    "StoNet": (quick(StoNetRegressor), X, Y[:, 0], NEW, SELF),
    "StoNet, kernel": (quick(StoNetRegressor, kernel="laplacian", hidden_layer_sizes=(3, 2), residuals="loo"), X, Y, NEW, NO),
    "StoNet, classes": (quick(StoNetClassifier, hidden_layer_sizes=(4, 3)), framed(X), pd.Series(LABELS), framed(NEW), SELF),
    "StoNet, int classes": (quick(StoNetClassifier, kernel="precomputed"), GRAM, np.digitize(X[:, 0], [0]), NEW_GRAM, NO),
    "SVR": (MultiTargetSVR(), X, Y[:, 0], NEW, NO),
    "SVR, length scales": (MultiTargetSVR(C=[1.0, 2.0], kernel="poly", length_scale=[1, 2, 3.0]), X, Y, NEW, NO),
    "SVR, all rows": (MultiTargetSVR(sparse=False, dtype="float32"), framed(X), Y, framed(NEW), NO),
    "SVR, precomputed": (MultiTargetSVR(kernel="precomputed"), GRAM, Y, NEW_GRAM, NO),
    "SVR, constant": (MultiTargetSVR(epsilon=100.0), X, Y, NEW, NO),
}  # fmt: skip


@pytest.fixture(scope="module")
def fitted():
    """Every case, fitted once."""
    made = {}

    def get(name):
        if name not in made:
            model, A, y, new, calibration = CASES[name]
            model.fit(A, y)
            if calibration != NO:
                model.calibrate(*((A[:20], y[:20]) if calibration == ROWS else ()))
            made[name] = model, new
        return made[name]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield get


def answers(model, new):
    """Everything a model says about new rows."""
    said = {"predict": model.predict(new)}
    if isinstance(model, MultiTargetSVR):
        said |= {
            "coef": model.dual_coef_,
            "gap": model.duality_gap_,
            "kept": model._kept_rows,
            "fitted": model.solution_.fitted,
        }
        return said | ({"support": model.n_support_, "kkt": model.solution_.kkt} if model.solution_.tight else {})
    said |= {"transform": model.transform(new), "names": model.get_feature_names_out()}
    if hasattr(model, "classes_"):
        said |= {"classes": model.classes_, "proba": model.predict_proba(new), "temperature": model.calibration_temperature_}
        said["scale"] = model.logit_variance_scale_
        if model.residuals is not None:
            said["proba_interval"] = model.predict_proba_interval(new, [0.5, 0.9])
    elif model.residuals is not None:
        distribution = model.predict_dist(new, order=2)
        said |= {"interval": model.predict_interval(new, 0.8), "of_mean": model.predict_interval(new, [0.5, 0.9], "confidence")}
        said |= {"quantiles": model.predict_quantiles(new), "cov": distribution.covariance, "draws": model.sample_y(new, 3)}
        said |= distribution.variance_by_source
    return said


def assert_same(one, other, new):
    expected, got = answers(one, new), answers(other, new)
    assert expected.keys() == got.keys()
    for name, value in expected.items():
        assert np.asarray(value).dtype == np.asarray(got[name]).dtype, name
        np.testing.assert_array_equal(value, got[name], err_msg=name, strict=True)
    assert one.n_features_in_ == other.n_features_in_
    np.testing.assert_array_equal(getattr(one, "feature_names_in_", None), getattr(other, "feature_names_in_", None))
    np.testing.assert_equal(getattr(one, "history_", None), getattr(other, "history_", None))  # NaN equals NaN here
    if one.kernel is not None:
        assert getattr(one, "kernel_", None) == getattr(other, "kernel_", None)


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


def test_a_loaded_model_can_be_calibrated_and_fitted(fitted, tmp_path):
    model, new = fitted("rbf")
    save(model, tmp_path / "m.kstonet")
    loaded = load(tmp_path / "m.kstonet")
    assert not any(hasattr(loaded, gone) for gone in ("_state", "_inputs", "_X_fit"))
    assert_same(model.calibrate(X[:9], Y[:9, 0]), loaded.calibrate(X[:9], Y[:9, 0]), new)
    np.testing.assert_array_equal(loaded.fit(X, Y[:, 0]).predict(new), model.predict(new))


def test_a_loaded_svr_can_be_refitted(fitted, tmp_path):
    model, new = fitted("SVR")
    save(model, tmp_path / "m.kstonet")
    assert_same(pickle.loads(pickle.dumps(model)).refit(Y), load(tmp_path / "m.kstonet").refit(Y), new)


def test_leftovers_of_an_earlier_fit_are_not_stored(tmp_path):
    model = quick(StoNetRegressor, residuals="loo").fit(X, Y)
    for residuals in ("training", None):
        model.set_params(residuals=residuals, hidden_layer_sizes=(2,)).fit(X[:, :2], Y[:, 0])
        save(model, tmp_path / "m.kstonet")
        assert_same(model, load(tmp_path / "m.kstonet"), NEW[:, :2])


def test_a_model_that_contradicts_itself_is_not_stored(tmp_path):
    model = quick(StoNetClassifier, residuals=None).fit(X, LABELS)
    model.classes_ = model.classes_[:2]
    with pytest.raises(ValueError, match=r"changed after fit.*outputs of the network.*fit it again"):
        save(model, tmp_path / "m.kstonet")


def test_arrays_are_stored_once(fitted, tmp_path):
    model, _ = fitted("rbf")
    save(model, tmp_path / "m.kstonet")
    rows = model._expansion.parts[0].basis
    assert (tmp_path / "m.kstonet").read_bytes().count(rows.tobytes()) == 1


# -- the values ---------------------------------------------------------------------------------------------------------------

VALUES = [
    None, True, 0, -(2**70), 0.1, -0.0, 5e-324, float("inf"), float("-inf"), "ε\n\0\"", [], (), {}, [1, (2, [None])],
    {1: "a", "b": (2.0,), (1, 2): {"c": []}}, np.float64(0.1), np.float32(0.1), np.int64(3), np.bool_(True), np.str_("s"),
    np.array(3.0), np.empty((0, 4)), np.arange(6.0).reshape(2, 3).T, np.arange(24).reshape(2, 3, 4).swapaxes(0, 1),
    np.arange(24, dtype=np.float32).reshape(2, 3, 4).transpose(2, 0, 1), np.array([True, False]), np.array(["a", "längst"]),
    np.array(["a", "b"], dtype="U9"), np.array(["a", 1, 2.5, True], dtype=object), np.arange(10.0)[::-2],
    np.broadcast_to(np.arange(3.0), (2, 3)), np.arange(4, dtype=">i4"), np.array([], dtype="U3"),
]  # fmt: skip


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_survive(value):
    encoder = Encoder()
    text = json.dumps(encoder.encode(value), allow_nan=False)
    got = Decoder(encoder.tensors).decode(json.loads(text))
    if isinstance(value, np.ndarray):
        np.testing.assert_array_equal(got, value, strict=value.dtype.isnative)
        if 0 not in value.strides and value.size and value.ndim > 1:  # the same order in memory
            assert np.argsort(got.strides).tolist() == np.argsort(value.strides).tolist()
        if value.dtype == object:
            assert [type(item) for item in got] == [type(item) for item in value]
    else:
        assert repr(got) == (repr(value) if not isinstance(value, np.str_) else repr(str(value)))


def test_nan_survives():
    assert np.isnan(Decoder({}).decode(Encoder().encode(float("nan"))))


@pytest.mark.parametrize(
    "value", [len, object(), {1, 2}, 1j, np.array([1j]), np.array([[]], dtype=object).dtype, b"x", np.datetime64("2020-01-01")]
)
def test_other_values_are_refused(value):
    with pytest.raises(NotStorableError, match=type(value).__name__):
        Encoder().encode([value])


@pytest.mark.parametrize(
    "node",
    [
        {}, {"code": "1"}, {"tuple": 3}, {"dict": [[1]]}, {"dict": [[[], 1]]}, {"float": "1"}, {"number": ["object", 1]},
        {"number": ["float64", "x"]}, {"tensor": ["none", []]}, {"tensor": ["t", [0, 0]]}, {"tensor": ["t", [1, 2]]},
        {"strings": [[3], 1, ["a"]]}, {"strings": [[1], 0, ["a"]]}, {"strings": [[1], 3, [1]]}, {"objects": [[2], [1]]},
        {"activation": "eval"}, {"activation": []}, {"record": ["os.system", {}]}, {"record": ["Scaler", {}]},
        {"record": ["RBF", {"gamma": "x"}]}, {"record": ["RBF", {"beta": 1.0}]}, {"record": ["RBF", []]},
        {"record": ["Scaler", {"mean": {"tensor": ["t", [0, 1]]}, "scale": {"tensor": ["t", [0, 1]]}}]},
        {"record": ["Scaler", {"mean": {"tensor": ["v", [0]]}, "scale": {"tensor": ["w", [0]]}}]},
        {"record": ["UserKernel", {}]},
    ],
    ids=str,
)  # fmt: skip
def test_malformed_descriptions_are_refused(node):
    with pytest.raises(ModelFileError):
        Decoder({"t": np.zeros((2, 3)), "v": np.zeros(2), "w": np.zeros(3)}).decode([node])


def test_fields_added_later_take_their_default():
    assert Decoder({}).decode({"record": ["Matern", {"gamma": 2.0}]}) == Matern(None, 2.0, 1.5)


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
    with pytest.raises(TypeError, match=r"_ holds|_expansion holds"):
        save(model, tmp_path / "m.kstonet")
    assert list(tmp_path.iterdir()) == []


def test_functions_of_training_become_their_defaults(tmp_path):
    model = quick(KStoNetRegressor, callback=lambda state: None, C=lambda i: 5.0, random_state=np.random.RandomState(0))
    model.fit(X, Y)
    with pytest.warns(UserWarning, match=r"C=<function.*stored: 10.0.*callback=<function.*random_state=RandomState.*set them"):
        save(model, tmp_path / "m.kstonet")
    loaded = load(tmp_path / "m.kstonet")
    assert (loaded.C, loaded.callback, loaded.random_state) == (10.0, None, None)
    assert_same(model, loaded, NEW)


def test_other_models_and_unfitted_ones_are_refused(fitted, tmp_path):
    class Mine(MultiTargetSVR):
        pass

    with pytest.raises(TypeError, match=r"model is a Mine.*stores KStoNetRegressor"):
        save(Mine().fit(X, Y), tmp_path / "m.kstonet")
    with pytest.raises(NotFittedError):
        save(KStoNetRegressor(), tmp_path / "m.kstonet")
    model, _ = fitted("means only")
    model.note = "mine"
    with pytest.warns(UserWarning, match="not stored: note"):
        save(model, tmp_path / "m.kstonet")
    del model.note
    labels = quick(StoNetClassifier, residuals=None).fit(X, LABELS)
    labels.classes_ = np.array([(1,), (2,), (3,), None], dtype=object)[:3]
    with pytest.raises(TypeError, match=r"classes_ holds \(1,\).*strings, numbers"):
        save(labels, tmp_path / "m.kstonet")


def test_bad_paths_are_named(fitted, tmp_path):
    model, _ = fitted("SVR")
    with pytest.raises(FileNotFoundError, match=r"nowhere' does not exist"):
        save(model, tmp_path / "nowhere" / "m.kstonet")
    with pytest.raises(IsADirectoryError, match=r"model.kstonet"):
        save(model, tmp_path)
    with pytest.raises(FileNotFoundError, match="is not a file"):
        load(tmp_path / "nothing.kstonet")


def test_missing_safetensors_names_the_extra(fitted, tmp_path, monkeypatch):
    model, _ = fitted("SVR")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    for call in (lambda: save(model, tmp_path / "m.kstonet"), lambda: load(tmp_path / "m.kstonet")):
        with pytest.raises(ImportError, match=r"pip install 'kstonet\[io\]'"):
            call()


# -- damaged files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def stored(fitted, tmp_path):
    path = tmp_path / "m.kstonet"
    save(fitted("gamma per unit")[0], path)
    return path


def split(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def join(path, header, tensors):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + tensors)


def test_the_file_is_json_and_numbers_only(stored):
    header, tensors = split(stored)
    metadata = header.pop("__metadata__")
    assert metadata.keys() == {"kstonet"}
    assert sum(np.prod(t["shape"], dtype=int) * (1 if t["dtype"] == "BOOL" else 8) for t in header.values()) == len(tensors)
    assert {t["dtype"] for t in header.values()} <= {"F64", "I64", "BOOL"}
    description = json.loads(metadata["kstonet"])
    assert description.keys() == {"version", "sha256", "library", "class", "parameters", "attributes"}
    assert (description["version"], description["class"]) == (1, "KStoNetRegressor")


def test_a_shortened_file_is_refused(stored):
    raw = stored.read_bytes()
    for length in (0, 4, 8, 100, len(raw) // 2, len(raw) - 1):
        stored.write_bytes(raw[:length])
        with pytest.raises(ModelFileError, match="cut short"):
            load(stored)
    stored.write_bytes(raw + b"\0")
    with pytest.raises(ModelFileError):
        load(stored)


def test_every_flipped_byte_is_noticed(stored):
    raw = stored.read_bytes()
    for position in np.random.default_rng(1).choice(len(raw), 100, replace=False).tolist():
        damaged = bytearray(raw)
        damaged[position] ^= 1 << (position % 8)
        stored.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(stored)


def test_exchanged_tensors_and_altered_values_are_noticed(stored):
    header, tensors = split(stored)
    arrays = container.read(stored)[1]
    one, other = next(
        (a, b) for a in arrays for b in arrays if arrays[a].shape == arrays[b].shape and (arrays[a] != arrays[b]).any()
    )
    swapped = header | {one: header[other], other: header[one]}
    reshaped = {n: t | {"shape": t["shape"][::-1]} if n != "__metadata__" else t for n, t in header.items()}
    text = header["__metadata__"]["kstonet"]
    texts = [
        text.replace('"gamma":[0.1', '"gamma":[0.2'),
        text.replace('"sha256":"', '"sha256":"0'),
        '{"version":1}',
        text + " ",
    ]
    assert text not in texts
    for altered in (swapped, reshaped, *(header | {"__metadata__": {"kstonet": changed}} for changed in texts)):
        join(stored, altered, tensors)
        with pytest.raises(ModelFileError, match="checksum"):
            load(stored)
    join(stored, header, tensors)
    load(stored)


def test_foreign_and_newer_files_are_refused(stored):
    header, tensors = split(stored)
    text = header["__metadata__"]["kstonet"]
    cases = {
        r"version 2; this kstonet reads versions up to 1. Update": {"kstonet": text.replace('"version":1', '"version":2')},
        r"format version 0": {"kstonet": text.replace('"version":1', '"version":0')},
        r"format version 'one'": {"kstonet": text.replace('"version":1', '"version":"one"')},
        r"format version None": {"kstonet": "[]"},
        r"not JSON": {"kstonet": text[:-1]},
        r"but not one of kstonet": {"format": "pt"},
    }
    for message, changed in cases.items():
        join(stored, header | {"__metadata__": changed}, tensors)
        with pytest.raises(ModelFileError, match=message):
            load(stored)
    strange = {"t": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}  # NumPy has no such type
    join(stored, strange, b"\0\0")
    with pytest.raises(ModelFileError, match="but not one of kstonet"):
        load(stored)
    join(stored, strange | {"__metadata__": {"kstonet": text.replace('"version":1', '"version":2')}}, b"\0\0")
    with pytest.raises(ModelFileError, match="Update kstonet"):
        load(stored)
    join(stored, strange | {"__metadata__": {"kstonet": text}}, b"\0\0")
    with pytest.raises(ModelFileError):
        load(stored)


def forged(path, change):
    """Write a file with a right checksum and a wrong content."""
    description, tensors = container.read(path)
    change(description, tensors)
    container.write(path, description, tensors)


def resized(pick):
    def change(description, tensors):
        name = pick(description["attributes"])["tensor"][0]
        tensors[name] = np.concatenate([tensors[name], tensors[name][-1:]])

    return change


FORGERIES = {
    "the model is a": lambda d, t: d.update({"class": "builtins.eval"}),
    "which is none of": lambda d, t: d.update({"class": ["KStoNetRegressor"]}),
    "it has no parameters": lambda d, t: d.pop("parameters"),
    "unknown parameters: depth": lambda d, t: d["parameters"].update(depth=3),
    "unknown attributes: predict": lambda d, t: d["attributes"].update(predict="x"),
    "missing or unknown attributes: _x_scaler": lambda d, t: d["attributes"].pop("_x_scaler"),
    "n_iter_ is 'x'": lambda d, t: d["attributes"].update(n_iter_="x"),
    "tensors that nothing uses": lambda d, t: t.update(more=np.zeros(3)),
    "another number of features": lambda d, t: d["attributes"].update(n_features_in_=4),
    "transform has another width": lambda d, t: d["attributes"].update(_n_features_out=9),
    "iterates of the first layer and of the others": lambda d, t: d["attributes"]["_uppers"].pop(),
    "Scaler.scale has not the shape": resized(lambda a: a["_x_scaler"]["record"][1]["scale"]),
    "ExpansionPart.* has not the shape": resized(
        lambda a: a["_expansion"]["record"][1]["parts"]["tuple"][0]["record"][1]["units"]
    ),
    "Expansion.intercept|iterates": resized(lambda a: a["_expansion"]["record"][1]["intercept"]),
    "(DenseLayer|RegressionUncertainty).intercept": resized(
        lambda a: a["_uppers"][0]["record"][1]["layers"]["tuple"][1]["record"][1]["intercept"]
    ),
    "NoiseModel": resized(lambda a: a["_noise_model"]["record"][1]["scale"]),
    "single target has several": lambda d, t: d["attributes"].update(_single_target=True),
}


@pytest.mark.parametrize("message", FORGERIES)
def test_contradictions_are_found_behind_a_right_checksum(message, stored):
    forged(stored, FORGERIES[message])
    with pytest.raises(ModelFileError, match=message):
        load(stored)


CALIBRATION_FORGERIES = {
    "the calibration is not positive": lambda d, t: d["attributes"].update(logit_variance_scale_=-1.0),
    "the calibration is not": lambda d, t: d["attributes"].update(calibration_temperature_=0.0),
    "calibration rows are not labelled": resized(lambda a: a["_honest"]["tuple"][1]),
    "one weight per calibration row": resized(lambda a: a["_honest"]["tuple"][2]),
}


@pytest.mark.parametrize("message", CALIBRATION_FORGERIES)
def test_contradictions_of_a_classifiers_calibration_are_found(message, tmp_path):
    weights = np.linspace(0.5, 1.5, len(X))
    model = KStoNetClassifier(max_iter=2, random_state=0).fit(X, X[:, 0] > 0, weights)
    save(model, tmp_path / "m.kstonet")
    assert_same(model.calibrate(), load(tmp_path / "m.kstonet").calibrate(), X)
    forged(tmp_path / "m.kstonet", CALIBRATION_FORGERIES[message])
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m.kstonet")


def test_indices_out_of_range_are_found(stored, fitted, tmp_path):
    def change(description, tensors):
        node = description["attributes"]["_uncertainty"]["record"][1]["first"]["record"][1]["columns"]["tuple"][0]
        tensors[node["tensor"][0]][-1] = 10**6

    forged(stored, change)
    with pytest.raises(ModelFileError, match="margin set is not made of support vectors"):
        load(stored)
    save(fitted("SVR")[0], stored)
    forged(stored, lambda d, t: t[d["attributes"]["_kept_rows"]["tensor"][0]].__setitem__(0, -1))
    with pytest.raises(ModelFileError, match="support vectors are not training rows"):
        load(stored)


def nested(depth):
    return [] if depth == 0 else [nested(depth - 1)]


def test_deep_nesting_is_an_error_of_the_file(stored):
    forged(stored, lambda d, t: d["parameters"].update(alpha=nested(900)))
    with contextlib.suppress(ModelFileError):  # within or beyond the interpreter's own bound, but no other error
        load(stored)
    header, tensors = split(stored)
    join(stored, header | {"__metadata__": {"kstonet": "[" * 100_000 + "]" * 100_000}}, tensors)
    with pytest.raises(ModelFileError, match="not JSON"):
        load(stored)


# -- no code ------------------------------------------------------------------------------------------------------------------


def test_the_source_knows_no_way_to_run_code():
    for source in Path(models.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(source.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import | ast.ImportFrom):
                named = {alias.name for alias in node.names} | {getattr(node, "module", "")}
                assert not named & {"pickle", "joblib", "marshal", "shelve", "importlib", "subprocess"}
            if isinstance(node, ast.Name):
                assert node.id not in {"eval", "exec", "compile", "__import__", "globals"}
    assert "UserKernel" not in RECORDS


FRESH = """
import sys
import numpy as np
path, rows, out = sys.argv[1:]
X = np.load(rows)
class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name in ("pandas", "pyarrow", "torch", "matplotlib", "polars"):
            raise ImportError(name)
sys.meta_path.insert(0, Refuse())  # the core and safetensors are enough
import kstonet
kstonet.load(path)  # what is imported late, and annotations read late, are there now
events = []
sys.addaudithook(lambda event, args: events.append(event))
model = kstonet.load(path)
used = set(events) & {"exec", "compile", "import", "pickle.find_class", "os.system", "subprocess.Popen", "ctypes.dlopen"}
assert not used, used
np.savez(out, mean=model.predict(X), interval=model.predict_interval(X))
"""


def test_a_fresh_process_without_the_training_data(stored, fitted, tmp_path):
    """Also: loading imports nothing, compiles nothing and unpickles nothing."""
    model, _ = fitted("gamma per unit")
    np.save(tmp_path / "rows.npy", NEW)
    subprocess.run([sys.executable, "-c", FRESH, stored, tmp_path / "rows.npy", tmp_path / "out.npz"], check=True)
    got = np.load(tmp_path / "out.npz")
    np.testing.assert_array_equal(got["mean"], model.predict(NEW))
    np.testing.assert_array_equal(got["interval"], model.predict_interval(NEW))


# -- crashes ------------------------------------------------------------------------------------------------------------------


def test_a_failing_write_leaves_the_older_file(stored, fitted, monkeypatch):
    before = stored.read_bytes()
    other, _ = fitted("rbf")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    for target, name in ((os, "fsync"), (os, "replace"), (sys.modules["safetensors.numpy"], "save")):
        with monkeypatch.context() as patch:
            patch.setattr(target, name, full)
            with pytest.raises(OSError, match="No space left"):
                save(other, stored)
        assert stored.read_bytes() == before
        assert [p.name for p in stored.parent.iterdir()] == [stored.name]


def test_a_write_the_system_refuses_leaves_the_older_file(stored, fitted):
    resource = pytest.importorskip("resource")
    before = stored.read_bytes()
    other, _ = fitted("rbf")
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            save(other, stored)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert stored.read_bytes() == before
    assert [p.name for p in stored.parent.iterdir()] == [stored.name]


HALF_WRITTEN = """
import builtins, sys, time
import kstonet
old, new = sys.argv[1:]
model, really = kstonet.load(new), open
class Slow:
    def __init__(self, file): self.file = file
    def __enter__(self): return self
    def __exit__(self, *error): self.file.close()
    def write(self, data):
        self.file.write(data[: len(data) // 2])
        self.file.flush()
        print("half", flush=True)
        time.sleep(60)
builtins.open = lambda path, mode="r": Slow(really(path, mode))
kstonet.save(model, old)
"""
OVER_AND_OVER = """
import sys
import kstonet
old, new = sys.argv[1:]
models = kstonet.load(old), kstonet.load(new)
print("start", flush=True)
while True:
    for model in models:
        kstonet.save(model, old)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
@pytest.mark.parametrize("script", [HALF_WRITTEN, OVER_AND_OVER], ids=["half written", "over and over"])
def test_a_killed_process_leaves_a_whole_file(script, stored, fitted, tmp_path):
    save(fitted("rbf")[0], tmp_path / "new.kstonet")
    allowed = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (stored, tmp_path / "new.kstonet")}
    first = hashlib.sha256(stored.read_bytes()).hexdigest()
    child = subprocess.Popen(
        [sys.executable, "-c", script, stored, tmp_path / "new.kstonet"], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        word = child.stdout.readline().strip()
        if word == "start":
            for _ in range(10):  # a reader never sees anything but a whole file
                load(stored)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    assert child.returncode == -signal.SIGKILL
    now = hashlib.sha256(stored.read_bytes()).hexdigest()
    assert now in allowed
    if word == "half":
        assert now == first
        assert len(list(tmp_path.glob(".m.kstonet.*.tmp"))) == 1  # it was really in the middle of writing
    load(stored)


def test_links_stay_links(stored, fitted, tmp_path):
    link = tmp_path / "latest.kstonet"
    try:
        link.symlink_to(stored)
    except OSError:
        pytest.skip("no links here")
    save(fitted("rbf")[0], link)
    assert link.is_symlink()
    assert load(stored).get_params() == load(link).get_params() == fitted("rbf")[0].get_params()


# -- older versions -----------------------------------------------------------------------------------------------------------

DATA = Path(__file__).parent / "data"


@pytest.mark.parametrize("path", sorted(DATA.glob("*.kstonet")), ids=lambda path: path.stem)
def test_files_of_every_version_stay_loadable(path):
    """Made by tests/data/make_stored_models.py; never made again once a version is released."""
    model = load(path)
    reference = json.loads(path.with_suffix(".json").read_text())
    rows = np.array(reference.pop("X"))
    for method, expected in reference.items():
        got = getattr(model, method)(rows)
        if got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=1e-10, atol=1e-10)
        else:  # labels
            assert got.tolist() == expected
    assert path.stat().st_size < 100_000


def test_files_without_a_variance_scale_have_the_one_of_their_time():
    old = load(DATA / "v1_KStoNetClassifier.kstonet")
    assert "logit_variance_scale_" not in vars(old)
    assert old.logit_variance_scale_ == 1.0


def test_there_are_stored_files():
    assert {path.name for path in DATA.glob("v1_*.kstonet")} == {f"v1_{name}.kstonet" for name in models.LAYOUTS}
    assert kstonet.load is load
