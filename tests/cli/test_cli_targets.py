"""Several targets on the command line, models of Python whose target has to be named, and names that collide."""

import json

import numpy as np
import pandas as pd
import pytest

import kstonet
from kstonet.cli.prediction import beside, prediction_table
from kstonet.cli.target import Target
from kstonet.tables import InputError

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere
QUICK = ["--tuning", "none", "--max-iter", "3"]


@pytest.fixture
def animals(tmp_path, monkeypatch):
    """Two targets of different units, dates with the day first, and a column that begins like the dates."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    n = 90
    table = pd.DataFrame(
        {
            "age": rng.uniform(0, 10, n).round(3),
            "born": pd.date_range("2020-01-05", periods=n, freq="13D").strftime("%d.%m.%Y"),
            "born_in": rng.choice(["Bern", "Chur"], n),
        }
    )
    table["height"] = (1.0 + 0.1 * table["age"] + 0.05 * rng.normal(size=n)).round(4)
    table["weight"] = (300.0 * table["height"] ** 2 + 20.0 * (table["born_in"] == "Chur") + rng.normal(size=n)).round(2)
    table.head(60).to_csv("animals.csv", index=False)
    table.tail(30).to_csv("new.csv", index=False)
    return table


def test_several_targets_from_the_table_to_the_report(run, animals):
    run("fit", "animals.csv", "-t", "height,weight", "--dates", "born", *QUICK)
    found = json.loads(run("predict", "animals.kstonet", "new.csv", "--json").stdout)["predictions"]
    assert list(found[0]) == [
        f"{name}_{what}" for name in ("height", "weight") for what in ("mean", "std", "lower_95", "upper_95")
    ]
    scores = json.loads(run("evaluate", "animals.kstonet", "new.csv", "--json").stdout)
    truth = animals["weight"].tail(30)
    rmse = np.sqrt(np.mean((truth - [row["weight_mean"] for row in found]) ** 2))
    assert scores["targets"]["weight"]["rmse"] == pytest.approx(rmse)
    assert scores["r2"] == pytest.approx(np.mean([each["r2"] for each in scores["targets"].values()]))
    assert "covered, weight" in run("evaluate", "animals.kstonet", "new.csv").stdout
    assert "choose one with --target: 'height', 'weight'" in run("report", "animals.kstonet", "new.csv", code=2).stderr
    run("report", "animals.kstonet", "new.csv", "-t", "weight")
    run("calibrate", "animals.kstonet", "new.csv", "-o", "calibrated.kstonet")
    assert "'height', 'weight', regression (2 targets)" in run("info", "animals.kstonet").stdout


def test_predictions_of_several_targets_may_be_replaced(run, animals):
    run("fit", "animals.csv", "-t", "height,weight", "--drop", "born", *QUICK)
    for _ in range(2):
        run("predict", "animals.kstonet", "new.csv", "-o", "out.csv")
    assert "names the column 'height' twice" in run("fit", "animals.csv", "-t", "height,height", code=2).stderr


def test_several_targets_are_numbers(run, animals):
    assert "classes ('born_in') are predicted one" in run("fit", "animals.csv", "-t", "height,born_in", code=2).stderr
    said = run("fit", "animals.csv", "-t", "height,weigth", code=2).stderr
    assert "Did you mean 'weight'?" in said


def test_dates_work_in_python(run, animals):
    run("fit", "animals.csv", "-t", "weight", "--dates", "born", "--drop", "height", *QUICK)
    expected = [row["mean"] for row in json.loads(run("predict", "animals.kstonet", "new.csv", "--json").stdout)["predictions"]]
    model = kstonet.load("animals.kstonet")
    raw = pd.read_csv("new.csv")  # with the target, and with columns that the model does not use
    np.testing.assert_allclose(model.predict(raw), expected)
    np.testing.assert_allclose(model.predict(raw.set_axis([0] * 30)), expected)
    typed = raw.assign(born=pd.to_datetime(raw["born"], dayfirst=True))
    np.testing.assert_allclose(model.predict(typed[typed.columns[::-1]]), expected)
    assert model.predict_interval(raw, 0.9).shape == (30, 2)
    polars = pytest.importorskip("polars")
    np.testing.assert_allclose(model.predict(polars.DataFrame(raw.to_dict("list"))), expected)
    with pytest.raises(InputError, match=r"X lacks the column 'born' of the training; it has 'age'"):
        model.predict(raw.drop(columns="born"))


def test_names_that_dates_would_take(run, animals):
    animals.assign(born_year=1).to_csv("twice.csv", index=False)
    assert "the table has 'born_year' already" in run("fit", "twice.csv", "-t", "weight", "--dates", "born", code=2).stderr


def test_the_target_of_a_model_of_python_is_named(run, animals):
    table = pd.read_csv("animals.csv")
    model = kstonet.KStoNetRegressor(tuning="none", max_iter=3, random_state=0)
    kstonet.save(model.fit(table[["age", "born_in"]], table["weight"]), "python.kstonet")
    assert "say which column it is: --target COLUMN" in run("evaluate", "python.kstonet", "new.csv", code=2).stderr
    new = pd.read_csv("new.csv")
    scores = json.loads(run("evaluate", "python.kstonet", "new.csv", "-t", "weight", "--json").stdout)
    assert scores["r2"] == pytest.approx(model.score(new[["age", "born_in"]], new["weight"]))
    run("report", "python.kstonet", "new.csv", "-t", "weight")
    assert "the model predicts 1" in run("evaluate", "python.kstonet", "new.csv", "-t", "weight,height", code=2).stderr
    labels = kstonet.KStoNetClassifier(tuning="none", max_iter=2, random_state=0)
    kstonet.save(labels.fit(table[["age", "weight"]], table["born_in"] == "Chur"), "labels.kstonet")
    new.assign(chur=new["born_in"] == "Chur").to_csv("chur.csv", index=False)
    scores = json.loads(run("evaluate", "labels.kstonet", "chur.csv", "-t", "chur", "--json").stdout)
    assert scores["accuracy"] == pytest.approx(labels.score(new[["age", "weight"]], new["born_in"] == "Chur"))


def test_names_that_collide():
    X = np.linspace(-1, 1, 30)[:, None]
    y = np.repeat(["a", "a_lower_95", "mean"], 10)
    model = kstonet.KStoNetClassifier(tuning="none", max_iter=2, random_state=0).fit(X, y)
    with pytest.raises(ValueError, match="two columns of the predictions would be called 'p_a_lower_95'"):
        prediction_table(model, X, [0.95])
    table = prediction_table(model, X, [0.9])
    assert len(set(table.columns)) == 10
    kept = pd.DataFrame({"class": ["x"] * 30, "class_given": 0})
    assert list(beside(kept, table).columns[:3]) == ["class_given_2", "class_given", "class"]


def test_several_targets_read_a_table():
    table = pd.DataFrame({"a": ["1", "2"], "b": ["3", "4.5"]})
    target = Target.of_table(table, ["a", "b"])
    np.testing.assert_array_equal(target.of_rows(table), [[1.0, 3.0], [2.0, 4.5]])
    with pytest.raises(InputError, match="lacks the target 'b'"):
        target.of_rows(table[["a"]])
