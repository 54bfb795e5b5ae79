"""Class weights, log-probabilities and decision functions of the classifiers, as scikit-learn has them."""

from functools import partial

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.datasets import load_iris
from sklearn.metrics import recall_score
from sklearn.utils.class_weight import compute_class_weight

from kstonet import KStoNetClassifier, KStoNetClassifierCV, KStoNetRegressor, StoNetClassifier, StoNetRegressor
from kstonet.estimators.weights import class_weighted
from kstonet.layers.activations import get_activation
from kstonet.layers.heads import CategoricalHead
from kstonet.problem import Problem, Rows
from kstonet.settings import KernelLayerSettings
from kstonet.targets import ClassTargets
from kstonet.uncertainty.tempering import Tempering

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere
SHORT = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "random_state": 0}
KINDS = [
    partial(KStoNetClassifier, tuning="none", **SHORT),
    partial(KStoNetClassifier, tuning="none", loss="squared", **SHORT),
    partial(StoNetClassifier, **SHORT),
]
each_kind = pytest.mark.parametrize("kind", KINDS, ids=["svr", "squared", "linear"])
X, Y = load_iris(return_X_y=True)
X = X[:, :2]
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]
WEIGHTS = np.random.default_rng(0).integers(1, 4, size=len(Y)).astype(float)


def imbalanced(n=300, seed=0):
    """One row in ten belongs to the second class, which overlaps with the first."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(n) % 10 == 0, "rare", "common")
    return rng.normal(size=(n, 2)) + 1.5 * (y == "rare")[:, None], y


# -- class weights -----------------------------------------------------------------------------------------------------------


@each_kind
def test_class_weights_multiply_sample_weights(kind):
    of_class = {"setosa": 2.0, "virginica": 0.5}
    own = WEIGHTS * np.select([name == NAMES for name in of_class], list(of_class.values()), 1.0)
    weighted = kind(class_weight=of_class, residuals=None).fit(X, NAMES, WEIGHTS)
    np.testing.assert_array_equal(weighted.predict_proba(X), kind(residuals=None).fit(X, NAMES, own).predict_proba(X))
    plain = kind(residuals=None).fit(X, NAMES, WEIGHTS)
    assert np.abs(weighted.predict_proba(X) - plain.predict_proba(X)).max() > 0.01


def test_balanced_weights_are_scikit_learns():
    y = NAMES[:120]
    expected = compute_class_weight("balanced", classes=np.unique(y), y=y)
    found = class_weighted("balanced", y, None)
    np.testing.assert_allclose(found, expected[np.searchsorted(np.unique(y), y)])
    assert found.sum() == pytest.approx(len(y))


def test_balanced_weights_of_weighted_rows_are_those_of_repeated_rows():
    repeats = WEIGHTS.astype(int)
    repeated = class_weighted("balanced", np.repeat(NAMES, repeats), None)
    np.testing.assert_allclose(class_weighted("balanced", NAMES, WEIGHTS), WEIGHTS * repeated[np.cumsum(repeats) - 1])
    nothing = np.where(NAMES == "setosa", 0.0, 1.0)  # a class without weight takes no part
    np.testing.assert_allclose(class_weighted("balanced", NAMES, nothing), nothing)


@each_kind
def test_balanced_weights_find_the_rare_class(kind):
    X_rare, y = imbalanced()
    recalls = [
        recall_score(y, kind(class_weight=weight, residuals=None).fit(X_rare, y).predict(X_rare), pos_label="rare")
        for weight in (None, "balanced")
    ]
    assert recalls[1] > recalls[0] + 0.15


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("equal", "class_weight='equal' must be"),
        ([1, 2, 3], "class_weight=.* must be None, 'balanced' or a dict"),
        ({"setosa": 1.0, "tulip": 2.0}, "key 'tulip', which is no label of y; the labels are .'setosa'"),
        ({0: 1.0}, "key 0, which is no label of y"),
        ({"setosa": 0.0}, r"class_weight\['setosa'\]=0.0 must be a positive number"),
        ({"setosa": "much"}, r"class_weight\['setosa'\]='much' must be a positive number"),
        ({"setosa": np.inf}, "must be a positive number"),
    ],
)
def test_wrong_class_weights_are_refused_by_name(given, message):
    with pytest.raises(ValueError, match=message):
        KStoNetClassifier(class_weight=given).fit(X, NAMES)


def test_a_search_weighs_its_rows():
    X_rare, y = imbalanced(120)
    one = {
        "kernel": ["rbf"],
        "gamma": ["scale"],
        "length_scale": [None],
        "hidden_layer_sizes": [(1,)],
        "C": [0.1, 10.0],
        "cv": 3,
    }

    def best(weight, sample_weight=None):
        base = KStoNetClassifier(**SHORT, residuals=None, class_weight=weight)
        return KStoNetClassifierCV(base, random_state=0, **one).fit(X_rare, y, sample_weight).best_score_

    assert best("balanced") == best(None, class_weighted("balanced", y, None)) != best(None)


def test_classifiers_take_what_regressors_take():
    for classifier, regressor in ((KStoNetClassifier, KStoNetRegressor), (StoNetClassifier, StoNetRegressor)):
        own, others = classifier().get_params(), regressor().get_params()
        others.pop("target_transform", None)
        assert own == others | {"class_weight": None, "ordinal": False}


# -- weights of rows -----------------------------------------------------------------------------------------------------------


def test_weights_are_repeated_rows_to_the_layers():
    """With a squared loss: the first layer, whose functions do not tell copies of a row apart, and the head on its values."""
    repeats = WEIGHTS.astype(int)
    settings = KernelLayerSettings(loss="squared", gamma=0.5, C=3.0)
    heads, values = [], []
    for rows in (Rows(X, Y, WEIGHTS), Rows(np.repeat(X, repeats, axis=0), np.repeat(Y, repeats))):
        problem = Problem.of(rows, ClassTargets)
        latents = problem.targets.columns(problem.outputs)
        layer = settings.build(problem, 3).refit(None, latents, problem.weights)
        head = CategoricalHead.new(3, 3, get_activation("softplus"), "lasso", 0.01)
        heads.append(head.refit(layer.mean(), problem.outputs, problem.weights))
        values.append(layer.mean())
    np.testing.assert_allclose(np.repeat(values[0], repeats, axis=0), values[1], atol=1e-8)
    np.testing.assert_allclose(heads[0].weights, heads[1].weights, atol=1e-4)


def test_weights_are_nearly_repeated_rows_to_the_whole():
    """Not exactly: a row that is left out takes all of its weight with it, of a repeated one the others stay."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(400, 2))
    labels = (rng.uniform(size=400) < expit(2.0 * rows[:, 0])).astype(int)
    weights = rng.integers(1, 3, size=400)
    fixed = {"tuning": "none", "loss": "squared", "gamma": 0.1, "C": 0.3, "hidden_layer_sizes": (1,), "standardize": False}
    one = KStoNetClassifier(**fixed, **SHORT).fit(rows, labels, weights).predict_proba(rows)
    other = (
        KStoNetClassifier(**fixed, **SHORT)
        .fit(np.repeat(rows, weights, axis=0), np.repeat(labels, weights))
        .predict_proba(rows)
    )
    unweighted = KStoNetClassifier(**fixed, **SHORT).fit(rows, labels).predict_proba(rows)
    assert np.abs(one - other).mean() < 0.02
    assert np.abs(one - other).mean() < np.abs(one - unweighted).mean()


@each_kind
def test_rows_of_weight_zero_are_not_there(kind):
    weights = np.where(np.arange(len(Y)) % 3 == 0, 0.0, WEIGHTS)
    there = weights > 0
    one = kind(class_weight="balanced").fit(X, NAMES, weights)
    other = kind(class_weight="balanced").fit(X[there], NAMES[there], weights[there])
    np.testing.assert_array_equal(one.predict_proba(X), other.predict_proba(X))


# -- what is predicted -------------------------------------------------------------------------------------------------------


@each_kind
@pytest.mark.parametrize("classes", [2, 3])
def test_logarithms_and_decisions_are_those_of_the_probabilities(kind, classes):
    rows = classes > Y
    model = kind().fit(X[rows], NAMES[rows])
    p, log_p, decision = (ask(X[rows]) for ask in (model.predict_proba, model.predict_log_proba, model.decision_function))
    np.testing.assert_allclose(np.exp(log_p), p, rtol=1e-9)
    labels = model.predict(X[rows])
    if classes == 2:
        assert decision.shape == (rows.sum(),)
        np.testing.assert_allclose(expit(decision), p[:, 1], rtol=1e-9)
        np.testing.assert_array_equal(model.classes_[(decision > 0).astype(int)], labels)
    else:
        assert decision.shape == p.shape
        np.testing.assert_allclose(softmax(decision, axis=1), p, rtol=1e-9)
        np.testing.assert_allclose(decision.sum(axis=1), 0.0, atol=1e-9)
        np.testing.assert_array_equal(model.classes_[decision.argmax(axis=1)], labels)


def test_logarithms_are_finite_where_probabilities_are_zero():
    targets = ClassTargets(np.arange(3))
    logits = np.array([[[0.0, 2000.0, -3000.0]], [[0.0, 1000.0, -1000.0]]])
    assert targets.probabilities(logits)[0, 2] == 0.0
    found = targets.log_probabilities(logits, Tempering(2.0))
    assert np.isfinite(found).all()
    np.testing.assert_allclose(found[0], [-1000.0 / 2 - np.log(2) / 2, 0.0, -2000.0 / 2 - np.log(2) / 2], atol=1e-9)


def test_a_search_answers_as_its_best_estimator():
    one = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "hidden_layer_sizes": [(3,)], "C": [10.0], "cv": 2}
    search = KStoNetClassifierCV(KStoNetClassifier(**SHORT, residuals=None), random_state=0, **one).fit(X, NAMES)
    for ask in ("predict_log_proba", "decision_function"):
        np.testing.assert_array_equal(getattr(search, ask)(X), getattr(search.best_estimator_, ask)(X))
