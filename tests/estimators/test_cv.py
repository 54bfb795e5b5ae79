"""The search behind "tune" with the user's own values, as an estimator."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from kstonet import KStoNetClassifier, KStoNetClassifierCV, KStoNetRegressor, KStoNetRegressorCV
from kstonet.gram.kernels import RBF
from kstonet.tuning import parts

FAST = {"max_iter": 2, "n_average": 1, "n_imputation_steps": 2, "residuals": None}
FEW = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [1.0, 10.0], "hidden_layer_sizes": [(3,)], "cv": 2}

RNG = np.random.default_rng(0)
X = RNG.normal(size=(45, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]) + 0.3 * X[:, 1], X[:, 2] ** 2]) + 0.1 * RNG.normal(size=(45, 2))
y = Y[:, 0]
LABELS = np.array(["low", "middle", "high"])[np.digitize(y, [-0.4, 0.4])]


def regression(settings=None, **choices):
    return KStoNetRegressorCV(KStoNetRegressor(tuning="none", **(FAST | (settings or {}))), random_state=0, **(FEW | choices))


def classification(settings=None, **choices):
    return KStoNetClassifierCV(KStoNetClassifier(tuning="none", **(FAST | (settings or {}))), random_state=0, **(FEW | choices))


def expected_failures(estimator):
    reason = "the imputation draws one stream of noise for all rows, and a row given twice can be on both sides of a split"
    return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in ("dense", "sparse")}


@parametrize_with_checks([regression(C=[10.0]), classification(C=[10.0])], expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def test_the_best_is_fitted_on_all_rows():
    search = regression({"C": "tune", "activation": "tanh"}, kernel=["rbf", "laplacian"], hidden_layer_sizes=[(3,), (4, 2)])
    search.fit(X, y)
    best = search.best_estimator_
    assert best.get_params() == {**search.estimator.get_params(), **search.best_params_, "random_state": best.random_state}
    assert best.get_params()["activation"] == "tanh"
    np.testing.assert_array_equal(clone(best).fit(X, y).predict(X), search.predict(X))
    assert search.score(X, y) == pytest.approx(best.score(X, y))
    assert search.reason_.endswith("training rows, 3 iterations")
    given = regression({"random_state": 7}).fit(X, y)
    assert given.best_estimator_.random_state == 7


def test_the_table():
    search = regression(
        kernel=["rbf", "laplacian", "linear"], gamma=None, length_scale=(None, "evidence"), noise_variance=["auto", 0.1], cv=3
    ).fit(X, y)
    table = search.cv_results_
    rows = len(table["params"])
    lists = {"params"}
    assert {len(values) for values in table.values()} == {rows}
    assert all(isinstance(values, np.ndarray) for name, values in table.items() if name not in lists)
    splits = np.column_stack([table[f"split{i}_test_score"] for i in range(3)])
    np.testing.assert_allclose(table["mean_test_score"], np.nanmean(splits, axis=1))
    np.testing.assert_allclose(table["std_test_score"], np.nanstd(splits, axis=1))
    assert np.isnan(splits[table["iterations"] == 0]).any()  # kernels dropped after a part
    assert not np.isnan(splits[table["iterations"] > 0]).any()
    assert sorted(table["rank_test_score"]) == list(range(1, rows + 1))
    last = table["iterations"] == table["iterations"].max()
    assert table["mean_test_score"][search.best_index_] == table["mean_test_score"][last].max() == -search.best_score_
    assert table["rank_test_score"][search.best_index_] == 1
    assert table["rank_test_score"][last].max() < table["rank_test_score"][~last].min()
    for i, row in enumerate(table["params"]):
        assert all(np.array_equal(table[f"param_{name}"][i], value) for name, value in row.items())
    screened = table["iterations"] == 0
    assert {str(kernel) for kernel in table["param_kernel"][screened]} == {"rbf", "laplacian", "linear"}
    linear = table["param_kernel"] == "linear"
    assert set(table["param_length_scale"][linear & screened]) == {None}  # which can learn none
    assert screened.sum() == 2 * (2 * 5 * 2 + 1)
    assert len(pd.DataFrame(table)) == rows


def test_regression_says_what_its_best_says():
    search = regression({"residuals": "crossfit"}, C=[3.0]).fit(X, Y)
    best = search.best_estimator_
    for name in ("predict", "predict_interval", "predict_quantiles", "predict_var", "sample_y", "transform"):
        np.testing.assert_array_equal(getattr(search, name)(X), getattr(best, name)(X))
    np.testing.assert_array_equal(search.predict(X, return_std=True)[1], best.predict_dist(X).std)
    np.testing.assert_array_equal(search.predict_dist(X).covariance, best.predict_dist(X).covariance)
    np.testing.assert_array_equal(
        search.predict_interval(X, 0.8, kind="confidence"), best.predict_interval(X, 0.8, "confidence")
    )
    before = search.predict_interval(X)
    assert search.calibrate(X + 0.01, Y) is search
    assert not np.array_equal(search.predict_interval(X), before)
    assert list(search.get_feature_names_out()) == [f"kstonetregressorcv{i}" for i in range(3)]
    assert search.set_output(transform="pandas").transform(X).shape == (45, 3)
    assert "kind" in KStoNetRegressorCV.predict_interval.__doc__


def test_classification_says_what_its_best_says():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    search = classification({"residuals": "crossfit"}).fit(frame, LABELS)
    best = search.best_estimator_
    assert list(search.classes_) == ["high", "low", "middle"]
    assert list(search.feature_names_in_) == list(best.feature_names_in_) == ["a", "b", "c"]
    for name in ("predict", "predict_proba", "predict_proba_interval", "transform"):
        np.testing.assert_array_equal(getattr(search, name)(frame), getattr(best, name)(frame))
    assert search.score(frame, LABELS) == best.score(frame, LABELS)
    learnt = search.calibration_temperature_
    assert learnt == best.calibration_temperature_ != 1.0
    assert search.calibrate(frame[:20], LABELS[:20]).calibration_temperature_ == best.calibration_temperature_ != learnt
    assert search.calibrate().calibration_temperature_ == learnt
    assert 0 < search.best_score_ < 2 * np.log(3)


def test_validation_parts():
    assert "5 parts of 36 + 9" in regression(cv=None).fit(X, y).reason_
    assert "3 parts of 30 + 15" in regression(cv=KFold(3, shuffle=True, random_state=0)).fit(X, y).reason_
    assert "1 part of 30 + 15" in regression(cv=[(np.arange(30), np.arange(30, 45))]).fit(X, y).reason_
    assert "3 parts of 30 + 15" in classification(cv=3).fit(X, np.sort(LABELS)).reason_  # stratified
    with pytest.raises(ValueError, match=r"cv=KFold.*classes that its rows to fit on lack"):
        classification(cv=KFold(3)).fit(X, np.sort(LABELS))
    with pytest.raises(ValueError, match="n_samples=4"):
        regression(cv=None).fit(X[:4], y[:4])


def test_rows_of_weight_zero_have_no_say():
    plain = regression().fit(X, y, np.ones(45))
    poisoned = regression().fit(np.vstack([X, 1e6 + X[:5]]), np.append(y, [1e6] * 5), np.repeat([1.0, 0.0], [45, 5]))
    assert poisoned.reason_ == plain.reason_


def test_kernels_of_all_kinds():
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    search = regression(kernel=("precomputed",)).fit(K, y)
    assert search.__sklearn_tags__().input_tags.pairwise
    assert search.predict(K[:4]).shape == (4,)
    assert cross_val_score(regression(kernel=["precomputed"]), K, y, cv=2).shape == (2,)
    own = regression(kernel=[RBF(None, 0.3)], gamma=[0.1, 0.2], length_scale=[[1.0, 2.0, 3.0]], C=np.array([10, 1])).fit(X, y)
    assert own.best_params_["kernel"] == RBF(None, 0.3)
    assert set(own.cv_results_["param_C"]) == {1, 10}
    scaled = regression(length_scale=np.array([[10.0, 10.0, 10.0]]), gamma=None).fit(X, y)
    assert max(np.hstack(scaled.cv_results_["param_gamma"])) == pytest.approx(400 / 3)
    per_unit = regression(kernel=[["rbf", "laplacian", "rbf"], "rbf"]).fit(X, y)
    assert ("rbf", "laplacian", "rbf") in list(per_unit.cv_results_["param_kernel"])


def test_in_a_pipeline_and_pickled():
    pipeline = make_pipeline(StandardScaler(), regression()).fit(X, y)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(pipeline)).predict(X), pipeline.predict(X))


def test_the_number_of_jobs_and_the_default_estimator():
    few = FEW | {"C": [3.0], "cv": 3}
    one, two = (KStoNetRegressorCV(n_jobs=n_jobs, random_state=0, **few).fit(X[:15], y[:15]) for n_jobs in (1, 2))
    assert one.reason_ == two.reason_
    assert (
        one.best_estimator_.get_params()
        == KStoNetRegressor(tuning="none", **one.best_params_, random_state=one.best_estimator_.random_state).get_params()
    )


def test_progress(capsys):
    regression(verbose=1).fit(X, y)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("[tune]") >= 4


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "rbf"}, r"kernel='rbf' must be a sequence of values to choose from, such as \['rbf'\]"),
        ({"C": 3.0}, r"C=3.0 must be a sequence"),
        ({"C": []}, "C=.* must be a sequence"),
        ({"C": [-1.0, 1.0]}, "must hold positive numbers"),
        ({"C": ["auto"]}, "must hold positive numbers"),
        ({"kernel": ["rbf", "precomputed"]}, "must be the only choice"),
        ({"kernel": ["linear"], "length_scale": ["evidence"]}, "length_scale='evidence' needs a kernel among rbf"),
        ({"kernel": ["rfb"]}, "kernel='rfb' is unknown"),
        ({"noise_variance": [-1.0]}, "noise_variance=-1.0"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        regression(**arguments).fit(X, y)


def test_one_class_is_refused_before_the_search():
    with pytest.raises(ValueError, match="one class only, 'low'; a classifier needs at least two classes"):
        classification().fit(X, np.full(45, "low"))
    with pytest.raises(ValueError, match="one class only where sample_weight is positive, 'high'"):
        classification().fit(X, LABELS, (LABELS == "high").astype(float))


def test_other_estimators_are_refused():
    with pytest.raises(TypeError, match=r"estimator=StandardScaler\(\) must be a KStoNetRegressor"):
        KStoNetRegressorCV(StandardScaler()).fit(X, y)
    with pytest.raises(TypeError, match="must be a KStoNetClassifier"):
        KStoNetClassifierCV(KStoNetRegressor(tuning="none")).fit(X, LABELS)


def test_the_table_of_a_search_that_ends_on_more_rows(monkeypatch):
    """As if 45 rows were many: parts of 20, and a larger one of 40. The real sizes, 3,000 and 12,000, take minutes."""
    monkeypatch.setattr(parts, "MOST_ROWS", 20)
    monkeypatch.setattr(parts, "LAST_ROWS", 40)
    search = regression(cv=None).fit(X, y)
    results = search.cv_results_
    assert set(results["rows"]) == {16, 32}
    larger = results["rows"] == 32
    assert np.isfinite(results["split5_test_score"][larger]).all()  # a part of its own, after the five
    assert np.isnan(results["split5_test_score"][~larger]).all()
    assert np.isnan(results["split0_test_score"][larger]).all()
    assert larger[search.best_index_]
    assert search.best_score_ == pytest.approx(-results["mean_test_score"][search.best_index_])
