"""What contradicts itself is refused behind a right checksum."""

import contextlib

import numpy as np
import pytest
from model_files import HOLES, X, Y, assert_same, forged, join, split, without_leftovers

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.persistence import ModelFileError, load, save


def record(node, *path):
    """The fields of a record: a name leads to the record in a field, a number to one in a tuple."""
    for step in path:
        node = node["record"][1][step] if isinstance(step, str) else node["tuple"][step]
    return node["record"][1]


def network(description, *path):
    """The fields of a record within the trained network."""
    return record(description["attributes"]["trained_"], *path)


def resized(field, *path):
    """Make an array of the trained network longer."""

    def change(description, tensors):
        name = network(description, *path)[field]["tensor"][0]
        tensors[name] = np.concatenate([tensors[name], tensors[name][-1:]])

    return change


def changed(field, value, *path):
    """Put another value into the trained network."""
    return lambda description, tensors: network(description, *path).update({field: value})


def noise_of_one_target(description, tensors):
    """The model has two."""
    tensors |= {"scale": np.ones(1), "covariance": np.ones((1, 1))}
    arrays = {"scale": {"tensor": ["scale", [0]]}, "covariance": {"tensor": ["covariance", [0, 1]]}}
    network(description, "calibration")["noise"] = {"record": ["NoiseModel", arrays]}


FORGERIES = {
    "the model is a": lambda d, t: d.update({"class": "builtins.eval"}),
    "which is none of": lambda d, t: d.update({"class": ["KStoNetRegressor"]}),
    "it has no parameters": lambda d, t: d.pop("parameters"),
    "unknown parameters: depth": lambda d, t: d["parameters"].update(depth=3),
    "unknown attributes: predict": lambda d, t: d["attributes"].update(predict="x"),
    "missing or unknown attributes: trained_": lambda d, t: d["attributes"].pop("trained_"),
    "trained_ is Scaler": lambda d, t: d["attributes"].update(trained_=network(d)["scaler"]),
    "TrainedNetwork .* differ in: scaler": lambda d, t: network(d).pop("scaler"),
    "TrainedNetwork.n_iter is 'x'": changed("n_iter", "x"),
    "TrainedNetwork.history is": changed("history", ["x"]),
    "it holds a 'Sigmoid', a class that is not known here": changed("scaler", {"record": ["Sigmoid", {}]}),
    "tensors that nothing uses": lambda d, t: t.update(more=np.zeros(3)),
    "there is not one column to encode per feature": lambda d, t: d["attributes"].update(n_features_in_=4),
    "another number of features": lambda d, t: (
        d["attributes"].update(n_features_in_=4),
        t.update({d["attributes"]["encoding_"]["record"][1]["fill"]["tensor"][0]: np.zeros(4)}),
    ),
    "iterates of the first layer and of the others": lambda d, t: network(d)["uppers"]["tuple"].pop(),
    "a network has no layers above": without_leftovers(changed("uppers", {"tuple": [{"tuple": []}] * 2})),
    "TrainedNetwork.uppers is": lambda d, t: network(d)["uppers"]["tuple"][0]["tuple"].append(network(d)["scaler"]),
    "Scaler.scale has not the shape": resized("scale", "scaler"),
    "ExpansionPart.* has not the shape": resized("units", "expansion", "parts", 0),
    "Expansion.intercept|iterates": resized("intercept", "expansion"),
    "(DenseLayer|RegressionUncertainty).intercept": resized("intercept", "uppers", 0, 0),
    "NoiseModel": resized("scale", "calibration", "noise"),
    "single target has several": changed("single", True, "targets"),
    "numbers are calibrated as classes": without_leftovers(
        changed("calibration", {"record": ["ProbabilityCalibration", {"temperature": 1.0, "variance_scale": 1.0}]})
    ),
    "intervals lack their calibration": without_leftovers(changed("calibration", None)),
    "the noise and the targets differ": without_leftovers(noise_of_one_target),
}


@pytest.mark.parametrize("message", FORGERIES)
def test_contradictions_are_found_behind_a_right_checksum(message, stored):
    forged(stored, FORGERIES[message])
    with pytest.raises(ModelFileError, match=message):
        load(stored)


def unlabelled(part):
    """Make one of the arrays of the out-of-sample predictions longer."""

    def change(description, tensors):
        name = network(description, "calibration")["out_of_sample"]["tuple"][part]["tensor"][0]
        tensors[name] = np.concatenate([tensors[name], tensors[name][-1:]])

    return change


def numbers_for_classes(description, tensors):
    """As many targets as there are classes."""
    tensors |= {"mean": np.zeros(2), "scale": np.ones(2)}
    scaler = {"record": ["Scaler", {name: {"tensor": [name, [0]]} for name in ("mean", "scale")}]}
    network(description)["targets"] = {"record": ["NumericTargets", {"scaler": scaler, "single": False}]}


CALIBRATION_FORGERIES = {
    "the calibration is not positive": changed("variance_scale", -1.0, "calibration"),
    "the calibration is not": changed("temperature", 0.0, "calibration"),
    "calibration rows are not labelled": unlabelled(1),
    "one weight per calibration row": unlabelled(2),
    "a network has layers of a wrong kind": without_leftovers(numbers_for_classes),
    "there are not two classes": without_leftovers(changed("classes", {"strings": [[1], 1, ["a"]]}, "targets")),
    "not two classes or more": without_leftovers(changed("classes", {"strings": [[], 1, ["a"]]}, "targets")),
}


@pytest.fixture(scope="module")
def stored_classifier(tmp_path_factory):
    """The file of a classifier, whose calibration is that of the model."""
    path = tmp_path_factory.mktemp("classifier") / "m.kstonet"
    weights = np.linspace(0.5, 1.5, len(X))
    model = KStoNetClassifier(tuning="none", max_iter=2, random_state=0).fit(X, X[:, 0] > 0, weights)
    save(model, path)
    assert_same(model.calibrate(), load(path).calibrate(), X)
    return path


@pytest.mark.parametrize("message", CALIBRATION_FORGERIES)
def test_contradictions_of_a_classifiers_calibration_are_found(message, stored_classifier, tmp_path):
    path = tmp_path / "m.kstonet"
    path.write_bytes(stored_classifier.read_bytes())
    forged(path, CALIBRATION_FORGERIES[message])
    with pytest.raises(ModelFileError, match=message):
        load(path)


def expected_values(field, change):
    """Change an array of what is expected of missing numbers."""

    def forge(description, tensors):
        name = record(description["attributes"]["encoding_"], "expected")[field]["tensor"][0]
        tensors[name] = change(tensors[name])

    return forge


FORGERIES_OF_EXPECTED_VALUES = {
    "values are expected of columns that X does not have": expected_values("columns", lambda old: old + 1),
    "values of a column are expected twice": expected_values("columns", lambda old: old // 2),
    "partial correlations are not symmetric": expected_values("partial", lambda old: 2.0 * old),
    "partial correlations are not positive definite": expected_values("partial", lambda old: 7.0 * old - 6.0 * np.eye(6)),
    "ExpectedValues.partial has not the shape": expected_values("partial", lambda old: old[:-1]),
    "ExpectedValues.scale": expected_values("scale", lambda old: 0.0 * old),
}


@pytest.mark.parametrize("message", FORGERIES_OF_EXPECTED_VALUES)
def test_contradictions_of_what_is_expected_of_missing_numbers_are_found(message, tmp_path):
    model = KStoNetRegressor(tuning="none", max_iter=2, residuals=None, random_state=0).fit(HOLES, Y[:, 0])
    assert model.encoding_.expected is not None
    save(model, tmp_path / "m.kstonet")
    forged(tmp_path / "m.kstonet", FORGERIES_OF_EXPECTED_VALUES[message])
    with pytest.raises(ModelFileError, match=message):
        load(tmp_path / "m.kstonet")


def test_indices_out_of_range_are_found(stored, fitted, tmp_path):
    def change(description, tensors):
        node = network(description, "uncertainty", "first")["columns"]["tuple"][0]
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
