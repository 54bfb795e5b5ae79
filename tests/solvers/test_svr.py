"""The SVR engine against scikit-learn, its own optimality conditions, and known optima."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVR

from kstonet.gram import DenseGram, make_kernel
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_problem import make_problem

N = 120


def data(n=N, p=3, m=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    Y = np.stack([np.sin(X[:, 0]) + 0.3 * rng.normal(size=n), X[:, 1] * X[:, -1], np.cos(2 * X[:, 0]) + X[:, 1]])[:m]
    return X, Y


def gram_of(X, kernel="rbf", **options):
    dtype = options.pop("dtype", "float64")
    return DenseGram(X, make_kernel(kernel, X, **options), dtype=dtype)


def assert_tight(gram, solution, *, tol=1e-6):
    """Everything tight mode promises, sample by sample."""
    problem, a = solution.problem, solution.coef
    assert solution.tight
    assert (np.abs(a) <= problem.box).all()
    assert np.abs(a.sum(axis=1)).max() <= 1e-11 * max(problem.box.sum(), 1.0)
    image = gram.product(a)
    primal, intercept = problem.primal(a, image)
    dual = problem.dual(a, image)
    np.testing.assert_allclose(solution.primal, primal, rtol=1e-9, atol=1e-12)
    assert (primal - dual <= tol * np.maximum(primal, 1e-12 * problem.box.sum(1)) + 1e-13).all()
    np.testing.assert_allclose(solution.fitted, image + solution.intercept[:, None], atol=1e-9)
    assert (solution.support == (a != 0)).all()
    assert (solution.margin & solution.bounded).sum() == 0
    assert ((solution.margin | solution.bounded) == solution.support).all()
    # the KKT conditions, recomputed here from the definition
    r = problem.targets - image - intercept[:, None]
    eps = problem.epsilon
    spread = problem.targets.std(axis=1, keepdims=True) + 1e-12
    slack = 2e-3 * spread
    assert (np.abs(r) <= eps + slack)[~solution.support & (problem.box > 0)].all()
    assert (np.abs(r * np.sign(a) - eps) <= slack)[solution.margin].all()
    assert (r * np.sign(a) >= eps - slack)[solution.bounded].all()
    assert (solution.kkt <= slack[:, 0]).all()


KERNELS = ["rbf", "laplacian", "matern12", "matern32", "matern52", "poly", "linear", "arccos1"]


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_objective_and_predictions_equal_scikit_learns(kernel, dtype):
    X, Y = data()
    gram = gram_of(X, kernel, dtype=dtype)
    K = gram.product(np.eye(N))
    solution = solve_svr(gram, Y, C=2.0, epsilon=0.1, tol=1e-8)
    assert_tight(gram, solution)
    for j, y in enumerate(Y):
        oracle = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-8).fit(K, y)
        a = np.zeros(N)
        a[oracle.support_] = oracle.dual_coef_[0]
        value, _ = make_problem(Y[j : j + 1], 2.0, 0.1).primal(a[None], a[None] @ K)
        assert solution.primal[j] == pytest.approx(value[0], rel=2e-6)
        assert solution.primal[j] <= value[0] * (1 + 1e-7)
        np.testing.assert_allclose(solution.fitted[j], oracle.predict(K), atol=2e-3 * y.std())


@pytest.mark.parametrize("C", [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 1.0])
@pytest.mark.filterwarnings("ignore:Solver terminated early")  # scikit-learn's, at C=1000
def test_over_c_and_epsilon(C, epsilon):
    X, Y = data(seed=1)
    gram = gram_of(X)
    loose = solve_svr(gram, Y, C, epsilon)
    assert loose.converged.all()
    tight = solve_svr(gram, Y, C, epsilon, tol=1e-6)
    assert_tight(gram, tight)
    # the loose certificate is honest: the true optimum lies inside its bracket
    assert (loose.dual <= tight.primal * (1 + 1e-9) + 1e-12).all()
    assert (loose.primal >= tight.dual * (1 - 1e-9) - 1e-12).all()
    K = gram.product(np.eye(N))
    for j, y in enumerate(Y):
        oracle = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-6, max_iter=300_000).fit(K, y)
        a = np.zeros(N)
        a[oracle.support_] = oracle.dual_coef_[0]
        value, _ = make_problem(Y[j : j + 1], C, epsilon).primal(a[None], a[None] @ K)
        assert tight.primal[j] <= value[0] * (1 + 2e-6) + 1e-12


def test_sample_weights_are_scikit_learns_and_are_repetitions():
    X, Y = data(seed=2)
    weights = np.random.default_rng(0).integers(0, 4, size=N).astype(float)
    solution = solve_svr(gram_of(X, gamma=0.5), Y, 3.0, 0.05, sample_weight=weights, tol=1e-9)
    assert_tight(gram_of(X, gamma=0.5), solution)
    assert (solution.coef[:, weights == 0] == 0).all()
    repeated = np.repeat(np.arange(N), weights.astype(int))
    other = solve_svr(gram_of(X[repeated], gamma=0.5), Y[:, repeated].copy(), 3.0, 0.05, tol=1e-9)
    np.testing.assert_allclose(solution.primal, other.primal, rtol=1e-7)
    np.testing.assert_allclose(solution.fitted[:, repeated], other.fitted, atol=1e-4)
    oracle = SVR(gamma=0.5, C=3.0, epsilon=0.05, tol=1e-8).fit(X, Y[0], sample_weight=weights)
    np.testing.assert_allclose(solution.fitted[0], oracle.predict(X), atol=2e-3)


def test_a_problem_with_a_known_optimum():
    """Build the data from the KKT conditions: choose a, b, the sets, and derive the targets that make them optimal."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 2))
    gram = gram_of(X)
    C, epsilon, b = 2.0, 0.1, 0.7
    a = np.zeros(60)
    a[:10], a[10:20] = C, -C  # bounded
    a[20:30] = rng.uniform(0.2, 1.8, size=10)
    a[30:40] = -a[20:30]  # free, and the sum is zero
    residual = np.zeros(60)
    residual[:10] = epsilon + rng.uniform(0.1, 1.0, 10)
    residual[10:20] = -epsilon - rng.uniform(0.1, 1.0, 10)
    residual[20:40] = np.sign(a[20:40]) * epsilon
    residual[40:] = rng.uniform(-0.9, 0.9, 20) * epsilon
    y = gram.product(a[None])[0] + b + residual
    solution = solve_svr(gram, y[None], C, epsilon, tol=1e-9)
    np.testing.assert_allclose(solution.coef[0], a, atol=1e-6)
    assert solution.intercept[0] == pytest.approx(b, abs=1e-6)
    assert (solution.margin[0] == ((a != 0) & (np.abs(a) < C))).all()
    assert (solution.bounded[0] == (np.abs(a) == C)).all()
    assert (solution.support[0] == (a != 0)).all()


def test_linear_kernel_in_one_dimension_against_linear_programming():
    """Without the quadratic term's help: as C → ∞ the SVR line minimises Σ max(0, |r| - ε), a linear programme."""
    rng = np.random.default_rng(6)
    x = rng.normal(size=40)
    y = 2.0 * x + 1.0 + rng.laplace(size=40)
    solution = solve_svr(gram_of(x[:, None], "linear"), y[None], 1e4, 0.2, tol=1e-7)
    n = 40
    # variables: slope, intercept, slack ≥ 0 with |y - slope x - intercept| - ε ≤ slack
    costs = np.r_[0.0, 0.0, np.ones(n)]
    above = np.column_stack([-x, -np.ones(n), -np.eye(n)])
    below = np.column_stack([x, np.ones(n), -np.eye(n)])
    best = linprog(costs, np.vstack([above, below]), np.r_[0.2 - y, 0.2 + y], bounds=[(None, None)] * 2 + [(0, None)] * n)
    loss = np.maximum(np.abs(y - solution.fitted[0]) - 0.2, 0).sum()
    assert loss == pytest.approx(best.fun, rel=1e-3)


def test_many_targets_at_once_equal_single_solves():
    X, Y = data(seed=3)
    C, epsilon = np.array([0.5, 5.0, 50.0]), np.array([0.2, 0.0, 0.05])
    gram = gram_of(X)
    together = solve_svr(gram, Y, C, epsilon, tol=1e-8)
    assert_tight(gram, together)
    for j in range(3):
        alone = solve_svr(gram_of(X), Y[j : j + 1], C[j], epsilon[j], tol=1e-8)
        assert together.primal[j] == pytest.approx(alone.primal[0], rel=1e-7)
        np.testing.assert_allclose(together.fitted[j], alone.fitted[0], atol=1e-3)
        assert (together.support[j] == alone.support[0]).mean() > 0.97


def test_finished_targets_stop_costing():
    X, Y = data(n=400, seed=4)
    Y[0] *= 1e-3  # inside the tube: done at once
    solution = solve_svr(gram_of(X), Y, 10.0, 0.1)
    assert solution.n_iter[0] == 0
    assert (solution.coef[0] == 0).all()
    assert solution.gap[0] == 0.0
    assert solution.n_iter[1] > 0


def test_invariances():
    X, Y = data(seed=7)
    order = np.random.default_rng(1).permutation(N)
    base = solve_svr(gram_of(X), Y, 2.0, 0.1, tol=1e-9)
    permuted = solve_svr(gram_of(X[order]), Y[:, order].copy(), 2.0, 0.1, tol=1e-9)
    np.testing.assert_allclose(permuted.fitted, base.fitted[:, order], atol=1e-4)
    shifted = solve_svr(gram_of(X), Y + 100.0, 2.0, 0.1, tol=1e-9)
    np.testing.assert_allclose(shifted.fitted, base.fitted + 100.0, atol=1e-4)
    mirrored = solve_svr(gram_of(X), -Y, 2.0, 0.1, tol=1e-9)
    np.testing.assert_allclose(mirrored.fitted, -base.fitted, atol=1e-4)
    scaled = solve_svr(gram_of(X), 1e3 * Y, 2e3, 100.0, tol=1e-9)
    np.testing.assert_allclose(scaled.fitted, 1e3 * base.fitted, atol=0.1)


@pytest.mark.parametrize("C", [1.0, 100.0])
def test_warm_start_is_never_worse(C):
    X, Y = data(n=400, seed=8)
    gram = gram_of(X)
    first = solve_svr(gram, Y, C, 0.05)
    again = solve_svr(gram, Y, C, 0.05, warm_start=first)
    assert (again.n_iter <= first.n_iter).all()
    assert again.new_factors == ()
    moved = Y + 0.01 * np.random.default_rng(0).normal(size=Y.shape)
    cold, warm = solve_svr(gram, moved, C, 0.05), solve_svr(gram, moved, C, 0.05, warm_start=first)
    assert (warm.n_iter <= cold.n_iter).all()
    # a start from an unrelated problem costs at most its first check
    unrelated = solve_svr(gram, -5 * Y[::-1].copy(), C, 0.05)
    misled = solve_svr(gram, moved, C, 0.05, warm_start=unrelated)
    assert misled.converged.all()
    np.testing.assert_allclose(misled.primal, cold.primal, rtol=2e-3)


def test_one_factor_serves_targets_and_neighbouring_c():
    X, Y = data(n=300, seed=9)
    gram = gram_of(X)
    solution = solve_svr(gram, Y, 5.0, 0.2)
    before = gram.n_factorizations
    for C in (2.5, 5.0, 10.0):
        solution = solve_svr(gram, Y + 0.1, C, 0.2, warm_start=solution)
        assert solution.new_factors == ()
    assert gram.n_factorizations == before
    far = solve_svr(gram, Y, 500.0, 0.2)
    assert len(far.new_factors) >= 1  # and the record says so
    assert gram.n_factorizations >= before + 1


def test_mixed_precision_and_low_rank_paths_meet_the_true_certificate():
    for p in (2, 20):  # a factor of small rank, a float32 Cholesky factor
        X, Y = data(n=2050, p=p, m=2, seed=10)
        gram = gram_of(X)
        solution = solve_svr(gram, Y, 5.0, 0.02)
        image = gram.product(solution.coef)
        primal, _ = solution.problem.primal(solution.coef, image)
        np.testing.assert_allclose(solution.primal, primal, rtol=1e-10)
        tight = solve_svr(gram, Y, 5.0, 0.02, tol=1e-6)
        assert_tight(gram, tight)
        assert (solution.dual <= tight.primal).all()
        assert (solution.primal >= tight.dual).all()


def test_not_converging_warns_with_the_gap():
    X, Y = data(n=300, seed=11)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .* gap up to"):
        solution = solve_svr(gram_of(X), Y, 100.0, 0.0, max_iter=1, tol=1e-5)
    assert not solution.converged.all()
    assert np.isfinite(solution.gap).all()


def test_progress_is_reported():
    X, Y = data(seed=12)
    seen = []
    solve_svr(gram_of(X), Y, 10.0, 0.01, callback=seen.append)
    assert seen[-1].gap.max() <= 1e-3
    assert [s.iteration for s in seen] == sorted(s.iteration for s in seen)


def test_an_interrupt_passes_through():
    X, Y = data(seed=12)

    def stop(_):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        solve_svr(gram_of(X), Y, 10.0, 0.01, callback=stop)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"C": -1.0}, "C=-1.0"),
        ({"C": [1.0, 2.0]}, "one for each of the 3 targets"),
        ({"epsilon": -0.1}, "epsilon=-0.1"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"sample_weight": -np.ones(N)}, "sample_weight"),
        ({"sample_weight": np.zeros(N)}, "sample_weight"),
        ({"sample_weight": np.ones(3)}, "sample_weight must hold 120"),
        ({"targets": np.full((1, N), np.nan)}, "NaN"),
        ({"targets": np.zeros((1, 3))}, "shape"),
        ({"targets": np.zeros((0, N))}, "nothing to solve"),
    ],
)
def test_bad_input_is_named(change, message):
    X, Y = data()
    arguments = {"targets": Y, "C": 1.0, "epsilon": 0.1} | change
    with pytest.raises(ValueError, match=message):
        solve_svr(gram_of(X), **arguments)


def test_warm_start_of_another_shape_is_refused():
    X, Y = data()
    gram = gram_of(X)
    first = solve_svr(gram, Y[:2], 1.0, 0.1)
    with pytest.raises(ValueError, match="warm_start"):
        solve_svr(gram, Y, 1.0, 0.1, warm_start=first)


def test_sets_need_a_tight_solution():
    X, Y = data()
    loose = solve_svr(gram_of(X), Y, 1.0, 0.1)
    for name in ("support", "bounded", "margin", "kkt"):
        with pytest.raises(ValueError, match="tight"):
            getattr(loose, name)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    n=st.integers(1, 40),
    p=st.integers(1, 3),
    duplicates=st.booleans(),
    constant=st.booleans(),
    log_scale=st.floats(-6, 6),
    log_c=st.floats(-3, 4),
    relative_epsilon=st.sampled_from([0.0, 0.01, 0.3]),
    seed=st.integers(0, 10_000),
)
def test_hard_inputs(n, p, duplicates, constant, log_scale, log_c, relative_epsilon, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    if duplicates:
        X = X[rng.integers(0, max(1, n // 3), size=n)]
    y = np.ones(n) if constant else rng.normal(size=n) + 3.0 * rng.integers(0, 2, size=n)
    y *= 10.0**log_scale
    C, epsilon = 10.0**log_c * 10.0**log_scale, relative_epsilon * 10.0**log_scale
    gram = gram_of(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        loose = solve_svr(gram, y[None], C, epsilon)
        tight = solve_svr(gram, y[None], C, epsilon, tol=1e-6)
    a, box = tight.coef[0], tight.problem.box[0]
    assert (np.abs(a) <= box).all()
    assert abs(a.sum()) <= 1e-10 * C * n
    assert tight.gap[0] <= 1e-6
    scale = max(tight.primal[0], 1e-9 * C * n * 10.0**log_scale)
    assert loose.dual[0] <= tight.primal[0] + 1e-9 * scale
    assert loose.primal[0] <= tight.primal[0] + 1.1e-3 * scale
