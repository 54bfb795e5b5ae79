"""Reading models and rows."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import KStoNetRegressor
from kstonet.report import build_report, write_report
from kstonet.report.inputs import Table, read_subject


def read(model, X, y, **given):
    return read_subject(model, X, y, **{"encode": None, "X_train": None, "y_train": None, "target": None} | given)


@pytest.mark.parametrize("frame", [True, False])
def test_a_table_takes_picks_and_replaces(frame):
    values = np.arange(12.0).reshape(4, 3)
    table = Table(
        pd.DataFrame(values, columns=["a", "a", "b"]) if frame else values, ("a", "a", "b"), lambda X: np.asarray(X) * 2
    )
    np.testing.assert_array_equal(table.taken([3, 3, 0]).matrix(), 2 * values[[3, 3, 0]])
    changed = table.replaced(1, table.picked(1, [3, 2, 1, 0]))
    np.testing.assert_array_equal(changed.column(1), values[::-1, 1])
    np.testing.assert_array_equal(changed.column(0), values[:, 0])
    np.testing.assert_array_equal(table.column(1), values[:, 1])  # the given rows are not touched
    assert table.labels([2, 0]) == ["2", "0"]


def test_columns_keep_their_types():
    frame = pd.DataFrame(
        {
            "whole": [1, 2, 3],
            "nullable": pd.array([1, None, 3], dtype="Int64"),
            "text": ["x", None, "z"],
            "category": pd.Categorical(["u", "v", "u"]),
            "flag": [True, False, True],
        },
        index=["first", "second", "third"],
    )
    table = Table(frame, tuple(frame.columns))
    np.testing.assert_array_equal(table.column(1), [1.0, np.nan, 3.0])
    assert table.column(2).tolist() == ["x", None, "z"]
    assert table.column(4).tolist() == ["True", "False", "True"]
    turned = table.replaced(3, table.picked(3, [1, 0, 1])).values
    assert turned.dtypes.equals(frame.dtypes)
    assert turned["category"].tolist() == ["v", "u", "v"]
    assert table.labels([1]) == ["second"]


def test_names_come_from_the_frame_the_model_or_the_position(numeric):
    model, X, y, X_test, y_test = numeric
    assert read(model, X_test, y_test).rows.names == ("x0", "x1", "x2")
    named = KStoNetRegressor(tuning="none", max_iter=1, residuals=None, random_state=0).fit(
        pd.DataFrame(X, columns=list("abc")), y
    )
    assert read(named, X_test, y_test).rows.names == ("a", "b", "c")
    subject = read(named, pd.DataFrame(X_test, columns=list("abc")), pd.Series(y_test, name="height"))
    assert subject.rows.names == ("a", "b", "c")
    assert subject.target == "height"


def test_rows_seen_in_training_are_known(numeric):
    model, X, y, X_test, y_test = numeric
    assert read(model, X, y).on_training_rows
    half = np.concatenate([X[:30], X_test[:60]])
    seen = read(model, half, np.concatenate([y[:30], y_test[:60]]))
    assert seen.seen.sum() == 30
    assert not seen.on_training_rows
    stored = pickle.loads(pickle.dumps(model))  # keeps no training rows
    assert read(stored, X, y).seen is None
    assert read(stored, X, y, X_train=X, y_train=y).on_training_rows
    assert read(stored, X_test, y_test, X_train=X, y_train=y).n_train == len(X)


def test_what_cannot_be_reported_on_is_refused(numeric, classes, tmp_path):
    model, X, y, _, _ = numeric
    classifier, XC, yc, _, _ = classes
    kernel = KStoNetRegressor(tuning="none", kernel="precomputed", max_iter=1, random_state=0).fit(np.eye(12), np.arange(12.0))
    two = KStoNetRegressor(tuning="none", max_iter=1, residuals=None, random_state=0).fit(X, np.column_stack([y, y]))
    for error, said, call in [
        (TypeError, "Ridge", lambda: build_report(Ridge().fit(X, y), X, y)),
        (ValueError, "not fitted", lambda: build_report(make_pipeline(StandardScaler(), KStoNetRegressor()), X, y)),
        (ValueError, "not fitted", lambda: build_report(KStoNetRegressor(tuning="none"), X, y)),
        (ValueError, "precomputed", lambda: build_report(kernel, np.eye(12), np.arange(12.0))),
        (ValueError, "y holds 3 values for 170 rows", lambda: build_report(model, X, y[:3])),
        (ValueError, "holds 5 rows", lambda: build_report(model, X[:5], y[:5])),
        (ValueError, "2 columns, the model was fitted on 3", lambda: build_report(model, X[:, :2], y)),
        (ValueError, r"shape \(170,\)", lambda: build_report(model, X[:, 0], y)),
        (
            ValueError,
            "y_train=None: a report takes X_train and y_train",
            lambda: build_report(model, X, y, X_train=X),
        ),
        (ValueError, r"\['four'\]", lambda: build_report(classifier, XC, np.where(yc == "one", "four", yc))),
        (ValueError, "2 targets", lambda: build_report(two, X, np.column_stack([y, y]))),
        (ValueError, "holds 1 targets, the model was fitted on 2", lambda: build_report(two, X, y, target=0)),
        (FileNotFoundError, "create it first", lambda: write_report(model, X, y, tmp_path / "none" / "r.html")),
    ]:
        with pytest.raises(error, match=said):
            call()
