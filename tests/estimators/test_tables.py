"""Tables of mixed columns: the estimators encode them as one would by hand, and read every later table in the same way."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import kstonet
from kstonet import (
    KStoNetClassifier,
    KStoNetClassifierCV,
    KStoNetRegressor,
    KStoNetRegressorCV,
    MultiTargetSVR,
    StoNetClassifier,
    StoNetRegressor,
)
from kstonet.tables import InputError
from kstonet.tables.encoding import TableEncoding, columns_of_numbers, weighted_median
from kstonet.tuning.missing import chosen_encoding

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere
QUICK = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "residuals": "training", "random_state": 0}
NETWORKS = [
    KStoNetRegressor((2,), tuning="none", **QUICK),
    KStoNetClassifier((2,), tuning="none", **QUICK),
    StoNetRegressor((2,), **QUICK),
    StoNetClassifier((2,), **QUICK),
]
each_network = pytest.mark.parametrize("network", NETWORKS, ids=lambda network: type(network).__name__)
each_frame = pytest.mark.parametrize("frame", [lambda table: table, lambda table: as_polars(table)], ids=["pandas", "polars"])


def mixed(n=90, seed=0):
    """Every kind of column; that the area is missing says something about the price."""
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "area": rng.uniform(20, 150, n),
            "city": pd.Categorical(rng.choice(["Bern", "Genf", "Basel"], n), categories=["Genf", "Bern", "Basel", "Chur"]),
            "rooms": rng.integers(1, 6, n),
            "heat": rng.choice(["gas", "oil"], n).astype(object),
            "balcony": rng.random(n) < 0.5,
        }
    )
    price = table["area"] / 50 + 2.0 * (table["city"] == "Bern") + table["balcony"] + 0.1 * rng.normal(size=n)
    table.loc[::5, "area"], table.loc[::7, "heat"] = np.nan, None
    return table, price.to_numpy() + 3.0 * table["area"].isna().to_numpy()


def as_polars(table):
    columns = {name: column.astype(object).where(column.notna(), None).tolist() for name, column in table.items()}
    kinds = {"city": pl.Enum(["Genf", "Bern", "Basel", "Chur", "Wien"])} if "city" in table else {}
    return pl.DataFrame(columns, schema_overrides=kinds)


def by_hand(table):
    """The matrix of a table of :func:`mixed`."""
    area = table["area"].to_numpy(dtype=float)
    learnt = mixed()[0]["area"].to_numpy()
    columns = [np.where(np.isnan(area), np.median(learnt[~np.isnan(learnt)]), area), np.isnan(area)]
    columns += [table["city"] == city for city in ("Basel", "Bern", "Genf")]
    columns += [table["rooms"], table["heat"] == "gas", table["heat"] == "oil", table["heat"].isna(), table["balcony"]]
    return np.stack([np.asarray(column, dtype=float) for column in columns], axis=1)


def targets(network, price):
    return np.where(price > np.median(price), "dear", "cheap") if sklearn.base.is_classifier(network) else price


# -- the encoding is the one by hand -----------------------------------------------------------------------------------------


@each_frame
@each_network
def test_a_table_is_its_matrix_by_hand(network, frame):
    """Bit for bit, where neither is standardised; how columns of 0 and 1 are scaled is tested by itself."""
    (table, price), (new, _) = mixed(), mixed(40, seed=1)
    new.loc[3, "rooms"] = np.nan  # missing in no training row
    filled = new.fillna({"rooms": table["rooms"].median()})
    y = targets(network, price)
    fitted = clone(network).set_params(standardize=False).fit(frame(table), y)
    expected = clone(network).set_params(standardize=False).fit(by_hand(table), y)
    rows, matrix = frame(new), by_hand(filled)
    np.testing.assert_array_equal(fitted.predict(rows), expected.predict(matrix))
    np.testing.assert_array_equal(fitted.transform(rows), expected.transform(matrix))
    methods = ["predict_proba", "predict_proba_interval", "decision_function"]
    for method in methods if hasattr(network, "predict_proba") else ["predict_interval", "predict_quantiles", "sample_y"]:
        np.testing.assert_array_equal(getattr(fitted, method)(rows), getattr(expected, method)(matrix))
    truth = targets(network, np.arange(len(new)) % 7.0)
    assert fitted.score(rows, truth) == expected.score(matrix, truth)
    assert fitted.calibrate(rows, truth).trained_.calibration is not None
    assert (fitted.n_features_in_, list(fitted.feature_names_in_)) == (5, list(table.columns))
    assert fitted._n_encoded == expected.n_features_in_ == 10


def test_a_multi_target_svr_is_that_of_the_matrix():
    table, price = mixed()
    Y = np.column_stack([price, -price])
    fitted, expected = MultiTargetSVR().fit(table, Y), MultiTargetSVR().fit(by_hand(table), Y)
    np.testing.assert_array_equal(fitted.predict(table), expected.predict(by_hand(table)))
    np.testing.assert_array_equal(fitted.refit(2 * Y).predict(table), expected.refit(2 * Y).predict(by_hand(table)))


def test_categories_and_indicators_are_centred_but_not_scaled():
    table, price = mixed()
    scaler, matrix = KStoNetRegressor((2,), tuning="none", **QUICK).fit(table, price).trained_.scaler, by_hand(table)
    np.testing.assert_allclose(scaler.mean, matrix.mean(axis=0))
    numbers = [0, 5, 9]  # area, rooms and the truth values of balcony
    np.testing.assert_allclose(scaler.scale, np.where(np.isin(np.arange(10), numbers), matrix.std(axis=0), 1.0))


@pytest.mark.parametrize("make", [pd.DataFrame, lambda X: pl.DataFrame(X, schema=["0", "1", "2"])], ids=["pandas", "polars"])
def test_frames_of_numbers_are_arrays(make):
    X = np.random.default_rng(0).normal(size=(60, 3))
    X[::4, 1] = np.nan
    network = KStoNetRegressor((2,), tuning="none", **QUICK)
    frame = make(X)
    if isinstance(frame, pd.DataFrame):
        frame.columns = list("abc")
    from_frame, from_array = clone(network).fit(frame, X[:, 0]), clone(network).fit(X, X[:, 0])
    np.testing.assert_allclose(from_frame.predict(frame), from_array.predict(X), rtol=1e-12)


def test_arrays_and_lists_with_text_are_tables():
    table, price = mixed()
    rows = table[["rooms", "city", "heat"]].astype(object)
    network = KStoNetRegressor((2,), tuning="none", **QUICK)
    expected = clone(network).fit(rows, price).predict(rows)
    for X in (rows.to_numpy(), rows.to_numpy().tolist()):
        np.testing.assert_array_equal(clone(network).fit(X, price).predict(X), expected)


# -- missing values ----------------------------------------------------------------------------------------------------------


def test_an_array_without_missing_values_is_taken_as_it_is():
    X = np.random.default_rng(0).normal(size=(20, 3))
    encoding = TableEncoding.of_numbers(X)
    assert encoding.encode_numbers(X) is X
    np.testing.assert_array_equal(encoding.fill, np.median(X, axis=0))


@each_network
def test_a_value_that_is_missing_in_prediction_only_is_the_median(network):
    X = np.random.default_rng(0).normal(size=(60, 3))
    fitted = clone(network).fit(X, targets(network, X[:, 0]))
    holed, filled = X[:5].copy(), X[:5].copy()
    holed[1:4, 0], filled[1:4, 0] = np.nan, np.median(X[:, 0])
    np.testing.assert_array_equal(fitted.predict(holed), fitted.predict(filled))


@pytest.mark.parametrize("classes", [False, True])
def test_an_indicator_stays_where_it_says_something(classes):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    missing = rng.random(X.shape) < 0.3
    X[missing] = np.nan
    y = rng.normal(size=200) + missing[:, 0]  # the mean tells the first column, the spread the second, nothing the third
    y = np.where(missing[:, 1], 4.0 * y, y)
    network = KStoNetClassifier if classes else KStoNetRegressor
    y = np.where(y > 2.0, "high", np.where(y < -2.0, "low", "middle")) if classes else y
    fitted = network((2,), tuning="none", **QUICK).fit(X, y)
    assert sorted(fitted.encoding_.special) == [0, 1]
    assert fitted._n_encoded == 5
    by_column = [np.nan_to_num(X[:, j], nan=np.nanmedian(X[:, j])) for j in range(3)]
    matrix = np.column_stack([by_column[0], missing[:, 0], by_column[1], missing[:, 1], by_column[2]])
    np.testing.assert_array_equal(fitted.encoding_.encode_numbers(X), matrix)


def test_indicators_of_values_missing_at_random_are_left_out():
    kept = 0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(100, 4)), rng.normal(size=(100, 1))
        X[rng.random(X.shape) < 0.2] = np.nan
        encoding = TableEncoding.of_numbers(X)
        kept += len(encoding.telling(encoding.encode_numbers(X), y).special)
    assert kept <= 6  # of 200; two tests of three standard errors each


def test_all_indicators_stay_where_they_help_together():
    """Large values are missing: the median replaces them poorly, though single columns may not show it."""
    kept = {"what they are": 0, "chance": 0}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(250, 5))
        y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + 0.5 * x[:, 3] + 0.3 * rng.normal(size=250)
        for why, missing in {"what they are": x > 0.8, "chance": rng.random(x.shape) < 0.2}.items():
            X = np.where(missing, np.nan, x)
            encoding = TableEncoding.of_numbers(X)
            matrix = encoding.encode_numbers(X)
            kept[why] += len(chosen_encoding(encoding, columns_of_numbers(X), matrix, y[:, None]).special)
    assert kept["what they are"] >= 45  # of 50
    assert kept["chance"] <= 5


def test_columns_of_a_frame_of_numbers_have_their_names():
    table, price = mixed()
    fitted = KStoNetRegressor((2,), tuning="none", **QUICK).fit(table[["rooms", "area"]], price)
    assert fitted.encoding_.output_names(fitted.feature_names_in_) == ["rooms", "area", "area is missing"]
    with pytest.warns(UserWarning, match="column 'nothing' holds no values"):
        fitted.fit(table[["rooms"]].assign(nothing=np.nan), price)


@each_frame
def test_a_column_without_values_is_ignored(frame):
    table, price = mixed()
    empty = table.assign(nothing=np.nan, never=pd.Series([None] * len(table), dtype=object))
    network = KStoNetRegressor((2,), tuning="none", **QUICK)
    with pytest.warns(UserWarning, match="column 'nothing' holds no values in the training rows and is ignored"):
        fitted = clone(network).fit(frame(empty), price)
    expected = clone(network).fit(frame(table), price).predict(frame(table))
    np.testing.assert_array_equal(fitted.predict(frame(empty)), expected)
    np.testing.assert_array_equal(fitted.predict(frame(empty.assign(nothing=7.0, never="x"))), expected)
    assert fitted.n_features_in_ == 7


def test_nothing_but_missing_values_is_refused():
    with pytest.raises(ValueError, match="X holds no values"), pytest.warns(UserWarning, match="holds no values"):
        KStoNetRegressor((2,), tuning="none", **QUICK).fit(np.full((20, 2), np.nan), np.arange(20.0))


@each_network
def test_what_is_still_refused(network):
    table, price = mixed()
    y = targets(network, price)
    holed = y.astype(object)
    holed[3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        clone(network).fit(table, holed)
    endless = table.assign(area=table["area"].replace(table["area"][1], np.inf))
    with pytest.raises(ValueError, match="column 'area' must hold finite numbers, but holds inf in row 1"):
        clone(network).fit(endless, y)
    with pytest.raises(ValueError, match="infinity"):
        clone(network).fit(np.where(np.isnan(by_hand(table)), 0.0, np.inf), y)
    fitted = clone(network).fit(table, y)
    with pytest.raises(ValueError, match="column 'area' must hold finite numbers"):
        fitted.predict(endless)
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(table[table.columns[::-1]])
    with pytest.raises(ValueError, match="column 'rooms' must hold finite numbers, but holds 'many' in rows 0, 1"):
        fitted.predict(table.assign(rooms="many"))


@pytest.mark.parametrize("estimator", [KStoNetRegressor(tuning="none"), MultiTargetSVR()], ids=["network", "svr"])
def test_kernel_values_may_not_be_missing(estimator):
    estimator, K = clone(estimator).set_params(kernel="precomputed"), np.eye(20)
    K[3, 4] = K[4, 3] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        estimator.fit(K, np.arange(20.0))
    tags = sklearn.utils.get_tags(estimator)
    assert tags.input_tags.pairwise
    assert not tags.input_tags.allow_nan


# -- categories --------------------------------------------------------------------------------------------------------------


@each_frame
@each_network
def test_an_unknown_category_is_none_of_the_known(network, frame):
    table, price = mixed()
    fitted = clone(network).set_params(standardize=False).fit(frame(table), targets(network, price))
    assert fitted.encoding_.special[1].categories == ("Basel", "Bern", "Genf")  # not the level that no row has
    new = table[:6].astype({"city": object})
    new.loc[:2, "city"], new.loc[3, "city"] = "Wien", None  # neither was in the training rows
    expected = clone(network).set_params(standardize=False).fit(by_hand(table), targets(network, price))
    matrix = by_hand(new)
    assert not matrix[:4, 2:5].any()
    np.testing.assert_array_equal(fitted.predict(frame(new)), expected.predict(matrix))


def test_categories_matter():
    (table, price), (new, truth) = mixed(150), mixed(300, seed=1)
    model = KStoNetRegressor(tuning="none", residuals=None, random_state=0)
    kept = clone(model).fit(table, price).score(new, truth)
    dropped = clone(model).fit(table[["area", "rooms"]], price).score(new[["area", "rooms"]], truth)
    assert kept > 0.85
    assert dropped < 0.65


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([f"name {i}" for i in range(90)], r"column 'x' holds 90 different values such as 'name 0' in 90 rows, too many for"),
        (
            pd.date_range("2020-01-01", periods=90),
            r"column 'x' holds dates or times such as '2020-01-01.*replace it by numbers",
        ),
        (["2020-01-05", "2021-12-31"] * 45, r"column 'x' holds dates or times such as '2020-01-05'; replace it by numbers"),
        (pd.to_timedelta(np.arange(90), unit="h"), r"column 'x' holds dates or times"),
        ([[1, 2]] * 90, r"column 'x' holds \[1, 2\] of type list; replace it by columns of numbers or categories"),
    ],
)
@each_frame
def test_columns_that_cannot_be_used_are_named(values, message, frame):
    table, price = mixed()
    if frame(table) is not table:
        listed = values.to_pydatetime().tolist() if hasattr(values, "to_pydatetime") else list(values)
        listed = values.to_pytimedelta().tolist() if hasattr(values, "to_pytimedelta") else listed
        table = as_polars(table).with_columns(pl.Series("x", listed))
    else:
        table = table.assign(x=values)
    with pytest.raises(InputError, match=message):
        KStoNetRegressor(**QUICK).fit(table, price)


def test_numbers_stay_numbers_unless_they_are_said_to_be_categories():
    table, price = mixed()
    network = KStoNetRegressor((2,), tuning="none", **QUICK)
    assert 2 not in clone(network).fit(table, price).encoding_.special
    codes = table.astype({"rooms": "category"})
    assert clone(network).fit(codes, price).encoding_.special[2].categories == ("1", "2", "3", "4", "5")


# -- conventions -------------------------------------------------------------------------------------------------------------


@each_network
def test_copies_and_files_predict_alike(network, tmp_path):
    (table, price), (new, _) = mixed(), mixed(40, seed=1)
    fitted = clone(network).fit(table, targets(network, price))
    kstonet.save(fitted, tmp_path / "m.kstonet")
    for other in (kstonet.load(tmp_path / "m.kstonet"), pickle.loads(pickle.dumps(fitted)), copy.deepcopy(fitted)):
        np.testing.assert_array_equal(other.transform(new), fitted.transform(new))
        np.testing.assert_array_equal(other.predict(new), fitted.predict(new))
        assert list(other.feature_names_in_) == list(table.columns)
    kstonet.save(kstonet.load(tmp_path / "m.kstonet"), tmp_path / "again.kstonet")
    assert (tmp_path / "again.kstonet").read_bytes() == (tmp_path / "m.kstonet").read_bytes()


def test_a_multi_target_svr_is_stored_with_its_encoding(tmp_path):
    table, price = mixed()
    kstonet.save(fitted := MultiTargetSVR().fit(table, price), tmp_path / "m.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "m.kstonet").predict(table), fitted.predict(table))


@pytest.mark.parametrize("network", NETWORKS[:2], ids=["regressor", "classifier"])
def test_searches_and_pipelines_take_tables(network):
    table, price = mixed()
    y = targets(network, price)
    assert np.isfinite(cross_val_score(network, table, y, cv=3, error_score="raise")).all()
    pipeline = make_pipeline(FunctionTransformer(), clone(network))
    grid = GridSearchCV(pipeline, {f"{pipeline.steps[-1][0]}__C": [1.0, 10.0]}, cv=2, error_score="raise").fit(table, y)
    np.testing.assert_array_equal(grid.predict(table), grid.best_estimator_.predict(table))
    search = KStoNetClassifierCV if hasattr(network, "predict_proba") else KStoNetRegressorCV
    choices = {"kernel": ["rbf"], "gamma": ["scale"], "length_scale": [None], "C": [1.0, 10.0], "hidden_layer_sizes": [(2,)]}
    found = search(clone(network).set_params(hidden_layer_sizes=(2,)), **choices, cv=2, random_state=0).fit(table, y)
    assert found.n_features_in_ == 5
    assert len(found.predict(table)) == len(table)
    importance = permutation_importance(grid, table, y, n_repeats=2, random_state=0)
    assert len(importance.importances_mean) == 5  # the columns of the user


@each_network
def test_rows_of_weight_zero_are_not_there(network):
    """Neither their categories nor their numbers are learnt from."""
    table, price = mixed()
    weights = np.where(np.arange(len(table)) % 3 == 0, 0.0, np.random.default_rng(0).uniform(0.5, 2.0, len(table)))
    strange = table.astype({"city": object})
    strange.loc[weights == 0, "city"], strange.loc[weights == 0, "area"] = "Wien", 1e6
    y = targets(network, price)
    with_them = clone(network).fit(strange, y, weights)
    without = clone(network).fit(strange[weights > 0], y[weights > 0], weights[weights > 0])
    np.testing.assert_array_equal(with_them.predict(table), without.predict(table))


def test_the_weighted_median_is_that_of_repeated_rows():
    rng = np.random.default_rng(0)
    for _ in range(100):
        values, weights = rng.integers(0, 9, (12, 3)).astype(float), rng.integers(1, 5, 12)
        expected = np.median(np.repeat(values, weights, axis=0), axis=0)
        np.testing.assert_array_equal(weighted_median(values, weights.astype(float)), expected)


def test_validation_rows_are_read_in_the_same_way():
    (table, price), (new, truth) = mixed(), mixed(40, seed=1)
    network = KStoNetRegressor((2,), tuning="none", standardize=False, **QUICK)
    fitted = clone(network).fit(table, price, X_val=new, y_val=truth)
    expected = clone(network).fit(by_hand(table), price, X_val=by_hand(new), y_val=truth)
    losses = [[record["validation_loss"] for record in each.history_] for each in (fitted, expected)]
    assert losses[0] == losses[1]


def test_a_callback_may_predict_from_the_table():
    table, price = mixed()
    seen = []
    model = KStoNetRegressor((2,), tuning="none", **QUICK)
    model.set_params(callback=lambda state: seen.append(model.predict(table).shape)).fit(table, price)
    assert seen == [(90,)] * 3


def test_the_automatic_choice_takes_tables():
    table, price = mixed()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = KStoNetRegressor(random_state=0).fit(table, price)
    assert fitted.score(table, price) > 0.95
    again = KStoNetRegressor(tuning="none", random_state=0, **fitted.tuned_).fit(table, price)
    np.testing.assert_array_equal(again.predict(table), fitted.predict(table))


def test_the_report_shows_the_columns_of_the_user():
    from kstonet.report import build_report

    (table, price), (new, truth) = mixed(), mixed(40, seed=1)
    fitted = KStoNetRegressor((2,), tuning="none", **QUICK).fit(table, price)
    page = build_report(fitted, new, truth, X_train=table, y_train=price, dated=False)
    assert all(f">{name}<" in page for name in table.columns)
    assert "Genf" in page
    assert "city=Genf" not in page
    assert "These are the training rows" in build_report(fitted, table, price)
    assert ">city<" in build_report(fitted, as_polars(new), truth)
