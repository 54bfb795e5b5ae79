"""The encoder does what scikit-learn's does, remembers it through JSON, and names what it cannot read."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.impute import SimpleImputer
from sklearn.preprocessing import OneHotEncoder

from kstonet.tables import InputError, TableEncoder
from kstonet.tables.columns import kind_of


def remembered(encoder):
    return TableEncoder.from_dict(json.loads(json.dumps(encoder.to_dict(), allow_nan=False)))


def as_text(table):
    """The table as CSV would hold it."""
    return table.astype(object).map(lambda value: None if pd.isna(value) else str(value))


def test_one_hot_as_scikit_learn(flats):
    encoder = remembered(TableEncoder().fit(flats))
    expected = [flats[["area"]], OneHotEncoder(sparse_output=False).fit_transform(flats[["city"]])]
    expected += [flats[["balcony"]], flats[["price"]], OneHotEncoder(sparse_output=False).fit_transform(flats[["heat"]])]
    np.testing.assert_array_equal(encoder.transform(flats), np.hstack(expected).astype(float))
    np.testing.assert_array_equal(encoder.transform(as_text(flats)), np.hstack(expected).astype(float))
    assert encoder.feature_names_[:5] == ["area", "city=Bern", "city=Genève", "city=Zürich", "balcony"]


def test_imputation_as_scikit_learn(flats):
    table = flats[["area", "city"]].astype(object)
    table.iloc[3:9, 0] = None
    table.iloc[5:20, 1] = None
    encoder = remembered(TableEncoder(impute=True).fit(table))
    missing = table.where(table.notna(), np.nan)
    area = SimpleImputer(strategy="median", add_indicator=True).fit_transform(missing[["area"]].astype(float))
    city = OneHotEncoder(sparse_output=False).fit_transform(missing[["city"]])  # its last column is NaN
    np.testing.assert_array_equal(encoder.transform(table), np.hstack([area, city]))
    assert encoder.feature_names_[-2:] == ["city=Zürich", "city is missing"]
    typed = encoder.conform(table)
    assert typed.isna().equals(table.isna())
    empty = pd.DataFrame({"area": [None], "city": [None]}, dtype=object)
    assert encoder.transform(empty).tolist() == encoder.transform(typed.iloc[5:6]).tolist()


def test_a_missing_truth_value_becomes_the_more_frequent_one():
    encoder = TableEncoder(impute=True).fit(pd.DataFrame({"b": [True, True, False, None]}, dtype=object))
    assert encoder.transform(pd.DataFrame({"b": [None, "false"]})).tolist() == [[1.0, 1.0], [0.0, 0.0]]


cells = {
    "number": st.floats(-1e9, 1e9),
    "category": st.sampled_from(["a", "b", "ü", "x=y", "[bold]", "1"]),
    "boolean": st.booleans(),
}


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_what_is_remembered_encodes_alike(data):
    kinds = data.draw(st.lists(st.sampled_from(sorted(cells)), min_size=1, max_size=4))
    rows = data.draw(st.integers(1, 12))
    content = {f"c{i}": data.draw(st.lists(cells[kind], min_size=rows, max_size=rows)) for i, kind in enumerate(kinds)}
    table = pd.DataFrame(content)
    categorical = [f"c{i}" for i, kind in enumerate(kinds) if kind == "category"]
    encoder = TableEncoder(categorical=categorical).fit(table)
    X = encoder.transform(table)
    assert X.shape == (rows, len(encoder.feature_names_))
    assert np.array_equal(remembered(encoder).transform(as_text(table)[::-1]), X[::-1])
    shuffled = data.draw(st.permutations(list(table.columns)))
    assert np.array_equal(remembered(encoder).transform(table[shuffled]), X)
    again = encoder.conform(encoder.conform(table))  # what conforms stays
    assert np.array_equal(encoder.transform(again), X)


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", " 2 ", "-3.5e2", None], "number"),
        (["123456789012345678901234567890", "1"], "number"),
        ([10**30, 1], "number"),
        ([2**63, 1], "number"),
        (pd.array([1, None], dtype="Int64"), "number"),
        ([True, False], "boolean"),
        (pd.array([True, None], dtype="boolean"), "boolean"),
        (["TRUE", "false", None], "boolean"),
        (["yes", "no"], "category"),
        (["1", "2", "?"], "category"),
        (["1,5", "2,5"], "category"),
        (["01.02", "2020"], "number"),
        (pd.Categorical([1, 2]), "category"),
        (pd.Categorical([True, False]), "category"),
        (["2020-01-01", "soon"], "category"),
    ],
)
def test_what_columns_hold(values, kind):
    assert kind_of(pd.Series(values)) == kind


def test_huge_whole_numbers_are_floats():
    encoder = TableEncoder().fit(pd.DataFrame({"id": ["123456789012345678901234567890", "7"]}))
    assert encoder.transform(pd.DataFrame({"id": [10**30]})).tolist() == [[1e30]]


@pytest.mark.parametrize(
    "values",
    [
        ["2020-01-05", "2021-12-31"],
        ["2020-01-05T10:00:00Z", "2021-12-31 11:30"],
        ["31.12.2020", None],
        ["12/31/2020"],
        ["10:30", "11:45:10"],
        pd.to_datetime(["2020-01-05", "2021-12-31"]),
        pd.to_datetime(["2020-01-05"]).date,
    ],
)
def test_dates_are_refused(values):
    with pytest.raises(InputError, match=r"column 'when' holds dates or times such as .* leave it out \(--drop 'when'\)"):
        TableEncoder(impute=True).fit(pd.DataFrame({"when": values}))


def names(count):
    return [f"n{i}" for i in range(count)]


@pytest.mark.parametrize(
    ("column", "message"),
    [
        ([None, None], "column 'x' holds no values; leave it out (--drop 'x')."),
        (["1", "inf"], "column 'x' must hold finite numbers, but holds 'inf' in row 2."),
        (["1e400", "2"], "column 'x' must hold finite numbers, but holds '1e400' in row 1."),
        (names(30), "column 'x' holds 30 different values such as 'n0' in 30 rows, too many for categories"),
        (
            [*map(str, range(40)), "?", "-"],
            "column 'x' holds numbers, but also '-', '?'; leave these cells empty or correct them.",
        ),
    ],
)
def test_columns_that_cannot_be_encoded(column, message):
    table = pd.DataFrame({"x": column}, index=range(1, len(column) + 1), dtype=object)
    with pytest.raises(InputError, match=re.escape(message)):
        TableEncoder(impute=True).fit(table)


def test_many_categories_need_many_rows():
    TableEncoder().fit(pd.DataFrame({"x": names(30) * 2}))
    TableEncoder().fit(pd.DataFrame({"x": names(20)}))
    with pytest.raises(InputError, match="too many for categories"):
        TableEncoder().fit(pd.DataFrame({"x": [*names(30), *names(29)]}))


def test_numbers_can_be_categories():
    encoder = TableEncoder(categorical=["code"]).fit(pd.DataFrame({"code": [3, 1, 3]}))
    assert encoder.feature_names_ == ["code=1", "code=3"]
    for codes in ([3, 1], [3.0, 1.0], ["3", "1"], ["3.0", "1.0"]):
        assert remembered(encoder).transform(pd.DataFrame({"code": codes})).tolist() == [[0.0, 1.0], [1.0, 0.0]]
    with pytest.raises(InputError, match="categorical names 'other', not a column"):
        TableEncoder(categorical=["other"]).fit(pd.DataFrame({"code": [1]}))


def test_mixed_columns_are_noted():
    with pytest.warns(UserWarning, match=r"column 'x' mixes numbers and text \('\?'\)"):
        TableEncoder().fit(pd.DataFrame({"x": ["1", "2", "?"]}))


@pytest.fixture
def encoder(flats):
    return TableEncoder().fit(flats[["area", "city", "balcony"]])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"city": ["Bern", "Basel"]},
            "column 'city' holds 'Basel' in row 2, a category the model does not know (it knows 'Bern',",
        ),
        ({"area": ["30", "big"]}, "column 'area' must hold finite numbers, but holds 'big' in row 2."),
        ({"balcony": ["maybe", True]}, "column 'balcony' must hold true or false, but holds 'maybe' in row 1."),
        ({"area": [None, 3]}, "values are missing: column 'area' in row 1. Fill them in, or fit with impute=True (--impute)."),
    ],
)
def test_later_tables_that_do_not_fit(encoder, changes, message):
    table = pd.DataFrame({"area": [30.0, 40.0], "city": ["Bern", "Bern"], "balcony": [True, False]}, index=[1, 2], dtype=object)
    with pytest.raises(InputError, match=re.escape(message)):
        remembered(encoder).transform(table.assign(**changes))


def test_missing_values_are_named(flats):
    table = flats.astype(object)
    table.index = range(1, len(table) + 1)
    table.loc[3:12, "city"] = None
    table.loc[7, "area"] = None
    message = (
        "column 'area' in row 7, column 'city' in rows 3, 4, 5, 6, 7 and 5 more. Fill them in, or let impute=True (--impute)"
    )
    with pytest.raises(InputError, match=re.escape(message)):
        TableEncoder().fit(table)


def test_columns_are_found_by_name(encoder, flats):
    X = encoder.transform(flats[["area", "city", "balcony"]])
    with pytest.warns(UserWarning, match="ignored: columns 'heat', 'price', which the model does not use"):
        assert np.array_equal(encoder.transform(flats[["heat", "balcony", "city", "price", "area"]]), X)
    with pytest.raises(
        InputError, match=r"needs columns 'area', 'city', which the table lacks; the table has 'balcony', 'heat'\."
    ):
        encoder.transform(flats[["balcony", "heat"]])


def test_unknown_categories_can_be_none_of_the_known(encoder):
    table = pd.DataFrame({"area": [30.0], "city": ["Basel"], "balcony": [True]})
    assert encoder.transform(table, unknown="ignore").tolist() == [[30.0, 0.0, 0.0, 0.0, 1.0]]
    with pytest.raises(InputError, match="unknown='maybe' must be"):
        encoder.transform(table, unknown="maybe")


def test_a_newer_encoding_is_refused(encoder):
    with pytest.raises(InputError, match="has version 2"):
        TableEncoder.from_dict(encoder.to_dict() | {"version": 2})
