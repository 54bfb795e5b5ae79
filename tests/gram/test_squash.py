"""Heavy tails drawn in by a kernel: the values are those of drawn features, here, in gradients, in files and in graphs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import kstonet
from kstonet import KStoNetRegressor
from kstonet.gram.kernels import RBF, Laplacian, Linear, Matern
from kstonet.gram.kernels.squash import squashed

RNG = np.random.default_rng(0)
X, Y = RNG.standard_t(2, size=(9, 3)), RNG.standard_t(2, size=(7, 3))
SQUASH = ((0.3, 0.5), (0.0, np.inf), (-1.0, 2.0))
KERNELS = [RBF((1.0, 2.0, 0.5)), Matern(gamma=0.5, nu=2.5), Laplacian((1.0, 2.0, 0.5)), Linear()]


def drawn(rows):
    return np.column_stack([np.arcsinh((rows[:, 0] - 0.3) / 0.5), rows[:, 1], np.arcsinh((rows[:, 2] + 1.0) / 2.0)])


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_those_of_drawn_features(kernel):
    own = replace(kernel, squash=SQUASH)
    assert own != kernel
    np.testing.assert_allclose(own(X, Y), kernel(drawn(X), drawn(Y)), atol=1e-12)
    np.testing.assert_allclose(own.diagonal(X), kernel.diagonal(drawn(X)), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_finite_differences(kernel):
    own, coef = replace(kernel, squash=SQUASH), RNG.normal(size=(1, len(Y)))
    found = own.gradient(X, Y, coef)
    for row, gradient in zip(X, found, strict=True):
        numeric = approx_fprime(row, lambda x: (coef @ own(Y, x[None])).item(), 1e-7)
        np.testing.assert_allclose(gradient[0], numeric, rtol=1e-4, atol=1e-5)


def test_no_heavy_feature_changes_nothing():
    np.testing.assert_array_equal(squashed(X, ((0.0, np.inf),) * 3), X)


def test_a_model_keeps_it_in_files_and_in_graphs(tmp_path):
    rows = np.exp(RNG.normal(size=(60, 2)))
    kernel = RBF((1.0, 2.0), gamma=0.5, squash=((1.0, 0.5), (0.0, np.inf)))
    model = KStoNetRegressor((3,), kernel=kernel, tuning="none", max_iter=3, n_average=2, random_state=0)
    model.fit(rows, np.log(rows[:, 0]))
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    assert loaded.kernel_ == kernel
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from kstonet.onnx_export import to_onnx

    to_onnx(model, tmp_path / "model.onnx", return_std=False)
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: rows})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(rows), rtol=1e-9, atol=1e-9)
