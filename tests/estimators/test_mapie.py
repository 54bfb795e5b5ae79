"""Our estimators inside MAPIE: conformal intervals and label sets, with the coverage tested as a statistic.

For exchangeable rows and scores without ties, the number of m new rows that a split conformal set covers after n calibration
rows is beta-binomial with parameters k = ⌈(n + 1)·level⌉ and n + 1 - k, whatever the model and the data. Every such count is
held against its RATE-quantiles on both sides, so that each check fails by chance with probability 2·RATE at most.
"""

from __future__ import annotations

import copy

import numpy as np
import pytest
from scipy.stats import betabinom
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetClassifier, StoNetRegressor
from kstonet.metrics import coverage, mean_width

pytest.importorskip("mapie", minversion="1.5", reason="the score of predicted standard deviations came with MAPIE 1.5")

from mapie.classification import CrossConformalClassifier, SplitConformalClassifier
from mapie.conformity_scores import ResidualNormalisedScore
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

pytestmark = pytest.mark.usefixtures("few_folds")  # conformal sets cover, however rough the deviations of the model are

RATE = 1e-4
LEVELS = [0.8, 0.9]
FAST = {"max_iter": 8, "n_average": 3, "n_imputation_steps": 10, "residuals": "crossfit", "random_state": 0}
# (N_CALIBRATION + 1)·level is whole: where it is not, MAPIE 1.6 rounds down the rank of std_normalized's lower bound.
N_TRAIN, N_CALIBRATION, N_TEST = 200, 399, 1500


def chance_limits(n_calibration, n_test, level):
    """Numbers of covered rows that split conformal prediction leaves with probability RATE each, below and above."""
    k = int(np.ceil((n_calibration + 1) * level - 1e-9))
    return betabinom(n_test, k, n_calibration + 1 - k).ppf([RATE, 1.0 - RATE])


def within_chance(covered, n_calibration, level):
    low, high = chance_limits(n_calibration, len(covered), level)
    return bool(low <= covered.sum() <= high)


def inside(y, interval):
    return (interval[:, 0] <= y) & (y <= interval[:, 1])


def parts(make):
    return make(N_TRAIN, 0), make(N_CALIBRATION, 1), make(N_TEST, 2)


# -- regression --------------------------------------------------------------------------------------------------------------


def regression_rows(n, seed):
    """Inputs dense in the middle and sparse outside; noise with long tails."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.laplace(size=n)


@pytest.fixture(scope="module")
def rows():
    return parts(regression_rows)


@pytest.fixture(scope="module", params=[KStoNetRegressor, StoNetRegressor], ids=lambda kind: kind.__name__)
def regressor(request, rows):
    return request.param(**FAST).fit(*rows[0])


SCORES = {
    "absolute": lambda: "absolute",
    "std_normalized": lambda: "std_normalized",  # asks for predict(X, return_std=True)
    "residual_normalized": lambda: ResidualNormalisedScore(StoNetRegressor(**FAST), random_state=0),
}


@pytest.mark.parametrize("score", SCORES)
def test_split_conformal_intervals_cover(regressor, score, rows):
    _, (Xc, yc), (Xt, yt) = rows
    split = SplitConformalRegressor(regressor, confidence_level=LEVELS, conformity_score=SCORES[score]())
    points, intervals = split.conformalize(Xc, yc).predict_interval(Xt)
    np.testing.assert_array_equal(points, regressor.predict(Xt))
    assert intervals.shape == (N_TEST, 2, len(LEVELS))
    used = int(np.isfinite(split.conformity_scores).sum())  # fewer where a part of the rows trains the model of the residuals
    assert used == (299 if score == "residual_normalized" else N_CALIBRATION)
    for i, level in enumerate(LEVELS):
        assert within_chance(inside(yt, intervals[:, :, i]), used, level)
    widths = np.ptp(intervals[:, :, 0], axis=1)
    assert (np.ptp(widths) < 1e-9) == (score == "absolute")  # the other two adapt to the row


def test_split_conformal_repairs_intervals_that_fail_the_same_check(rows):
    """A network that nearly interpolates, with the noise of its training residuals: the check has the power to see it."""
    (X, y), (Xc, yc), (Xt, yt) = rows
    model = KStoNetRegressor(tuning="none", **(FAST | {"C": 1000.0, "residuals": "training"})).fit(X, y)
    assert not within_chance(inside(yt, model.predict_interval(Xt, 0.9)), N_CALIBRATION, 0.9)
    split = SplitConformalRegressor(model, confidence_level=0.9, conformity_score="std_normalized").conformalize(Xc, yc)
    assert within_chance(inside(yt, split.predict_interval(Xt)[1][:, :, 0]), N_CALIBRATION, 0.9)


def test_mapie_gives_the_intervals_of_calibrate(regressor, rows):
    """Two implementations of the same score and the same rank."""
    _, (Xc, yc), (Xt, _) = rows
    model = copy.copy(regressor)  # calibrate gives it another record, and leaves the shared one alone
    split = SplitConformalRegressor(model, confidence_level=LEVELS, conformity_score="std_normalized")
    intervals = split.conformalize(Xc, yc).predict_interval(Xt)[1]
    np.testing.assert_allclose(intervals, model.calibrate(Xc, yc).predict_interval(Xt, LEVELS), rtol=1e-9)


def test_mapie_on_each_group_gives_the_intervals_of_groups(regressor, rows):
    """Calibration by groups is split conformal prediction in each of them, here of 199 rows."""
    _, (Xc, yc), (Xt, _) = rows
    Xc, yc = Xc[:398], yc[:398]
    known, asked = np.arange(len(Xc)) % 2, np.arange(len(Xt)) % 2
    bounds = copy.copy(regressor).calibrate(Xc, yc, groups=known).predict_interval(Xt, LEVELS, groups=asked)
    for group in (0, 1):
        split = SplitConformalRegressor(regressor, confidence_level=LEVELS, conformity_score="std_normalized")
        split.conformalize(Xc[known == group], yc[known == group])
        intervals = split.predict_interval(Xt[asked == group])[1]
        np.testing.assert_allclose(intervals, bounds[asked == group], rtol=1e-9, atol=1e-9)


def test_mapie_fits_pipelines_and_passes_weights_on(rows):
    (X, y), (Xc, yc), (Xt, _) = rows
    weights = np.where(X[:, 0] > 0, 2.0, 1.0)
    how = {"confidence_level": 0.9, "conformity_score": "std_normalized", "prefit": False}
    split = SplitConformalRegressor(StoNetRegressor(**FAST), **how).fit(X, y, {"sample_weight": weights}).conformalize(Xc, yc)
    model = StoNetRegressor(**FAST).fit(X, y, sample_weight=weights)
    np.testing.assert_allclose(split.predict(Xt), model.predict(Xt))
    piped = make_pipeline(StandardScaler(), StoNetRegressor(**FAST))
    split = SplitConformalRegressor(piped, **how).fit(X, y).conformalize(Xc, yc)
    points, intervals = split.predict_interval(Xt)
    np.testing.assert_allclose(points, piped.fit(X, y).predict(Xt))
    assert np.ptp(np.ptp(intervals[:, :, 0], axis=1)) > 0.01


@pytest.mark.parametrize(("kind", "score"), [(KStoNetRegressor, "std_normalized"), (StoNetRegressor, "absolute")])
def test_cross_conformal_intervals_cover(kind, score, rows):
    """The guarantee of CV+ is 1 - 2·alpha = 0.8, on average over training sets.

    The limit lets one training set move the coverage as much as so many calibration rows would. That is an approximation, and
    RATE a nominal rate here; intervals of useful width lie well above the limit.
    """
    (X, y), _, (Xt, yt) = rows
    cross = CrossConformalRegressor(kind(**FAST), confidence_level=0.9, conformity_score=score, cv=5)
    points, intervals = cross.fit_conformalize(X, y).predict_interval(Xt)
    assert inside(yt, intervals[:, :, 0]).sum() >= chance_limits(N_TRAIN, N_TEST, 0.8)[0]
    assert mean_width(intervals[:, :, 0]) < 4.0 * np.std(yt)
    assert coverage(points, intervals[:, :, 0]) > 0.99


# -- classification ----------------------------------------------------------------------------------------------------------


def classification_rows(n_classes):
    def make(n, seed):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 2))
        logits = 1.5 * np.column_stack([2 * np.sin(2 * X[:, 0]), X[:, 1] ** 2 - 1, X[:, 0] * X[:, 1]])[:, :n_classes]
        return X, np.array(["red", "green", "blue"])[(logits + rng.gumbel(size=logits.shape)).argmax(axis=1)]

    return make


def holds(sets, classes, labels):
    """Whether the set of every row, of shape (n, classes, levels), holds its label."""
    return sets[np.arange(len(labels)), np.searchsorted(classes, labels)]


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("kind", [KStoNetClassifier, StoNetClassifier])
def test_split_conformal_sets_cover(kind, n_classes):
    (X, y), (Xc, yc), (Xt, yt) = parts(classification_rows(n_classes))
    for residuals in ("training", "crossfit"):  # temperature scaling changes the probabilities, not the guarantee
        model = kind(**FAST | {"residuals": residuals}).fit(X, y)
        split = SplitConformalClassifier(model, confidence_level=LEVELS)
        labels, sets = split.conformalize(Xc, yc).predict_set(Xt)
        np.testing.assert_array_equal(labels, model.predict(Xt))
        assert sets.shape == (N_TEST, n_classes, len(LEVELS))
        covered = holds(sets, model.classes_, yt)
        for i, level in enumerate(LEVELS):
            assert within_chance(covered[:, i], N_CALIBRATION, level)
        assert sets.sum(axis=1).mean() < n_classes


@pytest.fixture(scope="module")
def classifier():
    return KStoNetClassifier(tuning="none", **FAST).fit(*parts(classification_rows(3))[0])


@pytest.mark.parametrize("score", ["aps", "raps", "top_k"])
def test_adaptive_sets_cover_at_least(score, classifier):
    """These scores round up to whole labels: only too little coverage is an error. RAPS sets a fifth of the rows aside."""
    _, (Xc, yc), (Xt, yt) = parts(classification_rows(3))
    split = SplitConformalClassifier(classifier, confidence_level=LEVELS, conformity_score=score, random_state=0)
    covered = holds(split.conformalize(Xc, yc).predict_set(Xt)[1], classifier.classes_, yt)
    for i, level in enumerate(LEVELS):
        assert covered[:, i].sum() >= chance_limits(N_CALIBRATION * 4 // 5, N_TEST, level)[0]


def test_cross_conformal_sets_cover():
    """As for regression: a limit at the nominal rate RATE below the guarantee of 0.8, which needs no tempered probabilities."""
    (X, y), _, (Xt, yt) = parts(classification_rows(3))
    model = KStoNetClassifier(tuning="none", **FAST | {"residuals": "training"})
    cross = CrossConformalClassifier(model, confidence_level=0.9, cv=5).fit_conformalize(X, y)
    sets = cross.predict_set(Xt)[1]
    assert holds(sets, np.unique(y), yt).sum() >= chance_limits(N_TRAIN, N_TEST, 0.8)[0]
    assert sets.sum(axis=1).mean() < 2.5
