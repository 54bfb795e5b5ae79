import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from kstonet.solvers.svr_problem import SVRProblem, make_problem

RNG = np.random.default_rng(0)


def problem(m=3, n=25, weighted=True):
    weights = RNG.uniform(0.0, 2.0, size=n) if weighted else None
    return make_problem(RNG.normal(size=(m, n)), RNG.uniform(0.5, 3.0, size=m), RNG.uniform(0.0, 0.5, size=m), weights)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n", [1, 2, 3, 24, 25])
def test_best_intercept_by_brute_force(n, weighted):
    p = problem(n=n, weighted=weighted)
    residuals = RNG.normal(size=p.targets.shape)
    b = p.best_intercept(residuals)
    value = p.loss(residuals - b[:, None])
    for j in range(len(b)):
        kinks = np.r_[residuals[j] - p.epsilon[j], residuals[j] + p.epsilon[j]]
        every = [
            SVRProblem(p.targets[j : j + 1], p.box[j : j + 1], p.epsilon[j : j + 1]).loss(residuals[j : j + 1] - k)[0]
            for k in kinks
        ]
        assert value[j] <= min(every) + 1e-12


def test_prox_by_brute_force():
    p = problem()
    v = 3.0 * RNG.normal(size=p.targets.shape)
    a = p.prox(v, 0.7)
    for j, i in np.ndindex(3, 25):
        eps, c = p.epsilon[j, 0], p.box[j, i]
        f = lambda t, j=j, i=i, eps=eps: eps * abs(t) + 0.35 * (t - v[j, i]) ** 2  # noqa: E731
        best = minimize_scalar(f, bounds=(-c, c), method="bounded", options={"xatol": 1e-10})
        assert f(a[j, i]) <= best.fun + 1e-9


def test_balance_keeps_box_zeros_and_bounds():
    p = problem(n=60)
    a = p.prox(RNG.normal(size=p.targets.shape) * 3, 0.7)
    balanced = p.balance(a)
    assert np.abs(balanced.sum(axis=1)).max() < 1e-13
    assert (np.abs(balanced) <= p.box).all()
    assert ((balanced == 0) == (a == 0)).all()
    bounded = np.abs(a) >= p.box
    assert (balanced[bounded] == a[bounded]).all()


def test_balance_without_free_entries():
    p = make_problem(np.zeros((1, 4)), 1.0, 0.0)
    balanced = p.balance(np.array([[1.0, 1.0, 1.0, 0.0]]))
    assert abs(balanced.sum()) < 1e-14
    assert (np.abs(balanced) <= 1).all()


def test_weak_duality_holds_for_any_pair():
    p = problem(n=40)
    B = RNG.normal(size=(40, 40))
    K = B @ B.T
    for _ in range(50):
        x = RNG.normal(size=p.targets.shape)
        a = p.balance(np.clip(RNG.normal(size=p.targets.shape), -p.box, p.box))
        primal, _ = p.primal(x, x @ K)
        assert (primal >= p.dual(a, a @ K)).all()
