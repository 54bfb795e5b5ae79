import numpy as np
import pytest
from scipy.optimize import approx_fprime

from kstonet.tuning.relevance_gradient import NOWHERE, SINGLE_FROM, learn_scales, lowest, objective_and_gradient
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.stationary import FAMILIES


def rows(n=60, p=3):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.column_stack([np.sin(2 * X[:, 0]), X[:, 0] ** 2 - X[:, 1]]) + 0.1 * rng.normal(size=(n, 2))


@pytest.mark.parametrize("name", FAMILIES)
@pytest.mark.parametrize("objective", ["evidence", "loo"])
@pytest.mark.parametrize("weighted", [False, True])
def test_gradients_are_those_of_finite_differences(name, objective, weighted):
    X, Y = rows()
    weights = np.random.default_rng(1).uniform(0.5, 2.0, size=len(X)) if weighted else None
    args = (X, Y, weights, FAMILIES[name], objective, np.zeros(3), 0.7)
    at = np.array([0.1, -0.3, -0.8, np.log(0.05)])
    numeric = approx_fprime(at, lambda where: objective_and_gradient(where, *args)[0], 1e-6)
    np.testing.assert_allclose(objective_and_gradient(at, *args)[1], numeric, rtol=2e-4, atol=2e-3)


def test_the_leave_one_out_objective_is_that_of_the_regression():
    X, Y = rows()
    scales = np.array([1.0, 0.5, 0.2])
    fit = ridge_fit(FAMILIES["rbf"].matrix(X, scales), Y, 0.1)
    value, _ = objective_and_gradient(np.log([*scales, 0.1]), X, Y, None, FAMILIES["rbf"], "loo", np.log(scales), 1.0)
    np.testing.assert_allclose(value, 0.5 * len(X) * np.log(2 * len(X) * fit.score))


@pytest.mark.parametrize("objective", ["evidence", "loo"])
@pytest.mark.parametrize("name", FAMILIES)
def test_irrelevant_features_get_small_scales(name, objective):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(150, 8))
    Y = np.sin(2 * X[:, :1]) + X[:, 1:2]
    scales, _ = learn_scales(X, Y, None, FAMILIES[name], (np.full(8, 0.3), 0.1), objective=objective)
    assert scales[2:].max() < 0.8 * scales[:2].min()
    assert scales[2:].max() < 0.2 * scales[0]


def test_singular_matrices_are_nowhere(monkeypatch):
    X, Y = rows()
    monkeypatch.setattr("kstonet.tuning.relevance_gradient.CholeskyFactor.of", lambda *_, **__: None)
    for objective in ("evidence", "loo"):
        value, gradient = objective_and_gradient(np.zeros(4), X, Y, None, FAMILIES["rbf"], objective, np.zeros(3), 1.0)
        assert value == NOWHERE
        assert not gradient.any()


@pytest.mark.parametrize("name", FAMILIES)
def test_single_precision_finds_the_same_scales(name, monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    Y = np.sin(2 * X[:, :1]) + X[:, 1:] + 0.5 * rng.normal(size=(200, 1))
    start = (np.full(2, 0.5), 0.1)
    single = learn_scales(X, Y, None, FAMILIES[name], start)
    monkeypatch.setattr("kstonet.tuning.relevance_gradient.SINGLE_FROM", np.inf)
    double = learn_scales(X, Y, None, FAMILIES[name], start)
    np.testing.assert_allclose(np.log([*single[0], single[1]]), np.log([*double[0], double[1]]), atol=0.2)


def test_targets_without_noise_are_followed_in_double_precision():
    X = np.random.default_rng(0).uniform(-1, 1, size=(120, 2))
    _, ridge = learn_scales(X, np.sin(2 * X[:, :1]), None, FAMILIES["matern52"], (np.ones(2), 0.1))
    assert ridge < SINGLE_FROM


@pytest.mark.parametrize("edge", [-np.inf, -1.0])
def test_a_climb_ends_at_its_edge(edge):
    """Where the last parameter is beyond the edge for two iterations; another climb goes on from there."""
    seen = []

    def valley(at):
        seen.append(at.copy())
        scale = np.array([100.0, 1.0, 30.0])
        return float(scale @ (at + 5.0) ** 2), 2.0 * scale * (at + 5.0)

    end = lowest(valley, np.zeros(3), [(-9.0, 9.0), (-9.0, 9.0), (-1.0, 9.0)], 30, edge)
    assert end[-1] == -1.0
    if edge == -1.0:
        assert sum(at[-1] == -1.0 for at in seen) <= 4
    else:
        np.testing.assert_allclose(end[:2], -5.0, atol=0.1)


@pytest.mark.parametrize("objective", ["evidence", "loo"])
@pytest.mark.parametrize("name", ["laplacian", "matern32"])
def test_features_of_a_group_share_a_scale(name, objective):
    X, Y = rows(p=4)
    groups = np.array([0, 1, 1, 2])
    args = (X, Y, None, FAMILIES[name], objective, np.zeros(3), 0.7, None, groups)
    at = np.array([0.1, -0.3, -0.8, np.log(0.05)])
    numeric = approx_fprime(at, lambda where: objective_and_gradient(where, *args)[0], 1e-6)
    np.testing.assert_allclose(objective_and_gradient(at, *args)[1], numeric, rtol=2e-4, atol=2e-3)
    scales, _ = learn_scales(X, Y, None, FAMILIES[name], (np.full(4, 0.3), 0.1), objective=objective, groups=groups)
    assert len(np.unique(scales)) == 3
    assert scales[1] == scales[2]
