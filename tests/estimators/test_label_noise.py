"""A classifier whose training labels are wrong at random: probabilities have a floor, everywhere the same one."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import log_loss

import kstonet
from kstonet import KStoNetClassifier
from kstonet.metrics import expected_calibration_error

SHARE = 0.3


def mislabelled(n, seed):
    """Three strips, and a share of labels that are drawn anew."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, size=(n, 2))
    y = np.digitize(X[:, 0], [-1.0, 1.0])
    return X, np.where(rng.uniform(size=n) < SHARE, rng.integers(3, size=n), y)


@pytest.fixture(scope="module")
def model():
    return KStoNetClassifier(random_state=0).fit(*mislabelled(900, 0))


@pytest.fixture(scope="module")
def new():
    return mislabelled(4000, 1)


def test_new_rows_are_calibrated(model, new):
    """The error of the share has a standard deviation of about 0.02."""
    assert model.calibration_floor_.sum() == pytest.approx(SHARE, abs=0.08)
    p = model.predict_proba(new[0])
    assert p.min() > 0.05
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert expected_calibration_error(new[1], p) < 0.03
    alone = replace(model.trained_, calibration=replace(model.trained_.calibration, temperature=1.0, floor=None))
    assert log_loss(new[1], p) < log_loss(new[1], alone.proba(new[0]))


def test_every_answer_has_the_same_floor(model, new, tmp_path):
    X = new[0][:50]
    p = model.predict_proba(X)
    np.testing.assert_allclose(model.predict_log_proba(X), np.log(p))
    np.testing.assert_array_equal(model.predict(X), model.classes_[p.argmax(axis=1)])
    low, high = np.moveaxis(model.predict_proba_interval(X), 2, 0)
    assert (low >= model.calibration_floor_ - 1e-12).all()
    assert ((low <= p) & (p <= high)).all()
    assert model.predict_proba_interval(X, [0.5, 0.9]).shape == (50, 3, 2, 2)
    kstonet.save(model, tmp_path / "noisy.kstonet")
    np.testing.assert_allclose(kstonet.load(tmp_path / "noisy.kstonet").predict_proba(X), p)


def test_gradients_are_those_of_the_floored_probabilities(model):
    x, step = np.array([[0.8, 0.3]]), 1e-5
    moved = [model.predict_proba(x + step * e) - model.predict_proba(x - step * e) for e in np.eye(2)]
    np.testing.assert_allclose(model.trained_.gradient(x)[0], np.stack(moved, axis=2)[0] / (2 * step), rtol=1e-4, atol=1e-7)


def test_sets_hold_the_class_as_often_as_asked(model, new):
    """900 rows make the threshold, 4,000 test it: a standard deviation of 0.011, of which four are allowed."""
    sets = model.predict_set(new[0], coverage=0.9)
    assert sets[np.arange(4000), new[1]].mean() == pytest.approx(0.9, abs=0.045)


def test_calibrate_learns_a_floor_and_gives_it_back(model, new):
    floor = model.calibration_floor_
    clean = new[0], np.digitize(new[0][:, 0], [-1.0, 1.0])
    assert model.calibrate(*clean).calibration_floor_ is None
    np.testing.assert_allclose(model.calibrate(*new).calibration_floor_.sum(), SHARE, atol=0.05)
    np.testing.assert_array_equal(model.calibrate().calibration_floor_, floor)


def test_a_graph_has_the_floor(model, new, tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    kstonet.to_onnx(model, tmp_path / "noisy.onnx")
    found = runtime.InferenceSession(tmp_path / "noisy.onnx").run(["probabilities"], {"X": new[0][:50]})[0]
    np.testing.assert_allclose(found, model.predict_proba(new[0][:50]), rtol=1e-9)
