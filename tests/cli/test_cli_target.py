"""The target is found by name or number, and the task follows from its values."""

import re

import numpy as np
import pandas as pd
import pytest

from kstonet.cli.target import Target, find_column
from kstonet.cli.training import split_table
from kstonet.tables import InputError


def column(values, name="y"):
    return pd.Series(values, index=range(1, len(values) + 1), name=name)


@pytest.mark.parametrize(
    ("values", "task", "reason"),
    [
        (["yes", "no"] * 5, "classification", "'y' holds text, 2 classes"),
        (["True", "false"] * 5, "classification", "'y' holds true and false, 2 classes"),
        ([0, 1] * 5, "classification", "'y' holds 2 different whole numbers"),
        (["0.0", "1.0"] * 5, "classification", "'y' holds 2 different whole numbers"),
        (list(range(10)) * 10, "classification", "'y' holds 10 different whole numbers"),
        (list(range(11)) * 20, "regression", "'y' holds 11 different numbers"),
        ([1, 2, 3] * 5, "regression", "'y' holds 3 different numbers"),  # too few rows to call them classes
        ([0.5, 1.5] * 50, "regression", "'y' holds 2 different numbers"),
    ],
)
def test_the_task_follows_from_the_values(values, task, reason):
    target = Target.of(column(values))
    assert (target.task, target.reason) == (task, reason)


def test_what_the_user_says_counts():
    assert Target.of(column([0, 1] * 5), "regression").task == "regression"
    target = Target.of(column([0.5, 1.5] * 5), "classification")
    assert target.values(column([1.5, 0.5])).tolist() == ["1.5", "0.5"]


def test_labels():
    whole = Target.of(column(["0", "1"] * 10))
    assert whole.values(column(["1.0", "0"])).tolist() == [1, 0]
    truth = Target.of(column([True, False] * 10))
    assert truth.values(column(["true", "FALSE"])).tolist() == ["True", "False"]
    huge = Target.of(column(["99999999999999999999", "99999999999999999998"] * 10), "classification")
    assert len(set(huge.values(column(["99999999999999999999", "99999999999999999998"])))) == 2


@pytest.mark.parametrize(
    ("values", "task", "message"),
    [
        (["1", None, "3", None], "auto", "the target 'y' is missing in rows 2, 4; leave these rows out."),
        (
            ["1", "x", "3"],
            "regression",
            "column 'y' is to hold finite numbers, but holds 'x' in row 2; regression needs numbers",
        ),
        ([f"n{i}" for i in range(9)], "auto", "the target 'y' has 9 different values in 9 rows, too many for classes"),
        (["2020-01-01", "2020-01-02"], "auto", "column 'y' holds dates"),
    ],
)
def test_targets_that_cannot_be(values, task, message):
    with pytest.raises(InputError, match=re.escape(message)):
        Target.of(column(values), task).values(column(values))


@pytest.mark.parametrize(("label", "shown"), [("2", "2.0"), ("0.5", "0.5")])
def test_unknown_classes_are_named(label, shown):
    target = Target.of(column([0, 1] * 10))
    with pytest.raises(
        InputError, match=re.escape(f"'y' holds {shown} in row 2, a class the model does not know; it knows '0', '1'.")
    ):
        target.values(column(["0", label]), np.array([0, 1]))


def test_columns_by_name_and_number():
    table = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "2"])
    assert [find_column(table, wanted) for wanted in ("a", "1", "-1", "-3", "3", "2")] == ["a", "a", "2", "a", "2", "2"]
    with pytest.raises(InputError, match=r"there is no column 'c'; the table has 'a', 'b', '2'\."):
        find_column(table, "c")
    for number in ("0", "4", "-4"):
        with pytest.raises(InputError, match=f"there is no column number {number}; the table has columns 1 to 3"):
            find_column(table, number)


def test_held_out_rows_are_a_share_of_every_class(flats):
    split = split_table(flats, "heat", holdout=0.25, seed=1)
    assert len(split.X) + len(split.held_out) == len(flats)
    for label, count in flats["heat"].value_counts().items():
        assert (split.held_out_y == label).sum() == round(0.25 * count)
    again = split_table(flats, "heat", holdout=0.25, seed=1)
    assert np.array_equal(again.held_out, split.held_out)
    both = np.concatenate([split.X, split.held_out])
    whole = split_table(flats, "heat")
    assert np.array_equal(np.sort(both, axis=0), np.sort(whole.X, axis=0))
    assert len(whole.held_out) == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"holdout": 1.0}, "--holdout 1 must be a share of the rows"),
        ({"holdout": 0.001}, "leaves nothing to train with or nothing to test on"),
        ({"drop": ["none"]}, "--drop names 'none', not a column"),
        ({"drop": ["area", "city", "balcony", "price"]}, "beside the target 'heat' the table has no columns"),
    ],
)
def test_splits_that_cannot_be(flats, options, message):
    with pytest.raises(InputError, match=message):
        split_table(flats, "heat", **options)
