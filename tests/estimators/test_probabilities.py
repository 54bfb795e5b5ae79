"""What a classifier learns about its probabilities in fit: a temperature, and the scale of the logits' variance."""

from copy import copy
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest
from scipy.special import expit, logit, softmax
from scipy.stats import norm
from sklearn.datasets import load_iris, make_blobs
from sklearn.metrics import log_loss

from kstonet import KStoNetClassifier, StoNetClassifier
from kstonet.iro import CHUNK
from kstonet.uncertainty.calibration import ProbabilityCalibration

FAST = {"max_iter": 8, "n_average": 3, "n_imputation_steps": 10, "random_state": 0}
CLASSIFIERS = [partial(KStoNetClassifier, tuning="none"), StoNetClassifier]


def simulated(n, seed=0):
    """Labels from known probabilities."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    p = expit(1.5 * np.sin(1.5 * X[:, 0]) + X[:, 1])
    return X, (rng.uniform(size=n) < p).astype(int), p


@pytest.fixture(scope="module")
def data():
    return simulated(120)[:2]


@pytest.fixture(scope="module")
def fitted(data):
    """A model of any residuals, fitted once and not to be changed."""
    return cache(lambda residuals: KStoNetClassifier(tuning="none", **FAST, residuals=residuals).fit(*data))


def as_in_the_paper(model):
    """The record of a model without what the calibration learnt."""
    return replace(model.trained_, calibration=ProbabilityCalibration())


@pytest.mark.parametrize("kind", CLASSIFIERS)
def test_the_default_is_the_papers_model_tempered_and_widened(kind, data):
    X, y = data
    model = kind(**FAST, residuals="crossfit").fit(X, y)
    paper = as_in_the_paper(model)
    T, scale = model.calibration_temperature_, model.logit_variance_scale_
    assert T > 1.0
    assert 1.0 <= scale < 1e4
    p, plain = model.predict_proba(X), paper.proba(X)
    np.testing.assert_array_equal(plain.argmax(axis=1), p.argmax(axis=1))
    np.testing.assert_allclose(logit(p), logit(plain) / T, rtol=1e-6, atol=1e-9)
    narrow, wide = (logit(bounds[:, 1]) for bounds in (paper.proba_interval(X), model.predict_proba_interval(X)))
    np.testing.assert_allclose(np.diff(wide), np.diff(narrow) * np.sqrt(scale) / T, rtol=1e-6)
    np.testing.assert_allclose(wide.mean(axis=1), logit(p[:, 1]), rtol=1e-6, atol=1e-9)
    trained = kind(**FAST, residuals="training").fit(X, y)
    assert (trained.calibration_temperature_, trained.logit_variance_scale_) == (1.0, 1.0)
    np.testing.assert_array_equal(trained.predict_proba_interval(X), paper.proba_interval(X))


def test_no_other_temperature_is_better_out_of_sample(data, fitted):
    """For the out-of-sample logits of the training rows, which the model keeps, with the prior log T ~ N(0, 1)."""
    _, y = data
    model = fitted("crossfit")
    logits, codes = model.trained_.calibration.out_of_sample
    np.testing.assert_array_equal(codes, y)

    def posterior(T):
        return norm.logpdf(np.log(T)) - len(y) * log_loss(y, softmax(logits / T, axis=1))

    T = model.calibration_temperature_
    assert posterior(T) > max(posterior(0.97 * T), posterior(1.03 * T), posterior(1.0))


def test_three_classes_are_tempered_before_the_delta_method():
    X, y = load_iris(return_X_y=True)
    model = KStoNetClassifier(tuning="none", **FAST).fit(X[::2], y[::2])
    T, moments = model.calibration_temperature_, model.trained_.moments(X[1::2])
    step = 1e-6 * np.eye(3)  # gradient of the tempered log-odds by finite differences
    odds = lambda logits: logit(softmax(logits / T, axis=1))  # noqa: E731
    gradient = np.stack([(odds(moments.mean + e) - odds(moments.mean - e)) / 2e-6 for e in step], axis=2)
    expected = np.einsum("nka,nab,nkb->nk", gradient, moments.covariance, gradient) * model.logit_variance_scale_
    found = sum(model.trained_.log_odds_variances(X[1::2]).values())
    np.testing.assert_allclose(found, expected, rtol=1e-3)


def test_calibrate_replaces_the_temperature_and_gives_it_back(fitted):
    model = copy(fitted("crossfit"))  # calibrate gives it another record, and leaves the shared one alone
    T, scale = model.calibration_temperature_, model.logit_variance_scale_
    assert model.calibrate().calibration_temperature_ == T
    X_new, y_new, _ = simulated(200, seed=1)
    assert model.calibrate(X_new, y_new).calibration_temperature_ != T
    other = model.calibration_temperature_
    assert model.calibrate(X_new, y_new).calibration_temperature_ == other  # not of what is tempered already
    assert model.logit_variance_scale_ == scale
    assert model.calibrate().calibration_temperature_ == T
    with pytest.raises(ValueError, match="together"):
        model.calibrate(X_new)


def learnt(model):
    return model.calibration_temperature_, model.logit_variance_scale_


def test_the_same_seed_is_the_same_answer(data, fitted):
    same, other = (learnt(KStoNetClassifier(tuning="none", **FAST | {"random_state": seed}).fit(*data)) for seed in (0, 1))
    assert learnt(fitted("crossfit")) == same != other


@pytest.mark.usefixtures("few_folds")
def test_the_number_of_threads_changes_nothing():
    """More rows than are imputed together, so that there is something to share."""
    X, y, _ = simulated(CHUNK + 100)
    short = FAST | {"max_iter": 2, "n_average": 1, "n_imputation_steps": 2}
    one, two = (learnt(StoNetClassifier((2,), **short, n_jobs=n_jobs).fit(X, y)) for n_jobs in (None, 2))
    assert one == two


@pytest.mark.usefixtures("few_folds")
def test_new_labels_are_forgotten_by_the_model(data):
    """The replicate leaves the training as it is: what is averaged, and what a warm start resumes."""
    X, y = data
    runs = [
        KStoNetClassifier(tuning="none", **FAST, residuals=residuals, warm_start=True).fit(X, y)
        for residuals in ("training", "crossfit")
    ]
    for _ in range(2):
        one, other = (model.trained_.outputs(X) for model in runs)
        np.testing.assert_array_equal(one, other)
        for model in runs:
            model.fit(X, y)


@pytest.mark.usefixtures("few_folds")
def test_a_fit_that_is_interrupted_forgets_what_an_earlier_one_learnt(data):
    """The penalty of an iteration after the eighth is asked for by cross-fitting only."""
    X, y = data

    def interrupt(iteration):
        if iteration >= FAST["max_iter"]:
            raise KeyboardInterrupt
        return 1e-3

    model = KStoNetClassifier(tuning="none", **FAST).fit(X, y)
    with pytest.warns(UserWarning, match="interrupted while intervals were prepared"):
        model.set_params(alpha=interrupt).fit(X, y)
    assert learnt(model) == (1.0, 1.0)
    assert np.isfinite(model.predict_proba_interval(X)).all()
    with pytest.raises(ValueError, match="interrupted before it had them"):
        model.calibrate()


CASES = {
    "one row of a class": (np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) == 3, None),
    "a class in one fold": (np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 29 == 0, None),
    "two rows": (np.eye(2), [0, 1], None),
    "three rows of three classes": (np.eye(3), [0, 1, 2], None),
    "far apart": (*make_blobs(80, centers=[[-50, 0], [50, 0], [0, 90]], random_state=0), None),
    "nothing to learn": (np.ones((20, 2)), np.arange(20) % 2, None),
    "contradictions": (np.repeat(np.eye(3), 6, axis=0), np.arange(18) % 2, None),
    "rows of weight zero": (np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2, np.arange(30) % 3),
    "weights of all sizes": (np.random.default_rng(0).normal(size=(30, 2)), np.arange(30) % 2, np.logspace(-4, 4, 30)),
}


def check_degenerate(kind, case, settings):
    X, y, weights = CASES[case]
    model = kind(**FAST | {"max_iter": 3, "n_imputation_steps": 3} | settings).fit(X, y, weights)
    least = 1.0 if model.calibration_floor_ is None else 0.01
    assert least <= model.calibration_temperature_ <= 100.0
    assert 1.0 <= model.logit_variance_scale_ <= 1e4
    bounds = model.predict_proba_interval(X)
    assert ((bounds >= 0.0) & (bounds <= 1.0)).all()


DEGENERATE = [{}, {"penalty": "none", "residuals": "training"}, {"max_iter": 1}]


@pytest.mark.usefixtures("few_folds")  # a class is missing in one of two folds, too; tests/long/test_probabilities.py has all
@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("settings", DEGENERATE, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:the network:UserWarning")
def test_degenerate_data(kind, case, settings):
    check_degenerate(kind, case, settings)


@pytest.mark.usefixtures("few_folds")
def test_rows_of_weight_zero_in_a_kernel_matrix_do_not_count(data):
    X, y = data
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2))
    weights = np.where(np.arange(len(X)) < 40, 0.0, 1.0)
    spoiled = np.where(weights == 0.0, 1 - y, y)
    one, other = (
        KStoNetClassifier(tuning="none", **FAST, kernel="precomputed").fit(K, labels, weights) for labels in (y, spoiled)
    )
    assert len(one.trained_.calibration.out_of_sample[0]) == len(X) - 40
    assert 1.0 <= one.logit_variance_scale_ <= 1e4
    assert one.predict_proba(K).shape == other.predict_proba(K).shape == (len(X), 2)


def test_intervals_hold_the_true_probability_far_more_often_than_the_papers():
    """Coverage of one training set of 200 rows; over ten seeds the paper's was 0.3 to 0.4, the default's 0.8 to 1."""
    X, y, p = simulated(1200)
    model = KStoNetClassifier(tuning="none", **FAST | {"max_iter": 20}).fit(X[:200], y[:200])

    def coverage(record):
        low, high = record.proba_interval(X[200:])[:, 1].T
        return np.mean((low <= p[200:]) & (p[200:] <= high))

    assert coverage(model.trained_) > 0.75
    assert coverage(as_in_the_paper(model)) < 0.6
