"""Penalised least squares: every prox by grid search, every fit by its KKT conditions computed from the raw data."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso as SklearnLasso
from sklearn.linear_model import Ridge as SklearnRidge

from kstonet.solvers import penalized
from kstonet.solvers.penalized import solve_penalized
from kstonet.solvers.penalties import MCP, SCAD, Lasso, NoPenalty, Penalty, Ridge, make_penalty

NAMES = ["lasso", "ridge", "scad", "mcp", "none"]
SPARSE = ["lasso", "scad", "mcp"]
OBJECTS = [
    NoPenalty(),
    Ridge(0.3),
    Lasso(0.3),
    SCAD(0.3),
    SCAD(0.3, a=2.1),
    MCP(0.3),
    MCP(0.3, gamma=1.2),
    Lasso(0.0),
    MCP(0.0),
]
# SCAD's 1-D problem is convex above 1/(a-1) = 0.370, MCP's above 1/gamma = 0.333; below 1/(a+1) = 0.213 SCAD ties at zero.
CURVATURES = [0.02, 0.15, 0.25, 1.0 / 3.0, 0.36, 1.0 / 2.7, 0.5, 1.0, 5.0]


def make_design(kind: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, targets, sample weights."""
    n, q, k = {"wide": (15, 30, 3), "single": (60, 1, 1)}.get(kind, (120, 7, 4))
    F = rng.normal(size=(n, q)) * rng.uniform(0.3, 2.0, q) + rng.normal(size=q)
    weights = np.ones(n)
    if kind == "collinear":
        F[:, 3] = F[:, 0]
        F[:, 5] = F[:, 1] - 2.0 * F[:, 2]
    elif kind == "nearly collinear":
        F = F[:, :1] + 0.05 * F
    elif kind == "constant":
        F[:, 2] = 0.1
    elif kind == "small":  # curvature far below 1/gamma: SCAD and MCP are not convex in any coordinate
        F *= 0.1
    elif kind == "weighted":
        weights = rng.integers(0, 4, n).astype(float)
    coef = rng.normal(size=(q, k)) * (rng.random((q, k)) < 0.5)
    T = F @ coef + 0.5 * rng.normal(size=(n, k)) + np.arange(1, k + 1)
    return F, T, weights


DESIGNS = ["random", "collinear", "nearly collinear", "constant", "small", "weighted", "wide", "single"]


def violation(F, T, w, fit, penalty: Penalty) -> float:
    """KKT violation of intercept and weights, from the raw data, relative to max|Fᵀt|/n."""
    residual = T - F @ fit.weights.T - fit.intercept
    gradient = -(F * w[:, None]).T @ residual / w.sum()
    centred = T - np.average(T, axis=0, weights=w)
    scale = np.abs((F * w[:, None]).T @ centred / w.sum()).max()
    intercept = np.abs(w @ residual / w.sum()).max()
    return max(penalty.subgradient_distance(fit.weights.T, gradient).max(), intercept) / scale


@pytest.mark.parametrize("curvature", CURVATURES)
@pytest.mark.parametrize("penalty", OBJECTS, ids=repr)
def test_prox_is_the_global_minimiser(penalty, curvature):
    z = np.concatenate([np.linspace(-3, 3, 241), [1e-9, -1e-9, 0.3, 0.9, 1.11]])
    grid = np.linspace(-4, 4, 16001)
    on_grid = (0.5 * curvature * (grid[:, None] - z) ** 2 + penalty.value(grid)[:, None]).min(0)
    w = penalty.prox(z, curvature)
    reached = 0.5 * curvature * (w - z) ** 2 + penalty.value(w)
    assert (reached <= on_grid + 1e-14).all()
    assert penalty.subgradient_distance(w, curvature * (w - z)).max() < 1e-12
    np.testing.assert_array_equal(penalty.prox(-z, curvature), -w)
    np.testing.assert_array_equal(penalty.prox(z, np.full(z.shape, curvature)), w)


@pytest.mark.parametrize("penalty", OBJECTS, ids=repr)
def test_derivatives_of_the_penalty(penalty):
    w = np.array([-2.0, -0.62, -0.5, -0.2, 0.1, 0.35, 0.5, 1.0, 1.5])
    h = 1e-5
    slope = (penalty.value(w + h) - penalty.value(w - h)) / (2 * h)
    bend = (penalty.derivative(w + h) - penalty.derivative(w - h)) / (2 * h)
    np.testing.assert_allclose(penalty.derivative(w), slope, atol=1e-9)
    np.testing.assert_allclose(penalty.curvature(w), bend, atol=1e-9)
    assert penalty.derivative(np.zeros(1))[0] == 0.0
    at_zero = penalty.subgradient_distance(np.zeros(3), np.array([penalty.kink, -penalty.kink, penalty.kink + 0.5]))
    np.testing.assert_allclose(at_zero, [0.0, 0.0, 0.5])


@pytest.mark.parametrize("penalty", [MCP(0.3), SCAD(0.3)], ids=repr)
def test_penalties_are_continuous_and_flat_in_the_end(penalty):
    w = np.linspace(-3, 3, 6001)
    assert np.abs(np.diff(penalty.value(w))).max() <= 0.3 * 0.001 + 1e-12
    assert penalty.value(np.array([2.0])) == penalty.value(np.array([-50.0]))


@pytest.mark.parametrize("alpha", [1e-4, 0.03, 0.3])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", DESIGNS)
def test_kkt_conditions(kind, name, alpha):
    F, T, w = make_design(kind, np.random.default_rng(1))
    penalty = make_penalty(name, alpha, T.shape[1])
    fit = solve_penalized(F, T, penalty=name, alpha=alpha, sample_weight=None if kind != "weighted" else w)
    assert fit.converged
    assert fit.weights.shape == fit.active.shape == (T.shape[1], F.shape[1])
    assert fit.intercept.shape == fit.kkt.shape == (T.shape[1],)
    assert violation(F, T, w, fit, penalty) < 1e-8
    np.testing.assert_array_equal(fit.active, fit.weights != 0)
    if kind == "constant":
        assert (fit.weights[:, 2] == 0).all()


@pytest.mark.parametrize("name", SPARSE)
def test_orthonormal_design_has_a_known_solution(name):
    rng = np.random.default_rng(2)
    F = np.linalg.qr(np.column_stack([np.ones(50), rng.normal(size=(50, 6))]))[0][:, 1:] * np.sqrt(50)
    T = rng.normal(size=(50, 5)) + F @ rng.normal(size=(6, 5))
    fit = solve_penalized(F, T, penalty=name, alpha=0.4)
    np.testing.assert_allclose(fit.weights.T, make_penalty(name, 0.4, 5).prox(F.T @ T / 50, 1.0), atol=1e-12)
    np.testing.assert_allclose(fit.intercept, T.mean(0), atol=1e-12)


@pytest.mark.parametrize("alpha", [1e-3, 0.05, 0.5])
@pytest.mark.parametrize("kind", ["random", "nearly collinear", "weighted", "constant", "single"])
def test_lasso_is_scikit_learns(kind, alpha):
    F, T, w = make_design(kind, np.random.default_rng(3))
    fit = solve_penalized(F, T, penalty="lasso", alpha=alpha, sample_weight=w)
    for j in range(T.shape[1]):
        reference = SklearnLasso(alpha=alpha, tol=1e-12, max_iter=200000).fit(F, T[:, j], sample_weight=w)
        np.testing.assert_allclose(fit.weights[j], reference.coef_, atol=2e-6)
        np.testing.assert_allclose(fit.intercept[j], reference.intercept_, atol=2e-6)
        np.testing.assert_array_equal(fit.active[j], reference.coef_ != 0)


@pytest.mark.parametrize("kind", DESIGNS)
def test_ridge_is_scikit_learns(kind):
    F, T, w = make_design(kind, np.random.default_rng(4))
    fit = solve_penalized(F, T, penalty="ridge", alpha=0.2, sample_weight=w)
    reference = SklearnRidge(alpha=0.2 * w.sum(), solver="svd").fit(F, T, sample_weight=w)
    np.testing.assert_allclose(fit.weights, reference.coef_.reshape(fit.weights.shape), atol=1e-10)
    np.testing.assert_allclose(fit.intercept, np.atleast_1d(reference.intercept_), atol=1e-10)


@pytest.mark.parametrize("kind", DESIGNS)
def test_no_penalty_is_least_squares_of_minimum_norm(kind):
    F, T, w = make_design(kind, np.random.default_rng(5))
    fit = solve_penalized(F, T, penalty="none", sample_weight=w)
    root = np.sqrt(w)[:, None]
    centred_F, centred_T = F - np.average(F, axis=0, weights=w), T - np.average(T, axis=0, weights=w)
    if kind == "constant":
        centred_F[:, 2] = 0.0
    expected = np.linalg.lstsq(root * centred_F, root * centred_T, rcond=None)[0].T
    np.testing.assert_allclose(fit.weights, expected, atol=1e-8)


def test_tiny_singular_values_are_not_lost_in_the_gram():
    rng = np.random.default_rng(6)
    F = rng.normal(size=(200, 3))
    F[:, 2] = F[:, 0] + 1e-7 * F[:, 2]  # squared: beyond what a Gram matrix can hold
    coef = np.array([[1.0, 2.0, 3.0]])
    fit = solve_penalized(F, F @ coef.T, penalty="none")
    np.testing.assert_allclose(fit.weights, coef, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_weight_two_is_a_row_given_twice_and_weight_zero_is_no_row(name):
    F, T, w = make_design("weighted", np.random.default_rng(7))
    weighted = solve_penalized(F, T, penalty=name, alpha=0.05, sample_weight=w)
    repeated = solve_penalized(np.repeat(F, w.astype(int), 0), np.repeat(T, w.astype(int), 0), penalty=name, alpha=0.05)
    scaled = solve_penalized(F, T, penalty=name, alpha=0.05, sample_weight=7.5 * w)
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-9)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-9)
    np.testing.assert_allclose(weighted.weights, scaled.weights, atol=1e-9)


@pytest.mark.parametrize("limit", [MCP(0.05, gamma=1e10), SCAD(0.05, a=1e10)], ids=repr)
@pytest.mark.parametrize("kind", ["random", "wide", "small"])
def test_limits_are_the_lasso(kind, limit):
    F, T, _ = make_design(kind, np.random.default_rng(8))
    lasso = solve_penalized(F, T, penalty="lasso", alpha=0.05)
    rng = np.random.default_rng(0)
    for start in (None, rng.normal(size=lasso.weights.shape)):
        np.testing.assert_allclose(solve_penalized(F, T, penalty=limit, start=start).weights, lasso.weights, atol=1e-6)


@pytest.mark.parametrize("name", ["scad", "mcp"])
def test_large_weights_are_not_biased(name):
    rng = np.random.default_rng(9)
    F = rng.normal(size=(500, 10))
    T = F[:, :2] @ np.array([[3.0], [-2.0]]) + 0.1 * rng.normal(size=(500, 1))
    fit = solve_penalized(F, T, penalty=name, alpha=0.2)
    oracle = solve_penalized(F[:, :2], T, penalty="none")
    np.testing.assert_allclose(fit.weights[0, :2], oracle.weights[0], atol=1e-10)
    assert (fit.weights[0, 2:] == 0).all()


def test_above_the_largest_alpha_all_weights_are_exactly_zero():
    F, T, _ = make_design("random", np.random.default_rng(10))
    largest = np.abs(F.T @ (T - T.mean(0))).max(0) / len(F)
    fit = solve_penalized(F, T, penalty="lasso", alpha=largest * (1 + 1e-9))
    assert not fit.active.any()
    np.testing.assert_allclose(fit.intercept, T.mean(0))
    assert solve_penalized(F, T, penalty="lasso", alpha=largest * 0.99).active.any(1).all()


@pytest.mark.parametrize("name", ["lasso", "ridge", "scad", "mcp"])
def test_one_alpha_per_output(name):
    F, T, _ = make_design("random", np.random.default_rng(11))
    alphas = np.array([0.001, 0.01, 0.1, 1.0])
    together = solve_penalized(F, T, penalty=name, alpha=alphas)
    for j, alpha in enumerate(alphas):
        alone = solve_penalized(F, T[:, j : j + 1], penalty=name, alpha=alpha)
        np.testing.assert_allclose(together.weights[j], alone.weights[0], atol=1e-9)


@pytest.mark.parametrize("name", SPARSE)
def test_a_warm_start_saves_passes(name):
    rng = np.random.default_rng(12)
    F = rng.normal(size=(300, 20)) + 2.0 * rng.normal(size=(300, 1))
    T = F @ (rng.normal(size=(20, 5)) * (rng.random((20, 5)) < 0.5)) + rng.normal(size=(300, 5))
    cold = solve_penalized(F, T, penalty=name, alpha=0.02)
    again = solve_penalized(F, T, penalty=name, alpha=0.02, start=cold.weights)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.weights, cold.weights, atol=1e-9)
    moved = T + 0.01 * rng.normal(size=T.shape)
    assert solve_penalized(F, moved, penalty=name, alpha=0.02, start=cold.weights).n_iter < cold.n_iter


@pytest.mark.parametrize("name", ["scad", "mcp"])
def test_without_a_start_the_lasso_is_the_start(name):
    F, T, _ = make_design("wide", np.random.default_rng(20))  # another start, another stationary point
    lasso = solve_penalized(F, T, penalty="lasso", alpha=0.01)
    cold = solve_penalized(F, T, penalty=name, alpha=0.01)
    from_lasso = solve_penalized(F, T, penalty=name, alpha=0.01, start=lasso.weights)
    from_elsewhere = solve_penalized(F, T, penalty=name, alpha=0.01, start=np.full_like(lasso.weights, 5.0))
    np.testing.assert_allclose(cold.weights, from_lasso.weights, atol=1e-10)
    assert cold.n_iter == lasso.n_iter + from_lasso.n_iter
    assert not np.allclose(cold.weights, from_elsewhere.weights, atol=1e-3)
    assert violation(F, T, np.ones(len(F)), from_elsewhere, make_penalty(name, 0.01, T.shape[1])) < 1e-8


@pytest.mark.parametrize("name", ["scad", "mcp"])
@pytest.mark.parametrize("kind", ["wide", "collinear"])
def test_concave_penalties_on_collinear_predictors_from_anywhere(kind, name):
    for seed in range(40):  # the data bend up less than the penalty bends down: Newton alone finds no way
        rng = np.random.default_rng(seed)
        F, T, w = make_design(kind, rng)
        start = rng.normal(size=(T.shape[1], F.shape[1]))
        fit = solve_penalized(F, T, penalty=name, alpha=0.1, start=start, max_iter=100)
        assert violation(F, T, w, fit, make_penalty(name, 0.1, T.shape[1])) < 1e-8


def test_any_start_leads_to_the_same_lasso():
    F, T, _ = make_design("random", np.random.default_rng(13))
    expected = solve_penalized(F, T, penalty="lasso", alpha=0.05).weights
    rng = np.random.default_rng(0)
    for scale in (1e-3, 1.0, 1e3):
        start = scale * rng.normal(size=expected.shape)
        np.testing.assert_allclose(solve_penalized(F, T, penalty="lasso", alpha=0.05, start=start).weights, expected, atol=1e-8)


@pytest.mark.parametrize("name", NAMES)
def test_invariances(name):
    F, T, _ = make_design("random", np.random.default_rng(14))

    def solve(features, targets, alpha=0.1):
        return solve_penalized(features, targets, penalty=name, alpha=alpha)

    plain = solve(F, T)
    shifted = solve(F + 100.0, T - 50.0)
    np.testing.assert_allclose(shifted.weights, plain.weights, atol=1e-8)
    np.testing.assert_allclose(shifted.intercept, plain.intercept - 50.0 - 100.0 * plain.weights.sum(1), atol=1e-6)
    order = np.random.default_rng(0).permutation(F.shape[1])
    np.testing.assert_allclose(solve(F[:, order], T).weights, plain.weights[:, order], atol=1e-8)
    np.testing.assert_allclose(solve(-F, T).weights, -plain.weights, atol=1e-8)
    np.testing.assert_allclose(solve(F, T[:, ::-1]).weights, plain.weights[::-1], atol=1e-8)
    # SCAD and MCP have their knots in units of alpha, so all but ridge are homogeneous: targets and alpha scale together.
    factor = 1.0 if name == "ridge" else 8.0
    np.testing.assert_allclose(solve(F, 8.0 * T, 0.1 * factor).weights, 8.0 * plain.weights, atol=1e-7)


def test_inputs_are_left_alone():
    F, T, w = make_design("weighted", np.random.default_rng(15))
    start = np.ones((T.shape[1], F.shape[1]))
    copies = [a.copy() for a in (F, T, w, start)]
    solve_penalized(F, T, penalty="mcp", alpha=0.1, sample_weight=w, start=start)
    for now, before in zip((F, T, w, start), copies, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize("name", NAMES)
def test_degenerate_data(name):
    F = np.random.default_rng(16).normal(size=(20, 3))
    constant_target = solve_penalized(F, np.full((20, 2), 0.7), penalty=name, alpha=0.1)
    np.testing.assert_allclose(constant_target.weights, 0.0, atol=1e-14)
    np.testing.assert_allclose(constant_target.intercept, 0.7)
    nothing_varies = solve_penalized(np.full((20, 3), 0.3), F[:, :1], penalty=name, alpha=0.1)
    assert not nothing_varies.active.any()
    one_row = solve_penalized(F[:1], F[:1, :1], penalty=name, alpha=0.1)
    assert not one_row.active.any()


@pytest.mark.parametrize("name", NAMES)
def test_no_strength_is_least_squares_of_minimum_norm(name):
    F, T, _ = make_design("collinear", np.random.default_rng(21))
    start = np.full((T.shape[1], F.shape[1]), 1e6)
    fit = solve_penalized(F, T, penalty=name, alpha=0.0, start=start)
    expected = np.linalg.lstsq(F - F.mean(0), T - T.mean(0), rcond=1e-10)[0].T
    np.testing.assert_allclose(fit.weights, expected, atol=1e-10)


@pytest.mark.parametrize("name", NAMES)
def test_what_rounding_leaves_of_a_constant_target_is_not_fitted(name):
    F = np.random.default_rng(16).normal(size=(14, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = solve_penalized(F, np.full((14, 1), -0.1) * 1e82, penalty=name, alpha=0.0)
    assert not fit.weights.any()


def test_a_violation_by_rounding_is_said_with_its_cause():
    rng = np.random.default_rng(3)
    F = rng.normal(size=(30, 3))
    F[:, 2] = F[:, 1] + 1e-12 * F[:, 2]  # the targets follow what is left of the third predictor
    with pytest.warns(ConvergenceWarning, match="rounding leaves a relative KKT violation .* nearly collinear"):
        fit = solve_penalized(F, 1e15 * (F[:, 2:] - F[:, 1:2]), penalty="none")
    assert not fit.converged
    assert fit.kkt[0] > 1e-6


def test_predictors_of_very_different_scale():
    F, T, _ = make_design("random", np.random.default_rng(17))
    scales = 10.0 ** np.arange(-3, 4)
    plain = solve_penalized(F, T, penalty="none")
    np.testing.assert_allclose(solve_penalized(F * scales, T, penalty="none").weights * scales, plain.weights, rtol=1e-6)
    lasso = solve_penalized(F * scales, T, penalty="lasso", alpha=1e-5)
    assert violation(F * scales, T, np.ones(len(F)), lasso, Lasso(1e-5)) < 1e-8


def test_stopping_early_warns_with_the_remedy():
    F, T, _ = make_design("wide", np.random.default_rng(18))
    with pytest.warns(ConvergenceWarning, match=r"KKT violation.*Raise max_iter"):
        fit = solve_penalized(F, T, penalty="lasso", alpha=1e-4, max_iter=1)
    assert not fit.converged
    assert fit.n_iter == 1


def test_no_warnings_in_daily_use():
    F, T, _ = make_design("random", np.random.default_rng(19))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in NAMES:
            solve_penalized(F, T, penalty=name, alpha=0.0)


FEATURES, TARGETS = np.eye(4), np.ones((4, 2))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"penalty": "l0"}, r"penalty='l0'.*lasso"),
        ({"alpha": -1.0}, "alpha=-1.0 must be one non-negative"),
        ({"alpha": None}, "alpha=None"),
        ({"alpha": [0.1, 0.2, 0.3]}, "each of the 2 outputs"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"penalty": Lasso(0.1)}, "has its own"),
        ({"features": np.ones(4)}, r"features has shape \(4,\)"),
        ({"features": np.ones((4, 0))}, "at least one row and one column"),
        ({"features": np.where(FEATURES, np.nan, 0.0)}, r"features contains NaN or infinity \(column 0\)"),
        ({"targets": TARGETS * np.inf}, "targets contains NaN"),
        ({"targets": np.ones(4)}, r"targets has shape \(4,\)"),
        ({"targets": np.ones((3, 2))}, r"it must be \(4, k\)"),
        ({"sample_weight": np.ones(3)}, "sample_weight must hold 4"),
        ({"sample_weight": -np.ones(4)}, "non-negative"),
        ({"sample_weight": np.zeros(4)}, "at least one of them positive"),
        ({"start": np.ones((4, 2))}, r"start has shape \(4, 2\).*\(2, 4\)"),
        ({"start": np.full((2, 4), np.nan)}, "finite values"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"features": FEATURES, "targets": TARGETS, "penalty": "lasso", "alpha": 0.1} | changes
    features, targets = arguments.pop("features"), arguments.pop("targets")
    with pytest.raises(ValueError, match=message):
        solve_penalized(features, targets, **arguments)


@pytest.mark.parametrize(("kind", "shape"), [(SCAD, {"a": 2.0}), (MCP, {"gamma": 1.0})])
def test_bad_shapes_of_penalties_are_named(kind, shape):
    with pytest.raises(ValueError, match=f"{next(iter(shape))}="):
        kind(0.1, **shape)


@pytest.mark.parametrize("name", ["lasso", "ridge", "none", "mcp", "scad"])
@pytest.mark.parametrize("weighted", [False, True])
def test_more_predictors_than_rows(name, weighted, monkeypatch):
    """Without the Gram matrix of all predictors the solution is the same, and certified on all of them."""
    rng = np.random.default_rng(0)
    F, w = rng.normal(size=(40, 400)) + 3.0, rng.uniform(0.5, 2.0, 40) if weighted else None
    F[:, 7] = 2.0
    T = np.column_stack([F[:, 0] - 2.0 * F[:, 1], F[:, 2] + 0.1 * rng.normal(size=40)])
    fit = solve_penalized(F, T, penalty=name, alpha=0.2, sample_weight=w)
    assert fit.converged
    assert (fit.kkt < 1e-7).all()
    assert (fit.weights[:, 7] == 0.0).all()
    monkeypatch.setattr(penalized, "WIDE", 10**6)
    dense = solve_penalized(F, T, penalty=name, alpha=0.2, sample_weight=w)
    np.testing.assert_allclose(fit.weights, dense.weights, atol=1e-7)
    np.testing.assert_allclose(fit.intercept, dense.intercept, atol=1e-6)
    again = solve_penalized(F, T, penalty=name, alpha=0.19, sample_weight=w, start=None if name == "none" else fit.weights)
    assert again.converged


def test_ten_thousand_predictors_of_few_rows():
    """A Gram matrix of 10,000 predictors would take 800 MB, and its factor minutes."""
    rng = np.random.default_rng(1)
    F = rng.normal(size=(30, 10_000))
    started = time.process_time()
    fit = solve_penalized(F, F[:, :2], penalty="lasso", alpha=1e-3)
    assert fit.converged
    assert time.process_time() - started < 10.0
