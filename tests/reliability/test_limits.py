"""Wide tables in linear time, and files that are read without work for messages that nobody needs."""

import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import kstonet
from kstonet import KStoNetRegressor
from kstonet.cli.tables import read_table
from kstonet.cli.training import split_table

SECONDS = 15.0  # of processor time
QUICK: dict[str, Any] = {"tuning": "none", "max_iter": 1, "n_average": 1, "residuals": None, "random_state": 0}


def test_wide_tables_are_checked_in_linear_time() -> None:
    """Checking the names of 40,000 columns once took 32 s."""
    rows = np.random.default_rng(0).normal(size=(12, 40_000))
    table = pd.DataFrame(rows, columns=[f"column {k}" for k in range(rows.shape[1])])
    started = time.process_time()
    model = KStoNetRegressor(**QUICK).fit(table, rows[:, 0])
    assert np.isfinite(model.predict(table)).all()
    assert time.process_time() - started < SECONDS


def test_wide_files_are_read_in_linear_time(tmp_path: Path) -> None:
    """The command line once took 54 s for 20,000 columns, two minutes under pandas 3."""

    def seconds(columns: int) -> float:
        rows = np.random.default_rng(0).normal(size=(20, columns)).round(3)
        path = tmp_path / f"{columns}.csv"
        pd.DataFrame(rows, columns=[f"c{k}" for k in range(columns)]).to_csv(path, index=False)
        started = time.process_time()
        split = split_table(read_table(str(path)), "c0")
        assert split.X.shape == (20, columns - 1)
        return time.process_time() - started

    seconds(100)  # what is imported and compiled once
    few, many = seconds(400), seconds(1_600)
    assert many < 8.0 * few  # four times as many columns: quadratic would be sixteen
    assert many < SECONDS


def test_no_message_is_written_for_a_file_that_is_right(tmp_path: Path) -> None:
    """Texts of arrays for errors that did not occur once made loading three times slower."""

    def written(array: np.ndarray) -> str:
        raise AssertionError("an array was written as text")

    X = np.random.default_rng(0).normal(size=(30, 2))
    model = KStoNetRegressor(**QUICK | {"residuals": "training"}).fit(X, X[:, 0])
    kstonet.save(model, tmp_path / "m.kstonet")
    with np.printoptions(override_repr=written):
        loaded = kstonet.load(tmp_path / "m.kstonet")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
