"""Penalised multinomial regression: derivatives by differences, fits by their KKT conditions and against scikit-learn."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.fixes import parse_version

from kstonet.solvers.multinomial import best_shift, solve_multinomial
from kstonet.solvers.penalties import MCP, SCAD, Penalty, make_penalty
from kstonet.solvers.softmax import SoftmaxLoss, log_proba

NAMES = ["lasso", "ridge", "scad", "mcp", "none"]
SPARSE = ["lasso", "scad", "mcp"]


def make_data(kind: str, n_classes: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Features, labels, sample weights; classes overlap enough for a finite optimum unless the design is wide."""
    rng = np.random.default_rng(seed)
    n, q = (25, 40) if kind == "wide" else (250, 6)
    F = rng.normal(size=(n, q)) * rng.uniform(0.4, 1.5, q) + rng.normal(size=q)
    weights = np.ones(n)
    if kind == "collinear":
        F[:, 4] = F[:, 0]
        F[:, 5] = F[:, 1] - F[:, 2]
    elif kind == "constant":
        F[:, 3] = 0.7
    elif kind == "weighted":
        weights = rng.integers(0, 4, n).astype(float)
    coef = rng.normal(size=(q, n_classes)) * (rng.random((q, n_classes)) < 0.6)
    labels = np.argmax((F - F.mean(0)) @ coef + rng.gumbel(size=(n, n_classes)), 1)
    labels[:n_classes] = np.arange(n_classes)
    return F, labels, weights


def objective(F, labels, w, fit, penalty: Penalty, temperature=1.0) -> float:
    log_p = log_proba((F @ fit.weights.T + fit.intercept) / temperature)
    return -np.average(log_p[np.arange(len(labels)), labels], weights=w) + penalty.value(fit.weights.T).sum()


def violation(F, labels, w, fit, penalty: Penalty, temperature=1.0) -> float:
    """KKT violation from the raw data, in units of the gradient of the model without predictors."""
    proba = np.exp(log_proba((F @ fit.weights.T + fit.intercept) / temperature))
    onehot = np.eye(proba.shape[1])[labels]
    frequency = np.average(onehot, axis=0, weights=w)
    keep = slice(1, None) if fit.weights.shape[0] == 1 else slice(None)
    w = (w / w.sum())[:, None]
    centred = (F - (w * F).sum(0)) / temperature
    gradient = (centred * w).T @ (proba - onehot)[:, keep]
    scale = np.abs((centred * w).T @ (frequency - onehot)[:, keep]).max()
    intercept = np.abs((w * (proba - onehot)).sum(0)).max()
    return max(penalty.subgradient_distance(fit.weights.T, gradient).max() / scale, intercept)


def sklearn_fit(F, labels, w, *, C, l1=False):
    new = parse_version(sklearn.__version__) >= parse_version("1.8")
    kind = {"l1_ratio": 1.0 if l1 else 0.0} if new else {"penalty": "l1" if l1 else "l2"}
    solver, tol = ("saga", 1e-8) if l1 else ("lbfgs", 1e-10)
    return LogisticRegression(C=C, solver=solver, tol=tol, max_iter=20000, **kind).fit(F, labels, sample_weight=w)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_derivatives_of_the_loss(n_classes):
    rng = np.random.default_rng(n_classes)
    F, labels, w = make_data("weighted", n_classes)
    rows = 1 if n_classes == 2 else n_classes
    loss = SoftmaxLoss(F, labels, rows, w / w.sum())
    theta, direction = rng.normal(size=(2, F.shape[1], rows))
    _, proba = loss.evaluate(theta)
    h = 1e-5
    (up, proba_up), (down, proba_down) = loss.evaluate(theta + h * direction), loss.evaluate(theta - h * direction)
    assert (loss.gradient(proba) * direction).sum() == pytest.approx((up - down) / (2 * h), rel=1e-7)
    difference = (loss.gradient(proba_up) - loss.gradient(proba_down)) / (2 * h)
    np.testing.assert_allclose(loss.hessian_product(proba, direction), difference, atol=1e-8)
    gram = (F * (w / w.sum())[:, None]).T @ F
    curvature = (direction * loss.hessian_product(proba, direction)).sum()
    assert 0 <= curvature <= loss.bound * (direction * (gram @ direction)).sum()


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_loss_is_the_log_probability(n_classes):
    rng = np.random.default_rng(0)
    F, labels, _ = make_data("random", n_classes)
    rows = 1 if n_classes == 2 else n_classes
    theta = rng.normal(size=(F.shape[1], rows))
    log_p = log_proba(F @ theta)
    assert log_p.shape == (len(F), n_classes)
    np.testing.assert_allclose(np.exp(log_p).sum(1), 1.0)
    value, proba = SoftmaxLoss(F, labels, rows, np.full(len(F), 1 / len(F))).evaluate(theta)
    assert value == pytest.approx(-log_p[np.arange(len(F)), labels].mean())
    np.testing.assert_allclose(proba.T, np.exp(log_p)[:, -rows:])


def test_log_proba_neither_overflows_nor_underflows():
    np.testing.assert_array_equal(log_proba([[1e4], [-1e4]]), [[-1e4, 0.0], [0.0, -1e4]])
    np.testing.assert_array_equal(log_proba([[1e4, 0.0, -1e4]]), [[0.0, -1e4, -2e4]])
    assert log_proba([[1e-20]])[0, 1] == pytest.approx(-np.log(2))
    with pytest.raises(ValueError, match="logits has shape"):
        log_proba([1.0, 2.0])


@pytest.mark.parametrize("alpha", [1e-4, 0.02, 0.2])
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3, 4])
@pytest.mark.parametrize("kind", ["random", "collinear", "constant", "weighted"])
def test_kkt_conditions(kind, n_classes, name, alpha):
    F, labels, w = make_data(kind, n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty=name, alpha=alpha, sample_weight=w, temperature=0.8)
    rows = 1 if n_classes == 2 else n_classes
    assert fit.converged
    assert fit.kkt <= 1e-6
    assert fit.weights.shape == fit.active.shape == (rows, F.shape[1])
    assert fit.intercept.shape == (rows,)
    penalty = make_penalty(name, alpha, rows)
    assert violation(F, labels, w, fit, penalty, 0.8) < 1.01e-6
    assert fit.objective == pytest.approx(objective(F, labels, w, fit, penalty, 0.8), rel=1e-9)
    np.testing.assert_array_equal(fit.active, fit.weights != 0)
    if rows > 1:
        assert fit.intercept.sum() == pytest.approx(0.0, abs=1e-10)
    if kind == "constant":
        assert (fit.weights[:, 3] == 0).all()


@pytest.mark.parametrize("name", ["lasso", "ridge"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_more_predictors_than_rows(n_classes, name):
    F, labels, w = make_data("wide", n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty=name, alpha=0.01)
    assert fit.converged
    assert violation(F, labels, w, fit, make_penalty(name, 0.01, len(fit.weights))) < 1.01e-6


@pytest.mark.parametrize("alpha", [1e-3, 0.05])
@pytest.mark.parametrize("n_classes", [2, 3, 5])
@pytest.mark.parametrize("kind", ["random", "weighted"])
def test_ridge_is_scikit_learns(kind, n_classes, alpha):
    F, labels, w = make_data(kind, n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty="ridge", alpha=alpha, sample_weight=w, tol=1e-9)
    reference = sklearn_fit(F, labels, w, C=1.0 / (alpha * w.sum()))
    np.testing.assert_allclose(fit.weights, reference.coef_, atol=1e-5)
    np.testing.assert_allclose(np.exp(log_proba(F @ fit.weights.T + fit.intercept)), reference.predict_proba(F), atol=1e-5)


@pytest.mark.parametrize("alpha", [2e-3, 0.03])
@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_lasso_is_scikit_learns(n_classes, alpha):
    F, labels, w = make_data("random", n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty="lasso", alpha=alpha)
    reference = sklearn_fit(F, labels, w, C=1.0 / (alpha * len(F)), l1=True)
    reference.weights, reference.intercept = reference.coef_, reference.intercept_
    theirs = objective(F, labels, w, reference, make_penalty("lasso", alpha, len(fit.weights)))
    assert fit.objective <= theirs + 1e-9
    assert fit.objective >= theirs - 1e-6
    np.testing.assert_allclose(np.exp(log_proba(F @ fit.weights.T + fit.intercept)), reference.predict_proba(F), atol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_no_penalty_is_maximum_likelihood(n_classes):
    F, labels, w = make_data("random", n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty="none", tol=1e-9)
    reference = sklearn_fit(F, labels, w, C=1e10)
    np.testing.assert_allclose(np.exp(log_proba(F @ fit.weights.T + fit.intercept)), reference.predict_proba(F), atol=1e-5)
    if n_classes > 2:
        np.testing.assert_allclose(fit.weights.sum(0), 0.0, atol=1e-10)


@pytest.mark.parametrize("limit", [MCP(0.02, gamma=1e10), SCAD(0.02, a=1e10)], ids=repr)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_limits_are_the_lasso(n_classes, limit):
    F, labels, _ = make_data("random", n_classes)
    lasso = solve_multinomial(F, labels, n_classes, penalty="lasso", alpha=0.02, tol=1e-9)
    start = (np.ones_like(lasso.weights), np.zeros_like(lasso.intercept))
    fit = solve_multinomial(F, labels, n_classes, penalty=limit, start=start, tol=1e-9)
    np.testing.assert_allclose(fit.weights, lasso.weights, atol=1e-6)


@pytest.mark.parametrize("name", SPARSE)
def test_the_best_common_shift_beats_a_grid(name):
    penalty = make_penalty(name, 0.3, 5)
    W = np.random.default_rng(0).normal(size=(20, 5))
    shifted = best_shift(penalty, W)
    np.testing.assert_allclose(np.ptp(shifted - W, axis=1), 0.0, atol=1e-12)  # the likelihood sees no difference
    grid = np.linspace(-3, 3, 3001)[:, None, None]
    assert (penalty.value(shifted).sum(1) <= penalty.value(W - grid).sum(2).min(0) + 1e-12).all()
    np.testing.assert_array_equal(best_shift(penalty, shifted), shifted)


@pytest.mark.parametrize("n_classes", [2, 3, 4])
def test_a_large_alpha_leaves_the_class_frequencies(n_classes):
    F, labels, _ = make_data("random", n_classes)
    fit = solve_multinomial(F, labels, n_classes, penalty="lasso", alpha=10.0)
    assert not fit.active.any()
    frequency = np.bincount(labels) / len(labels)
    np.testing.assert_allclose(np.exp(log_proba(fit.intercept[None]))[0], frequency, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_weight_two_is_a_row_given_twice_and_weight_zero_is_no_row(n_classes, name):
    F, labels, w = make_data("weighted", n_classes)
    times = w.astype(int)
    weighted = solve_multinomial(F, labels, n_classes, penalty=name, alpha=0.02, sample_weight=w, tol=1e-9)
    repeated = solve_multinomial(
        np.repeat(F, times, 0), np.repeat(labels, times), n_classes, penalty=name, alpha=0.02, tol=1e-9
    )
    np.testing.assert_allclose(weighted.weights, repeated.weights, atol=1e-6)
    np.testing.assert_allclose(weighted.intercept, repeated.intercept, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_temperature_divides_the_logits(n_classes, name):
    F, labels, _ = make_data("random", n_classes)
    warm = solve_multinomial(F, labels, n_classes, penalty=name, alpha=0.01, temperature=2.5, tol=1e-9)
    divided = solve_multinomial(F / 2.5, labels, n_classes, penalty=name, alpha=0.01, tol=1e-9)
    np.testing.assert_allclose(warm.weights, divided.weights, atol=1e-6)
    np.testing.assert_allclose(warm.intercept / 2.5, divided.intercept, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_invariances(name):
    F, labels, _ = make_data("random", 3)

    def solve(features, classes):
        return solve_multinomial(features, classes, 3, penalty=name, alpha=0.02, tol=1e-9)

    plain = solve(F, labels)
    shifted = solve(F + 50.0, labels)
    np.testing.assert_allclose(shifted.weights, plain.weights, atol=1e-6)
    order = np.array([2, 0, 1])
    np.testing.assert_allclose(solve(F, order[labels]).weights[order], plain.weights, atol=1e-6)
    columns = np.random.default_rng(0).permutation(F.shape[1])
    np.testing.assert_allclose(solve(F[:, columns], labels).weights, plain.weights[:, columns], atol=1e-6)
    np.testing.assert_allclose(solve(-F, labels).weights, -plain.weights, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_two_classes_exchanged_change_the_sign(name):
    F, labels, _ = make_data("random", 2)
    plain = solve_multinomial(F, labels, 2, penalty=name, alpha=0.02, tol=1e-9)
    exchanged = solve_multinomial(F, 1 - labels, 2, penalty=name, alpha=0.02, tol=1e-9)
    np.testing.assert_allclose(exchanged.weights, -plain.weights, atol=1e-6)
    np.testing.assert_allclose(exchanged.intercept, -plain.intercept, atol=1e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_a_warm_start_saves_iterations(n_classes, name):
    F, labels, _ = make_data("random", n_classes)
    how = {"penalty": name, "alpha": 0.01, "temperature": 1.5}
    cold = solve_multinomial(F, labels, n_classes, **how)
    again = solve_multinomial(F, labels, n_classes, start=(cold.weights, cold.intercept), **how)
    assert again.n_iter == 0
    np.testing.assert_allclose(again.weights, cold.weights, atol=1e-12)
    np.testing.assert_allclose(again.intercept, cold.intercept, atol=1e-12)
    moved = F + 0.003 * np.random.default_rng(0).normal(size=F.shape)
    warm = solve_multinomial(moved, labels, n_classes, start=(cold.weights, cold.intercept), **how)
    assert warm.n_iter < cold.n_iter


@pytest.mark.parametrize("name", ["lasso", "ridge", "none"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_bad_start_does_no_harm(n_classes, name):
    F, labels, _ = make_data("random", n_classes)
    cold = solve_multinomial(F, labels, n_classes, penalty=name, alpha=0.01)
    start = (1e8 * np.ones_like(cold.weights), 1e8 * np.arange(len(cold.intercept)))
    fit = solve_multinomial(F, labels, n_classes, penalty=name, alpha=0.01, start=start)
    assert fit.objective == pytest.approx(cold.objective, abs=1e-9)
    assert fit.n_iter == cold.n_iter  # worse than no start at all, hence not used


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", NAMES)
def test_separable_classes_end_with_bounded_weights(name, n_classes):
    F = np.linspace(-3, 3, 60)[:, None] * np.array([[1.0, -2.0]])
    labels = np.repeat(np.arange(n_classes), 60 // n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit = solve_multinomial(F, labels, n_classes, penalty=name, alpha=1e-3)
    assert fit.converged
    assert np.abs(fit.weights).max() < 1e4
    assert ((F @ fit.weights.T + fit.intercept).argmax(1) == labels).all() if n_classes > 2 else True


@pytest.mark.parametrize("n_classes", [2, 5])
def test_strong_signals_and_collinear_predictors_converge(n_classes):
    for seed in range(12):  # weights enter and leave the active set many times on this way
        rng = np.random.default_rng(seed)
        F = 10.0 * rng.normal(size=(200, 8))
        F[:, 0] = F[:, 1] + F[:, 2]
        labels = np.argmax(F @ rng.normal(size=(8, n_classes)) + 3.0 * rng.gumbel(size=(200, n_classes)), 1)
        fit = solve_multinomial(F, labels, n_classes, penalty="lasso", alpha=1e-5, max_iter=60)
        assert fit.converged


def test_a_class_without_rows_gets_no_probability():
    F, labels, _ = make_data("random", 3)
    labels = np.where(labels == 1, 2, labels)
    fit = solve_multinomial(F, labels, 3, penalty="lasso", alpha=0.01)
    assert fit.converged
    assert np.isfinite(fit.intercept).all()
    assert np.exp(log_proba(F @ fit.weights.T + fit.intercept))[:, 1].max() < 1e-5


def test_predictors_that_do_not_vary():
    fit = solve_multinomial(np.ones((4, 2)), [0, 1, 1, 1], 2, penalty="none")
    assert not fit.active.any()
    assert fit.intercept[0] == pytest.approx(np.log(3.0))


def test_inputs_are_left_alone():
    F, labels, w = make_data("weighted", 3)
    copies = [F.copy(), labels.copy(), w.copy()]
    solve_multinomial(F, labels, 3, penalty="mcp", alpha=0.02, sample_weight=w)
    for now, before in zip((F, labels, w), copies, strict=True):
        np.testing.assert_array_equal(now, before)


def test_stopping_early_warns_with_the_remedy():
    F, labels, _ = make_data("random", 3)
    with pytest.warns(ConvergenceWarning, match=r"max_iter=1 .*Raise max_iter"):
        fit = solve_multinomial(F, labels, 3, penalty="ridge", alpha=1e-3, max_iter=1)
    assert not fit.converged
    assert fit.n_iter == 1


FEATURES, LABELS = np.arange(8.0).reshape(4, 2), np.array([0, 1, 2, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": [1, 1, 1, 1]}, r"classes \[1\] only"),
        ({"sample_weight": [1, 0, 0, 0]}, r"classes \[0\] only"),
        ({"labels": [0, 1, 2, 3]}, r"labels run from 0 to 3.*0\.\.2.*np\.unique"),
        ({"labels": [-1, 1, 2, 1]}, "labels run from -1"),
        ({"labels": [0.0, 1.0, 2.0, 1.0]}, "dtype float64"),
        ({"labels": [0, 1]}, "must hold 4 integers"),
        ({"n_classes": 1}, "n_classes=1"),
        ({"temperature": 0.0}, "temperature=0.0"),
        ({"temperature": np.inf}, "temperature=inf"),
        ({"penalty": "l1"}, "penalty='l1'"),
        ({"alpha": -0.1}, "alpha=-0.1"),
        ({"features": np.full((4, 2), np.nan)}, "features contains NaN"),
        ({"features": np.ones(4)}, "features has shape"),
        ({"sample_weight": [1, 2]}, "sample_weight must hold 4"),
        ({"start": (np.ones((2, 2)), np.ones(3))}, r"start\[0\] \(weights\)"),
        ({"start": (np.ones((3, 2)), np.ones(1))}, r"start\[1\] \(intercept\)"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
    ],
)
def test_bad_input_is_named(changes, message):
    arguments = {"features": FEATURES, "labels": LABELS, "n_classes": 3, "penalty": "lasso", "alpha": 0.1} | changes
    positional = [arguments.pop(name) for name in ("features", "labels", "n_classes")]
    with pytest.raises(ValueError, match=message):
        solve_multinomial(*positional, **arguments)


@pytest.mark.parametrize(
    ("penalty", "cause"),
    [("scad", "does not bound the weights"), ("none", "does not bound"), ("lasso", "very many rows or classes")],
)
def test_the_work_is_bounded_and_the_cause_is_said(penalty, cause):
    features = np.random.default_rng(0).normal(size=(14, 3))
    with pytest.warns(ConvergenceWarning, match=f"of 14 classes stopped before its tolerance, at its limit of work: .*{cause}"):
        fit = solve_multinomial(features, np.arange(14), 14, penalty=penalty, alpha=1e-4, max_products=5)
    assert not fit.converged
    assert fit.kkt > 1e-6
