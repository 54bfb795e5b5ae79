"""scikit-learn's conventions: weights and other metadata reach the models, also through meta-estimators."""

import numpy as np
import pytest
import sklearn
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import UnsetMetadataPassedError
from sklearn.metrics import accuracy_score, make_scorer, r2_score
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere

FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "residuals": None, "random_state": 0}
ONE = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "hidden_layer_sizes": [(3,)], "random_state": 0}
REGRESSORS = [
    KStoNetRegressor(tuning="none", **FAST),
    StoNetRegressor(**FAST),
    MultiTargetSVR(C=100.0, tol=1e-6),
    KStoNetRegressorCV(KStoNetRegressor(tuning="none", **FAST), C=[10], cv=2, **ONE),
]
CLASSIFIERS = [
    KStoNetClassifier(tuning="none", **FAST),
    StoNetClassifier(**FAST),
    KStoNetClassifierCV(KStoNetClassifier(tuning="none", **FAST), C=[10], cv=2, **ONE),
]


def names(estimator):
    return type(estimator).__name__


each_estimator = pytest.mark.parametrize("estimator", [*REGRESSORS, *CLASSIFIERS], ids=names)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


def data(estimator):
    """Rows, targets, and weights of which some are zero."""
    X, y = (load_diabetes if estimator in REGRESSORS else load_iris)(return_X_y=True)
    rows = np.random.default_rng(0).permutation(len(X))[:120]
    return X[rows], y[rows], np.random.default_rng(1).integers(0, 4, size=len(rows)).astype(float)


def measure_of(estimator):
    return r2_score if estimator in REGRESSORS else accuracy_score


@each_estimator
def test_weights_reach_fit_and_score_of_cross_validation(routing, estimator):
    X, y, w = data(estimator)
    asked = sklearn.clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
    scores = cross_validate(asked, X, y, params={"sample_weight": w}, cv=KFold(2), error_score="raise")["test_score"]
    for (fit, look), score in zip(KFold(2).split(X), scores, strict=True):
        model = sklearn.clone(estimator).fit(X[fit], y[fit], sample_weight=w[fit])
        assert score == measure_of(estimator)(y[look], model.predict(X[look]), sample_weight=w[look])


@each_estimator
def test_a_pipeline_and_a_grid_search_pass_weights_on(routing, estimator):
    X, y, w = data(estimator)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, sklearn.clone(estimator).set_fit_request(sample_weight=True))
    scoring = make_scorer(measure_of(estimator)).set_score_request(sample_weight=True)
    grid = GridSearchCV(pipeline, {"standardscaler__with_mean": [True]}, scoring=scoring, cv=2, error_score="raise")
    grid.fit(X, y, sample_weight=w)
    scaled = scaler.fit_transform(X)
    expected = sklearn.clone(estimator).fit(scaled, y, sample_weight=w).predict(scaled)
    np.testing.assert_array_equal(grid.predict(X), expected)
    np.testing.assert_array_equal(pipeline.fit(X, y, sample_weight=w).predict(X), expected)


@each_estimator
def test_weights_nobody_asked_for_are_an_error(routing, estimator):
    X, y, w = data(estimator)
    with pytest.raises(UnsetMetadataPassedError, match=r"sample_weight.*not explicitly set as requested"):
        cross_validate(sklearn.clone(estimator), X, y, params={"sample_weight": w}, error_score="raise")
    sklearn.clone(estimator).fit(X, y, sample_weight=w)  # not routed: nothing to ask for


def test_validation_rows_are_routed(routing):
    X, y, _ = data(REGRESSORS[0])
    network = KStoNetRegressor(tuning="none", **FAST).set_fit_request(X_val=True, y_val=True)
    steps = [("scaler", StandardScaler()), ("network", network)]
    pipeline = Pipeline(steps, transform_input=["X_val"]).fit(X[:80], y[:80], X_val=X[80:], y_val=y[80:])
    scaler = StandardScaler().fit(X[:80])
    alone = KStoNetRegressor(tuning="none", **FAST).fit(
        scaler.transform(X[:80]), y[:80], X_val=scaler.transform(X[80:]), y_val=y[80:]
    )
    watched = [[record["validation_loss"] for record in model.history_] for model in (pipeline[-1], alone)]
    assert watched[0] == watched[1]


# -- what weights mean -------------------------------------------------------------------------------------------------------


@each_estimator
def test_rows_of_weight_zero_have_no_say(estimator):
    X, y, w = data(estimator)
    absurd = np.where(w > 0, y, 1e6 if estimator in REGRESSORS else 99)
    X_absurd = np.where(w[:, None] > 0, X, 100.0)
    given = sklearn.clone(estimator).fit(X_absurd, absurd, sample_weight=w)
    without = sklearn.clone(estimator).fit(X[w > 0], y[w > 0], sample_weight=w[w > 0])
    if isinstance(estimator, MultiTargetSVR):  # solves with all rows, to its tolerance
        np.testing.assert_allclose(given.predict(X), without.predict(X), rtol=1e-5)
    else:
        np.testing.assert_array_equal(given.predict(X), without.predict(X))


def test_intervals_do_not_see_rows_of_weight_zero():
    X, y, w = data(REGRESSORS[0])
    model = KStoNetRegressor(tuning="none", **(FAST | {"residuals": "crossfit"}))
    given = sklearn.clone(model).fit(X, np.where(w > 0, y, 1e6), sample_weight=w).predict_interval(X)
    without = sklearn.clone(model).fit(X[w > 0], y[w > 0], sample_weight=w[w > 0]).predict_interval(X)
    np.testing.assert_array_equal(given, without)


def test_one_class_with_weight_is_not_enough():
    X, y, _ = data(CLASSIFIERS[0])
    with pytest.raises(ValueError, match=r"one class only where sample_weight is positive, .*2"):
        KStoNetClassifier(tuning="none", **FAST).fit(X, y, sample_weight=(y == 2).astype(float))


@pytest.mark.parametrize(
    ("make", "share"),
    [
        (lambda seed: MultiTargetSVR(C=1.0, gamma=1.0, tol=1e-6), 0.001),
        (lambda seed: KStoNetRegressor(tuning="none", C=1.0, max_iter=8, residuals=None, random_state=seed), 0.1),
        (lambda seed: StoNetRegressor(max_iter=12, residuals=None, random_state=seed), 0.2),
    ],
    ids=["MultiTargetSVR", "KStoNetRegressor", "StoNetRegressor"],
)
def test_whole_weights_are_repeated_rows(make, share):
    """The draws of the imputation differ, so networks agree on average, and far better than with the weights left out."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 1))
    upper = rng.integers(0, 2, size=120)
    y = np.sin(2 * X[:, 0]) + upper + 0.1 * rng.normal(size=120)
    w = np.where(upper == 1, 4, 1)
    grid = np.linspace(-1.8, 1.8, 50)[:, None]

    def average(*rows, **weights):
        return np.mean([make(seed).fit(*rows, **weights).predict(grid) for seed in range(3)], axis=0)

    repeated = average(np.repeat(X, w, axis=0), np.repeat(y, w))
    weighted = np.abs(average(X, y, sample_weight=w) - repeated).mean()
    assert weighted < share * np.abs(average(X, y) - repeated).mean()


# -- the searches are routers ------------------------------------------------------------------------------------------------


def searching(cv, C=(1, 10)):
    return KStoNetRegressorCV(KStoNetRegressor(tuning="none", **FAST), C=list(C), cv=cv, **ONE)


@pytest.mark.parametrize("enabled", [False, True])
def test_groups_reach_the_splitter(enabled):
    X, y, w = data(REGRESSORS[0])
    groups = np.arange(len(X)) % 7
    splits = [(fit, look) for fit, look in GroupKFold(3).split(X[w > 0], y[w > 0], groups[w > 0])]
    numbers = np.flatnonzero(w > 0)
    as_indices = [(numbers[fit], numbers[look]) for fit, look in splits]
    with sklearn.config_context(enable_metadata_routing=enabled):
        by_groups = searching(GroupKFold(3)).fit(X, y, sample_weight=w, groups=groups)
        by_indices = searching(as_indices).fit(X, y, sample_weight=w)
    for name in ("split0_test_score", "split1_test_score", "split2_test_score"):
        np.testing.assert_array_equal(by_groups.cv_results_[name], by_indices.cv_results_[name])


def test_a_search_in_a_cross_validation_gets_groups_and_weights(routing):
    X, y, w = data(REGRESSORS[0])
    groups = np.arange(len(X)) % 7
    asked = searching(GroupKFold(2)).set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
    out = cross_validate(
        asked, X, y, params={"groups": groups, "sample_weight": w}, cv=GroupKFold(2), return_estimator=True, error_score="raise"
    )
    fit, _ = next(GroupKFold(2).split(X, y, groups))
    alone = searching(GroupKFold(2)).fit(X[fit], y[fit], sample_weight=w[fit], groups=groups[fit])
    assert out["estimator"][0].best_score_ == alone.best_score_


@pytest.mark.parametrize("cv", [None, 2])
@pytest.mark.parametrize("enabled", [False, True])
def test_groups_for_nobody_are_an_error(enabled, cv):
    X, y, _ = data(REGRESSORS[0])
    with sklearn.config_context(enable_metadata_routing=enabled), pytest.raises(TypeError, match="groups"):
        searching(cv).fit(X, y, groups=np.arange(len(X)) % 7)


def test_metadata_that_no_splitter_knows_is_an_error():
    X, y, _ = data(REGRESSORS[0])
    with pytest.raises(TypeError, match=r"fit got colour with cv=GroupKFold.*takes groups"):
        searching(GroupKFold(2)).fit(X, y, colour="red")
