"""Kernels and activations as graphs, against the library's own functions."""

import numpy as np
import pytest

from kstonet.gram.kernels import KERNEL_NAMES, Kernel, Matern, make_kernel
from kstonet.layers.activations import ACTIVATIONS as LIBRARY_ACTIVATIONS
from kstonet.onnx_export.functions import ACTIVATIONS
from kstonet.onnx_export.graph import Graph, Output, Value, op

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

EXPORTED = [name for name in KERNEL_NAMES if name != "precomputed"]


def ran(content: bytes, X: np.ndarray) -> list[np.ndarray]:
    onnx.checker.check_model(onnx.load_from_string(content), full_check=True)
    return onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"]).run(None, {"X": X})


def rows(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, 3)) * [1.0, 2.0, 0.5]


@pytest.mark.parametrize("length_scale", [None, (2.0, 0.3, 1.0)])
@pytest.mark.parametrize("name", EXPORTED)
def test_kernels_are_the_librarys(name: str, length_scale: tuple[float, ...] | None) -> None:
    basis = rows(20, 0)
    basis[3] = 0.0  # the origin has no direction
    X = np.vstack([rows(15, 1), basis[:5], basis[5] + 1e-7, 100.0 * rows(2, 2)])
    kernel = make_kernel(name, basis, gamma=0.37, degree=4, coef0=0.7, length_scale=length_scale)
    x = Graph().input("X", 3).transposed()
    diagonal = kernel.graph_diagonal(x)
    outputs = {"values": Output(kernel.graph_values(x, basis).transposed(), (20,))}
    if isinstance(diagonal, Value):
        outputs["diagonal"] = Output(diagonal.transposed(), (1,))
    values, *others = ran(x.graph.finished(outputs, {}), X)
    expected = kernel(X, basis)
    # √ and arccos turn a last digit into 1e-8 where rows coincide
    tolerance = 3e-8 if name in ("arccos0", "matern12", "exponential") else 1e-12
    np.testing.assert_allclose(values, expected, rtol=1e-12, atol=tolerance * np.abs(expected).max())
    for other in others or [np.full((len(X), 1), diagonal)]:
        np.testing.assert_allclose(other[:, 0], kernel.diagonal(X), rtol=1e-13)


def test_the_angle_is_that_of_float64() -> None:
    """arccos0 is linear in the angle: no trace of the float32 arc cosine is left away from its singular ends."""
    basis = np.array([[1.0, 0.0]])
    theta = np.linspace(1e-3, np.pi - 1e-3, 1001)
    x = Graph().input("X", 2).transposed()
    values = make_kernel("arccos0", basis).graph_values(x, basis).transposed()
    (values,) = ran(x.graph.finished({"values": Output(values, (1,))}, {}), np.column_stack([np.cos(theta), np.sin(theta)]))
    np.testing.assert_allclose(values[:, 0], 1.0 - theta / np.pi, atol=1e-12)


@pytest.mark.parametrize("name", LIBRARY_ACTIVATIONS)
def test_activations_and_slopes_are_the_librarys(name: str) -> None:
    X = np.concatenate([np.linspace(-12, 12, 481), [-1e6, -40.0, 40.0, 1e6]])[:, None]
    x = Graph().input("X", 1)
    value, slope = (function(x) for function in ACTIVATIONS[name])
    outputs = ran(x.graph.finished({"value": Output(value, (1,)), "slope": Output(slope, (1,))}, {}), X)
    activation = LIBRARY_ACTIVATIONS[name]
    for got, expected in zip(outputs, (activation.value(X), activation.slope(X)), strict=True):
        assert (np.abs(got - expected) <= 2e-14).all()


def test_a_repeated_operation_is_one_node() -> None:
    x = Graph().input("X", 2)
    y = op("Exp", 2.0 * x) + op("Exp", 2.0 * x) * [1.0, 2.0]
    model = onnx.load_from_string(x.graph.finished({"y": Output(y, (2,))}, {}))
    assert [node.op_type for node in model.graph.node] == ["Mul", "Exp", "Mul", "Add", "Identity"]
    assert len(model.graph.initializer) == 2


def test_a_kernel_without_a_formula_is_refused() -> None:
    class Cosine(Kernel):
        pass

    with pytest.raises(TypeError, match=r"kernel=.*Cosine.* is Python code.*Fit with one of the named kernels"):
        Cosine().graph_values(Graph().input("X", 1), np.zeros((1, 1)))
    Matern().graph_values(Graph().input("X", 1), np.zeros((1, 1)))
