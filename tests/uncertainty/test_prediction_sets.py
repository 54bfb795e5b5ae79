"""Prediction sets: scores by hand, thresholds against brute force, coverage as a statistic, files."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import betabinom

import kstonet
from kstonet import KStoNetClassifier
from kstonet.uncertainty.prediction_sets import set_scores, set_thresholds

RATE = 1e-4  # of a false alarm, on either side
FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "random_state": 0}


def classes(n, seed, spread=1.0):
    """Three overlapping classes of different frequency."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, p=[0.6, 0.3, 0.1], size=n)
    centres = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    return centres[y] + spread * rng.normal(size=(n, 2)), y


def test_scores_are_the_mass_above():
    p = np.random.default_rng(0).dirichlet(np.ones(5), size=20)
    by_hand = np.array([[sum(row[row > value]) for value in row] for row in p])
    np.testing.assert_allclose(set_scores(p), by_hand, atol=1e-15)
    assert ((set_scores(p) == 0).sum(axis=1) == 1).all()


def test_ties_leave_one_class_at_the_top():
    np.testing.assert_allclose(set_scores(np.full((1, 4), 0.25)), [[0.0, 0.25, 0.5, 0.75]])


@pytest.mark.parametrize("conditional", [False, True])
def test_coverage_of_given_probabilities(conditional):
    """Split conformal: the covered ones of m new rows are at least beta-binomial (ties cover more)."""
    rng = np.random.default_rng(1)
    n, m, level = 999, 5000, 0.9
    logits = rng.normal(size=(n + m, 4))
    codes = np.array([rng.choice(4, p=p) for p in softmax(0.7 * logits, axis=1)])  # the logits are too large
    bound = set_thresholds(softmax(logits[:n], axis=1), codes[:n], np.array([level]), conditional)
    inside = (set_scores(softmax(logits[n:], axis=1)) <= bound[:, 0])[np.arange(m), codes[n:]]
    groups = [codes == c for c in range(4)] if conditional else [codes >= 0]
    for group in groups:
        own, new = int(group[:n].sum()), int(group[n:].sum())
        k = int(np.ceil((own + 1) * level - 1e-9))
        low, high = betabinom(new, k, own + 1 - k).ppf([RATE, 1 - RATE])
        assert low <= inside[group[n:]].sum() <= high


def test_a_class_with_too_few_rows_is_in_every_set():
    p, codes = np.full((30, 2), 0.5), np.array([0] * 25 + [1] * 5)
    bound = set_thresholds(p, codes, np.array([0.9]), True)
    assert np.isfinite(bound[0]).all()
    assert np.isinf(bound[1]).all()


@pytest.fixture(scope="module")
def model():
    return KStoNetClassifier(**FAST).fit(*classes(500, 0))


def test_sets_of_a_model_cover_without_rows_set_aside(model):
    """4,000 new rows: a standard error of 0.005, and of 0.014 for the scores of 500 rows; the bound is above three of both."""
    X, y = classes(4000, 1)
    sets = model.predict_set(X, [0.8, 0.9, 0.95])
    covered = sets[np.arange(4000), y].mean(axis=0)
    assert (np.abs(covered - [0.8, 0.9, 0.95]) < 0.045).all()
    assert sets.any(axis=1).all()
    assert (np.diff(sets.sum(axis=1)) >= 0).all()
    np.testing.assert_array_equal(model.predict_set(X, 0.9), sets[:, :, 1])
    top = model.predict_proba(X).argmax(axis=1)
    assert sets[np.arange(4000), top].all()


def test_rare_classes_are_covered_on_request(model):
    X, y = classes(4000, 2)
    rare = y == 2
    on_average, in_class = (model.predict_set(X, 0.9, class_conditional=flag)[rare, 2].mean() for flag in (False, True))
    assert on_average < 0.85
    assert in_class > 0.8
    assert in_class > on_average + 0.03


def test_calibration_rows_replace_those_of_the_fit_and_are_stored(model, tmp_path):
    X, _ = classes(300, 3)
    before = model.predict_set(X, 0.9)
    kstonet.save(model, tmp_path / "before.kstonet")
    loaded = kstonet.load(tmp_path / "before.kstonet")
    np.testing.assert_array_equal(loaded.predict_set(X, 0.9), before)
    wide_X, wide_y = classes(400, 4, spread=2.0)
    loaded.calibrate(wide_X, wide_y)
    after = loaded.predict_set(X, 0.9)
    assert after.sum() > before.sum()
    kstonet.save(loaded, tmp_path / "after.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "after.kstonet").predict_set(X, 0.9), after)
    np.testing.assert_array_equal(loaded.calibrate().predict_set(X, 0.9), before)


def test_sets_need_predictions_out_of_sample():
    X, y = classes(100, 0)
    model = KStoNetClassifier(residuals=None, **FAST).fit(X, y)
    with pytest.raises(ValueError, match="keeps no out-of-sample predictions"):
        model.predict_set(X)
    assert model.calibrate(*classes(100, 5)).predict_set(X).shape == (100, 3)
    with pytest.raises(ValueError, match="coverage=90"):
        model.predict_set(X, 90)
