import numpy as np
import pytest

from kstonet.tuning.screening_ridge import RIDGES, best_ridge, ridge_fit
from kstonet.tuning.stationary import FAMILIES


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] * X[:, 2]]) + 0.1 * rng.normal(size=(40, 2)) + 3.0
    return X, Y, FAMILIES["matern32"].matrix(X, np.full(3, 0.5))


def solved(K, Y, ridge, weights):
    """The regression by its saddle-point system."""
    n = len(K)
    A = np.zeros((n + 1, n + 1))
    A[:n, :n] = K + np.diag(ridge / weights)
    A[n, :n] = A[:n, n] = 1.0
    found = np.linalg.solve(A, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return found[:n], found[n]


@pytest.mark.parametrize("weighted", [False, True])
def test_leave_one_out_errors_are_those_of_refits(rows, weighted):
    X, Y, K = rows
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X)) if weighted else None
    each = np.ones(len(X)) if weights is None else weights
    fit = ridge_fit(K, Y, 0.05, weights)
    coef, intercept = solved(K, Y, 0.05, each)
    np.testing.assert_allclose(fit.coef, coef, atol=1e-9)
    np.testing.assert_allclose(fit.intercept, intercept)
    for out in (0, 17, 39):
        kept = np.delete(np.arange(len(X)), out)
        coef, intercept = solved(K[np.ix_(kept, kept)], Y[kept], 0.05, each[kept])
        np.testing.assert_allclose(fit.errors[out], Y[out] - K[out, kept] @ coef - intercept, atol=1e-8)
    np.testing.assert_allclose(fit.score, np.average((fit.errors**2).mean(axis=1), weights=weights))


def test_a_weight_of_two_is_a_row_given_twice(rows):
    X, Y, K = rows
    weights = np.ones(len(X))
    weights[3] = 2.0
    twice = np.append(np.arange(len(X)), 3)
    one, two = ridge_fit(K, Y, 0.05, weights), ridge_fit(K[np.ix_(twice, twice)], Y[twice], 0.05)
    np.testing.assert_allclose(K @ one.coef + one.intercept, K[:, twice] @ two.coef + two.intercept, atol=1e-8)


def test_a_singular_matrix_has_no_regression():
    assert ridge_fit(-np.eye(4), np.ones((4, 1)), 0.5) is None


def test_the_climb_finds_the_best_ridge(rows):
    _, Y, K = rows
    scores = [ridge_fit(K, Y, ridge).score for ridge in RIDGES]
    for start in (0, 4, len(RIDGES) - 1):
        assert best_ridge(K, Y, start=start).ridge == RIDGES[int(np.argmin(scores))]


def test_the_climb_leaves_singular_matrices():
    K = -0.05 * np.eye(20) + 1e-3  # positive definite with a ridge above 0.05 only
    assert best_ridge(K, np.random.default_rng(0).normal(size=(20, 1)), start=0).ridge > 0.05


@pytest.mark.parametrize("weighted", [False, True])
def test_float32_is_precise_enough_to_compare_candidates(rows, weighted):
    _, Y, K = rows
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(K)) if weighted else None
    whole, half = ridge_fit(K, Y, 0.05, weights), ridge_fit(np.triu(K), Y, 0.05, weights, single_from=0.01)
    assert half.score == pytest.approx(whole.score, rel=1e-4)
    assert half.score != whole.score
    assert half.errors.dtype == np.float64
    assert ridge_fit(K, Y, 0.05, weights, single_from=0.1).score == whole.score


def test_float32_is_corrected_by_what_it_leaves_over():
    """A smooth kernel with a small ridge: the solutions alone would be wrong by more than candidates differ."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    Y = np.sin(2 * X[:, :1]) + 0.05 * rng.normal(size=(400, 1))
    K = np.exp(-0.1 * ((X[:, None] - X) ** 2).sum(axis=2))
    whole, half, alone = (
        ridge_fit(K, Y, 1e-3),
        ridge_fit(K, Y, 1e-3, single_from=1e-3),
        ridge_fit(K.astype(np.float32), Y, 1e-3),
    )
    assert half.score == pytest.approx(whole.score, rel=5e-4)
    np.testing.assert_allclose(half.coef, whole.coef, atol=1e-4 * np.abs(whole.coef).max())
    assert np.abs(alone.coef - whole.coef).max() > 10 * np.abs(half.coef - whole.coef).max()
