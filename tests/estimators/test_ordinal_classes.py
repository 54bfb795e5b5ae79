"""Ordered classes: better probabilities where the order is true, an order that may be given, and files of such models."""

import numpy as np
import onnxruntime
import pytest
from scipy.special import expit
from sklearn.metrics import log_loss

import kstonet
from kstonet import KStoNetClassifier, KStoNetClassifierCV, StoNetClassifier
from kstonet.layers.heads import OrdinalHead
from kstonet.targets import ClassTargets, OrderedClasses

STEPS = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
GRADES = np.array(["awful", "bad", "so-so", "fair", "good", "superb"])
SHORT = {"tuning": "none", "loss": "squared", "gamma": 0.2, "C": 1.0, "max_iter": 3, "n_average": 2, "random_state": 0}


def graded(n, seed=0):
    """The proportional-odds model of McCullagh (1980): a smooth function plus logistic noise, cut at five steps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    centre = 2.0 * np.sin(X[:, 0]) + X[:, 1] * X[:, 2]
    below = np.column_stack([np.zeros(n), expit(STEPS - centre[:, None]), np.ones(n)])
    return X, np.digitize(centre + rng.logistic(size=n), STEPS), np.diff(below, axis=1)


@pytest.mark.parametrize("seed", [0, 1])
def test_the_order_helps_where_it_is_true(seed):
    """Log loss on 2,000 new rows: below that of the same network without the order, and near that of the truth."""
    X, y, _ = graded(300, seed)
    X_new, y_new, truth = graded(2000, seed + 100)
    plain, ordered = (
        log_loss(y_new, KStoNetClassifier(random_state=0, residuals="crossfit", ordinal=ordinal).fit(X, y).predict_proba(X_new))
        for ordinal in (False, True)
    )
    assert ordered < plain
    assert ordered < log_loss(y_new, truth) + 0.12


@pytest.mark.parametrize("kind", [StoNetClassifier, KStoNetClassifier])
def test_labels_may_be_given_in_their_order(kind):
    X, y, _ = graded(200)
    short = SHORT if kind is KStoNetClassifier else {"max_iter": 3, "n_average": 2, "random_state": 0}
    numbers = kind(**short, ordinal=True).fit(X, y)
    named = kind(**short, ordinal=list(GRADES)).fit(X, GRADES[y])
    assert list(named.classes_) == sorted(GRADES)  # as scikit-learn has it
    sorted_as = np.argsort(np.argsort(GRADES))
    assert np.mean(named.predict(X) == GRADES[numbers.predict(X)]) > 0.8  # classes are mixed in another order at the start
    np.testing.assert_array_equal(named.trained_.targets.ranks[sorted_as], np.arange(6))


def test_expected_grades_follow_the_truth():
    X, y, _ = graded(400)
    X_new, _, truth = graded(400, 1)
    p = KStoNetClassifier(**SHORT, ordinal=True).fit(X, y).predict_proba(X_new)
    grades = np.arange(6)
    assert np.corrcoef(p @ grades, truth @ grades)[0, 1] > 0.85
    assert isinstance(KStoNetClassifier(**SHORT, ordinal=True).fit(X, y).trained_.uppers[-1][-1], OrdinalHead)


def test_two_classes_have_no_use_for_an_order():
    X, y, _ = graded(150)
    one, other = (KStoNetClassifier(**SHORT, ordinal=ordinal).fit(X, y > 2).predict_proba(X) for ordinal in (False, True))
    np.testing.assert_array_equal(one, other)


def test_files_graphs_and_intervals_of_ordered_classes(tmp_path):
    X, y, _ = graded(200)
    model = KStoNetClassifier(**SHORT, ordinal=tuple(GRADES), class_weight="balanced").fit(X, GRADES[y])
    kstonet.save(model, tmp_path / "grades.kstonet")
    loaded = kstonet.load(tmp_path / "grades.kstonet")
    for ask in ("predict", "predict_proba", "predict_log_proba", "decision_function", "predict_proba_interval"):
        np.testing.assert_array_equal(getattr(loaded, ask)(X), getattr(model, ask)(X))
    assert loaded.get_params()["ordinal"] == tuple(GRADES)
    kstonet.to_onnx(model, tmp_path / "grades.onnx")
    label, p = onnxruntime.InferenceSession(tmp_path / "grades.onnx").run(["label", "probabilities"], {"X": X})
    np.testing.assert_allclose(p, model.predict_proba(X), rtol=1e-9)
    np.testing.assert_array_equal(label, model.predict(X))
    bounds = model.predict_proba_interval(X)
    assert ((bounds[..., 0] < model.predict_proba(X)) & (model.predict_proba(X) < bounds[..., 1])).all()


def test_a_search_keeps_the_order_in_its_parts():
    X, y, _ = graded(150)
    one = {
        "kernel": ["rbf"],
        "gamma": ["scale"],
        "length_scale": [None],
        "hidden_layer_sizes": [(3,)],
        "C": [1.0, 10.0],
        "cv": 2,
    }
    base = KStoNetClassifier(max_iter=2, n_average=1, residuals=None, ordinal=list(GRADES))
    search = KStoNetClassifierCV(base, random_state=0, **one).fit(X, GRADES[y])
    assert search.best_estimator_.trained_.targets.ordinal


@pytest.mark.parametrize(
    ("ordinal", "labels", "message"),
    [
        (True, GRADES, "ordinal=True needs numbers as labels; y holds 'awful'"),
        (["bad", "good"], GRADES, "lacks the label 'awful' of y"),
        (["bad", "bad"], GRADES, "each once"),
        ("sorted", GRADES, "ordinal='sorted' must be False, True, or a sequence of all labels"),
        (3, np.arange(6), "ordinal=3 must be"),
    ],
)
def test_wrong_orders_are_refused(ordinal, labels, message):
    X, y, _ = graded(60)
    with pytest.raises(ValueError, match=message):
        KStoNetClassifier(ordinal=ordinal).fit(X, labels[y])


def test_columns_of_ordered_classes_are_steps():
    targets = OrderedClasses(("low", "mid", "high", "top")).of(np.array(["high", "low", "mid"]))
    assert isinstance(targets, ClassTargets)
    assert (targets.ordinal, targets.n_units, targets.n_outputs) == (True, 2, 3)
    codes = targets.outputs(np.array(["low", "mid", "high"]))
    np.testing.assert_array_equal(targets.columns(codes), [[0, 0], [1, 0], [1, 1]])
