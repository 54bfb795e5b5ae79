"""The engine on PyTorch tensors gives what it gives on NumPy arrays (make test-torch; skipped where torch is absent)."""

import os
import subprocess
import sys

import numpy as np
import pytest

from kstonet._arrays import to_numpy
from kstonet.gram import KERNEL_NAMES, DenseGram, make_kernel
from kstonet.gram.factored import CorrectedSolver, factor_order
from kstonet.layers.ridge_map import RidgeMap
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


@pytest.mark.parametrize("device", DEVICES)
def test_values_are_given_up_where_a_factor_in_float64_needs_their_room(device):
    """A tiny ridge and a wide kernel: float32 does not solve the equations, and both do not fit in float64."""
    X, Y = problem(2100)
    T, kernel, ridges = torch.as_tensor(X, device=device), make_kernel("rbf", X, gamma=0.01), np.full(2100, 1e-6)
    gram = TorchGram(T, kernel, max_memory=6e7)
    held = gram.nbytes
    solved = gram.regularised(ridges).solve(Y)
    assert gram.nbytes < 0.01 * held
    K = kernel(X, X)
    left = Y - solved @ K - 1e-6 * solved
    assert np.abs(left).max() < 1e-4
    np.testing.assert_allclose(to_numpy(gram.product(gram.array(Y))), Y @ K, atol=1e-9)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("ridge", [1e-2, 1e-4])
def test_a_factor_in_float32_serves_where_there_is_no_room_for_another(device, ridge):
    """A wide kernel, whose matrix rounding makes indefinite: a factor with a jitter, corrected by conjugate gradients."""
    X, Y = problem(2100)
    kernel = make_kernel("rbf", X, gamma=0.003)
    exact, ours = RidgeMap(DenseGram(X, kernel), ridge), RidgeMap(TorchGram(torch.as_tensor(X, device=device), kernel), ridge)
    ours.gram._limit = 4.1 * 2100**2
    without = np.ones(2100)
    without[factor_order(2100)[-200:]] = 0.0
    for weights in (None, without):
        there, here = (each.regress(Y.T, weights) for each in (ours, exact))
        fitted, expected = there.image + there.intercept, here.image + here.intercept
        assert np.abs(fitted - expected).max() < 1e-3 * Y.std()
    assert any(isinstance(system.solver, CorrectedSolver) for system in ours._systems.values()) == (ridge == 1e-4)
    np.testing.assert_allclose(ours.diagonal(), exact.diagonal(), rtol=0.1)  # float32: 4 to 6 %, as the processor rounds


FUSED = """
import torch
from kstonet.gram.torch_distances import absolute_distances

for rows, others, features in ((130, 70, 5), (1, 64, 1), (3, 0, 2)):
    X, Y = (torch.rand((count, features), dtype=torch.float64) for count in (rows, others))
    for dtype in (torch.float64, torch.float32):
        ours = absolute_distances(X.to(dtype), Y.to(dtype))
        assert ours.dtype == dtype
        torch.testing.assert_close(ours.double(), torch.cdist(X, Y, p=1), atol=1e-6, rtol=1e-6)
print("checked")
"""


def test_fused_distances():
    """By Triton's interpreter, which needs no GPU; on one, :func:`test_kernels` uses them."""
    pytest.importorskip("triton", reason="make test-torch installs it where there is one")
    interpreted = os.environ | {"TRITON_INTERPRET": "1"}
    run = subprocess.run([sys.executable, "-c", FUSED], env=interpreted, capture_output=True, text=True)
    assert run.stdout == "checked\n", run.stderr


@pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU that torch can use")
def test_a_gpu_uses_fused_distances(monkeypatch):
    import kstonet.gram.torch_distances

    monkeypatch.setattr(kstonet.gram.torch_distances, "absolute_distances", lambda X, Y: X[:, :1] + Y[:, 0])
    T = torch.ones((3, 2), device="cuda", dtype=torch.float64)
    assert float(make_kernel("laplacian", T, gamma=1.0)(T, T)[0, 0]) == pytest.approx(np.exp(-2.0))
