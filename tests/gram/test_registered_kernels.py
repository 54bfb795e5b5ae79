"""A kernel from outside the package: one class, one line, and every part of the library knows it."""

from dataclasses import dataclass

import numpy as np
import pytest

import kstonet
from kstonet import KStoNetRegressor, MultiTargetSVR
from kstonet._arrays import namespace
from kstonet._records import RECORDS
from kstonet.gram import kernel_names, make_kernel, register_kernel
from kstonet.gram.kernels import RBF, Kernel, Matern, Stationary, takes_gamma
from kstonet.tuning.recipes import EVIDENCE, KernelRecipe
from kstonet.tuning.relevance import evidence_kernels, evidence_length_scales

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 2))
Y = np.sin(2 * X[:, 0]) + 0.1 * RNG.normal(size=60)
NEW = RNG.normal(size=(7, 2))


@dataclass(frozen=True)
class RationalQuadratic(Stationary):
    """(1 + gamma |x - y|² / alpha)^-alpha."""

    alpha: float = 1.0

    def profile(self, s):
        return (1.0 + self.gamma / self.alpha * s) ** -self.alpha

    def slopes(self, s):
        base = 1.0 + self.gamma / self.alpha * s
        return base**-self.alpha, -self.gamma * base ** (-self.alpha - 1.0)

    def _graph(self, x, basis):
        squares = x.sum_of_squares() + (basis**2).sum(axis=1, keepdims=True) - 2.0 * x.left_product(basis)
        return (1.0 + self.gamma / self.alpha * squares.maximum(0.0)) ** -self.alpha


@dataclass(frozen=True)
class Cosine(Kernel):
    """x·y / (|x| |y|), the simplest kernel one can write: one method."""

    def _block(self, X, Y):
        xp = namespace(X)
        return X @ Y.T / xp.sqrt((X * X).sum(1))[:, None] / xp.sqrt((Y * Y).sum(1))


register_kernel("rational_quadratic", RationalQuadratic)
register_kernel("cosine", Cosine)


def test_names_lead_to_kernels():
    assert {"rational_quadratic", "cosine"} <= set(kernel_names())
    assert make_kernel("rational_quadratic", X, gamma=0.3, alpha=2.0) == RationalQuadratic(None, 0.3, 2.0)
    assert make_kernel("cosine", X, length_scale=[1.0, 2.0]) == Cosine((1.0, 2.0))
    assert takes_gamma("rational_quadratic")
    assert not takes_gamma("cosine")
    np.testing.assert_allclose(Cosine().diagonal(X), 1.0)  # from single values, where a class gives no formula


def test_functions_may_make_kernels():
    def wide(length_scale, gamma):
        return RBF(length_scale, gamma / 10)

    register_kernel("wide", wide)
    assert make_kernel("wide", X, gamma=1.0, length_scale=[1.0, 2.0]) == RBF((1.0, 2.0), 0.1)


def test_tuning_knows_them():
    assert KernelRecipe("rational_quadratic", 0.1, EVIDENCE).possible
    assert KernelRecipe("cosine").finished
    assert not KernelRecipe("cosine", "scale", EVIDENCE).possible
    assert "rational_quadratic" in evidence_kernels()
    scales = evidence_length_scales(X, Y[:, None], "rational_quadratic")
    assert scales[1] > 2 * scales[0]
    with pytest.raises(ValueError, match=r"kernel='cosine' has no length scales to learn; use one of rbf"):
        evidence_length_scales(X, Y[:, None], "cosine")


@pytest.mark.parametrize("kernel", ["rational_quadratic", "cosine", "exponential"])
def test_fit_intervals_save_and_load(kernel, tmp_path):
    pytest.importorskip("safetensors")
    short = {"max_iter": 4, "n_average": 2, "residuals": "training", "random_state": 0}
    model = KStoNetRegressor(tuning="none", kernel=kernel, **short).fit(X, Y)
    kstonet.save(model, tmp_path / "model.kstonet")
    loaded = kstonet.load(tmp_path / "model.kstonet")
    np.testing.assert_array_equal(loaded.predict_interval(NEW), model.predict_interval(NEW))
    assert loaded.kernel_ == model.kernel_


def test_export(tmp_path):
    pytest.importorskip("onnx")
    runtime = pytest.importorskip("onnxruntime")
    model = KStoNetRegressor(tuning="none", kernel="rational_quadratic", max_iter=4, n_average=2, random_state=0).fit(X, Y)
    kstonet.to_onnx(model, tmp_path / "model.onnx")
    session = runtime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    mean, deviation, *_ = session.run(None, {"X": NEW})
    for ours, theirs in zip((mean, deviation), model.predict(NEW, return_std=True), strict=True):
        np.testing.assert_allclose(np.ravel(ours), theirs, rtol=1e-8)
    with pytest.raises(TypeError, match=r"Cosine.* is Python code, and an ONNX graph holds none"):
        kstonet.to_onnx(MultiTargetSVR(kernel="cosine").fit(X, Y), tmp_path / "other.onnx")


def test_names_have_one_owner():
    register_kernel("cosine", Cosine)  # the same once more, as when a notebook cell runs again
    for name in ("rbf", "cosine"):
        with pytest.raises(ValueError, match=f"kernel='{name}' is .* already; choose another name"):
            register_kernel(name, Matern)
    assert RECORDS["Cosine"] is Cosine


def test_parameters_of_other_kernels_are_refused():
    with pytest.raises(ValueError, match=r"kernel='rbf' has no parameter alpha; its parameters are: gamma"):
        make_kernel("rbf", X, alpha=1.0)
    with pytest.raises(ValueError, match=r"kernel='matern32' has no parameter nu"):
        make_kernel("matern32", X, nu=2.5)
    with pytest.raises(ValueError, match=r"kernel='linear' has no parameter norm; its parameters are: none"):
        make_kernel("linear", X, norm=2)


def test_poly_is_one_kernel_everywhere():
    svr = MultiTargetSVR(kernel="poly", gamma=0.5).fit(X, Y)
    network = KStoNetRegressor(tuning="none", kernel="poly", gamma=0.5, max_iter=1, n_average=1, residuals=None).fit(X, Y)
    assert svr.kernel_ == network.kernel_ == make_kernel("poly", X, gamma=0.5)
    assert svr.kernel_.coef0 == 1.0
