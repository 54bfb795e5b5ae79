"""Models of every kind, what they answer, and files that are taken apart and put together again."""

import json
import struct

import numpy as np
import pandas as pd

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram.kernels import Matern
from kstonet.storage import container

RNG = np.random.default_rng(0)
X = RNG.normal(size=(36, 3))
Y = np.column_stack([np.sin(X[:, 0]) + 0.1 * RNG.normal(size=36), X[:, 1] ** 2])
LABELS = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
NEW = RNG.normal(size=(7, 3))
GRAM, NEW_GRAM = (np.exp(-0.3 * ((A[:, None] - X) ** 2).sum(axis=2)) for A in (X, NEW))
SHORT = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 3, "random_state": 0}
HOLES = np.column_stack([X, X + 0.05 * RNG.normal(size=(36, 3))])  # every number twice, so that one tells the other
HOLES[RNG.random((36, 6)) < 0.2] = np.nan


def quick(cls, **parameters):
    return cls(**(SHORT | parameters))


def framed(A):
    return pd.DataFrame(A, columns=["a", "b", "c"])


# name: (model, X, y, X new, what calibrate takes)
NO, SELF, ROWS = "no", "self", "rows"
CASES = {
    "rbf": (quick(KStoNetRegressor), X, Y[:, 0], NEW, NO),
    "two targets, conformal": (quick(KStoNetRegressor, C=np.array([5.0, 6.0, 7.0, 8.0, 9.0])), X, Y, NEW, SELF),
    "deep": (quick(KStoNetRegressor, hidden_layer_sizes=(4, 3, 2), activation="tanh"), X, Y[:, 0], NEW, NO),
    "gamma per unit": (quick(KStoNetRegressor, hidden_layer_sizes=3, gamma=[0.1, 0.1, 1.0]), X, Y, NEW, ROWS),
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
    "kernel object": (quick(KStoNetRegressor, kernel=Matern((1.0, 2.0, 3.0), 0.4, 2.5)), X, Y, NEW, NO),
    "means only": (quick(KStoNetRegressor, residuals=None, activation="gelu"), X, Y[:, 0], NEW, NO),
    "precomputed": (quick(KStoNetRegressor, kernel="precomputed"), GRAM, Y[:, 0], NEW_GRAM, SELF),
    "constant target": (quick(KStoNetRegressor), X, np.full(36, 3.0), NEW, NO),
    "not standardised, named": (
        quick(KStoNetRegressor, standardize=False, warm_start=True), framed(X), Y, framed(NEW), NO,
    ),
    "root of the target": (quick(KStoNetRegressor, target_transform="sqrt"), X, Y[:, 0] + 2.0, NEW, ROWS),
    "numbers expected": (quick(KStoNetRegressor), HOLES, Y[:, 0], HOLES[::5], NO),
    "classes": (quick(KStoNetClassifier), X, LABELS, NEW, SELF),
    "two classes": (quick(KStoNetClassifier, penalty="mcp"), X, X[:, 0] > 0, NEW, ROWS),
    "float classes": (quick(KStoNetClassifier, residuals="training"), X, np.where(X[:, 1] > 0, 2.0, -1.0), NEW, NO),
    "classes, no intervals": (quick(KStoNetClassifier, residuals=None), X, LABELS == "low", NEW, NO),
    "object classes": (
        quick(KStoNetClassifier, kernel="precomputed"), GRAM, LABELS.astype(object), NEW_GRAM, NO,
    ),
    "StoNet": (quick(StoNetRegressor), X, Y[:, 0], NEW, SELF),
    "StoNet, kernel": (quick(StoNetRegressor, kernel="laplacian", hidden_layer_sizes=(3, 2)), X, Y, NEW, NO),
    "StoNet, classes": (quick(StoNetClassifier, hidden_layer_sizes=(4, 3)), framed(X), pd.Series(LABELS), framed(NEW), SELF),
    "StoNet, int classes": (quick(StoNetClassifier, kernel="precomputed"), GRAM, np.digitize(X[:, 0], [0]), NEW_GRAM, NO),
    "SVR": (MultiTargetSVR(), X, Y[:, 0], NEW, NO),
    "SVR, length scales": (MultiTargetSVR(C=[1.0, 2.0], kernel="poly", length_scale=[1, 2, 3.0]), X, Y, NEW, NO),
    "SVR, all rows": (MultiTargetSVR(sparse=False, dtype="float32"), framed(X), Y, framed(NEW), NO),
    "SVR, precomputed": (MultiTargetSVR(kernel="precomputed"), GRAM, Y, NEW_GRAM, NO),
    "SVR, constant": (MultiTargetSVR(epsilon=100.0), X, Y, NEW, NO),
}  # fmt: skip


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


def split(path):
    raw = path.read_bytes()
    (length,) = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8 : 8 + length]), raw[8 + length :]


def join(path, header, tensors):
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + tensors)


def forged(path, change):
    """Write a file with a right checksum and a wrong content."""
    description, tensors = container.read(path)
    change(description, tensors)
    container.write(path, description, tensors)


def without_leftovers(change):
    """A change that also takes the tensors away that nothing uses after it."""

    def changed(description, tensors):
        change(description, tensors)
        text = json.dumps(description)
        for name in [name for name in tensors if f'["{name}", [' not in text]:
            del tensors[name]

    return changed


def resized(pick):
    def change(description, tensors):
        name = pick(description["attributes"])["tensor"][0]
        tensors[name] = np.concatenate([tensors[name], tensors[name][-1:]])

    return change
