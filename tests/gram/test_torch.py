"""The engine on PyTorch tensors gives what it gives on NumPy arrays (make test-torch; skipped where torch is absent)."""

import numpy as np
import pytest

from kstonet._arrays import to_numpy
from kstonet.gram import KERNEL_NAMES, DenseGram, make_kernel
from kstonet.solvers.svr import solve_svr

torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
TorchGram = pytest.importorskip("kstonet.gram.torch").TorchGram
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])


def problem(n=150, p=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.stack([np.sin(X[:, 0]) + 0.2 * rng.normal(size=n), X[:, 1] * X[:, 2]])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", [name for name in KERNEL_NAMES if name != "precomputed"])
def test_kernels(name, device):
    X, _ = problem(40)
    T = torch.as_tensor(X, device=device)
    ours, theirs = make_kernel(name, T), make_kernel(name, X)
    np.testing.assert_allclose(to_numpy(ours(T, T[:7])), theirs(X, X[:7]), atol=1e-7)
    np.testing.assert_allclose(to_numpy(ours.diagonal(T)), theirs.diagonal(X), atol=1e-12)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", ["rbf", "matern12", "laplacian", "exponential", "poly", "linear"])
def test_gradients(name, device):
    X, _ = problem(40)
    T, coef = torch.as_tensor(X, device=device), np.ones((2, 40))
    ours = make_kernel(name, T).gradient(T[:7], T, torch.as_tensor(coef, device=device))
    np.testing.assert_allclose(to_numpy(ours), make_kernel(name, X).gradient(X[:7], X, coef), atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("C", [0.1, 5.0, 200.0])
@pytest.mark.parametrize("tol", [1e-3, 1e-7])
def test_solutions(device, C, tol):
    X, Y = problem()
    T = torch.as_tensor(X, device=device)
    theirs = solve_svr(DenseGram(X, make_kernel("rbf", X)), Y, C, 0.05, tol=tol)
    ours = solve_svr(TorchGram(T, make_kernel("rbf", T)), torch.as_tensor(Y, device=device), C, 0.05, tol=tol)
    assert ours.converged.all()
    np.testing.assert_allclose(ours.primal, theirs.primal, rtol=2 * tol)
    if tol < 1e-3:
        np.testing.assert_allclose(to_numpy(ours.fitted), theirs.fitted, atol=1e-3)
        assert (to_numpy(ours.support) == to_numpy(theirs.support)).mean() > 0.99


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("p", [2, 20])
def test_mixed_precision_and_low_rank(device, p):
    X, Y = problem(2100, max(p, 3))
    X = X[:, :p]
    T = torch.as_tensor(X, device=device)
    gram = TorchGram(T, make_kernel("rbf", T))
    first = solve_svr(gram, torch.as_tensor(Y, device=device), 5.0, 0.05)
    again = solve_svr(gram, torch.as_tensor(Y, device=device) + 0.01, 5.0, 0.05, warm_start=first)
    assert first.converged.all()
    assert again.converged.all()
    assert again.new_factors == ()


def test_precomputed_and_indefinite():
    X, _ = problem(30)
    K = torch.as_tensor(X @ X.T)
    assert TorchGram(K, make_kernel("precomputed", K)).n == 30
    with pytest.raises(ValueError, match="not positive semi-definite"):
        TorchGram(-K, make_kernel("precomputed", K))
