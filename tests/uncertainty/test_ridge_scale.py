"""The variance of logits from a first layer of ridge regressions, against Gaussian processes written out."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import softmax

from kstonet import KStoNetClassifier
from kstonet.observers import Ends
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets
from kstonet.training import train
from kstonet.uncertainty.network import left_out_variance
from kstonet.uncertainty.ridge_scale import GROWTH, certainty, drawn_scale, label_correlation, ridge_scale
from kstonet.uncertainty.tempering import Tempering


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
    thinned = left_out_variance(model.uncertainty, state, None)
    found = ridge_scale(state.network.first, thinned, p, problem.outputs, None)
    frequency = problem.outputs.mean()
    assert found == pytest.approx(0.21 / (frequency * (1 - frequency)) / 0.25, rel=0.15)
    doubled = ridge_scale(state.network.first, thinned, p, problem.outputs, np.full(150, 2.0))
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
    assert calibration.growth == GROWTH
    plain = replace(model, calibration=replace(calibration, first_scale=1.0, variance_scale=1.0, growth=0.0))
    parts, before = model.log_odds_variances(X), plain.log_odds_variances(X)
    p = softmax(model.uncertainty.log_odds(model.scaler.forward(X), calibration.temperature).logits, axis=1)
    wider = calibration.variance_scale / (4 * p * (1 - p)) ** GROWTH
    np.testing.assert_allclose(parts["regression layers"], wider * before["regression layers"])
    np.testing.assert_allclose(parts["first layer"], wider * calibration.first_scale * before["first layer"])
    wide, narrow = (np.diff(network.proba_interval(X), axis=2) for network in (model, plain))
    assert (wide > narrow).mean() > 0.95


def test_variance_grows_where_a_class_is_certain_and_not_without_end():
    logits = np.array([[0.0, 0.0], [0.0, 2.0], [0.0, 20.0], [0.0, 200.0]])
    found = certainty(logits)
    p = 1.0 / (1.0 + np.exp(-2.0))
    np.testing.assert_allclose(found[:2], [[1.0, 1.0], [0.25 / (p * (1.0 - p))] * 2])
    assert found[2, 0] == found[3, 0] < 1e4


@pytest.mark.parametrize(("deviation", "first", "expected"), [(0.5, 0.1, 1.0), (0.5, 0.4, 1.6), (0.25, 0.01, 0.25)])
def test_the_bootstrap_finds_the_squared_error_and_never_less_than_the_first_layer_has(deviation, first, expected):
    """In place of a network: logits that know the truth up to an error, which variances of 0.25 are compared with."""
    n = 4000
    known = 3.0 * np.random.default_rng(0).normal(size=n)
    truth, every = np.column_stack([np.zeros(n), known]), np.ones((n, 2))

    def restarted(labels, rng):
        return np.column_stack([np.zeros(n), known + deviation * rng.normal(size=n)])

    for weights in (None, np.where(np.arange(n) < n // 2, 1.0, 0.0)):
        found = drawn_scale(restarted, truth, first * every, 0.25 * every, Tempering(1.0), weights)
        assert found == pytest.approx(expected, rel=0.1)


def test_errors_of_classes_are_correlated_as_their_labels_are():
    rng = np.random.default_rng(0)
    p = rng.dirichlet([2.0, 1.0, 0.5], size=400)
    weights = rng.uniform(0.5, 1.5, size=400)
    found = label_correlation(p, 3, weights)
    covariance = np.average([np.diag(row) - np.outer(row, row) for row in p], axis=0, weights=weights)
    np.testing.assert_allclose(found, covariance / np.sqrt(np.outer(np.diag(covariance), np.diag(covariance))))
    np.testing.assert_array_equal(label_correlation(p, 2, None), np.eye(2))  # units that are mixtures of classes


def test_labels_are_drawn_only_where_that_is_cheap(monkeypatch):
    """Not of very many rows, and not where classes share units."""

    def never(*args):
        raise AssertionError("labels were drawn")

    monkeypatch.setattr("kstonet.uncertainty.calibration.drawn_scale", never)
    X, y, _ = drawn(150, 0)
    options = {"tuning": "none", "loss": "squared", "max_iter": 2, "random_state": 0}
    with pytest.raises(AssertionError, match="labels were drawn"):
        KStoNetClassifier((1,), **options).fit(X, y)
    monkeypatch.setattr("kstonet.uncertainty.calibration.MANY_ROWS", 100)
    intervals = KStoNetClassifier((1,), **options).fit(X, y).predict_proba_interval(X)
    assert (intervals[:, :, 1] > intervals[:, :, 0]).all()
    monkeypatch.setattr("kstonet.uncertainty.calibration.MANY_ROWS", 10_000)
    KStoNetClassifier((2,), **options).fit(X, np.arange(150) % 5)
