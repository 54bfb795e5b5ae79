"""Every Gram under the contract, and the choice between them."""

import sys

import numpy as np
import pytest
from contract import GramContract, OnTorch

from extension.direct_gram import DirectGram
from kstonet import KStoNetRegressor
from kstonet.gram import DenseGram, Gram, gram_names, make_gram, make_kernel, register_gram
from kstonet.gram.pivoted import LowRankSolver


class TestDense(GramContract):
    def test_it_is_the_choice_of_auto(self, X):
        for solver in ("auto", "dense"):
            assert type(make_gram(X, make_kernel("rbf", X), solver=solver)) is DenseGram


class TestDenseFloat32(GramContract):
    dtype = "float32"
    values = 1e-7


class TestMixedPrecision(GramContract):
    """Large enough for a float32 factor of a float64 matrix."""

    rows, features = 2050, 10

    def test_the_factor_is_float32(self, gram):
        matrix = 8 * self.rows**2
        gram.shifted(0.05)
        assert not isinstance(gram.shifted(0.05).factor, LowRankSolver)
        assert gram.nbytes - matrix < 0.7 * matrix


class TestLowRank(GramContract):
    """Smooth, and few features: the shifted matrix is served by a factor of small rank."""

    rows, features = 2050, 2

    def test_the_solver_is_of_low_rank(self, gram):
        assert isinstance(gram.shifted(0.05).factor, LowRankSolver)


class TestPrecomputed(GramContract):
    precomputed = True


class TestFromOutside(GramContract):
    @classmethod
    def make(cls, X, kernel, **options):
        return make_gram(X, kernel, solver="direct", **options)

    def bytes_needed(self):
        return 2 * 8 * self.rows**2


class TestTorch(OnTorch, GramContract):
    def test_it_lives_on_the_device(self, gram, torch):
        assert gram.array([1.0]).device.type == gram.diagonal().device.type == self.device


class TestTorchFloat32(OnTorch, GramContract):
    dtype = "float32"
    values = 1e-7


class TestTorchMixedPrecision(OnTorch, GramContract):
    rows, features = 2050, 10


class TestTorchForgetful(OnTorch, GramContract):
    """A factor is all that the device can hold."""

    rows, features = 2050, 10

    @classmethod
    def make(cls, X, kernel, **options):
        from kstonet.gram import torch as side

        forgetful = type("Forgetful", (side.TorchGram,), {"_build": lambda self: None})
        return forgetful(side.placing(cls.device)(X), kernel, **options)

    def test_it_holds_the_factor_alone(self, gram):
        gram.shifted(0.05)
        assert gram.nbytes < 4 * self.rows * (self.rows + 600)


class TestTorchLowRank(OnTorch, GramContract):
    rows, features = 2050, 2


class TestTorchPrecomputed(OnTorch, GramContract):
    precomputed = True


class TestCuda(TestTorch):
    device = "cuda"


class TestCudaFloat32(TestTorchFloat32):
    device = "cuda"


class TestCudaMixedPrecision(TestTorchMixedPrecision):
    device = "cuda"


class TestCudaForgetful(TestTorchForgetful):
    device = "cuda"


class TestCudaLowRank(TestTorchLowRank):
    device = "cuda"


class TestCudaPrecomputed(TestTorchPrecomputed):
    device = "cuda"


def test_unknown_names_are_named_with_what_exists():
    X = np.zeros((2, 1))
    with pytest.raises(ValueError, match=r"solver='dens' is unknown; use one of auto, dense.*direct"):
        make_gram(X, make_kernel("rbf", X), solver="dens")
    with pytest.raises(ValueError, match="solver=3 is unknown"):
        make_gram(X, make_kernel("rbf", X), solver=3)
    assert {"auto", "dense", "direct"} <= set(gram_names())


def test_names_have_one_owner():
    register_gram("direct", DirectGram)  # the same once more, as when a notebook cell runs again
    for name in ("auto", "dense", "direct"):
        with pytest.raises(ValueError, match=f"solver='{name}' is .* already; choose another name"):
            register_gram(name, lambda X, kernel, **options: DenseGram(X, kernel))


def test_a_gram_from_outside_refuses_what_it_cannot_do():
    X = np.zeros((2, 1))
    with pytest.raises(ValueError, match="device='cuda'"):
        make_gram(X, make_kernel("rbf", X), solver="direct", device="cuda")


def test_a_device_without_torch_names_the_remedy(monkeypatch):
    monkeypatch.setitem(sys.modules, "kstonet.gram.torch", None)
    X = np.zeros((2, 1))
    with pytest.raises(ImportError, match=r"device='cpu' needs PyTorch: pip install kstonet\[gpu\]"):
        make_gram(X, make_kernel("rbf", X), device="cpu")


def test_a_class_that_lacks_a_part_of_the_protocol_is_no_gram():
    class Incomplete:
        n, dtype, kernel = 1, float, None

    assert not isinstance(Incomplete(), Gram)


# -- the whole estimator on the Grams that it can choose -------------------------------------------------------------------


@pytest.mark.parametrize("residuals", ["training", "crossfit"])
def test_networks_do_not_depend_on_the_gram(residuals):
    """Left-out residuals, intervals and predictions of the same training."""
    pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
    rng = np.random.default_rng(5)
    X, new = rng.normal(size=(80, 3)), rng.normal(size=(9, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=80)
    short = {"max_iter": 4, "n_average": 2, "residuals": residuals, "random_state": 0}
    here, there = (KStoNetRegressor(tuning="none", device=device, **short).fit(X, y) for device in (None, "cpu"))
    np.testing.assert_allclose(there.predict(new), here.predict(new), rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(there.predict_interval(new), here.predict_interval(new), rtol=1e-3, atol=1e-3)
