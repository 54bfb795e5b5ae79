"""The variance of logits from a first layer of ridge regressions, against Gaussian processes written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from kstonet import KStoNetClassifier
from kstonet.layers.log_odds import log_odds
from kstonet.observers import Ends
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets
from kstonet.training import train
from kstonet.uncertainty.ridge_scale import SHRINKAGE, ridge_scale


def drawn(n, seed, strength=1.0):
    """Rows, labels and true probabilities of two classes."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    logits = np.column_stack([np.zeros(n), strength * (1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1])])
    p = softmax(logits, axis=1)
    return X, (rng.uniform(size=n) < p[:, 1]).astype(int), p


@pytest.fixture(scope="module")
def trained():
    X, y, _ = drawn(150, 0)
    problem, ends = Problem.of(Rows(X, y), ClassTargets), Ends()
    first = KernelLayerSettings(loss="squared", C=4.0)
    model = train(
        problem, TrainingSettings(first, hidden_layer_sizes=(1,), max_iter=2, n_average=1, residuals="crossfit"), [ends]
    )
    return problem, model, ends.states[0]


def test_variances_of_left_out_rows_are_those_of_regressions_without_them(trained):
    problem, model, state = trained
    K = np.asarray(model.kernel(problem.X, problem.X))
    found = state.network.first.left_out_variance(None)[:, 0]
    for row in (0, 70):
        others = np.delete(np.arange(150), row)
        A = np.linalg.inv(K[np.ix_(others, others)] + 0.25 * np.eye(149))
        ones, k = A.sum(axis=1), K[others, row]
        exact = 1.0 - k @ A @ k + (1.0 - ones @ k) ** 2 / ones.sum()  # with an intercept that is not penalised
        assert found[row] == pytest.approx(exact / 0.25, rel=1e-6)


def test_the_scale_is_the_noise_of_the_labels_over_the_ridge(trained):
    """All rows are in the margin set of 150 rows; the intercept, which it leaves out, adds a little."""
    problem, model, state = trained
    p = np.tile([0.3, 0.7], (150, 1))
    found = ridge_scale(state, None, model.uncertainty, p, problem.outputs, None)
    frequency = problem.outputs.mean()
    assert found == pytest.approx(0.21 / (frequency * (1 - frequency)) / 0.25, rel=0.15)
    doubled = ridge_scale(state, None, model.uncertainty, p, problem.outputs, np.full(150, 2.0))
    assert doubled == pytest.approx(found)


def test_thinned_margin_sets_are_made_up_for():
    """1,600 rows, of which 800 are in the margin set: exact variances are smaller, and so is the scale."""
    X, y, _ = drawn(1600, 1)
    model = KStoNetClassifier(kernel="rbf", gamma=1.0, C=10.0, loss="squared", random_state=0).fit(X, y)
    calibration = model.trained_.calibration
    logits, codes = calibration.out_of_sample
    p = calibration.tempering.probabilities(logits)
    noise = np.mean((p * (1 - p)).mean(axis=0) / (codes.mean() * (1 - codes.mean())))
    assert 0.4 * 10.0 * noise < calibration.first_scale < 0.9 * 10.0 * noise


def test_sources_and_intervals_have_what_is_learnt(trained):
    X, _, _ = drawn(150, 0)
    _, model, _ = trained
    calibration = model.calibration
    assert calibration.shrinkage == SHRINKAGE
    assert calibration.variance_scale == 1.0
    plain = replace(model, calibration=replace(calibration, first_scale=1.0, shrinkage=0.0))
    parts, before = model.log_odds_variances(X), plain.log_odds_variances(X)
    np.testing.assert_allclose(parts["first layer"], calibration.first_scale * before["first layer"])
    odds = log_odds(model.uncertainty.log_odds(model.scaler.forward(X), calibration.temperature).logits)
    np.testing.assert_allclose(parts["shrinkage"], (SHRINKAGE * odds) ** 2)
    assert "shrinkage" not in before
    wide, narrow = (np.diff(network.proba_interval(X), axis=2) for network in (model, plain))
    assert (wide > narrow).mean() > 0.95
