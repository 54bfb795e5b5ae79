"""The log loss of left-out rows against refits without them, and its gradients against finite differences."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from sklearn.datasets import make_moons

from kstonet import KStoNetClassifier
from kstonet.solvers.softmax import log_proba
from kstonet.targets import ClassTargets, OrderedClasses
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.log_loss import PRIOR, SLOPE, LeftOutLogLoss
from kstonet.tuning.relevance_gradient import objective_and_gradient
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.stationary import FAMILIES


def rows(classes, n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    codes = np.argmax(X @ rng.normal(size=(2, classes)) + 0.7 * rng.gumbel(size=(n, classes)), axis=1)
    codes[:classes] = np.arange(classes)
    return X, codes, ClassTargets(np.arange(classes)), rng.uniform(0.5, 2.0, size=n)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 4])
def test_it_is_that_of_refits_without_every_row(classes, weighted):
    """Every row left out in turn by refitting; then the best slope (and for two classes level) of the logits, by BFGS."""
    X, codes, targets, weights = rows(classes)
    weights = weights if weighted else None
    Y = targets.judged(codes, weights)
    loss = LeftOutLogLoss.of(targets, codes, Y, weights)
    K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    found = ridge_fit(K, Y, 0.5, weights, loss)
    left = np.empty_like(Y)
    for i in range(40):
        others = np.delete(np.arange(40), i)
        fit = ridge_fit(K[np.ix_(others, others)], Y[others], 0.5, None if weights is None else weights[others])
        left[i] = K[i, others] @ fit.coef + fit.intercept
    p = left * loss.unit + loss.level  # back on the scale of 0 and 1
    np.testing.assert_allclose(targets.contrasts(codes), Y * loss.unit + loss.level, atol=1e-12)

    def of(theta):
        logits = theta[0] * p + (theta[1] if classes == 2 else 0.0)
        own = log_proba(logits)[np.arange(40), codes]
        return -np.average(own, weights=weights) + 0.5 * PRIOR * (theta[0] - SLOPE) ** 2 / 40

    best = minimize(of, [SLOPE, 0.0]).fun
    np.testing.assert_allclose(found.score * loss.entropy, best, rtol=1e-5)
    np.testing.assert_allclose(found.root**2, np.average(((Y - left) ** 2).mean(axis=1), weights=weights))


def test_its_scale_is_that_of_the_frequencies():
    codes = np.repeat([0, 1], [90, 10])
    targets = ClassTargets(np.array(["a", "b"]))
    Y = targets.judged(codes, None)
    loss = LeftOutLogLoss.of(targets, codes, Y, None)
    np.testing.assert_allclose(loss.entropy, -(0.9 * np.log(0.9) + 0.1 * np.log(0.1)))
    np.testing.assert_allclose(loss(np.zeros_like(Y)), 1.0, rtol=1e-6)
    assert loss(Y) < 0.05


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_gradients_are_those_of_finite_differences(classes, weighted):
    X, codes, targets, weights = rows(classes)
    weights = weights if weighted else None
    Y = targets.judged(codes, weights)
    loss = LeftOutLogLoss.of(targets, codes, Y, weights)
    args = (X, Y, weights, FAMILIES["matern52"], "loo", np.zeros(2), 0.7, loss)
    at = np.array([0.1, -0.8, np.log(0.05)])
    numeric = approx_fprime(at, lambda where: objective_and_gradient(where, *args)[0], 1e-6)
    np.testing.assert_allclose(objective_and_gradient(at, *args)[1], numeric, rtol=2e-3, atol=2e-3)


def test_ordered_classes_and_mixtures_of_very_many_have_none():
    codes = np.arange(60) % 3
    ordered = OrderedClasses().of(codes)
    assert LeftOutLogLoss.of(ordered, codes, ordered.judged(codes, None), None) is None
    many = ClassTargets(np.arange(300))
    codes = np.arange(600) % 300
    assert LeftOutLogLoss.of(many, codes, many.judged(codes, None), None) is None


def test_the_choice_says_what_it_judged_by_and_is_better_in_it():
    X, codes = make_moons(300, noise=0.25, random_state=0)
    targets = ClassTargets(np.arange(2))
    Y = targets.judged(codes, None)
    loss = LeftOutLogLoss.of(targets, codes, Y, None)
    by_loss, by_error = automatic_choice(X, Y, loss=loss), automatic_choice(X, Y)
    assert "log loss" in by_loss.reason
    scores = [ridge_fit(np.asarray(c.kernel(X, X)), Y, c.ridges[0], None, loss).score for c in (by_loss, by_error)]
    assert scores[0] <= scores[1]


def test_a_common_factor_of_the_weights_changes_nothing():
    X, codes = make_moons(150, noise=0.25, random_state=0)
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=150)
    one, many = (
        KStoNetClassifier(random_state=0, residuals=None).fit(X, codes, sample_weight=factor * weights)
        for factor in (1.0, 64.0)
    )
    assert one.kernel_ == many.kernel_
    np.testing.assert_allclose(one.tuned_["C"], many.tuned_["C"])
    np.testing.assert_allclose(one.predict_proba(X), many.predict_proba(X), atol=1e-6)


def test_a_kernel_with_a_small_log_loss_is_a_signal_whatever_its_squared_errors():
    """The RBF kernel of these rows, with a ridge of 1e-4, has two thirds of the log loss of the frequencies."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    logits = 1.5 * np.column_stack([2.0 * np.sin(2.0 * X[:, 0]), X[:, 1] ** 2 - 1.0])
    y = (logits + rng.gumbel(size=logits.shape)).argmax(axis=1)
    model = KStoNetClassifier(random_state=0, max_iter=2, residuals="training").fit(X, y)
    assert "leave-one-out log loss" in model.tuning_["reason"]
    assert model.score(X, y) > 0.8
