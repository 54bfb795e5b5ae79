"""Columns: all problems at once with the options that help, dates, names of rows, and calibration."""

import json

import numpy as np
import pandas as pd
import pytest

from kstonet.cli.survey import survey
from kstonet.cli.training import parse_settings
from kstonet.tables import InputError
from kstonet.tables.dates import DateColumn, is_dates, with_dates


@pytest.fixture
def dirty(flats):
    flats["sold"] = pd.date_range("2020-01-03", periods=len(flats), freq="9D").strftime("%d.%m.%Y")
    flats["owner"] = [f"Person {i}" for i in range(len(flats))]
    flats["customer id"] = np.arange(1000, 1000 + len(flats))
    flats["country"] = "CH"
    flats.loc[[3, 8], "area"] = None
    return flats


def test_all_problems_are_said_at_once(dirty):
    found = survey(dirty.drop(columns="price"), impute=False, categorical=[])
    assert [line.split("'")[1] for line in found.problems] == ["area", "sold", "owner"]
    assert found.options == ["--impute", "--dates", "sold", "--drop", "owner"]
    assert len(found.remarks) == 2
    assert "'customer id' looks like a number of the row" in found.remarks[0]
    assert "'country' has the same value, 'CH'" in found.remarks[1]
    with pytest.raises(InputError, match=r"This would work: kstonet fit x\.csv --impute --dates sold --drop owner"):
        found.refuse("kstonet fit x.csv")


def test_the_suggested_command_works(run, dirty, tmp_path):
    table, model, out = tmp_path / "t.csv", tmp_path / "m.kstonet", tmp_path / "p.csv"
    dirty.to_csv(table, index=False)
    fit = ("fit", table, "-t", "price", "--tuning", "none", "--max-iter", 2, "-o", model)
    options = run(*fit, code=2).stderr.splitlines()[-1].partition("--impute")[1:]
    result = run(*fit, *"".join(options).split(), "--id", "customer id")
    assert "'country' has the same value" in result.stderr
    run("predict", model, table, "--keep", "city", "-o", out, "-q")
    found = pd.read_csv(out)
    assert list(found.columns) == ["customer id", "city", "mean", "std", "lower_95", "upper_95"]
    assert found["customer id"].tolist() == dirty["customer id"].tolist()
    assert "Did you mean 'city'?" in run("predict", model, table, "--keep", "citi", code=2).stderr
    assert list(json.loads(run("predict", model, table, "--keep", "all", "--json").stdout)["predictions"][0])[:2] == [
        "area",
        "city",
    ]


def test_near_misses_are_suggested(run, regression, tmp_path):
    out = ("-o", tmp_path / "m.kstonet")
    assert "Did you mean 'price'?" in run("fit", regression[0], "-t", "Pricee", *out, code=2).stderr
    assert "Did you mean 'heat'?" in run("fit", regression[0], "-t", "price", "--drop", "heet", *out, code=2).stderr
    said = run("fit", regression[0], "-t", "price", "--set", "penalti=mcp", *out, code=2).stderr
    assert "Did you mean 'penalty'?" in said


def test_any_parameter_can_be_set(run, regression, tmp_path):
    out = tmp_path / "m.kstonet"
    settings = [part for given in ("penalty=mcp", "n_chains=2", "residuals=training") for part in ("--set", given)]
    options = (*settings, "--tuning", "none", "--max-iter", 2)
    run("fit", regression[0], "-t", "price", *options, "-q", "-o", out)
    parameters = json.loads(run("info", out, "--json").stdout)["parameters"]
    assert (parameters["penalty"], parameters["n_chains"], parameters["residuals"]) == ("mcp", 2, "training")
    assert parse_settings(["standardize=false", "tol=null", "alpha=0.5"]) == {"standardize": False, "tol": None, "alpha": 0.5}


@pytest.mark.parametrize(
    ("texts", "first"),
    [
        (["2024-01-31", "2024-02-01"], pd.Timestamp("2024-01-31")),
        (["31.1.2024", "1.2.2024"], pd.Timestamp("2024-01-31")),
        (["3.4.2024", "1.2.2024"], pd.Timestamp("2024-04-03")),  # points: the day comes first
        (["1/31/2024", "2/1/2024"], pd.Timestamp("2024-01-31")),
        (["31/1/2024", "1/2/2024"], pd.Timestamp("2024-01-31")),
        (["2024-01-31 06:00", "2024-02-01 18:30"], pd.Timestamp("2024-01-31 06:00")),
    ],
)
def test_dates_become_numbers(texts, first):
    column = pd.Series(texts, name="day")
    date = DateColumn.of(column)
    found = with_dates(pd.DataFrame({"day": texts}), [date])
    assert found["day_days"][0] == pytest.approx((first - pd.Timestamp(0)) / pd.Timedelta(days=1))
    assert (found["day_year"][0], found["day_weekday"][0]) == (first.year, first.day_of_week)
    angle = np.arctan2(found["day_season_sin"][0], found["day_season_cos"][0])
    assert angle % (2 * np.pi) == pytest.approx(2 * np.pi * (first.day_of_year - 1) / 365.25)
    assert ("day_hour" in found) == (":" in texts[0])
    assert DateColumn(**date.to_dict()) == date


def test_dates_that_are_not_clear():
    with pytest.raises(InputError, match="may have the day or the month first"):
        DateColumn.of(pd.Series(["3/4/2024", "1/2/2024"], name="day"))
    with pytest.raises(InputError, match="with the day first and with the month first"):
        DateColumn.of(pd.Series(["31/4/2024", "1/22/2024"], name="day"))
    with pytest.raises(InputError, match="not all dates"):
        DateColumn.of(pd.Series(["2024-01-01", "soon"], name="day"))
    with pytest.raises(InputError, match="misses dates in row 1"):
        DateColumn("day", False, False).columns(pd.Series(["2024-01-01", None], name="day"))
    assert not is_dates(pd.Series(["12", "13"]))


def test_unknown_categories_that_are_ignored_are_said(run, regression):
    new = "area,city,balcony,heat\n30,Basel,true,gas\n"
    said = run("predict", regression[1], "-", "--unknown", "ignore", stdin=new).stderr
    assert "column 'city': 'Basel' in row 1 is no category of the training table and is ignored." in said


def test_a_table_in_place_of_a_model(run, regression):
    assert "is a table, but a model file comes first" in run("predict", regression[0], regression[0], code=2).stderr


def test_calibration_from_the_command_line(run, make_flats, tmp_path):
    table, model, new = tmp_path / "train.csv", tmp_path / "m.kstonet", tmp_path / "new.csv"
    flats = make_flats()
    flats.head(50).to_csv(table, index=False)
    flats.tail(30).to_csv(new, index=False)
    run("fit", table, "-t", "price", "--max-iter", 2, "--tuning", "none", "-q", "-o", model)
    before = run("predict", model, new).stdout
    said = run("calibrate", model, table, "-o", tmp_path / "c.kstonet", code=2).stderr
    assert "are rows the model was fitted on" in said
    result = run("calibrate", model, new, "-o", tmp_path / "c.kstonet")
    assert "Calibrated with 30 rows; before, 95% intervals covered" in result.stderr
    after = run("predict", tmp_path / "c.kstonet", new).stdout
    assert after != before
    assert [line.split(",")[:2] for line in after.splitlines()] == [line.split(",")[:2] for line in before.splitlines()]
    flats.tail(3).to_csv(new, index=False)
    assert "3 rows cannot tell more than 75% intervals" in run("calibrate", model, new).stderr  # in place
