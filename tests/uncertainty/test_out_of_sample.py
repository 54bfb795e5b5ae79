"""Out-of-sample predictions of the training rows: left out in closed form, and cross-fitted by the loop of training."""

from collections import deque
from dataclasses import replace

import numpy as np
import pytest
from sklearn.svm import SVR

from kstonet.datasets import make_measurement_error
from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings
from kstonet.layers.moments import FIRST_LAYER
from kstonet.network import Network
from kstonet.observers import Ends, Observer
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.training import train
from kstonet.uncertainty.calibration import IntervalCalibration, TrainingEnd
from kstonet.uncertainty.cross_fitting import cross_fitted, regression_folds
from kstonet.uncertainty.distribution import BETWEEN
from kstonet.uncertainty.logits import bootstrap_scale
from kstonet.uncertainty.network import NetworkUncertainty, left_out_moments
from kstonet.uncertainty.tempering import Tempering


class Last(Observer):
    """The last states of every chain."""

    def __init__(self, count):
        self.count, self.chains = count, {}

    def iteration(self, done):
        self.chains.setdefault(done.chain, deque(maxlen=self.count)).append(done.state)


def exact_states(problem, settings):
    """The averaged iterates of a training, with first layers whose margin sets are known."""
    last = Last(settings.n_average)
    train(problem, replace(settings, residuals=None), [last])
    states = [state for chain in last.chains.values() for state in chain]
    firsts = [state.network.first for state in states]
    solved = firsts[-1].exact(firsts, None, [state.latents[0] for state in states], None)
    return [
        replace(state, network=Network((first, *state.network.uppers))) for state, first in zip(states, solved, strict=True)
    ]


def uncertainty_of(problem, states):
    firsts = [state.network.first for state in states]
    return NetworkUncertainty.of(firsts[-1].expansion(firsts, None), states, None, problem.outputs, None)


# -- left out ----------------------------------------------------------------------------------------------------------------


def test_left_out_values_are_those_of_refits_without_the_row():
    """The closed form against 60 refits of scikit-learn's SVR on the same latent values, each without one row."""
    X, y = make_measurement_error(60, random_state=0)
    problem = Problem.of(Rows(X, y), NumericTargets)
    first = KernelLayerSettings(C=2.0, epsilon=0.1, tol=1e-7)
    (state,) = exact_states(problem, TrainingSettings(first, (2,), max_iter=4, n_average=1))
    layer, latents = state.network.first, state.latents[0]
    uncertainty = uncertainty_of(problem, [state])
    (shift,), variance = uncertainty.first.left_out([layer], uncertainty.expansion, None, latents)
    closed = layer.mean() + shift
    K = layer.groups[0].gram.columns(np.arange(60))
    exact = np.empty_like(closed)
    for i in range(60):
        rest = np.delete(np.arange(60), i)
        for unit in range(2):
            svr = SVR(kernel="precomputed", C=2.0, epsilon=0.1, tol=1e-8).fit(K[np.ix_(rest, rest)], latents[rest, unit])
            exact[i, unit] = svr.predict(K[i : i + 1, rest])[0]
    moved = np.abs(exact - layer.mean())
    assert np.median(np.abs(closed - exact)) < 0.15 * np.median(moved)
    assert np.corrcoef(closed.ravel(), exact.ravel())[0, 1] > 0.95
    assert (variance >= 0).all()


def test_several_chains_disagree_at_left_out_rows_as_at_new_ones():
    """Shifts of one chain's margin sets on another chain's values would be disagreement that new rows do not have."""
    X, y = make_measurement_error(300, random_state=0)
    problem = Problem.of(Rows(X, y), NumericTargets)
    loop = IROSettings(ChainSettings(n_steps=10))
    settings = TrainingSettings(KernelLayerSettings(C=1000.0), max_iter=8, n_average=3, n_chains=2, iro=loop)
    states = exact_states(problem, settings)
    uncertainty = uncertainty_of(problem, states)
    left_out, predicted = left_out_moments(uncertainty, states, None), uncertainty.moments(problem.X)
    np.testing.assert_allclose(left_out.parts[BETWEEN], predicted.parts[BETWEEN], rtol=1e-6, atol=1e-12)
    assert left_out.parts[FIRST_LAYER].mean() > predicted.parts[FIRST_LAYER].mean()  # their own row is left out


# -- cross-fitted ------------------------------------------------------------------------------------------------------------


def test_cross_fitted_residuals_are_as_large_as_those_of_new_rows():
    """Four training sets, 2,000 new rows: the root mean squares agree within 8 %, training residuals are off by 30 %."""
    ratios, plain = [], []
    Xt, yt = make_measurement_error(2000, random_state=99)
    settings = TrainingSettings(KernelLayerSettings(C=10.0), max_iter=15, residuals=None)
    for seed in range(4):
        X, y = make_measurement_error(250, random_state=seed)
        problem, ends = Problem.of(Rows(X, y), NumericTargets), Ends()
        model = train(problem, replace(settings, seed=seed), [ends])
        predicted = cross_fitted(ends.states[0], None, problem.outputs, settings.loop, None)
        size = np.sqrt(np.mean((problem.outputs - predicted) ** 2)) * y.std()
        new = np.sqrt(np.mean((yt - model.mean(Xt)) ** 2))
        ratios.append(size / new)
        plain.append(np.sqrt(model.history[-1]["loss"]) * y.std() / new)
    assert abs(np.mean(ratios) - 1) < 0.08
    assert np.mean(plain) < 0.8


def test_a_row_is_predicted_without_its_target():
    """Once its own fold is hidden, a row with an absurd target is predicted as its neighbours are."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(80, 1))
    y = np.sin(X[:, 0])
    problem, ends = Problem.of(Rows(X, y), NumericTargets), Ends()
    settings = TrainingSettings(KernelLayerSettings(C=100.0), (3,), max_iter=5, residuals=None)
    train(problem, settings, [ends])
    spoiled = problem.outputs.copy()
    spoiled[7] = 20.0
    start, folds = ends.states[0], regression_folds(80)
    plain, other = (
        cross_fitted(start, None, outputs, settings.loop, None, folds)[7, 0] for outputs in (problem.outputs, spoiled)
    )
    assert abs(other - plain) < 0.5
    assert abs(plain - problem.outputs[7, 0]) < 0.3


# -- the bootstrap of a classifier -------------------------------------------------------------------------------------------

PLAIN = Tempering()


@pytest.fixture(scope="module")
def classifier():
    """A problem of two classes, the state and the settings at the end of its training, and its log-odds."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    labels = (rng.uniform(size=120) < 1 / (1 + np.exp(-1.5 * np.sin(1.5 * X[:, 0]) - X[:, 1]))).astype(int)
    problem, ends = Problem.of(Rows(X, labels), ClassTargets), Ends()
    loop = IROSettings(ChainSettings(n_steps=10))
    settings = TrainingSettings(KernelLayerSettings(), max_iter=8, n_average=3, residuals="training", iro=loop)
    model = train(problem, settings, [ends])
    return ends.states[0], model.uncertainty.log_odds(problem.X, 1.5), settings.loop


def test_the_scale_is_relative_to_the_variance(classifier):
    state, fitted, loop = classifier
    found = {}
    for factor in (0.01, 0.02, 0.0, 1e-12):
        found[factor] = bootstrap_scale(
            state, None, PLAIN, fitted.logits, (np.arange(120), factor * fitted.variance), loop, None
        )
    assert found[0.01] == pytest.approx(2 * found[0.02], rel=0.05)  # refits are solved to a tolerance
    assert found[0.02] > 1.0
    assert found[0.0] == 1.0  # nothing to be scaled
    assert found[1e-12] == 1e4


def test_rows_that_are_nearly_certain_do_not_count(classifier, monkeypatch):
    """Their labels come back as they were, whatever the width of their likelihood."""
    state, _, loop = classifier
    sure = np.arange(120) < 90
    truth = np.column_stack([np.zeros(120), np.where(sure, 8.0, 0.1)])
    drawn_from = []

    def replicate(state, inputs, logits, *_):
        drawn_from.append(logits)
        return logits + np.column_stack([np.zeros(120), np.where(sure, 0.0, 2.0)])

    monkeypatch.setattr("kstonet.uncertainty.logits._replicate", replicate)
    rows = np.arange(120), np.ones((120, 2))
    assert bootstrap_scale(state, None, PLAIN, truth, rows, loop, None) == pytest.approx(
        4.0, rel=1e-3
    )  # 1.0 with equal weights
    assert bootstrap_scale(state, None, PLAIN, truth, rows, loop, np.where(sure, 1.0, 0.5)) == pytest.approx(4.0, rel=1e-3)
    spread = np.sqrt(1.0 + 0.25 * 4.0 / np.mean(truth[:, 1] ** 2))  # the squared error is missing in the fitted logits
    np.testing.assert_allclose(drawn_from[1], spread * truth)


@pytest.mark.parametrize("rests", [False, True])
def test_residuals_are_as_many_times_larger_as_what_was_chosen_says(rests):
    """Those of a chain without folds of rows, or without single ones where it rests; their median stays."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 2))
    problem = Problem.of(Rows(X, np.exp(X[:, 0] + rng.normal(size=120))), NumericTargets)
    settings = TrainingSettings(KernelLayerSettings(loss="squared", gamma=2.0, C=10.0), max_iter=3, n_average=1)
    states = exact_states(problem, settings)
    states = [replace(state, rest_after=0 if rests else None) for state in states]
    Z, outputs = problem.X, problem.outputs
    first = states[-1].network.first
    uncertainty = NetworkUncertainty.of(first.expansion([first], None), states[-1:], None, outputs, None)
    end = TrainingEnd(states[-1:], Z, None, outputs, None, settings.loop)
    errors = {
        growth: IntervalCalibration.learn(replace(end, growth=growth), uncertainty, "crossfit").error for growth in (1.0, 1.5)
    }
    if rests:
        mean = left_out_moments(uncertainty, states[-1:], None).mean
    else:
        mean = cross_fitted(states[-1], None, outputs, settings.loop, None, regression_folds(120))
    residuals = outputs - mean
    middle = np.median(residuals, axis=0)
    for growth, error in errors.items():
        np.testing.assert_allclose(error, np.sqrt(np.mean((middle + growth * (residuals - middle)) ** 2, axis=0)), rtol=1e-9)
