"""A kernel of directions: its values are those of projected features, here, in gradients, in leaves, in files and in graphs."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import kstonet
from kstonet import KStoNetRegressor
from kstonet.gram import LowRank, make_kernel
from kstonet.gram.kernels import RBF, ArcCosine, Laplacian, Linear, Matern
from kstonet.persistence import ModelFileError
from kstonet.persistence.consistency import check_kernel
from kstonet.tuning.summary import value_words

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(9, 3)), RNG.normal(size=(7, 3))
P = RNG.normal(size=(3, 2))
PROJECTION = tuple(map(tuple, P.tolist()))
SQUASH = ((0.3, 0.5), (0.0, np.inf), (-1.0, 2.0))
KERNELS = [RBF((1.0, 2.0)), Matern(gamma=0.5, nu=2.5), Laplacian((1.0, 0.5)), Linear(), ArcCosine(degree=2)]


def drawn(rows):
    return np.column_stack([np.arcsinh((rows[:, 0] - 0.3) / 0.5), rows[:, 1], np.arcsinh((rows[:, 2] + 1.0) / 2.0)])


@pytest.mark.parametrize("kernel", KERNELS)
def test_values_are_those_of_projected_features(kernel):
    own = replace(kernel, projection=PROJECTION)
    assert own != kernel
    np.testing.assert_allclose(own(X, Y), kernel(X @ P, Y @ P), atol=1e-12)
    np.testing.assert_allclose(own.diagonal(X), kernel.diagonal(X @ P), atol=1e-12)
    both = replace(own, squash=SQUASH)  # heavy tails are drawn in first
    np.testing.assert_allclose(both(X, Y), kernel(drawn(X) @ P, drawn(Y) @ P), atol=1e-12)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradients_are_those_of_finite_differences(kernel):
    own, coef = replace(kernel, projection=PROJECTION, squash=SQUASH), RNG.normal(size=(1, len(Y)))
    for row, gradient in zip(X, own.gradient(X, Y, coef), strict=True):
        numeric = approx_fprime(row, lambda x: (coef @ own(Y, x[None])).item(), 1e-7)
        np.testing.assert_allclose(gradient[0], numeric, rtol=1e-4, atol=1e-5)


def test_widths_are_those_of_projected_rows():
    for gamma in ("scale", "auto", "median"):
        found = make_kernel("rbf", X, gamma=gamma, projection=P, length_scale=(1.0, 3.0))
        expected = make_kernel("rbf", X @ P, gamma=gamma, length_scale=(1.0, 3.0))
        assert found == replace(expected, projection=PROJECTION)


@pytest.mark.parametrize(
    ("projection", "message"),
    [
        (np.ones((2, 2)), r"one row of finite numbers per feature of X, 3.*got the shape \(2, 2\)"),
        (np.full((3, 1), np.nan), "finite"),
    ],
)
def test_other_projections_are_refused(projection, message):
    with pytest.raises(ValueError, match=message):
        make_kernel("rbf", X, projection=projection)
    with pytest.raises(ValueError, match="no meaning with kernel='precomputed'"):
        make_kernel("precomputed", X, projection=P)


@pytest.mark.parametrize("projection", [PROJECTION[:2], ((1.0,), (1.0, 2.0), (1.0,)), ((), (), ())])
def test_files_with_other_projections_are_refused(projection):
    with pytest.raises(ModelFileError):
        check_kernel(RBF(projection=projection), 3)
    check_kernel(RBF((1.0, 2.0), projection=PROJECTION), 3)


def test_it_has_words():
    assert value_words(RBF(projection=PROJECTION)) == "RBF (gamma 1, of 2 directions of 3 features)"


@pytest.mark.parametrize("solver", ["dense", LowRank(rank=20, leaf_rows=20)])
def test_a_model_keeps_it_in_files_and_in_graphs(tmp_path, solver):
    rows = RNG.normal(size=(80, 3))
    y = np.sin(rows @ P[:, 0])
    kernel = make_kernel("rbf", rows, gamma=0.5, projection=P, length_scale=(1.0, 5.0))
    options = {"tuning": "none", "loss": "squared", "max_iter": 3, "n_average": 2, "random_state": 0, "standardize": False}
    model = KStoNetRegressor((3,), kernel=kernel, solver=solver, **options).fit(rows, y)
    assert model.score(rows, y) > 0.95
    across = np.cross(P[:, 0], P[:, 1])
    np.testing.assert_allclose(model.predict(rows + across), model.predict(rows), atol=1e-8)
    np.testing.assert_allclose(model.predict_gradient(rows) @ across, 0.0, atol=1e-8)
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    assert loaded.kernel_ == kernel
    np.testing.assert_array_equal(loaded.predict(rows), model.predict(rows))
    if solver != "dense":
        return  # leaves have no graph
    runtime = pytest.importorskip("onnxruntime")
    pytest.importorskip("onnx")
    from kstonet.onnx_export import to_onnx

    to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    found = session.run(None, {session.get_inputs()[0].name: rows})[0]
    np.testing.assert_allclose(np.ravel(found), model.predict(rows), rtol=1e-9, atol=1e-9)
