"""The figures of the report against independent computations."""

import numpy as np
import pytest
from scipy.stats import binom, binomtest
from sklearn.dummy import DummyRegressor
from sklearn.inspection import partial_dependence as sklearn_dependence
from sklearn.inspection import permutation_importance as sklearn_importance
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage
from kstonet.report import effects
from kstonet.report.cautions import chance_range, far_share
from kstonet.report.classification import ClassificationView
from kstonet.report.comparison import compare
from kstonet.report.effects import partial_dependence, permutation_importance
from kstonet.report.inputs import read_subject
from kstonet.report.regression import RegressionView

NOTHING = {"encode": None, "X_train": None, "y_train": None, "target": None}


@pytest.fixture(scope="module")
def regression(numeric):
    model, _, _, X, y = numeric
    return read_subject(model, X, y, **NOTHING)


@pytest.fixture(scope="module")
def classification(classes):
    model, _, _, X, y = classes
    return read_subject(model, X, y, **NOTHING)


def test_importance_is_that_of_scikit_learn(regression, classification):
    for subject, view, scoring in (
        (regression, RegressionView(regression), "neg_root_mean_squared_error"),
        (classification, ClassificationView(classification), "neg_log_loss"),
    ):
        found = permutation_importance(subject, view.outputs, view.loss)
        expected = sklearn_importance(
            subject.model, subject.rows.values, subject.y, scoring=scoring, n_repeats=40, random_state=3
        )
        error = expected.importances_std[found.columns] * np.sqrt(1 / 5 + 1 / 40)
        gap = np.abs(found.rises.mean(axis=1) - expected.importances_mean[found.columns])
        np.testing.assert_array_less(gap, 4 * error + 1e-9)
        assert found.n_rows == subject.n
        assert (np.diff(found.rises.mean(axis=1)) <= 0).all()


def test_importance_of_columns_with_the_same_name(mixed):
    """Each is shuffled alone, in its own type."""
    model, encode, _, (X, y) = mixed
    names = list(X.columns)

    def renamed(table):
        return encode(table.set_axis(names, axis=1))

    plain = read_subject(model, X, y, **NOTHING | {"encode": encode})
    twins = read_subject(model, X.set_axis(["same"] * len(names), axis=1), y, **NOTHING | {"encode": renamed})
    found = [permutation_importance(each, (view := RegressionView(each)).outputs, view.loss) for each in (plain, twins)]
    np.testing.assert_array_equal(found[0].columns, found[1].columns)
    np.testing.assert_allclose(found[0].rises, found[1].rises)


def test_dependence_is_that_of_scikit_learn(regression):
    view = RegressionView(regression)
    found = partial_dependence(regression, 1, view.curves)
    centre, low, high = found.curves["predicted target"]
    grid = {1: found.values}
    expected = sklearn_dependence(regression.model, regression.rows.values, [1], kind="average", custom_values=grid)
    np.testing.assert_allclose(centre, expected["average"][0])
    assert set(found.values) <= set(regression.y * 0 + regression.rows.values[:, 1])  # values that occur
    X = regression.rows.values.copy()
    X[:, 1] = found.values[7]
    bounds = regression.model.predict_interval(X, 0.95, kind="confidence")
    np.testing.assert_allclose([low[7], high[7]], bounds.mean(axis=0), rtol=1e-6)


def test_dependence_of_classes_adds_up_to_one(classification):
    view = ClassificationView(classification)
    found = partial_dependence(classification, 0, view.curves)
    assert list(found.curves) == [f"probability of {name}" for name in ("one", "three", "two")]
    np.testing.assert_allclose(sum(centre for centre, _, _ in found.curves.values()), 1.0)
    for centre, low, high in found.curves.values():
        assert ((low <= centre) & (centre <= high)).all()


def test_columns_are_shuffled_and_set_before_they_are_encoded(mixed):
    model, encode, _, (X, y) = mixed
    subject = read_subject(model, X, y, **NOTHING | {"encode": encode})
    view = RegressionView(subject)
    assert permutation_importance(subject, view.outputs, view.loss).rises.shape == (5, 5)
    kinds = partial_dependence(subject, 2, view.curves)
    assert kinds.values.tolist() == X["kind"].value_counts().index.tolist()  # the most frequent first
    set_to = X.iloc[np.sort(np.random.default_rng(0).choice(len(X), 100, replace=False))].assign(kind=kinds.values[0])
    assert kinds.curves["predicted price"][0][0] == pytest.approx(model.predict(encode(set_to)).mean())
    gaps = partial_dependence(subject, 4, view.curves)
    assert np.isfinite(gaps.values).all()


def test_work_is_bounded_and_said(numeric, monkeypatch):
    model, _, _, X, y = numeric
    subject = read_subject(model, X, y, **NOTHING)
    monkeypatch.setattr(effects, "KERNEL_VALUES", 30.0 * 15 * model.n_support_ * (1 + 3 / 200) + 1)
    view = RegressionView(subject)
    assert permutation_importance(subject, view.outputs, view.loss).n_rows == 30


def test_of_many_columns_those_are_measured_that_matter(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 30))
    y = 3.0 * np.abs(X[:, 7]) + X[:, 21]
    model = KStoNetRegressor(tuning="none", max_iter=2, residuals=None, random_state=0).fit(X, y)
    subject = read_subject(model, X, y, **NOTHING)
    monkeypatch.setattr(effects, "MEASURED", 8)
    view = RegressionView(subject)
    found = permutation_importance(subject, view.outputs, view.loss)
    assert len(found.columns) == 8
    assert set(found.columns[:2]) == {7, 21}


def test_rivals_without_training_rows_are_cross_validated(regression):
    X, y = regression.rows.values, regression.y
    answers = compare(regression).answers
    folds = KFold(5, shuffle=True, random_state=0)
    np.testing.assert_allclose(answers["mean"], cross_val_predict(DummyRegressor(), X, y, cv=folds))
    expected = np.empty(len(y))
    for train, test in folds.split(X):
        scaler = StandardScaler().fit(X[train])
        mean, spread = y[train].mean(), y[train].std()
        svr = SVR(C=1, epsilon=0.01, tol=1e-6).fit(scaler.transform(X[train]), (y[train] - mean) / spread)
        expected[test] = svr.predict(scaler.transform(X[test])) * spread + mean
    np.testing.assert_allclose(answers["SVR"], expected, atol=0.05 * y.std())


def test_rivals_with_training_rows_learn_from_them(classes):
    model, X, y, X_test, y_test = classes
    comparison = compare(read_subject(model, X_test, y_test, **NOTHING | {"X_train": X, "y_train": y}))
    for name, rival in (("SVM", SVC(C=1)), ("linear (logistic)", LogisticRegression(max_iter=1000))):
        np.testing.assert_array_equal(
            comparison.answers[name], make_pipeline(StandardScaler(), rival).fit(X, y).predict(X_test)
        )
    assert "fitted on the training rows" in comparison.how


def test_one_class_has_no_rivals(classes):
    model, _, _, X, y = classes
    alone = y == "two"
    assert compare(read_subject(model, X[alone], y[alone], **NOTHING)).answers == {}


def test_views_repeat_what_the_model_says(numeric, classes):
    model, _, _, X, y = numeric
    view = RegressionView(read_subject(model, X, y, **NOTHING))
    np.testing.assert_allclose(view.mean, model.predict(X))
    np.testing.assert_allclose(view.intervals[0.9], model.predict_interval(X, 0.9))
    assert view.loss(X, y) == pytest.approx(root_mean_squared_error(y, model.predict(X)))
    headline = {name: value for value, name, _ in view.headline()}
    assert headline["R²"] == f"{model.score(X, y):.3f}".rstrip("0")
    assert headline["covered"] == f"{100 * coverage(y, model.predict_interval(X)):.1f} %"
    classifier, _, _, X, y = classes
    other = ClassificationView(read_subject(classifier, X, y, **NOTHING))
    assert other.loss(X, y) == pytest.approx(log_loss(y, classifier.predict_proba(X)))
    assert other.right.mean() == classifier.score(X, y)


def test_the_calibration_error_of_right_probabilities_is_within_chance(classification):
    rng = np.random.default_rng(0)
    view = ClassificationView(classification)
    drawn = np.array([rng.choice(3, p=row) for row in view.proba])
    truth = read_subject(classification.model, classification.rows.values, classification.model.classes_[drawn], **NOTHING)
    other = ClassificationView(truth)
    assert other._ece < other._chance_ece < 0.25


def test_variance_of_log_odds_splits_over_its_sources(classification):
    view = ClassificationView(classification)
    low, high = np.moveaxis(view._of_winner(view.intervals), 1, 0)
    inside = (low > 1e-9) & (high < 1 - 1e-9)
    width = np.log(high[inside] / (1 - high[inside])) - np.log(low[inside] / (1 - low[inside]))
    assert inside.sum() > 20
    total = sum(view.log_odds_variances().values())[inside]
    np.testing.assert_allclose((width / 2 / 1.959964) ** 2, total, rtol=1e-5)


@pytest.mark.parametrize("n", [10, 97, 1000])
@pytest.mark.parametrize("level", [0.05, 0.8, 0.95])
def test_chance_explains_shares_within_the_range_only(n, level):
    low, high = (round(n * share) for share in chance_range(n, level))
    assert binom.cdf(high, n, level) - binom.cdf(low - 1, n, level) >= 0.99
    assert binomtest(high, n, level, alternative="greater").pvalue > 0.005 or high == n
    for outside in (low - 1, high + 1):
        if 0 <= outside <= n:
            tail = binom.cdf(outside, n, level) if outside < low else binom.sf(outside - 1, n, level)
            assert tail <= 0.005


def test_new_rows_of_the_same_kind_are_not_far():
    rng = np.random.default_rng(0)
    train, same = rng.normal(size=(800, 4)), rng.normal(size=(600, 4))
    assert far_share(same, train) < 0.03
    assert far_share(same + 6.0, train) > 0.95
