"""Classifiers with a squared loss start as the one-vs-rest machine of their kernel, and stay as good."""

import numpy as np
import pytest
from sklearn.datasets import load_digits, make_moons
from sklearn.metrics import log_loss
from sklearn.metrics.pairwise import rbf_kernel

from kstonet import KStoNetClassifier
from kstonet.class_start import class_latents, class_units
from kstonet.layers.activations import get_activation

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


def test_more_iterations_do_not_hurt():
    X, labels = mixture(600, 5, 3)
    model = KStoNetClassifier((5,), **FIXED, max_iter=40, n_average=1, residuals=None, random_state=0)
    model.fit(X[:300], labels[:300], X_val=X[300:], y_val=labels[300:])
    losses = np.array([record["validation_loss"] for record in model.history_])
    assert losses[-10:].mean() < losses[:3].mean() + 0.03


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
