"""Every rule cries out where it should, and only there."""

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.report.cautions import general_cautions, risen, still_falling, wrong_coverage
from kstonet.report.classification import ClassificationView
from kstonet.report.comparison import Comparison, compare
from kstonet.report.inputs import read_subject
from kstonet.report.regression import RegressionView

NOTHING = {"encode": None, "X_train": None, "y_train": None, "target": None}


def titles(cautions):
    return {caution.title for caution in cautions}


def test_a_falling_loss_is_seen_and_a_wandering_one_is_not():
    rng = np.random.default_rng(0)
    assert still_falling(np.exp(-np.arange(40) / 10)) is not None
    assert still_falling(np.exp(-np.arange(7.0))) is None  # too short to tell
    quiet = sum(still_falling(1.0 + 0.05 * rng.normal(size=40)) is not None for _ in range(200))
    assert quiet <= 6
    assert still_falling(np.linspace(1.0, 1.5, 40)) is None


def test_a_validation_loss_that_rises_is_seen():
    rng = np.random.default_rng(0)
    valley = np.concatenate([np.linspace(1.0, 0.5, 20), np.linspace(0.5, 0.9, 20)])
    assert "%" in risen(valley + 0.01 * rng.normal(size=40), 5).text
    noisy = sum(risen(1.0 + 0.03 * rng.normal(size=40), 10) is not None for _ in range(200))
    assert noisy <= 6
    assert risen(np.full(40, np.nan), 5) is None
    assert risen(np.linspace(1.0, 0.5, 40), 5) is None


def test_coverage_beyond_chance_is_seen():
    assert wrong_coverage(500, {0.8: 0.79, 0.95: 0.94}) is None
    assert "narrow" in wrong_coverage(500, {0.8: 0.8, 0.95: 0.88}).title
    assert "wide" in wrong_coverage(500, {0.8: 0.9, 0.95: 0.97}).title
    assert wrong_coverage(30, {0.95: 0.88}) is None  # so few rows prove nothing


def test_training_rows_few_rows_and_far_rows(numeric):
    model, X, y, X_test, y_test = numeric
    assert "These are the training rows" in titles(general_cautions(read_subject(model, X, y, **NOTHING)))
    fresh = titles(general_cautions(read_subject(model, X_test, y_test, **NOTHING)))
    assert "These are the training rows" not in fresh
    assert "Few rows to evaluate on" in fresh
    half = read_subject(model, np.concatenate([X[:20], X_test]), np.concatenate([y[:20], y_test]), **NOTHING)
    assert "Some rows are training rows" in titles(general_cautions(half))
    far = titles(general_cautions(read_subject(model, X_test + 8.0, y_test, **NOTHING)))
    assert "Rows far from the training data" in far - fresh


def test_settings_that_matter_are_named(numeric):
    _, X, y, X_test, y_test = numeric
    few = {"max_iter": 2, "n_imputation_steps": 2, "random_state": 0}
    tight = KStoNetRegressor(tuning="none", epsilon=1e-6, residuals="training", **few).fit(X, y)
    found = titles(general_cautions(read_subject(tight, X_test, y_test, **NOTHING)))
    assert {"Nearly all training rows are support vectors", "Intervals from training residuals"} <= found
    squared = KStoNetRegressor(tuning="none", loss="squared", residuals=None, **few).fit(X, y)  # needs all rows anyway
    assert "Nearly all training rows are support vectors" not in titles(
        general_cautions(read_subject(squared, X_test, y_test, **NOTHING))
    )
    loose = KStoNetRegressor(tuning="none", epsilon=1.0, residuals=None, **few).fit(X, y)
    found = titles(general_cautions(read_subject(loose, X_test, y_test, **NOTHING)))
    assert "No intervals" in found
    assert "Nearly all training rows are support vectors" not in found
    loose.history_[-1]["svr_gap"] = 0.5
    assert "The first layer is not solved to its tolerance" in titles(
        general_cautions(read_subject(loose, X_test, y_test, **NOTHING))
    )
    small = KStoNetRegressor(tuning="none", **few).fit(X[:30], y[:30])
    assert "Few training rows" in titles(general_cautions(read_subject(small, X_test, y_test, **NOTHING)))


def test_bias_tails_and_better_rivals(numeric):
    model, _, _, X, y = numeric

    def found(truth, answers=None):
        subject = read_subject(model, X, truth, **NOTHING)
        return titles(RegressionView(subject).cautions(compare(subject) if answers is None else Comparison(answers, "")))

    std = model.predict(X, return_std=True)[1]
    right = model.predict(X) + std * np.random.default_rng(0).normal(size=len(X))
    assert found(right, {"same": model.predict(X)}) == set()
    assert "Predictions are too low on average" in found(y + 3.0)
    wild = right + np.where(np.arange(len(y)) % 10 == 0, 10.0, 0.0)
    assert "Errors have long tails" in found(wild)
    assert "A simpler model predicts better" in found(right, {"oracle": right, "mean": 0 * y})


def test_classifiers_are_told_about_their_probabilities(classes):
    model, X, y, X_test, y_test = classes

    def found(model, X, y, answers=None):
        subject = read_subject(model, X, y, **NOTHING)
        return titles(ClassificationView(subject).cautions(compare(subject) if answers is None else Comparison(answers, "")))

    rng = np.random.default_rng(0)
    many = rng.normal(size=(600, 3))
    drawn = model.classes_[[rng.choice(3, p=row) for row in model.predict_proba(many)]]
    assert found(model, many, drawn, {"same": model.predict(many)}) <= {"Intervals of the probabilities are wide"}
    assert "Probabilities are too high" in found(model, many, rng.permutation(drawn), {"other": drawn[::-1]})
    assert "A simpler model predicts better" in found(model, X_test, y_test, {"oracle": y_test})
    rare = np.concatenate([np.flatnonzero(y_test != "two"), np.flatnonzero(y_test == "two")[:3]])
    assert "Few rows of a class" in found(model, X_test[rare], y_test[rare])
    vague = KStoNetClassifier(tuning="none", C=0.01, max_iter=3, residuals="training", random_state=0).fit(X, y)
    assert "Intervals of the probabilities are wide" in found(vague, X_test, y_test)


@pytest.mark.parametrize("kind", ["numeric", "classes"])
def test_training_rows_silence_what_they_would_falsify(kind, request):
    model, X, y, _, _ = request.getfixturevalue(kind)
    subject = read_subject(model, X, y, **NOTHING)
    view = RegressionView(subject) if kind == "numeric" else ClassificationView(subject)
    found = titles(view.cautions(Comparison({"oracle": y}, "")))
    assert not found & {"A simpler model predicts better", "The intervals are too wide", "Probabilities are too low"}
