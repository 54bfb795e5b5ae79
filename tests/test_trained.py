"""The trained network: a frozen record that answers everything that is asked after a fit, and refuses wrong questions."""

import pickle
from dataclasses import FrozenInstanceError, fields, replace

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import norm

from kstonet import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)
from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings, LinearLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets, NumericTargets
from kstonet.training import train
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration

RNG = np.random.default_rng(0)
X, X_NEW = RNG.normal(size=(60, 3)), RNG.normal(size=(9, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(60, 2))
LABELS = np.array(["low", "middle", "high"])[np.digitize(Y[:, 0], [-0.4, 0.4])]


def trained(y, first=None, targets=None, **changes):
    kind = targets or (NumericTargets if np.asarray(y).dtype.kind == "f" else ClassTargets)
    given = {"max_iter": 3, "n_average": 2, "residuals": "crossfit"} | changes
    settings = TrainingSettings(first or KernelLayerSettings(), (4,), iro=IROSettings(ChainSettings(n_steps=3)), **given)
    return train(Problem.of(Rows(X, y), kind), settings)


@pytest.fixture(scope="module")
def regression():
    return trained(Y[:, 0])


@pytest.fixture(scope="module")
def several():
    return trained(Y)


@pytest.fixture(scope="module")
def classification():
    return trained(LABELS)


# -- the record --------------------------------------------------------------------------------------------------------------


def test_it_is_frozen(regression):
    for field in fields(regression):
        with pytest.raises(FrozenInstanceError):
            setattr(regression, field.name, None)


def test_its_facts(regression, several, classification):
    assert regression.hidden_layer_sizes == (4,)
    assert regression.kernel == regression.expansion.parts[0].kernel
    assert 0 < regression.n_support <= len(X)
    assert (regression.n_iter, len(regression.history), regression.residuals) == (3, 3, "crossfit")
    assert isinstance(regression.calibration, IntervalCalibration)
    assert isinstance(classification.calibration, ProbabilityCalibration)
    assert classification.temperature == classification.calibration.temperature >= 1.0
    assert classification.variance_scale >= 1.0
    assert trained(Y[:, 0], LinearLayerSettings(), residuals=None).kernel is None
    assert regression.chosen == regression.choice == {}
    assert several.targets.n_outputs == 2


def test_a_pickled_record_answers_the_same(regression, classification):
    for record in (regression, classification):
        again = pickle.loads(pickle.dumps(record))
        np.testing.assert_array_equal(again.mean(X_NEW), record.mean(X_NEW))
        np.testing.assert_allclose(again.moments(X_NEW).covariance, record.moments(X_NEW).covariance, rtol=1e-10)


# -- answers -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", [KernelLayerSettings(), LinearLayerSettings(), LinearLayerSettings(kernel="rbf")])
def test_mean_moments_and_distribution_agree(first):
    record = trained(Y, first)
    outputs, moments, distribution = record.outputs(X_NEW), record.moments(X_NEW), record.distribution(X_NEW)
    assert outputs.shape == (2, 9, 2)
    np.testing.assert_allclose(moments.mean, outputs.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(distribution.mean, record.mean(X_NEW))
    eigenvalues = np.linalg.eigvalsh(moments.covariance)
    assert (eigenvalues > -1e-12).all()
    middle = record.interval(X_NEW, 0.5).mean(axis=2)
    np.testing.assert_allclose(middle, record.mean(X_NEW))
    assert record.transform(X_NEW).shape == (9, 4)
    assert record.interval(X_NEW, [0.5, 0.9]).shape == (9, 2, 2, 2)
    assert np.ptp(record.interval(X_NEW, kind="confidence"), axis=2).mean() < np.ptp(record.interval(X_NEW), axis=2).mean()


def test_answers_move_with_the_units_of_the_targets(regression):
    """Standardised, 100 + 10·y is the same problem: every answer follows."""
    moved = trained(100.0 + 10.0 * Y[:, 0])
    np.testing.assert_allclose(moved.mean(X_NEW), 100.0 + 10.0 * regression.mean(X_NEW), rtol=1e-6)
    np.testing.assert_allclose(moved.interval(X_NEW), 100.0 + 10.0 * regression.interval(X_NEW), rtol=1e-4)
    np.testing.assert_allclose(moved.moments(X_NEW).covariance, regression.moments(X_NEW).covariance, rtol=1e-4)
    np.testing.assert_allclose(moved.losses(X, 100.0 + 10.0 * Y[:, 0]), regression.losses(X, Y[:, 0]), rtol=1e-3, atol=1e-8)


def test_probabilities_and_their_intervals(classification):
    p = classification.proba(X_NEW)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(classification.mean(X_NEW), p)
    bounds = classification.proba_interval(X_NEW, [0.5, 0.95])
    assert bounds.shape == (9, 3, 2, 2)
    odds = logit(bounds)
    np.testing.assert_allclose(odds.mean(axis=2)[..., 0], logit(p), atol=1e-6)  # symmetric in the log-odds
    widths = odds[:, :, 1] - odds[:, :, 0]
    np.testing.assert_allclose(widths[..., 1] / widths[..., 0], norm.ppf(0.975) / norm.ppf(0.75), rtol=1e-6)
    cool = replace(classification, calibration=None)
    np.testing.assert_array_equal(classification.proba(X_NEW, tempered=False), cool.proba(X_NEW))
    assert classification.losses(X, LABELS).shape == (60,)


def test_calibration_makes_a_new_record(regression, classification):
    y_new = np.zeros(9)
    before = regression.interval(X_NEW)
    other = regression.calibrated(X_NEW, y_new)
    assert not np.allclose(other.interval(X_NEW), before)
    np.testing.assert_array_equal(regression.interval(X_NEW), before)
    np.testing.assert_array_equal(other.calibrated().interval(X_NEW), before)
    labels = np.repeat(["low", "middle", "high"], 3)
    warmer = classification.calibrated(X_NEW, labels)
    assert warmer.temperature != classification.temperature
    assert warmer.variance_scale == classification.variance_scale
    assert warmer.calibrated().temperature == classification.temperature


def test_wrong_questions(regression, classification):
    for question in (lambda: classification.distribution(X_NEW), lambda: classification.interval(X_NEW)):
        with pytest.raises(TypeError, match="ask for proba or proba_interval"):
            question()
    for question in (lambda: regression.proba(X_NEW), lambda: regression.proba_interval(X_NEW)):
        with pytest.raises(TypeError, match="ask for mean, distribution or interval"):
            question()
    with pytest.raises(ValueError, match="kind='both' must be 'prediction' or 'confidence'"):
        regression.interval(X_NEW, kind="both")
    for record in (trained(Y[:, 0], residuals=None), trained(LABELS, residuals=None)):
        with pytest.raises(ValueError, match="residuals=None"):
            record.moments(X_NEW)
        with pytest.raises(ValueError, match="residuals=None"):
            record.calibrated()
    with pytest.raises(ValueError, match="residuals='training'"):
        trained(Y[:, 0], residuals="training").calibrated()


# -- estimators read nothing else --------------------------------------------------------------------------------------------


def refused(*_, **__):
    raise AssertionError("a parameter of the constructor was used after fit")


USES = [
    "bool", "eq", "ne", "lt", "le", "gt", "ge", "hash", "iter", "len", "call", "getitem", "contains", "float", "int", "index",
    "array", "add", "mul", "sub", "truediv", "radd", "rmul", "str", "format", "getattr",
]  # fmt: skip
Forbidden = type("Forbidden", (), {f"__{use}__": refused for use in USES} | {"__repr__": lambda self: "Forbidden()"})

FAST = {"max_iter": 2, "n_average": 1, "n_imputation_steps": 2, "random_state": 0, "residuals": "crossfit"}
ONE = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [10], "hidden_layer_sizes": [(3,)], "cv": 2}
REGRESSORS = [
    KStoNetRegressor(tuning="none", **FAST),
    KStoNetRegressor(**FAST, C="tune"),
    StoNetRegressor(**FAST),
    StoNetRegressor(**FAST, kernel="rbf"),
    KStoNetRegressorCV(KStoNetRegressor(tuning="none", **FAST), **ONE),
]
CLASSIFIERS = [
    KStoNetClassifier(tuning="none", **FAST),
    StoNetClassifier(**FAST),
    KStoNetClassifierCV(KStoNetClassifier(tuning="none", **FAST), **ONE),
]


def forbid(model):
    """The model and, in a search, its best estimator, with parameters that may not be used: all but the device."""
    for each in (model, getattr(model, "best_estimator_", model)):
        for name in each.get_params(deep=False).keys() - {"device"}:
            setattr(each, name, Forbidden())
    return model


@pytest.mark.parametrize("estimator", REGRESSORS, ids=lambda estimator: type(estimator).__name__)
def test_a_fitted_regressor_reads_no_parameter(estimator):
    model = estimator.fit(X, Y)

    def answers():
        mean, std = model.predict(X_NEW, return_std=True)
        return [
            mean, std, model.predict(X_NEW), model.predict(X_NEW, return_cov=True)[1],
            model.predict_interval(X_NEW, [0.5, 0.9]), model.predict_interval(X_NEW, kind="confidence"),
            model.predict_quantiles(X_NEW), model.predict_var(X_NEW),
            model.predict_dist(X_NEW, order=2).std, model.sample_y(X_NEW, 3), model.transform(X_NEW), model.score(X, Y),
            model.calibrate(X + 0.01, Y).predict_interval(X_NEW), model.calibrate().predict_interval(X_NEW),
        ]  # fmt: skip

    before = answers()
    names = list(model.get_feature_names_out())
    forbid(model)
    for now, then in zip(answers(), before, strict=True):
        np.testing.assert_array_equal(now, then)
    assert list(model.get_feature_names_out()) == names
    if hasattr(model, "trained_"):
        assert (model.n_iter_, len(model.history_)) == (2, 2)


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=lambda estimator: type(estimator).__name__)
def test_a_fitted_classifier_reads_no_parameter(estimator):
    model = estimator.fit(X, LABELS)

    def answers():
        return [
            model.predict(X_NEW), model.predict_proba(X_NEW), model.predict_proba_interval(X_NEW, [0.5, 0.9]),
            model.transform(X_NEW), model.score(X, LABELS), model.classes_, model.logit_variance_scale_,
            model.calibrate(X, LABELS).calibration_temperature_, model.calibrate().calibration_temperature_,
        ]  # fmt: skip

    before = answers()
    forbid(model)
    for now, then in zip(answers(), before, strict=True):
        np.testing.assert_array_equal(now, then)


@pytest.mark.parametrize("sparse", [True, False])
def test_a_fitted_support_vector_regression_reads_no_parameter(sparse):
    model = MultiTargetSVR(sparse=sparse).fit(X, Y)
    before = model.predict(X_NEW), model.score(X, Y)
    forbid(model)
    np.testing.assert_array_equal(model.predict(X_NEW), before[0])
    assert model.score(X, Y) == before[1]


def test_new_parameters_after_fit_change_no_answer():
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, Y[:, 0])
    before = model.predict_interval(X_NEW)
    model.set_params(residuals=None, kernel="linear", standardize=False, hidden_layer_sizes=(7, 7))
    np.testing.assert_array_equal(model.predict_interval(X_NEW), before)
    bare = KStoNetRegressor(tuning="none", **(FAST | {"residuals": None})).fit(X, Y[:, 0]).set_params(residuals="crossfit")
    with pytest.raises(ValueError, match="the model was fitted with residuals=None"):
        bare.predict_interval(X_NEW)
