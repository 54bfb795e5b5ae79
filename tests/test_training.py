"""train: a problem in, a record out; chains, interruption, resumption, and the intervals."""

import warnings

import numpy as np
import pytest
from sklearn.metrics import mean_squared_error, r2_score

from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.observers import Ends, Observer
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, LinearLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.trained import TrainedNetwork
from kstonet.training import Resumption, train
from kstonet.uncertainty.calibration import ProbabilityCalibration

RNG = np.random.default_rng(0)
X = RNG.normal(size=(50, 2))
y = 3.0 + np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.1 * RNG.normal(size=50)
ITERATIONS = 4
FIRST = {
    "kernel": KernelLayerSettings(),
    "exact kernel": KernelLayerSettings(C=1.0, tol=1e-5),
    "linear": LinearLayerSettings(),
}
each_first_layer = pytest.mark.parametrize("first", ["kernel", "linear"])


def problem(targets=NumericTargets):
    return Problem.of(Rows(X, y if targets is NumericTargets else np.where(y > 3.0, "up", "down")), targets)


def settings(first="kernel", alpha="auto", **changes):
    loop = IROSettings(ChainSettings(n_steps=3), alpha=alpha)
    given = {"max_iter": ITERATIONS, "n_average": 2, "residuals": None, "seed": 1} | changes
    return TrainingSettings(FIRST[first], (3,), iro=loop, **given)


class Interruption(Observer):
    """Ctrl-C at an iteration; once more, if asked, as soon as the interruption is announced."""

    def __init__(self, at, again=False):
        self.at, self.again, self.models, self.closed = at, again, [], 0

    def iteration(self, done):
        if (done.chain, done.state.iteration) == self.at:
            raise KeyboardInterrupt

    def interrupted(self, model):
        self.models.append(model)
        if self.again:
            raise KeyboardInterrupt

    def close(self):
        self.closed += 1


class InterruptingSchedule:
    """A penalty schedule: Ctrl-C comes when an iteration beyond the training asks for its value, for the n-th time."""

    def __init__(self, call=1):
        self.call, self.calls = call, 0

    def __call__(self, iteration):
        self.calls += iteration >= ITERATIONS
        if iteration >= ITERATIONS and self.calls == self.call:
            raise KeyboardInterrupt
        return 1e-3


# -- a training --------------------------------------------------------------------------------------------------------------


@each_first_layer
def test_the_mean_is_that_of_the_last_iterates(first):
    class Last(Observer):
        states = []

        def iteration(self, done):
            self.states.append(done.state)

    task, watching = problem(), Last()
    Last.states.clear()
    model = train(task, settings(first, n_average=3), [watching])
    inputs = FIRST[first].inputs(task)
    fitted = np.mean([state.network.forward(inputs)[-1][:, 0] for state in watching.states[-3:]], axis=0)
    np.testing.assert_allclose(model.mean(X), y.mean() + y.std() * fitted, rtol=1e-8)
    assert (model.n_iter, len(model.history), len(model.uppers)) == (ITERATIONS, ITERATIONS, 3)


def test_the_history_has_the_scores_of_scikit_learn():
    watched = problem().with_validation(Rows(X[:20] + 0.1, y[:20]))
    model = train(watched, settings(n_average=1))
    last = model.history[-1]
    assert last["loss"] == pytest.approx(mean_squared_error(y, model.mean(X)) / y.var())
    assert last["score"] == pytest.approx(r2_score(y, model.mean(X)))
    assert last["validation_loss"] == pytest.approx(mean_squared_error(y[:20], model.mean(X[:20] + 0.1)) / y.var())
    assert last["validation_score"] == pytest.approx(r2_score(y[:20], model.mean(X[:20] + 0.1)))


def test_seeds_and_chains():
    one, same, other = (train(problem(), settings(seed=seed)).mean(X) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert not np.allclose(one, other)
    outputs = train(problem(), settings(n_chains=2)).outputs(X)
    np.testing.assert_allclose(outputs[:2], train(problem(), settings()).outputs(X), atol=1e-6)  # the first is the only one
    assert not np.allclose(outputs[:2], outputs[2:], atol=1e-3)


def test_networks_that_widen_get_a_note():
    with pytest.warns(UserWarning, match="2-3-1 .* is not pyramidal"):
        train(problem(), TrainingSettings(FIRST["linear"], (2, 3), max_iter=1, residuals=None))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        train(problem(), TrainingSettings(FIRST["linear"], (3, 2), max_iter=1, residuals=None))


# -- interruption ------------------------------------------------------------------------------------------------------------


@each_first_layer
@pytest.mark.parametrize("residuals", [None, "training"])
def test_an_interrupt_keeps_what_is_trained(first, residuals):
    observer = Interruption((0, 3))
    model = train(problem(), settings(first, residuals=residuals), [observer])
    shorter = train(problem(), settings(first, residuals=residuals, max_iter=3))
    assert model.n_iter == len(model.history) == 3
    assert observer.closed == 1
    np.testing.assert_allclose(model.mean(X), shorter.mean(X), rtol=1e-8)
    if residuals:
        np.testing.assert_allclose(model.interval(X), shorter.interval(X), rtol=1e-8)


def test_an_interrupted_chain_does_not_count_where_another_is_done():
    model = train(problem(), settings(n_chains=3), [Interruption((1, 2))])
    np.testing.assert_allclose(model.mean(X), train(problem(), settings()).mean(X), rtol=1e-8)
    assert len(model.history) == ITERATIONS + 2  # what happened, happened


def test_an_interrupt_before_the_first_iteration_is_one():
    class AtOnce(Interruption):
        def begins(self, task):
            if task == "iteration":
                raise KeyboardInterrupt

    observer = AtOnce(None)
    with pytest.raises(KeyboardInterrupt):
        train(problem(), settings(), [observer])
    assert (observer.models, observer.closed) == ([], 1)


def test_a_second_interrupt_leaves_the_published_model():
    published, again = Interruption(None), Interruption((0, 2), again=True)
    with pytest.raises(KeyboardInterrupt):
        train(problem(), settings(residuals="crossfit"), [published, again])
    (model,) = published.models
    assert isinstance(model, TrainedNetwork)
    np.testing.assert_allclose(model.mean(X), train(problem(), settings(max_iter=2)).mean(X), rtol=1e-8)
    assert (model.n_iter, model.residuals, model.uncertainty) == (2, None, None)
    assert published.closed == again.closed == 1


# -- intervals ---------------------------------------------------------------------------------------------------------------


@each_first_layer
def test_interrupted_intervals_are_those_of_the_training_residuals(first):
    """Cross-fitting drives the loop beyond the training: the schedule interrupts there."""
    with pytest.warns(UserWarning, match="interrupted while intervals were prepared"):
        model = train(problem(), settings(first, InterruptingSchedule(), residuals="crossfit"))
    expected = train(problem(), settings(first, 1e-3, residuals="training"))
    assert model.residuals == "training"
    np.testing.assert_allclose(model.interval(X), expected.interval(X), rtol=1e-8)
    with pytest.raises(ValueError, match="interrupted before it had them"):
        model.calibrated()


@pytest.mark.parametrize("call", [1, 16], ids=["cross-fitting", "bootstrap"])  # five folds, three iterations, and then
def test_interrupted_probabilities_are_the_papers(call):
    schedule = InterruptingSchedule(call)
    with pytest.warns(UserWarning, match="interrupted while intervals were prepared"):
        model = train(problem(ClassTargets), settings(alpha=schedule, residuals="crossfit"))
    assert schedule.calls == call
    assert model.calibration == ProbabilityCalibration()
    assert np.isfinite(model.proba_interval(X)).all()
    with pytest.raises(ValueError, match="interrupted before it had them"):
        model.calibrated()


class InterruptedOnce(DenseLayer):
    """A layer whose uncertainty is interrupted when it is first asked for."""

    asked = 0

    def uncertainty(self, inputs, outputs, sample_weight=None):
        type(self).asked += 1
        if type(self).asked == 1:
            raise KeyboardInterrupt
        return super().uncertainty(inputs, outputs, sample_weight)


def test_an_interrupt_before_any_uncertainty_is_known_leaves_a_model(monkeypatch):
    monkeypatch.setitem(UPPER_LAYERS, "interrupted", InterruptedOnce.new)
    InterruptedOnce.asked = 0
    with pytest.warns(UserWarning, match="interrupted while intervals were prepared"):
        model = train(problem(), settings(residuals="crossfit", upper_layer="interrupted"))
    expected = train(problem(), settings(residuals="training"))
    np.testing.assert_allclose(model.interval(X), expected.interval(X), rtol=1e-8)


class Recording(DenseLayer):
    """A layer that notes the weights of its refits."""

    weights_seen = []

    def refit(self, inputs, outputs, sample_weight=None):
        self.weights_seen.append(sample_weight)
        return super().refit(inputs, outputs, sample_weight)


@pytest.mark.parametrize(("n", "folds"), [(60, 10), (1000, 5)])
def test_few_rows_are_hidden_in_smaller_folds(n, folds, monkeypatch):
    monkeypatch.setitem(UPPER_LAYERS, "recording", Recording.new)
    Recording.weights_seen.clear()
    rows = np.random.default_rng(0).normal(size=(n, 2))
    task = Problem.of(Rows(rows, rows[:, 0]), NumericTargets)
    train(task, settings("linear", residuals="crossfit", upper_layer="recording", max_iter=1, n_average=1))
    hidden = {tuple(np.flatnonzero(weights == 0)) for weights in Recording.weights_seen if weights is not None}
    assert len(hidden) == folds
    assert sorted(row for fold in hidden for row in fold) == list(range(n))  # every row once


# -- resumption --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "chains", "rtol"),
    [("linear", 1, 1e-8), ("linear", 2, 1e-8), ("kernel", 1, 1e-8), ("exact kernel", 2, 1e-2)],  # chains share a factor
)
def test_a_resumed_training_is_an_uninterrupted_one(first, chains, rtol):
    whole, half, rest = Ends(), Ends(), Ends()
    once = train(problem(), settings(first, n_chains=chains, max_iter=6), [whole])
    task = problem()
    begun = train(task, settings(first, n_chains=chains, max_iter=2), [half])
    resumption = Resumption(list(half.states.values()), begun.history)
    twice = train(task, settings(first, n_chains=chains, max_iter=4, seed=99), [rest], resumption)  # the seed has no say
    for chain in range(chains):
        a, b = whole.states[chain], rest.states[chain]
        assert (b.iteration, b.rng_state) == (6, a.rng_state)
        np.testing.assert_allclose(b.latents[0], a.latents[0], rtol=rtol, atol=rtol)
        np.testing.assert_allclose(b.network.head.weights, a.network.head.weights, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(twice.mean(X), once.mean(X), rtol=rtol)
    assert len(twice.history) == 6 * chains
    assert len(begun.history) == 2 * chains  # a record of its own


def test_activations_are_those_asked_for():
    model = train(problem(), settings(activation="tanh"))
    assert {layer.activation for layers in model.uppers for layer in layers} == {get_activation("tanh")}
