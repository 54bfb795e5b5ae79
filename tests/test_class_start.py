"""Classifiers with a squared loss start as the one-vs-rest machine of their kernel, and stay as good."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, make_moons
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import train_test_split

from kstonet import KStoNetClassifier
from kstonet.class_start import class_latents, class_units, hidden_rows, some_of_many
from kstonet.initialisation import TrainingRows
from kstonet.iro import IROState, iro
from kstonet.layers.activations import get_activation
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets
from kstonet.uncertainty.tempering import best_temperature

FIXED = {"tuning": "none", "loss": "squared", "kernel": "rbf", "gamma": 0.1, "C": 10.0, "standardize": False}


def one_vs_rest(X, labels, new, gamma=0.1, ridge=0.1):
    """Kernel ridge regression on indicators with an unpenalised intercept, by a bordered linear system."""
    indicators = np.eye(labels.max() + 1)[labels]
    n = len(X)
    system = np.block([[rbf_kernel(X, gamma=gamma) + ridge * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    solved = np.linalg.solve(system, np.vstack([indicators, np.zeros((1, indicators.shape[1]))]))
    return rbf_kernel(new, X, gamma=gamma) @ solved[:-1] + solved[-1]


def mixture(n, k, seed, spread=1.6):
    rng = np.random.default_rng(seed)
    centres = spread * rng.normal(size=(k, 6))
    labels = np.r_[np.arange(k), rng.integers(0, k, size=n - k)]
    return centres[labels] + rng.normal(size=(n, 6)), labels


@pytest.mark.parametrize(
    ("X", "labels"),
    [
        mixture(600, 2, 0, 0.6),
        mixture(800, 10, 1),
        mixture(1000, 30, 2),
        make_moons(600, noise=0.3, random_state=0),
        (lambda X, y: (X / 4.0, y))(*load_digits(return_X_y=True)),
    ],
    ids=["two classes", "ten", "thirty", "moons", "digits"],
)
def test_it_is_no_worse_than_one_vs_rest_with_its_kernel(X, labels):
    """The difference of errors on half of the rows stays below two standard errors of a share of the size of the error."""
    order = np.random.default_rng(0).permutation(len(X))
    X, labels = X[order], labels[order]
    half = len(X) // 2
    model = KStoNetClassifier(
        (class_units(labels.max() + 1),), **FIXED, max_iter=6, n_average=3, residuals=None, random_state=0
    )
    model.fit(X[:half], labels[:half])
    rival = np.mean(one_vs_rest(X[:half], labels[:half], X[half:]).argmax(axis=1) != labels[half:])
    own = np.mean(model.predict(X[half:]) != labels[half:])
    assert own <= rival + 2.0 * np.sqrt(max(rival, 0.01) / len(X[half:]))


@pytest.mark.parametrize("classes", [2, 5, 12])
def test_more_iterations_do_not_hurt(classes):
    """Forty iterations are never worse than one on new rows, but for luck."""
    X, labels = mixture(600, classes, 3, spread=1.0)
    model = KStoNetClassifier((class_units(classes),), **FIXED, max_iter=40, n_average=1, residuals=None, random_state=0)
    model.fit(X[:300], labels[:300], X_val=X[300:], y_val=labels[300:])
    losses = np.array([record["validation_loss"] for record in model.history_])
    assert len(losses) == 40
    assert losses[-1] < 1.02 * losses[0]
    assert losses[-1] < 1.02 * losses.min()


def test_a_chain_that_rests_keeps_its_network():
    """The network of the start and later states are the same object; iterations are counted and recorded."""
    X, labels = mixture(60, 3, 0)
    problem = Problem.of(Rows(X, labels), ClassTargets)
    settings = TrainingSettings(KernelLayerSettings(loss="squared"), (3,), max_iter=4, n_average=2, residuals=None)
    network = settings.new_network(problem)
    rows = TrainingRows(problem.X, None, problem.outputs, None)
    fitted, latents = problem.targets.start(np.random.default_rng(0), network, rows, get_activation("softplus"))
    start = IROState(0, fitted, latents, dict(np.random.default_rng(0).bit_generator.state), rest_after=1)
    first, second, third = islice(iro(None, problem.outputs, start, settings.loop), 3)
    assert first.network is not fitted
    assert second.network is first.network is third.network
    assert [state.record.iteration for state in (first, second, third)] == [1, 2, 3]
    assert second.record.loss == first.record.loss
    at_once = next(iro(None, problem.outputs, replace(start, rest_after=0), settings.loop))
    assert at_once.network is fitted
    assert at_once.record.loss == fitted.head.loss(fitted.forward()[-1], problem.outputs)


def test_hidden_rows_leave_every_class_its_rows():
    labels = np.repeat([0, 1, 2], [50, 4, 1])
    weights = np.where(np.arange(55) < 25, 0.0, 1.0)
    hidden = hidden_rows(np.random.default_rng(0), labels, weights)
    assert hidden[:25].sum() == 0  # they take no part
    assert hidden[25:50].sum() == 5
    assert not hidden[50:].any()


def test_some_of_many_rows_show_whether_iterations_help(monkeypatch):
    """They are drawn from those that count and know every class; the layer is on them alone, the penalty that of so many."""
    monkeypatch.setattr("kstonet.class_start.MANY_ROWS", 200)
    monkeypatch.setattr("kstonet.class_start.SEEN", 100)
    X, labels = mixture(400, 3, 2)
    labels[labels == 2] = 0
    labels[399] = 2  # one row
    weights = np.where(np.arange(400) < 50, 0.0, 1.0)
    problem = Problem.of(Rows(X, labels, weights), ClassTargets)
    network = TrainingSettings(KernelLayerSettings(loss="squared"), (3,), residuals=None).new_network(problem)
    rows = TrainingRows(problem.X, None, problem.outputs, weights)
    fewer, some = some_of_many(np.random.default_rng(0), network, rows)
    assert len(some.X) == len(some.outputs) == fewer.first.groups[0].gram.n
    assert 100 <= len(some.X) <= 103
    assert some.weights.all()
    assert set(some.outputs) == {0, 1, 2}
    np.testing.assert_allclose(fewer.head.alpha, network.head.alpha * np.sqrt(400 / len(some.X)))
    monkeypatch.setattr("kstonet.class_start.MANY_ROWS", 350)
    assert some_of_many(np.random.default_rng(0), network, rows) == (network, rows)


@pytest.mark.parametrize("solver", ["dense", "low_rank"])
def test_many_rows_rest_after_what_some_of_them_show(solver, monkeypatch):
    """A training whose iterations were judged on some of its rows is no worse than one-vs-rest, on either Gram."""
    monkeypatch.setattr("kstonet.class_start.MANY_ROWS", 500)
    monkeypatch.setattr("kstonet.class_start.SEEN", 400)
    X, labels = mixture(900, 3, 6, spread=0.5)
    model = KStoNetClassifier((3,), **FIXED, solver=solver, max_iter=6, n_average=2, residuals=None, random_state=0)
    few = model.fit(X[:600], labels[:600])
    rival = np.mean(one_vs_rest(X[:600], labels[:600], X[600:]).argmax(axis=1) != labels[600:])
    assert np.mean(few.predict(X[600:]) != labels[600:]) <= rival + 2.0 * np.sqrt(rival / 300)


@pytest.mark.parametrize("classes", [2, 8])
def test_the_head_is_relaxed_half_way(classes, monkeypatch):
    """Half of the factor that left-out rows ask for: the temperature they still ask for is the root of the former one."""
    X, labels = mixture(400, classes, 5, spread=1.2)
    problem = Problem.of(Rows(X, labels), ClassTargets)
    settings = TrainingSettings(KernelLayerSettings(loss="squared"), (class_units(classes),), residuals=None)
    rows = TrainingRows(problem.X, None, problem.outputs, None)

    def asked(power):
        monkeypatch.setattr("kstonet.class_start.RELAXED", power)
        network = settings.new_network(problem)
        fitted, latents = problem.targets.start(np.random.default_rng(0), network, rows, get_activation("softplus"))
        logits = fitted.head.mean(fitted.first.values_above(latents[0], None))
        return best_temperature(logits, problem.outputs)

    before, after = asked(0.0), asked(0.5)
    assert before < 0.97
    np.testing.assert_allclose(after, np.sqrt(before), rtol=0.02)


def test_probabilities_are_calibrated_on_noisy_labels():
    """Labels that follow a known probability: the log loss is near that of the truth, which no fit can beat."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1600, 3))
    truth = 1.0 / (1.0 + np.exp(-2.0 * X[:, 0] * X[:, 1]))
    labels = (rng.uniform(size=1600) < truth).astype(int)
    model = KStoNetClassifier(random_state=0).fit(X[:800], labels[:800])
    best = log_loss(labels[800:], truth[800:])
    assert log_loss(labels[800:], model.predict_proba(X[800:])) < best + 0.06


def test_a_class_with_one_row_and_many_classes():
    X, labels = mixture(260, 80, 4, spread=4.0)
    labels[labels == 7] = 8
    labels[0] = 7  # one row
    model = KStoNetClassifier(
        **FIXED, hidden_layer_sizes=(class_units(80),), max_iter=2, n_average=1, residuals=None, random_state=0
    )
    with pytest.warns(UserWarning, match="not pyramidal"):
        model.fit(X, labels)
    assert model.predict_proba(X).shape == (260, 80)
    assert model.score(X, labels) > 0.7  # three rows per class; chance is 0.0125


@pytest.mark.parametrize(("classes", "units"), [(2, 1), (2, 3), (5, 5), (5, 8), (100, 64)])
def test_latent_values_have_the_spread_of_one(classes, units):
    labels = np.arange(1000) % classes
    indicators = np.eye(classes)[labels][:, 1 if classes == 2 else 0 :]
    values = class_latents(np.random.default_rng(0), indicators, None, units, get_activation("softplus"))
    assert values.shape == (1000, units)
    np.testing.assert_allclose(values.std(axis=0).mean(), 1.0, atol=0.25)


def test_whether_iterations_help_does_not_depend_on_the_seed():
    """The rows that are hidden decide it: with other ones for every seed, one of these two networks rested and one did not."""
    X, y = load_breast_cancer(return_X_y=True)
    X, new, y, _ = train_test_split(X, y, test_size=0.25, stratify=y, random_state=1)
    one, other = (KStoNetClassifier(random_state=seed, residuals=None).fit(X, y) for seed in (0, 10))
    np.testing.assert_allclose(one.predict_proba(new), other.predict_proba(new), rtol=1e-9)
