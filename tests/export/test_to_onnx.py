"""Exported models against predict, in onnxruntime."""

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import linear_kernel
from sklearn.svm import SVR

import kstonet.onnx_export.graph
from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram import LowRank
from kstonet.gram.kernels import RBF, Laplacian
from kstonet.layers.activations import ACTIVATIONS
from kstonet.onnx_export import to_onnx
from kstonet.persistence import load, save

onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

TOLERANCE = 1e-7  # promised: 1e-5
FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 3, "random_state": 0}
SMOOTH = ("rbf", "laplacian", "matern12", "matern32", "matern52", "arccos0", "arccos1", "arccos2")
FINITE_RANK = ("linear", "poly")  # K_MM of more rows than the rank is singular, its variance a last digit


@pytest.fixture(autouse=True)
def _quick(few_folds: None, few_steps: None) -> None:
    """Graphs give the answers of any model; how good these are is tested elsewhere."""


def problem(n: int, features: int, seed: int = 0, standard: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, of uneven scales and far from the origin unless ``standard``; two targets; new rows.

    Some new rows lie beside training rows, one far away.
    At training rows themselves √ and arccos make 1e-8 of a last digit, in the library as in a graph.
    """
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n + 10, features))
    Z[-5:] = Z[:5] + 1e-3
    Y = np.column_stack([np.sin(2 * Z[:, 0]) + Z[:, -1] / 2, 100.0 + 30.0 * np.tanh(Z[:, 0]) + Z[:, -1] ** 2])
    Y += 0.1 * rng.normal(size=Y.shape)
    X = Z if standard else Z * 10.0 ** np.arange(features) + 50.0
    return X[:n], Y[:n], np.vstack([X[n:], 30.0 * X[:1]])


def exported(model: Any, folder: Path, **options: Any) -> Any:
    path = folder / "model.onnx"
    to_onnx(model, path, **options)
    onnx.checker.check_model(path, full_check=True)
    return onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])


def answers(session: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    return dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": X}), strict=True))


def assert_predicts(model: Any, session: Any, X: np.ndarray) -> None:
    """All outputs, for all rows together and for one alone."""
    for rows in (X, X[:1]):
        out = answers(session, rows)
        if hasattr(model, "classes_"):
            np.testing.assert_allclose(out["probabilities"], model.predict_proba(rows), rtol=TOLERANCE, atol=1e-12)
            assert out["label"].tolist() == model.predict(rows).tolist()
        elif "std" in out:
            mean, std = model.predict(rows, return_std=True)
            np.testing.assert_allclose(out["std"], std, rtol=TOLERANCE)
            assert (np.abs(out["mean"] - mean) <= TOLERANCE * (np.abs(mean) + std)).all()
            assert out["mean"].shape == mean.shape
        else:
            np.testing.assert_allclose(out["mean"], model.predict(rows), rtol=TOLERANCE, atol=TOLERANCE)


@st.composite
def configurations(draw: st.DrawFn) -> tuple[Any, dict[str, Any], dict[str, Any]]:
    sizes = draw(st.sampled_from([(1,), (4,), (3, 2), (4, 3, 2)]))
    features = draw(st.integers(1, 4))
    settings_ = FAST | {
        "hidden_layer_sizes": sizes,
        "activation": draw(st.sampled_from(sorted(ACTIVATIONS))),
        "penalty": draw(st.sampled_from(["lasso", "ridge", "none"])),
        "standardize": draw(st.sampled_from([True, True, False])),
        "n_average": draw(st.integers(1, 3)),
        "residuals": draw(st.sampled_from(["crossfit", "training"])),
    }
    kind = draw(st.sampled_from([KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier]))
    if kind in (StoNetRegressor, StoNetClassifier):
        settings_["kernel"] = kernel = draw(st.sampled_from([None, *SMOOTH, *FINITE_RANK]))
        if kernel is not None and settings_["penalty"] == "none":
            settings_["penalty"] = "ridge"  # least squares on as many columns as rows: its covariance is all rounding
    else:
        one = st.sampled_from([*SMOOTH, *FINITE_RANK, RBF((0.5,) * features, gamma=0.3)])
        several = st.lists(st.sampled_from([*SMOOTH, *FINITE_RANK]), min_size=sizes[0], max_size=sizes[0])
        settings_["kernel"] = draw(st.one_of(one, several))
        settings_["gamma"] = draw(st.sampled_from(["scale", "median", 0.3, np.linspace(0.1, 0.9, sizes[0]).tolist()]))
        kernels = settings_["kernel"] if isinstance(settings_["kernel"], list) else [settings_["kernel"]]
        singular = FINITE_RANK if features > 1 else (*FINITE_RANK, "arccos0", "arccos1", "arccos2")
        if set(map(str, kernels)) & set(singular):
            settings_["residuals"] = "training"  # honest ones give the variance of a singular K_MM the scale of the data
    data = {"features": features, "targets": draw(st.integers(1, 2)), "classes": draw(st.integers(2, 4)),
            "calibrate": draw(st.booleans()), "seed": draw(st.integers(0, 3))}  # fmt: skip
    return kind, settings_, data


@settings(max_examples=40, deadline=None, derandomize=True)
@given(configurations())
def test_every_configuration_predicts_as_the_model(tmp_path_factory: pytest.TempPathFactory, configuration: Any) -> None:
    kind, arguments, data = configuration
    X, Y, new = problem(30, data["features"], data["seed"], standard=not arguments["standardize"])
    if kind in (KStoNetClassifier, StoNetClassifier):
        target: np.ndarray = np.argsort(np.argsort(Y[:, 0])) * data["classes"] // len(Y)
    else:
        target = Y[:, 0] if data["targets"] == 1 else Y
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)  # shapes outside the theory
        model = kind(**arguments).fit(X, target)
    if data["calibrate"]:
        model.calibrate(X + 0.01, target)
    assert_predicts(model, exported(model, tmp_path_factory.getbasetemp()), new)


@pytest.mark.parametrize("leaf_rows", [0, 30, 100], ids=["no leaves", "four leaves", "one leaf"])
@pytest.mark.parametrize("first", [{"tuning": "none"}, {"tuning": "none", "loss": "squared"}], ids=str)
@pytest.mark.parametrize("kind", [KStoNetRegressor, KStoNetClassifier])
def test_landmarks_and_leaves(kind: Any, first: dict[str, Any], leaf_rows: int, tmp_path: Path) -> None:
    """New rows in every leaf."""
    X, Y, _ = problem(100, 3)
    y = Y[:, 0] if kind is KStoNetRegressor else np.digitize(Y[:, 0], np.quantile(Y[:, 0], [0.3, 0.7]))
    model = kind(solver=LowRank(rank=8, leaf_rows=leaf_rows), **first, **FAST).fit(X, y)
    assert model.plan_.leaf_rows == {0: 0, 30: 25, 100: 100}[leaf_rows]
    assert_predicts(model, exported(model, tmp_path), X + 0.1 * np.random.default_rng(0).normal(size=X.shape))


@pytest.mark.parametrize("kernel", FINITE_RANK)
def test_kernels_of_finite_rank_where_margins_are_smaller_than_the_rank(kernel: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 60))
    y = X[:, 0] + np.sin(X[:, 1]) + 0.1 * rng.normal(size=40)
    model = KStoNetRegressor((3,), tuning="none", kernel=kernel, **FAST).fit(X, y)
    assert_predicts(model, exported(model, tmp_path), rng.normal(size=(20, 60)))


def test_the_reference_evaluator_agrees(tmp_path: Path) -> None:
    """A second runtime, without onnxruntime's kernels and fusions: the graph means what the standard says."""
    from onnx.reference import ReferenceEvaluator

    X, Y, new = problem(30, 3)
    model = KStoNetRegressor((3, 2), tuning="none", kernel=["rbf", "arccos1", "laplacian"], activation="gelu", **FAST).fit(X, Y)
    session = exported(model, tmp_path)
    other = ReferenceEvaluator(onnx.load(tmp_path / "model.onnx")).run(None, {"X": new})
    for ours, theirs in zip(session.run(None, {"X": new}), other, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_training_rows(tmp_path: Path) -> None:
    X, Y, _ = problem(40, 3)
    model = KStoNetRegressor(tuning="none", kernel="rbf", **FAST).fit(X, Y)
    assert_predicts(model, exported(model, tmp_path), X)


def test_noise_that_grows_with_the_mean(tmp_path: Path) -> None:
    """Also where the mean leaves the range it grows in."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(80, 1))
    y = 2 * X[:, 0] + np.exp(X[:, 0]) * rng.normal(size=80)
    model = StoNetRegressor(**FAST).fit(X, y)
    assert abs(model.trained_.calibration.noise.growth[0]) > 0.5
    assert_predicts(model, exported(model, tmp_path), np.linspace(-9, 9, 41)[:, None])


@pytest.mark.parametrize("where", ["prediction", "training", "a whole column"])
def test_missing_values_are_replaced_as_in_predict(where: str, tmp_path: Path) -> None:
    X, Y, new = problem(60, 3)
    y = Y[:, 0].copy()
    if where != "prediction":
        X[::3, 1] = X[::4, 0] = np.nan
        y[::3] += 5.0  # so that it tells something that a value of the second column is missing
    if where == "a whole column":
        X[:, 2] = np.nan
    new[0] = new[1, 0] = new[2:5, 1] = new[4, 2] = np.nan
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a column without values is ignored
        model = KStoNetRegressor((2,), tuning="none", kernel=["rbf", "arccos1"], activation="relu", **FAST).fit(X, y)
    widths = {"prediction": (1, 1, 1), "training": (1, 2, 1), "a whole column": (1, 2, 0)}[where]
    assert model.encoding_.n_outputs == sum(widths)
    assert_predicts(model, exported(model, tmp_path), new)


@pytest.mark.parametrize("categories", [False, True], ids=["numbers", "categories"])
def test_numbers_are_expected_as_in_predict(tmp_path: Path, categories: bool) -> None:
    """Every number is there twice, so that one tells the other where that is missing; the category tells of both."""
    pandas = pytest.importorskip("pandas")
    X, Y, new = problem(60, 2, standard=True)
    rng = np.random.default_rng(0)

    def table(X: np.ndarray) -> Any:
        holes = np.hstack([X, X + 0.1 * rng.normal(size=X.shape)])
        holes[rng.random(holes.shape) < 0.2] = np.nan
        frame = pandas.DataFrame(holes, columns=list("abcd"))
        frame["yes"] = X[:, 0] > 0
        return frame.assign(sign=np.where(X[:, 0] > 0, "plus", "minus")) if categories else frame.astype(np.float64)

    train, test = table(X), table(new)
    test.loc[0, list("abcd")] = np.nan
    model = KStoNetRegressor((2,), tuning="none", **FAST).fit(train, Y[:, 0])
    assert model.encoding_.expected is not None
    session = exported(model, tmp_path, dtype="float64")
    if categories:
        numbers, texts = test.drop(columns="sign").to_numpy(dtype=np.float64), test[["sign"]].to_numpy(dtype=object)
        mean, std = session.run(["mean", "std"], {"X": numbers, "categories": texts})
        expected = model.predict(test, return_std=True)
        np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
        np.testing.assert_allclose(std, expected[1], rtol=1e-7)
    else:
        assert_predicts(model, exported(model, tmp_path), test.to_numpy())


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "missing"])
def test_categories_are_an_input_of_text(tmp_path: Path, missing: bool) -> None:
    pandas = pytest.importorskip("pandas")
    X, Y, new = problem(40, 2)
    rng = np.random.default_rng(0)

    def table(X: np.ndarray, more: list[str]) -> Any:
        colours, codes = rng.choice(["red", "blue", *more], len(X)), rng.choice([7, 8], len(X)).astype(str)
        columns = {"x": X[:, 0], "colour": colours.astype(object), "big": X[:, 1] > 0, "code": pandas.Categorical(codes)}
        return pandas.DataFrame(columns | {"z": X[:, 1]})

    train, test = table(X, []), table(new, ["green"])  # a category that the training rows did not have
    if missing:
        for frame in (train, test):
            frame.loc[::5, "colour"] = None
            frame.loc[::4, "x"] = np.nan
    model = KStoNetRegressor((2,), tuning="none", **FAST).fit(train, Y[:, 0] + 3 * train["x"].isna())
    session = exported(model, tmp_path, dtype="float64")
    properties = session.get_modelmeta().custom_metadata_map
    names, texts = json.loads(properties["feature_names"]), json.loads(properties["category_names"])
    assert (names, texts) == (["x", "big", "z"], ["colour", "code"])
    given = {"X": test[names].to_numpy(dtype=np.float64), "categories": test[texts].astype(object).fillna("").to_numpy()}
    mean, std = session.run(["mean", "std"], given)
    expected = model.predict(test, return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=1e-7)
    alone = KStoNetRegressor((2,), tuning="none", **FAST).fit(train[["colour"]], Y[:, 0])
    (found,) = exported(alone, tmp_path).run(["mean"], {"categories": given["categories"][:, :1]})
    np.testing.assert_allclose(found, alone.predict(test[["colour"]]), rtol=1e-9)


def test_constant_units_and_empty_margin_sets(tmp_path: Path) -> None:
    X, Y, new = problem(30, 3)
    model = KStoNetRegressor((3,), tuning="none", epsilon=100.0, **FAST).fit(X, Y[:, 0])
    assert model.n_support_ == 0
    assert_predicts(model, exported(model, tmp_path), new)
    model = StoNetRegressor((2,), alpha=100.0, **FAST).fit(X, Y[:, 0])
    assert model.trained_.n_support == 0
    assert_predicts(model, exported(model, tmp_path), new)


def test_margin_sets_of_several_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kstonet.onnx_export.first_layer.BLOCK", 7)
    X, Y, new = problem(40, 2)
    model = KStoNetRegressor((3,), tuning="none", epsilon=[0.01, 0.1, 100.0], kernel=["rbf", "rbf", "laplacian"], **FAST).fit(
        X, Y[:, 0]
    )
    assert min(len(columns) for columns in model.trained_.uncertainty.first.columns) == 0
    assert max(len(columns) for columns in model.trained_.uncertainty.first.columns) > 14
    assert_predicts(model, exported(model, tmp_path), new)


def test_means_alone(tmp_path: Path) -> None:
    X, Y, new = problem(30, 2)
    full = KStoNetRegressor(tuning="none", **FAST).fit(X, Y[:, 0])
    means = KStoNetRegressor(tuning="none", residuals=None, **FAST).fit(X, Y[:, 0])
    for model, options in ((full, {"return_std": False}), (means, {})):
        session = exported(model, tmp_path, **options)
        assert [output.name for output in session.get_outputs()] == ["mean"]
        assert "interval_factors" not in session.get_modelmeta().custom_metadata_map
        assert_predicts(model, session, new)


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("sparse", [True, False])
def test_support_vector_regressions(targets: int, sparse: bool, tmp_path: Path) -> None:
    X, Y, new = problem(40, 2)
    y = Y[:, 0] if targets == 1 else Y
    model = MultiTargetSVR(kernel="poly", degree=2, coef0=1.0, length_scale=[1.0, 10.0], gamma=1e-3, sparse=sparse).fit(X, y)
    assert_predicts(model, exported(model, tmp_path), new)


@pytest.mark.parametrize("calibration", ["student", "own", "rows"])
@pytest.mark.parametrize("targets", [1, 2])
def test_intervals_from_the_metadata(targets: int, calibration: str, tmp_path: Path) -> None:
    X, Y, new = problem(40, 2)
    y = Y[:, 0] if targets == 1 else Y
    model = KStoNetRegressor(tuning="none", **FAST, residuals="training" if calibration == "student" else "crossfit").fit(X, y)
    if calibration == "rows":  # too few for a coverage of 0.9
        model.calibrate(new[:5], y[:5])
    session = exported(model, tmp_path)
    about, out = session.get_modelmeta().custom_metadata_map, answers(session, new)
    factors = json.loads(about["interval_factors"])
    assert about["calibration"] == ("student" if calibration == "student" else "conformal")
    assert len(factors) == 101
    for coverage in (0.07, 0.5, 0.8, 0.9, 0.995):
        factor = np.array(factors[str(coverage)], dtype=float)  # null is not a number
        interval = np.stack([out["mean"] - factor * out["std"], out["mean"] + factor * out["std"]], axis=-1)
        expected = model.predict_interval(new, coverage)
        assert np.isinf(expected).all() == (calibration == "rows" and coverage > 0.85)
        np.testing.assert_allclose(interval, np.where(np.isinf(expected), np.nan, expected), rtol=1e-9)


@pytest.mark.parametrize(
    "labels",
    [["setosa", "versicolor", "virginica"], [7, -3, 2**40], [1.0, 2.0, 5.0], [False, True, True],
     np.array(["a", "b", "ç"], dtype=object)],
    ids=["str", "int", "float", "bool", "object"],
)  # fmt: skip
def test_labels_of_every_type(labels: Any, tmp_path: Path) -> None:
    X, y = load_iris(return_X_y=True)
    names = np.array(labels)[y]
    model = StoNetClassifier(**FAST).fit(X, names).calibrate(X, names)
    assert model.calibration_temperature_ != 1.0
    session = exported(model, tmp_path)
    assert_predicts(model, session, X)
    about = session.get_modelmeta().custom_metadata_map
    assert json.loads(about["classes"]) == model.classes_.tolist()
    assert float(about["calibration_temperature"]) == model.calibration_temperature_


def test_features_have_names_and_the_file_a_producer(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    X, Y, _ = problem(30, 2)
    model = StoNetRegressor(**FAST).fit(pandas.DataFrame(X, columns=["age", "weight"]), Y[:, 0])
    session = exported(model, tmp_path)
    about = session.get_modelmeta()
    assert json.loads(about.custom_metadata_map["feature_names"]) == ["age", "weight"]
    assert about.custom_metadata_map["model"] == "StoNetRegressor"
    assert about.producer_name == "kstonet"
    (taken,) = session.get_inputs()
    assert (taken.name, taken.type, taken.shape) == ("X", "tensor(double)", ["rows", 2])


def test_a_loaded_model_gives_the_same_bytes(tmp_path: Path) -> None:
    pytest.importorskip("safetensors")
    X, Y, _ = problem(30, 2)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, Y)
    save(model, tmp_path / "model.kstonet")
    to_onnx(model, tmp_path / "a.onnx")
    to_onnx(load(tmp_path / "model.kstonet"), tmp_path / "b.onnx")
    assert (tmp_path / "a.onnx").read_bytes() == (tmp_path / "b.onnx").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.onnx", "b.onnx", "model.kstonet"]


def test_no_tensor_holds_rows_by_support_vectors_by_features(tmp_path: Path) -> None:
    """The Laplacian kernel needs the memory of its values, not p times that; one hidden layer needs no covariance matrices."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 30))
    model = KStoNetRegressor((6,), tuning="none", kernel=Laplacian(gamma=0.1), **FAST).fit(X, X[:, 0])
    exported(model, tmp_path)
    graph = onnx.shape_inference.infer_shapes(onnx.load(tmp_path / "model.onnx"), data_prop=True).graph
    most = 0
    for info in graph.value_info:
        dims = info.type.tensor_type.shape.dim
        most = max(most, int(np.prod([dim.dim_value for dim in dims if dim.HasField("dim_value")])))
    assert len(graph.value_info) > 100
    assert most == model.n_support_ == 40


def test_kernels_that_are_no_formulas_are_refused(tmp_path: Path) -> None:
    X, Y, _ = problem(20, 2)
    K = RBF()(X, X)
    path = tmp_path / "model.onnx"
    with pytest.raises(TypeError, match=r"kernel='precomputed' takes kernel values in the place of X.* such as kernel='rbf'"):
        to_onnx(KStoNetRegressor(tuning="none", kernel="precomputed", **FAST).fit(K, Y), path)
    with pytest.raises(TypeError, match=r"kernel=<function linear_kernel .* is Python code.* such as kernel='rbf'"):
        to_onnx(MultiTargetSVR(kernel=linear_kernel).fit(X, Y), path)
    assert not path.exists()


def test_other_arguments_that_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    X, Y, _ = problem(20, 2)
    path = tmp_path / "model.onnx"
    with pytest.raises(TypeError, match=r"model is a SVR; kstonet\.to_onnx exports KStoNetRegressor, StoNetRegressor"):
        to_onnx(SVR().fit(X, Y[:, 0]), path)
    with pytest.raises(NotFittedError):
        to_onnx(KStoNetRegressor(tuning="none"), path)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, Y)
    with pytest.raises(FileNotFoundError, match=r"path='.*nowhere.*' does not exist; create it first"):
        to_onnx(model, tmp_path / "nowhere" / "model.onnx")
    monkeypatch.setattr(kstonet.onnx_export.graph, "LARGEST", 1000)
    with pytest.raises(ValueError, match=r"the model holds [\d.]+ \w+ of support vectors .* return_std=False"):
        to_onnx(model, path)
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'kstonet\[onnx\]'"):
        to_onnx(model, path)
