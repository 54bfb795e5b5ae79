"""Pipelines and searches around a model: intervals, files, graphs, the report; sparse rows."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import sklearn.pipeline
from sklearn.base import clone
from sklearn.compose import ColumnTransformer, make_column_selector
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import VarianceThreshold
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    OneHotEncoder,
    OrdinalEncoder,
    PowerTransformer,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV, MultiTargetSVR
from kstonet.estimators import inputs
from kstonet.pipeline import Pipeline, make_pipeline
from kstonet.report import build_report
from kstonet.storage.errors import ModelFileError
from kstonet.tables import TableEncoder

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
FLATS = pd.DataFrame({"area": 80 + 20 * X[:, 0], "age": X[:, 1], "city": np.where(X[:, 2] > 0, "Bern", "Chur")})


def short(**changes):
    return KStoNetRegressor(**({"tuning": "none", "max_iter": 2, "random_state": 0} | changes))


@pytest.fixture(scope="module")
def fitted():
    return make_pipeline(StandardScaler(), short()).fit(X[:40], Y[:40])


@pytest.fixture(scope="module")
def search():
    few = {"kernel": ["rbf"], "length_scale": [None], "C": [1, 10], "hidden_layer_sizes": [(2,)], "cv": 2, "random_state": 0}
    return KStoNetRegressorCV(short(), **few).fit(X[:40], Y[:40])


# -- the methods of the last step ------------------------------------------------------------------------------------------


def test_intervals_are_those_of_the_last_step(fitted):
    inner, rows = fitted[-1], fitted[:-1].transform(X)
    np.testing.assert_array_equal(
        fitted.predict_interval(X, 0.9, kind="confidence"), inner.predict_interval(rows, 0.9, "confidence")
    )
    np.testing.assert_array_equal(fitted.predict_quantiles(X, [0.1, 0.9]), inner.predict_quantiles(rows, [0.1, 0.9]))
    np.testing.assert_array_equal(fitted.predict_dist(X).std, inner.predict_dist(rows).std)
    np.testing.assert_array_equal(fitted.predict_var(X), inner.predict_var(rows))
    np.testing.assert_array_equal(fitted.sample_y(X, 3, random_state=1), inner.sample_y(rows, 3, random_state=1))
    assert fitted.history_ == inner.history_
    mean, std = fitted.predict(X, return_std=True)
    assert mean.shape == std.shape == (60,)


def test_methods_are_those_that_the_last_step_has(fitted):
    assert not hasattr(fitted, "predict_set")
    classes = make_pipeline(StandardScaler(), KStoNetClassifier(tuning="none", max_iter=2, random_state=0)).fit(X, Y > 0)
    assert not hasattr(classes, "predict_interval")
    assert classes.predict_proba_interval(X).shape == (60, 2, 2)
    assert classes.predict_set(X, 0.8).shape == (60, 2)
    assert hasattr(make_pipeline(short()), "predict_interval")
    with pytest.raises(NotFittedError):
        make_pipeline(StandardScaler(), short()).predict_interval(X)


def test_a_pipeline_of_scikit_learn_becomes_one_with_intervals(fitted):
    plain = sklearn.pipeline.Pipeline(fitted.steps)
    np.testing.assert_array_equal(Pipeline(plain.steps).predict_interval(X), fitted.predict_interval(X))


def test_calibration_takes_rows_before_the_transformations(fitted):
    one = clone(fitted).fit(X[:40], Y[:40])
    assert one.calibrate(X[40:], Y[40:]) is one
    inner = clone(fitted).fit(X[:40], Y[:40])
    inner[-1].calibrate(inner[:-1].transform(X[40:]), Y[40:])
    np.testing.assert_array_equal(one.predict_interval(X, 0.8), inner.predict_interval(X, 0.8))


def test_searches_keep_the_intervals():
    grid = GridSearchCV(make_pipeline(StandardScaler(), short(residuals="training")), {"kstonetregressor__C": [1, 10]}, cv=2)
    assert grid.fit(X, Y).best_estimator_.predict_interval(X).shape == (60, 2)


# -- sparse rows -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [short(), MultiTargetSVR()], ids=lambda model: type(model).__name__)
def test_sparse_rows_are_made_dense(model):
    dense = np.where(abs(X) > 1.0, X, 0.0)
    sparse = clone(model).fit(scipy.sparse.csr_array(dense), Y)
    np.testing.assert_array_equal(sparse.predict(scipy.sparse.csc_matrix(dense)), model.fit(dense, Y).predict(dense))


def test_one_hot_columns_may_be_sparse():
    columns = ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder=StandardScaler(), sparse_threshold=1.0)
    assert make_pipeline(columns, short()).fit(FLATS, Y).predict_interval(FLATS).shape == (60, 2)


def test_sparse_rows_that_do_not_fit_the_memory_are_refused(monkeypatch):
    monkeypatch.setattr(inputs, "available_memory", lambda: 10**9)
    wide = scipy.sparse.csr_array((10_000, 50_000))
    with pytest.raises(ValueError, match=r"needs 4\.0 GB then; 1\.0 GB are available\. Reduce its columns.*TruncatedSVD"):
        short().fit(wide, np.zeros(10_000))


# -- files -------------------------------------------------------------------------------------------------------------------


def of_columns():
    numbers = sklearn.pipeline.make_pipeline(SimpleImputer(strategy="median"), QuantileTransformer(n_quantiles=10))
    return ColumnTransformer(
        [("n", numbers, make_column_selector(dtype_include=float)), ("c", OneHotEncoder(handle_unknown="ignore"), ["city"])]
    )


STEPS = {
    "columns": [of_columns()],
    "passed": [
        ColumnTransformer([("c", OrdinalEncoder(), ["city"]), ("a", "passthrough", ["age"])], remainder="drop"),
        "passthrough",
        PCA(n_components=1),
    ],
    "remainder": [ColumnTransformer([("c", OneHotEncoder(sparse_output=False), ["city"])], remainder=PowerTransformer())],
    "encoder": [TableEncoder(), MinMaxScaler(), VarianceThreshold()],
}


@pytest.mark.parametrize("name", STEPS)
def test_pipelines_are_stored(name, tmp_path):
    model = make_pipeline(*STEPS[name], short()).fit(FLATS, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kstonet.save(model, tmp_path / "m.kstonet", metadata={"a": 1})
        again = kstonet.load(tmp_path / "m.kstonet")
    assert isinstance(again, Pipeline)
    assert list(again.named_steps) == list(model.named_steps)
    np.testing.assert_array_equal(again.predict_interval(FLATS), model.predict_interval(FLATS))
    kstonet.save(again, tmp_path / "again.kstonet", metadata={"a": 1})
    assert (tmp_path / "again.kstonet").read_bytes() == (tmp_path / "m.kstonet").read_bytes()


def test_steps_that_hold_code_are_refused(tmp_path):
    model = make_pipeline(FunctionTransformer(np.log1p), short()).fit(abs(X), Y)
    with pytest.raises(TypeError, match=r"step 'functiontransformer' of the pipeline holds <ufunc 'log1p'>.*the last step"):
        kstonet.save(model, tmp_path / "m.kstonet")
    with pytest.raises(NotFittedError):
        kstonet.save(make_pipeline(StandardScaler(), short()), tmp_path / "m.kstonet")
    with pytest.raises(TypeError, match="pipelines and searches of them"):
        kstonet.save(make_pipeline(StandardScaler(), PCA()).fit(X), tmp_path / "m.kstonet")


def test_a_file_names_known_transformers_only():
    from kstonet.persistence.pipelines import StoredTransformer, from_values

    for kind, state in (("Popen", {}), ("StandardScaler", {"transform": 1})):
        with pytest.raises(ModelFileError, match="contradicts itself"):
            from_values(StoredTransformer(kind, state))


# -- searches of this package ------------------------------------------------------------------------------------------------


def test_a_search_is_stored_exported_and_reported(search, tmp_path):
    assert search.history_ == search.best_estimator_.history_
    kstonet.save(search, tmp_path / "m.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "m.kstonet").predict_interval(X), search.predict_interval(X))
    assert "<h1>" in build_report(search, X[40:], Y[40:])
    assert "kstonet-fitted" in search._repr_html_()
    assert "kstonet-fitted" not in clone(search)._repr_html_()
    with pytest.raises(NotFittedError):
        kstonet.save(clone(search), tmp_path / "m.kstonet")


def test_the_report_of_a_pipeline_shows_the_columns_of_the_table():
    model = make_pipeline(of_columns(), short()).fit(FLATS[:40], Y[:40])
    rows = {"X": FLATS[40:], "y": Y[40:], "X_train": FLATS[:40], "y_train": Y[:40], "dated": False}
    page = build_report(model, **rows)
    assert "city" in page
    assert page == build_report(model[-1], encode=model[:-1].transform, **rows)
    with pytest.raises(ValueError, match="leave encode out"):
        build_report(model, FLATS[40:], Y[40:], encode=np.asarray)


# -- graphs ------------------------------------------------------------------------------------------------------------------


def answers(model, rows, tmp_path, **options):
    onnxruntime = pytest.importorskip("onnxruntime")
    kstonet.to_onnx(model, tmp_path / "m.onnx", **options)
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    return session.run(None, {"X": rows})


GRAPHS = {
    "standard": [StandardScaler()],
    "not centred": [StandardScaler(with_mean=False), MaxAbsScaler()],
    "robust": [RobustScaler(), MinMaxScaler(clip=True), "passthrough"],
    "imputed": [SimpleImputer(), PCA(n_components=2, whiten=True)],
    "columns": [
        ColumnTransformer(
            [
                ("a", sklearn.pipeline.make_pipeline(SimpleImputer(), StandardScaler()), [2, 0]),
                ("b", "passthrough", slice(1, 2)),
            ]
        ),
        VarianceThreshold(),
    ],
}


@pytest.mark.parametrize("name", GRAPHS)
def test_graphs_hold_the_steps(name, tmp_path):
    rows = X.copy()
    if name in ("imputed", "columns"):
        rows[::7, 0] = np.nan
    model = make_pipeline(*GRAPHS[name], short()).fit(rows, Y)
    for found, expected in zip(answers(model, rows, tmp_path), model.predict(rows, return_std=True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)


def test_a_graph_of_a_search(search, tmp_path):
    np.testing.assert_allclose(answers(search, X, tmp_path)[0], search.predict(X))


def test_steps_that_a_graph_does_not_know(tmp_path):
    model = make_pipeline(PowerTransformer(), short()).fit(X, Y)
    with pytest.raises(TypeError, match=r"holds a PowerTransformer that kstonet.to_onnx does not know.*it knows Standard"):
        kstonet.to_onnx(model, tmp_path / "m.onnx")


@pytest.mark.parametrize("classes", [False, True])
def test_rows_of_float32(fitted, classes, tmp_path):
    model = KStoNetClassifier(tuning="none", max_iter=2, random_state=0).fit(X, Y > 0) if classes else fitted
    rows = X.astype(np.float32)
    first, second = answers(model, rows, tmp_path, dtype="float32")
    assert second.dtype == np.float32
    expected = (model.predict(rows), model.predict_proba(rows)) if classes else model.predict(rows, return_std=True)
    np.testing.assert_allclose(first, expected[0], rtol=1e-6)
    np.testing.assert_allclose(second, expected[1], rtol=1e-6)
    with pytest.raises(ValueError, match="dtype='half' must be one of 'float64', 'float32'"):
        kstonet.to_onnx(model, tmp_path / "m.onnx", dtype="half")
