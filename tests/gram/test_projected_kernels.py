"""Kernels of linear combinations of the features: values, gradients, graphs, files, and networks on them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import kstonet
from kstonet import KStoNetRegressor
from kstonet.gram.kernels import RBF, Laplacian, Linear, Matern, Precomputed, Projected
from kstonet.onnx_export import to_onnx
from kstonet.onnx_export.graph import Graph, Output, Value
from kstonet.persistence import ModelFileError
from kstonet.persistence.consistency import check_kernel

RNG = np.random.default_rng(0)
X, BASIS = RNG.normal(size=(6, 3)), RNG.normal(size=(15, 3))
SQUASH = ((0.1, 0.5), (0.0, np.inf), (-0.3, 2.0))
D = ((1.0, 0.5), (-1.0, 0.2), (0.3, 2.0))
KERNEL = Projected((1.0, 2.0, 0.5), squash=SQUASH, part=Matern((2.0, 1.0), gamma=0.5, nu=1.5), directions=D)


@pytest.mark.parametrize("part", [RBF((1.0, 2.0), gamma=0.5), Laplacian(gamma=0.3), Linear()])
def test_values_are_those_of_projected_rows(part):
    kernel = Projected(part=part, directions=D)
    np.testing.assert_allclose(kernel(X, BASIS), part(X @ np.array(D), BASIS @ np.array(D)), rtol=1e-13)
    np.testing.assert_allclose(kernel.diagonal(X), np.diagonal(kernel(X, X)), rtol=1e-12)


def test_features_are_scaled_before_they_are_combined():
    wide, plain = replace(KERNEL, squash=None), replace(KERNEL, squash=None, length_scale=None)
    scale = np.array(KERNEL.length_scale)
    np.testing.assert_allclose(wide(X, BASIS), plain(X / scale, BASIS / scale), rtol=1e-13)


@pytest.mark.parametrize("kernel", [KERNEL, Projected(part=RBF(gamma=0.5), directions=D)])
def test_gradients_are_finite_differences(kernel):
    coef = RNG.normal(size=(2, 15))
    found = kernel.gradient(X, BASIS, coef)
    for row in range(len(X)):
        for unit in range(2):
            numeric = approx_fprime(X[row], lambda x, unit=unit: float((kernel(x[None], BASIS) @ coef[unit])[0]), 1e-7)
            np.testing.assert_allclose(found[row, unit], numeric, atol=1e-5)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"directions": ()}, "a row per feature"),
        ({"directions": ((1.0,), (1.0, 2.0))}, "a row per feature"),
        ({"part": Precomputed(), "directions": D}, "project the features yourself"),
    ],
)
def test_what_makes_no_kernel_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Projected(**given)


@pytest.mark.parametrize("kernel", [KERNEL, Projected(part=Linear(), directions=D)])
def test_graphs_have_the_same_values(kernel):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    x = Graph().input("X", 3).transposed()
    outputs, diagonal = {"values": Output(kernel.graph_values(x, BASIS).transposed(), (15,))}, kernel.graph_diagonal(x)
    if isinstance(diagonal, Value):
        outputs["diagonal"] = Output(diagonal.transposed(), (1,))
    session = onnxruntime.InferenceSession(x.graph.finished(outputs, {}), providers=["CPUExecutionProvider"])
    values, *others = session.run(None, {"X": X})
    np.testing.assert_allclose(values, kernel(X, BASIS), rtol=1e-10)
    for other in others or [np.full((len(X), 1), diagonal)]:
        np.testing.assert_allclose(other[:, 0], kernel.diagonal(X), rtol=1e-12)


@pytest.fixture(scope="module")
def model():
    rows = np.random.default_rng(1).normal(size=(90, 3))
    y = np.sin(2 * rows[:, 0]) + np.abs(rows[:, 1])
    return KStoNetRegressor((4,), kernel=KERNEL, loss="squared", C=100.0, tuning="none", max_iter=4, random_state=0).fit(
        rows, y
    )


def test_a_network_on_directions_is_saved_and_loaded(model, tmp_path):
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    assert loaded.kernel_ == KERNEL
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_directions_that_do_not_fit_the_features_are_refused_in_files():
    check_kernel(KERNEL, 3)
    with pytest.raises(ModelFileError, match="one row of directions per feature"):
        check_kernel(replace(KERNEL, directions=D[:2]), 3)
    with pytest.raises(ModelFileError, match="one length scale per feature"):
        check_kernel(replace(KERNEL, part=RBF((1.0, 2.0, 3.0))), 3)


def test_a_network_on_directions_is_exported(model, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (predicted, *_) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(np.ravel(predicted), model.predict(X), rtol=1e-8)
