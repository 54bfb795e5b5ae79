"""Conjugate gradients on the kernel's own matrix: the contract of Grams, and models that are those of the dense matrix."""

import os
import subprocess
import sys

import numpy as np
import pytest
from contract import GramContract, OnTorch, rbf
from sklearn.exceptions import ConvergenceWarning

from kstonet import KStoNetClassifier, KStoNetRegressor, load, save
from kstonet.gram import Iterative, IterativeGram, LowRank, StructuredGram, iterative, make_gram, make_kernel
from kstonet.gram.conjugate import conjugate_gradients
from kstonet.gram.devices import fused_product
from kstonet.gram.kernels import RBF, Exponential
from kstonet.gram.low_rank_options import Sizes
from kstonet.layers.ridge_map import RidgeMap

KERNELS = [
    RBF(gamma=0.3),
    *(make_kernel(name, np.zeros((1, 3)), gamma=0.3) for name in ("matern12", "matern32", "matern52")),
    Exponential(gamma=0.4, exponent=1.4, length_scale=(0.5, 1.0, 3.0)),
]


class TestIterative(GramContract):
    """``values`` bound what its solvers leave over; products are exact."""

    values = 1e-6
    applied = 0.02
    rank, leaf_rows = 100, 30

    @classmethod
    def make(cls, X, kernel, **options):
        return make_gram(X, kernel, solver=Iterative(cls.rank, cls.leaf_rows), **options)

    def bytes_needed(self):
        return Sizes(self.rows, self.rank, self.leaf_rows).bytes

    def test_it_is_the_kernels_own_matrix(self, gram, K, vectors):
        assert isinstance(gram, StructuredGram)
        assert gram.below
        np.testing.assert_allclose(gram.exact_product(vectors), vectors @ K, atol=1e2 * self.cross_values)
        blocks = list(gram.column_blocks(np.array([4, 100])))
        np.testing.assert_array_equal(np.concatenate([rows for rows, _ in blocks]), np.arange(self.rows))
        np.testing.assert_allclose(np.concatenate([values for _, values in blocks]), K[:, [4, 100]], atol=1e-12)

    def test_products_in_blocks(self, X, K, vectors, monkeypatch):
        """Of which only the upper triangle is computed."""
        monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * self.rows * 7)  # seven rows at a time
        gram = self.new_gram(X)
        np.testing.assert_allclose(gram.exact_product(vectors), vectors @ K, atol=1e2 * self.cross_values)

    def test_functions_at_new_rows(self, gram, new, vectors):
        given, values = new
        np.testing.assert_allclose(gram.at(given)(vectors), values @ vectors.T, atol=1e-10)


class TestIterativeOnTorch(OnTorch, TestIterative):
    pass


class TestIterativeOnCuda(TestIterativeOnTorch):
    """Kernel values are in float32 there, in the registers of one kernel in Triton."""

    device = "cuda"
    dtype = "float32"
    cross_values = 1e-6


def test_a_poor_preconditioner_takes_more_steps_to_the_same_regressions():
    rng = np.random.default_rng(0)
    X, ridge = rng.normal(size=(300, 4)), 0.02
    kernel = make_kernel("matern12", X, gamma=0.3)
    Y = np.stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]], axis=1) + 0.1 * rng.normal(size=(300, 2))
    exact = RidgeMap(make_gram(X, kernel, solver="dense"), ridge).regress(Y, None)
    steps = []
    for rank, leaf_rows in ((5, 20), (150, 100)):
        gram = make_gram(X, kernel, solver=Iterative(rank, leaf_rows))
        passes = []
        product = gram.product
        gram.product = lambda rows, product=product, passes=passes: (passes.append(len(rows)), product(rows))[1]
        found = RidgeMap(gram, ridge).regress(Y, None)
        np.testing.assert_allclose(found.image + found.intercept, exact.image + exact.intercept, atol=2e-3)
        steps.append(len(passes))
    assert steps[0] > 1.5 * steps[1]


def test_too_few_steps_are_said(monkeypatch):
    monkeypatch.setattr(iterative, "MOST_STEPS", 2)
    X = np.random.default_rng(0).normal(size=(200, 3))
    gram = make_gram(X, make_kernel("rbf", X, gamma=1.0), solver=Iterative(2, 10))
    with pytest.warns(ConvergenceWarning, match=r"2 steps of conjugate gradients.*200 rows.*Iterative\(rank=\.\.\."):
        gram.shifted(0.001).solve(X[:, :1].T)


def test_conjugate_gradients_end_exactly_where_dimensions_are_spent():
    A = np.diag([1.0, 10.0, 100.0])
    right = np.array([[1.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
    found = conjugate_gradients(right, lambda rows: rows @ A, lambda rows: rows, lambda left: bool(abs(left).max() < 1e-9))
    assert found.enough
    np.testing.assert_allclose(found.rows, right / np.diag(A), atol=1e-9)


SETTINGS = {"tuning": "none", "loss": "squared", "max_iter": 3, "n_average": 2}


@pytest.mark.parametrize(("kind", "settings"), [(KStoNetRegressor, SETTINGS), (KStoNetClassifier, {})])
def test_a_model_is_that_of_the_dense_matrix(kind, settings):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=300)
    y = y if kind is KStoNetRegressor else np.digitize(y, [-0.5, 0.5])
    solvers = "dense", Iterative(rank=60, leaf_rows=50)
    dense, ours = (kind(solver=solver, random_state=0, **settings).fit(X, y) for solver in solvers)
    assert ours.plan_.solver == "iterative"
    assert not ours.plan_.approximate
    assert "60 landmarks, leaves of" in str(ours.plan_)
    predict = "predict" if kind is KStoNetRegressor else "predict_proba"
    expected = getattr(dense, predict)(X)
    np.testing.assert_allclose(getattr(ours, predict)(X), expected, atol=0.05 * expected.std())
    interval = "predict_interval" if kind is KStoNetRegressor else "predict_proba_interval"
    apart = np.abs(getattr(ours, interval)(X) - getattr(dense, interval)(X))  # leverages are the preconditioner's
    assert apart.mean() < 0.05 * expected.std()


def test_support_vector_regressions_and_their_intervals():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)
    settings = {"tuning": "none", "max_iter": 3, "n_average": 2, "random_state": 0}
    dense, ours = (KStoNetRegressor(solver=solver, **settings).fit(X, y) for solver in ("dense", Iterative(60, 50)))
    np.testing.assert_allclose(ours.predict(X), dense.predict(X), atol=0.02)
    width = np.diff(dense.predict_interval(X)).mean()
    assert np.diff(ours.predict_interval(X)).mean() == pytest.approx(width, rel=0.1)


def test_it_is_named_stored_and_refused_like_the_others(tmp_path):
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert isinstance(make_gram(X, make_kernel("rbf", X), solver="iterative"), IterativeGram)
    with pytest.raises(ValueError, match="solver='iterative' needs features"):
        make_gram(rbf(X, X), make_kernel("precomputed", X), solver="iterative")
    with pytest.raises(MemoryError, match=r"needs .*solver=Iterative\(rank=\.\.\., leaf_rows=\.\.\.\)"):
        make_gram(X, make_kernel("rbf", X), solver=Iterative(rank=50, leaf_rows=50), max_memory=1e3)
    settings = {"tuning": "none", "loss": "squared", "max_iter": 2, "residuals": None, "random_state": 0}
    model = KStoNetRegressor(solver=Iterative(rank=20, leaf_rows=30), **settings).fit(X, X[:, 0])
    save(model, tmp_path / "model.kstonet")
    again = load(tmp_path / "model.kstonet")
    assert again.get_params()["solver"] == Iterative(rank=20, leaf_rows=30) != LowRank(rank=20, leaf_rows=30)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_plan_says_what_passes_take():
    X = np.zeros((200_000, 10))
    exact, near = (KStoNetRegressor(solver=solver, max_memory=8e9).explain_plan(X) for solver in ("iterative", "low_rank"))
    assert exact.rank == near.rank
    assert exact.seconds > 10 * near.seconds
    assert exact.bytes > near.bytes


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: f"{type(kernel).__name__}{getattr(kernel, 'nu', '')}")
def test_profiles_in_numbers(kernel):
    s = np.linspace(0.0, 9.0, 50)
    r = (kernel.radial.factor * s) ** kernel.radial.exponent
    ours = (1.0 + kernel.radial.first * r + kernel.radial.second * r**2) * np.exp(-r)
    np.testing.assert_allclose(ours, kernel.profile(s.copy()), rtol=1e-12)


def test_a_profile_from_outside_is_not_taken_for_the_inherited_one():
    class Steeper(RBF):
        def profile(self, s):
            return np.exp(-2.0 * self.gamma * s)

    class OnADevice(np.ndarray):
        device = type("Device", (), {"type": "cuda"})()

    assert fused_product(Steeper(), np.zeros((3, 1)).view(OnADevice)) is None


FUSED = """
import numpy as np, torch
from test_iterative import KERNELS
from kstonet.gram.torch_products import FusedProduct

rng = np.random.default_rng(0)
X = rng.normal(size=(150, 3)) + 5.0
X[5] = X[2]  # whose distance rounding must not enlarge
device = "cuda" if torch.cuda.is_available() else "cpu"
for kernel in KERNELS:
    for units in (2, 70):
        rows = rng.normal(size=(units, 150))
        product = FusedProduct(kernel.scaled(torch.as_tensor(X, device=device)), kernel.radial)
        ours = product(torch.as_tensor(rows, device=device))
        assert ours.dtype == torch.float64
        np.testing.assert_allclose(ours.cpu().numpy(), rows @ kernel(X, X), atol=1e-4)
print("checked")
"""


def test_fused_products():
    """On a GPU, or by Triton's interpreter, which needs none."""
    torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
    pytest.importorskip("triton", reason="make test-torch installs it where there is one")
    path = os.pathsep.join([os.path.dirname(__file__), os.environ.get("PYTHONPATH", "")])
    interpreted = {} if torch.cuda.is_available() else {"TRITON_INTERPRET": "1"}
    environment = os.environ | {"PYTHONPATH": path} | interpreted
    run = subprocess.run([sys.executable, "-c", FUSED], env=environment, capture_output=True, text=True)
    assert run.stdout == "checked\n", run.stderr
