"""Weighted sums of kernels: values, gradients, graphs, files, and networks on them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from sklearn.gaussian_process import kernels as oracle

import kstonet
from kstonet import KStoNetRegressor
from kstonet.gram import make_kernel
from kstonet.gram.kernels import RBF, KernelSum, Laplacian, Linear, Matern, Precomputed
from kstonet.onnx_export import to_onnx
from kstonet.onnx_export.graph import Graph, Output, Value
from kstonet.persistence import ModelFileError
from kstonet.persistence.consistency import check_kernel

RNG = np.random.default_rng(0)
X, BASIS = RNG.normal(size=(6, 3)), RNG.normal(size=(15, 3))
SQUASH = ((0.1, 0.5), (0.0, np.inf), (-0.3, 2.0))
PARTS = (RBF((1.0, 2.0, 0.5), gamma=0.5), Matern((2.0, 1.0, 4.0), gamma=0.5, nu=1.5), Laplacian(gamma=0.3, squash=SQUASH))
SUM = KernelSum(parts=PARTS, weights=(0.5, 0.2, 0.3))


def test_values_are_those_of_scikit_learn():
    ours = KernelSum(parts=PARTS[:2], weights=(0.7, 0.3))
    theirs = 0.7 * oracle.RBF([1.0, 2.0, 0.5]) + 0.3 * oracle.Matern([2.0, 1.0, 4.0], nu=1.5)
    np.testing.assert_allclose(ours(X, BASIS), theirs(X, BASIS), rtol=1e-12)
    np.testing.assert_allclose(ours.diagonal(X), theirs.diag(X))


def test_common_length_scales_come_first():
    wide = KernelSum((2.0, 3.0, 4.0), parts=PARTS, weights=SUM.weights)
    scale = np.array(wide.length_scale)
    np.testing.assert_allclose(wide(X, BASIS), SUM(X / scale, BASIS / scale), rtol=1e-13)


@pytest.mark.parametrize("length_scale", [None, (0.5, 2.0, 3.0)])
def test_gradients_are_finite_differences(length_scale):
    kernel, coef = replace(SUM, length_scale=length_scale), RNG.normal(size=(2, 15))
    found = kernel.gradient(X, BASIS, coef)
    for row in range(len(X)):
        for unit in range(2):
            numeric = approx_fprime(X[row], lambda x, unit=unit: float((kernel(x[None], BASIS) @ coef[unit])[0]), 1e-7)
            np.testing.assert_allclose(found[row, unit], numeric, atol=1e-5)


def test_it_is_positive_where_its_parts_are():
    assert SUM.positive_semidefinite
    assert not KernelSum(parts=(RBF(), make_kernel(lambda A, B: A @ B.T, X)), weights=(1.0, 1.0)).positive_semidefinite
    assert np.linalg.eigvalsh(SUM(BASIS, BASIS)).min() > 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"parts": (), "weights": ()}, "one weight per part"),
        ({"parts": PARTS, "weights": (1.0, 2.0)}, "one weight per part"),
        ({"parts": PARTS, "weights": (1.0, 0.0, 1.0)}, "must be positive"),
        ({"parts": (Precomputed(),), "weights": (1.0,)}, "add the kernel matrices yourself"),
    ],
)
def test_what_makes_no_kernel_is_refused(given, message):
    with pytest.raises(ValueError, match=message):
        KernelSum(**given)


@pytest.mark.parametrize("kernel", [SUM, KernelSum(parts=(Linear(), *PARTS), weights=(2.0, 0.5, 0.2, 0.3))])
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
    return KStoNetRegressor((4,), kernel=SUM, loss="squared", C=100.0, tuning="none", max_iter=4, random_state=0).fit(rows, y)


def test_a_network_on_a_sum_is_saved_and_loaded(model, tmp_path):
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    assert loaded.kernel_ == SUM
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))


def test_parts_that_do_not_fit_the_features_are_refused_in_files():
    check_kernel(SUM, 3)
    with pytest.raises(ModelFileError, match="one length scale per feature"):
        check_kernel(replace(SUM, parts=(RBF((1.0, 2.0)), *PARTS[1:])), 3)


def test_a_network_on_a_sum_is_exported(model, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (predicted, *_) = session.run(None, {session.get_inputs()[0].name: X})
    np.testing.assert_allclose(np.ravel(predicted), model.predict(X), rtol=1e-8)
