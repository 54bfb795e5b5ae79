"""The adjacent-categories logit model: its likelihood by brute force, its KKT conditions, its limits and its order."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from kstonet.solvers.multinomial import solve_multinomial
from kstonet.solvers.ordinal import class_scores, solve_ordinal
from kstonet.solvers.penalties import make_penalty

NAMES = ["lasso", "ridge", "scad", "mcp", "none"]


def graded(n=300, q=4, classes=5, seed=0):
    """Features, grades of the model itself, weights."""
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(n, q)) * rng.uniform(0.5, 1.5, q) + rng.normal(size=q)
    scores = class_scores(np.arange(classes))
    logits = np.outer(F @ (rng.normal(size=q) * (np.arange(q) % 2 == 0)), scores) + rng.normal(scale=0.3, size=classes)
    labels = np.argmax(logits + rng.gumbel(size=logits.shape), axis=1)
    labels[:classes] = np.arange(classes)
    return F, labels, rng.integers(1, 4, size=n).astype(float), scores


def likelihood(theta, F, labels, weights, scores):
    """Mean negative log-likelihood and its gradient, in the plainest way."""
    q = F.shape[1]
    logits = np.outer(F @ theta[:q], scores) + theta[q:]
    error = (softmax(logits, axis=1) - np.eye(len(scores))[labels]) * (weights / weights.sum())[:, None]
    value = -np.average(log_softmax(logits, axis=1)[np.arange(len(labels)), labels], weights=weights)
    return value, np.concatenate([F.T @ (error @ scores), error.sum(axis=0)])


@pytest.mark.parametrize("alpha", [0.0, 0.05])
@pytest.mark.parametrize("classes", [2, 3, 7])
def test_it_is_the_maximum_of_the_likelihood(alpha, classes):
    F, labels, weights, scores = graded(classes=classes)

    def objective(theta):
        value, gradient = likelihood(theta, F, labels, weights, scores)
        value += 0.5 * alpha * (theta[:4] ** 2).sum()
        return value, gradient + alpha * np.append(theta[:4], np.zeros(classes))

    best = minimize(objective, np.zeros(4 + classes), jac=True, method="BFGS", options={"gtol": 1e-9})
    fit = solve_ordinal(F, labels, scores, penalty="ridge", alpha=alpha, sample_weight=weights, tol=1e-9)
    np.testing.assert_allclose(fit.weights, np.outer(scores, best.x[:4]), atol=1e-5)
    np.testing.assert_allclose(fit.intercept, best.x[4:] - best.x[4:].mean(), atol=1e-5)
    assert fit.objective == pytest.approx(best.fun, abs=1e-10)
    assert fit.converged


@pytest.mark.parametrize("penalty", NAMES)
def test_the_first_order_conditions_hold(penalty):
    F, labels, weights, scores = graded(seed=1)
    fit = solve_ordinal(F, labels, scores, penalty=penalty, alpha=0.05, sample_weight=weights, tol=1e-8)
    shared = scores @ fit.weights / (scores @ scores)
    _, gradient = likelihood(np.append(shared, fit.intercept), F, labels, weights, scores)
    distance = make_penalty(penalty, 0.05, 1).subgradient_distance(shared[:, None], gradient[:4, None])
    assert max(distance.max(), np.abs(gradient[4:]).max()) < 1e-7
    again = solve_ordinal(
        F, labels, scores, penalty=penalty, alpha=0.05, sample_weight=weights, tol=1e-8, start=(fit.weights, fit.intercept)
    )
    assert again.n_iter <= 1
    np.testing.assert_allclose(again.weights, fit.weights, atol=1e-6)


def test_two_classes_are_a_logistic_regression():
    F, labels, weights, scores = graded(classes=2)
    ordinal = solve_ordinal(F, labels, scores, penalty="none", sample_weight=weights)
    logistic = solve_multinomial(F, labels, 2, penalty="none", sample_weight=weights)
    np.testing.assert_allclose(ordinal.weights[1] - ordinal.weights[0], logistic.weights[0], atol=1e-4)


def test_weights_are_repeated_rows():
    F, labels, weights, scores = graded()
    repeats = weights.astype(int)
    one = solve_ordinal(F, labels, scores, penalty="lasso", alpha=0.02, sample_weight=weights, tol=1e-9)
    other = solve_ordinal(np.repeat(F, repeats, 0), np.repeat(labels, repeats), scores, penalty="lasso", alpha=0.02, tol=1e-9)
    np.testing.assert_allclose(one.weights, other.weights, atol=1e-6)


def test_probabilities_respect_the_order():
    """P(class >= k) rises with the shared predictor, for every k and whatever the intercepts are."""
    F, labels, _, scores = graded()
    fit = solve_ordinal(F, labels, scores, penalty="ridge", alpha=0.01)
    shared = scores @ fit.weights / (scores @ scores)
    order = np.argsort(F @ shared)
    p = softmax(F[order] @ fit.weights.T + fit.intercept, axis=1)
    above = p[:, ::-1].cumsum(axis=1)[:, ::-1][:, 1:]
    assert (np.diff(above, axis=0) >= -1e-12).all()


@pytest.mark.parametrize("penalty", ["lasso", "ridge"])
def test_separable_grades_constant_predictors_and_a_class_of_one_row(penalty):
    F = np.column_stack([np.arange(40.0), np.full(40, 3.0), np.arange(40.0)])
    labels = np.r_[np.zeros(20, int), np.ones(19, int), [2]]
    fit = solve_ordinal(F, labels, class_scores(np.arange(3)), penalty=penalty, alpha=1e-4)
    assert fit.converged
    assert (fit.weights[:, 1] == 0).all()
    assert np.mean((F @ fit.weights.T + fit.intercept).argmax(axis=1) == labels) > 0.9


def test_wrong_labels_are_refused():
    F, labels, _, scores = graded()
    with pytest.raises(ValueError, match="must lie in 0"):
        solve_ordinal(F, labels + 1, scores, penalty="none")
