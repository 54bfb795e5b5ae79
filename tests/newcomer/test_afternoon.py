"""The first afternoon of a stranger: files with every kind of dirt, and what the command line says of each.

The points are those of a session in which the command line was tried on real tables. ``points.py`` lists them, with the test
that proves each.
"""

import json
import os
import re
import runpy
import sys
import time
import warnings
from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

import kstonet
from kstonet.cli import NEEDED

pytestmark = pytest.mark.skipif(not all(map(find_spec, NEEDED)), reason="the command line is not installed")
QUICK = ("--tuning", "none", "--max-iter", "3")


@pytest.fixture
def type_(tmp_path, monkeypatch):
    """Type a command in the folder of the files; standard error and output come back."""
    from typer.testing import CliRunner

    from kstonet.cli.app import app

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "400")

    def type_(line, code=0):
        words = line if isinstance(line, list) else line.split()
        monkeypatch.setattr(sys, "argv", ["kstonet", *words])
        result = CliRunner().invoke(app, words)
        assert result.exit_code == code, result.output
        return result

    return type_


@pytest.fixture
def houses(tmp_path, few_folds, few_steps):
    """A table as people have it: names of rows, dates, free text, a constant, gaps, accents."""
    rng = np.random.default_rng(3)
    n = 80
    table = pd.DataFrame(
        {
            "id": np.arange(5001, 5001 + n),
            "living area": rng.gamma(8, 14, n).round(1),
            "city": rng.choice(["Genève", "Zürich", "Bern"], n),
            "sold": pd.date_range("2019-01-07", periods=n, freq="11D").strftime("%Y-%m-%d"),
            "remark": [f"seen by agent {i} on site" for i in range(n)],
            "country": "CH",
        }
    )
    table["price"] = (9 * table["living area"] + 120 * (table["city"] == "Zürich") + rng.normal(0, 40, n)).round(1)
    table.loc[[4, 17], "living area"] = None
    table.to_csv(tmp_path / "houses.csv", index=False)
    return table


CLEAN = ["--impute", "--dates", "sold", "--drop", "remark", "--id", "id"]


def fit(type_, *more, table="houses.csv", target="price", code=0):
    return type_(["fit", table, "-t", target, *QUICK, *more], code)


def test_inputs_survive(type_, houses, tmp_path):
    before = (tmp_path / "houses.csv").read_bytes()
    assert "is a file that this command reads" in fit(type_, "-o", "houses.csv", code=2).stderr
    fit(type_, *CLEAN)
    for line in ("predict houses.kstonet houses.csv -o houses.csv", "report houses.kstonet houses.csv -o houses.csv"):
        assert "--force" in type_(line, 2).stderr
    assert (tmp_path / "houses.csv").read_bytes() == before


@pytest.mark.parametrize(
    ("marks", "expected", "said"),
    [
        (("1,947", "3,5"), 1.947, "a comma as the decimal mark"),
        (("1,947", "3.5"), 1947.0, "a comma between thousands"),
        (("1.947,5", "3"), 1947.5, "a point between thousands"),
    ],
)
def test_marks_are_decided_and_said(type_, tmp_path, marks, expected, said):
    rows = "".join(f"{marks[0]};{marks[1]};{i}\n{500 + i};2;{i + 1}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"a;b;y\n{rows}")
    assert said in fit(type_, table="t.csv", target="y").stderr
    from kstonet.cli.tables import read_table

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert float(read_table("t.csv")["a"].iloc[0]) == expected


def test_marks_that_nothing_decides_are_asked_for(type_, tmp_path):
    rows = "".join(f"1,{900 + i};{i}\n{500 + i};{i + 1}\n" for i in range(20))
    (tmp_path / "t.csv").write_text(f"a;y\n{rows}")
    assert "is 1900 or 1.900, and no other cell tells" in fit(type_, table="t.csv", target="y", code=2).stderr
    fit(type_, "--thousands", ",", table="t.csv", target="y")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "cp1252", "latin-1"])
def test_encodings(type_, houses, tmp_path, encoding):
    houses.drop(columns="remark").to_csv(tmp_path / "e.csv", index=False, encoding=encoding)
    result = fit(type_, "--impute", "--dates", "sold", "--id", "id", table="e.csv")
    assert ("was read as Windows-1252" in result.stderr) == (encoding in ("cp1252", "latin-1"))
    assert "Genève" in type_("info e.kstonet").stdout


def test_a_place_that_cannot_be_written_is_found_first(type_, houses):
    assert "create it first" in fit(type_, "-o", "nowhere/m.kstonet", code=2).stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_result_that_cannot_be_written_is_not_lost(type_, houses):
    said = fit(type_, *CLEAN, "-o", "/dev/full", code=2).stderr
    place = said.split("it is in '")[1].split("'")[0]
    assert kstonet.load(place).n_iter_ == 3


def test_the_cost_is_said_before_the_training(type_, houses):
    said = fit(type_, *CLEAN).stderr
    assert said.index("80 rows, ") < said.index("of memory") < said.index("Trained")
    assert "intervals" in said.split("Trained")[1].split("\n")[0]


def test_a_long_training_is_measured_on_a_few_rows(monkeypatch):
    from kstonet.cli import estimate

    monkeypatch.setattr(estimate, "PROBES", (20, 40))
    monkeypatch.setattr(estimate, "WORTH_MEASURING", 50)
    X = np.random.default_rng(0).normal(size=(80, 2))
    model = kstonet.KStoNetRegressor(tuning="none", max_iter=2, random_state=0)
    said = estimate.forecast(model, X, X[:, 0])
    assert re.search(r"of memory for the kernel matrix, roughly [\d.]+ s \(from fits on 20 and 40 rows\)", said)
    assert "Faster" not in said
    monkeypatch.setattr(estimate, "LONG", 0.0)
    assert "Faster: --rows 2000 trains on a sample, --tuning none" in estimate.forecast(model, X, X[:, 0])


def test_the_bar_counts_the_intervals(type_, houses):
    lines = [line for line in fit(type_, *CLEAN).stderr.splitlines() if line.startswith("[training]")]
    assert [re.search(r"\d/\d", line)[0] for line in lines] == ["1/4", "2/4", "3/4", "4/4"]
    assert ", then intervals" in lines[0]
    assert "intervals prepared" in lines[-1]


def test_the_model_works_in_python(type_, houses):
    """The table as it was trained on: with dates, the names of the rows, free text and the target."""
    fit(type_, *CLEAN)
    expected = json.loads(type_("predict houses.kstonet houses.csv --json").stdout)["predictions"]
    model = kstonet.load("houses.kstonet")
    np.testing.assert_allclose(model.predict(pd.read_csv("houses.csv")), [row["mean"] for row in expected])


def test_a_search_is_a_short_table(type_, houses):
    line = ["tune", "houses.csv", "-t", "price", "--max-iter", "2", *CLEAN]
    result = type_(line)
    assert len(result.stdout.splitlines()) < 25
    assert len(result.stderr.splitlines()) < 40
    assert "The best 10 of" in result.stdout


def test_the_command_line_reaches_every_parameter(type_, houses):
    from kstonet.cli.training import parse_settings

    reached = [name for name in kstonet.KStoNetRegressor().get_params() if name not in ("callback", "verbose")]
    assert len(parse_settings([f"{name}=1" for name in reached])) == len(reached)
    fit(type_, *CLEAN, "--kernel", "laplacian", "--set", "penalty=mcp", "--set", "n_chains=2", "--set", "standardize=false")
    model = kstonet.load("houses.kstonet")
    assert (model.kernel, model.penalty, model.n_chains, model.standardize) == ("laplacian", "mcp", 2, False)


def test_several_targets(type_, houses):
    fit(type_, *CLEAN, target="price,living area", code=2)  # a target must not be missing
    houses.dropna().to_csv("whole.csv", index=False)
    fit(type_, *CLEAN, table="whole.csv", target="price,living area")
    assert type_("predict whole.kstonet whole.csv").stdout.startswith("id,price_mean,price_std,price_lower_95,price_upper_95,")


def test_all_columns_at_once_and_a_command_that_works(type_, houses):
    said = fit(type_, code=2).stderr
    assert "3 columns cannot be used as they are" in said
    suggested = said.splitlines()[-1]
    assert suggested.startswith("This would work: kstonet fit houses.csv -t price")
    assert suggested.endswith("--impute --dates sold --drop remark")
    result = type_(suggested.partition("kstonet ")[2])
    assert "'country' has the same value" in result.stderr
    assert "'id' looks like a number of the row" in result.stderr


def test_near_misses(type_, houses):
    assert "Did you mean 'price'?" in fit(type_, target="pirce", code=2).stderr


def test_ids_stay_beside_predictions(type_, houses):
    fit(type_, *CLEAN)
    lines = type_("predict houses.kstonet houses.csv --keep city").stdout.splitlines()
    assert lines[0].startswith("id,city,mean")
    assert lines[1].startswith(f"5001,{houses['city'][0]},")


def test_the_report_names_rows_by_their_ids(type_, houses):
    fit(type_, *CLEAN)
    type_("report houses.kstonet houses.csv")
    with open("report.html", encoding="utf-8") as file:
        hardest = file.read().partition('id="hardest"')[2].partition("</section>")[0]
    assert re.search(r">50[0-7]\d<", hardest)


def test_excel(type_, houses, tmp_path):
    pytest.importorskip("openpyxl")
    houses.drop(columns=["sold", "remark"]).to_excel(tmp_path / "houses.xlsx", index=False)
    fit(type_, "--impute", "--id", "id", table="houses.xlsx")
    type_("predict houses.kstonet houses.xlsx -o out.xlsx")
    assert len(pd.read_excel("out.xlsx")) == len(houses)


def test_too_few_rows(type_, houses, tmp_path):
    houses.dropna().head(3).to_csv(tmp_path / "few.csv", index=False)
    said = fit(type_, "--drop", "remark", "--dates", "sold", table="few.csv", code=2).stderr
    assert "the table has 3 rows; a model that can be relied on needs at least 10" in said
    houses.dropna().head(20).to_csv(tmp_path / "twenty.csv", index=False)
    assert "R²" not in fit(type_, "--drop", "remark", "--dates", "sold", table="twenty.csv").stderr


def test_calibration_needs_new_rows(type_, houses, tmp_path):
    houses.head(50).to_csv(tmp_path / "train.csv", index=False)
    houses.tail(30).to_csv(tmp_path / "new.csv", index=False)
    type_(["fit", "train.csv", "-t", "price", "--max-iter", "2", "--kernel", "rbf", *CLEAN, "-o", "m.kstonet"])
    assert "are rows the model was fitted on" in type_("calibrate m.kstonet train.csv -o c.kstonet", 2).stderr
    type_("calibrate m.kstonet new.csv -o c.kstonet")
    houses.tail(3).to_csv(tmp_path / "three.csv", index=False)
    said = type_("calibrate m.kstonet three.csv -o d.kstonet").stderr
    assert "3 rows cannot tell more than 75% intervals; wider ones are infinite" in said


def test_messages(type_, houses):
    fit(type_, *CLEAN)
    assert "a model file comes first" in type_("predict houses.csv houses.csv", 2).stderr
    assert "a model file comes first" in type_("info houses.csv", 2).stderr
    assert "say which column to predict: --target COLUMN; the table has 'id'," in type_("fit houses.csv", 2).stderr
    assert "must lie strictly between 0 and 1" in type_("predict houses.kstonet houses.csv --coverage 90", 2).stderr
    assert "its name" in type_("predict houses.kstonet houses.csv -o out.ods", 2).stderr
    assert "is named like a table, but a model is written" in fit(type_, *CLEAN, "-o", "x.xlsx", code=2).stderr
    X = np.random.default_rng(0).normal(size=(30, 2))
    model = kstonet.KStoNetRegressor(tuning="none", max_iter=2, random_state=0).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=r"coverage='90%' must lie strictly between 0 and 1"):
        model.predict_interval(X, coverage="90%")
    with pytest.raises(ValueError, match=r"'tune'\. Did you mean 'scale'\?"):
        kstonet.KStoNetRegressor(gamma="sacle").fit(X, X[:, 0])
    with pytest.raises(ValueError, match="n_jobs=0 must be"):
        kstonet.KStoNetRegressor(n_jobs=0).fit(X, X[:, 0])
    from kstonet.report import build_report

    with pytest.raises(ValueError, match="y=None: a report compares"):
        build_report(model, X, None)


@pytest.mark.parametrize(
    ("column", "said"),
    [
        (pd.date_range("2024-01-01", periods=30), r"column 'when' holds dates or times such as '2024-01-01.*--dates"),
        (
            [f"2024-01-{day:02d}" for day in range(1, 31)],
            r"column 'when' holds dates or times such as '2024-01-01'; replace it",
        ),
        ([f"name {i}" for i in range(30)], r"column 'when' holds 30 different values such as 'name 0'.*leave the column out"),
        ([[1, 2]] * 30, r"column 'when' holds \[1, 2\] of type list; replace it"),
    ],
    ids=["dates", "text of dates", "names", "lists"],
)
def test_columns_in_python_are_named(column, said):
    table = pd.DataFrame({"area": np.arange(30.0), "when": column})
    with pytest.raises(ValueError, match=said):
        kstonet.KStoNetRegressor().fit(table, table["area"])


@pytest.mark.parametrize("name", ["KStoNetRegressor", "StoNetRegressor", "MultiTargetSVR"])
def test_too_large_a_matrix_recommends_what_the_estimator_has(name):
    model = getattr(kstonet, name)()
    model.set_params(max_memory=1000, **({"kernel": "rbf"} if name == "StoNetRegressor" else {}))
    if "solver" in model.get_params():
        model.set_params(solver="dense")
    X = np.random.default_rng(0).normal(size=(300, 2))
    with pytest.raises(kstonet.GramTooLargeError) as error:
        model.fit(X, X[:, 0])
    advised = set(re.findall(r"(\w+)=", str(error.value))) - {"n"}
    assert advised <= set(model.get_params()), str(error.value)


def test_the_demo_ends_in_a_picture_and_the_next_command(type_, capsys):
    started = time.process_time()
    from kstonet import demo

    demo.main(["--folder", "."])
    assert time.process_time() - started < 30.0
    said = capsys.readouterr().out
    ours, theirs = map(float, re.search(r"K-StoNet ([\d.]+), scikit-learn's SVR ([\d.]+)", said).groups())
    assert ours < 0.9 * theirs
    if find_spec("matplotlib"):
        assert os.path.getsize("demo.png") > 10_000
    command = said.rstrip().splitlines()[-1].rpartition("kstonet ")[2]
    assert "--holdout" in command
    type_(f"{command} --tuning none --max-iter 2")


def test_the_demo_has_help(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["kstonet.demo", "--help"])
    monkeypatch.delitem(sys.modules, "kstonet.demo", raising=False)  # as in a new process
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("kstonet.demo", run_name="__main__")  # what python -m kstonet.demo --help does
    assert ended.value.code == 0
    assert "--folder" in capsys.readouterr().out


def test_from_a_table_to_a_report_in_four_commands(type_, tmp_path, few_folds, few_steps):
    """What the page says; tests/long/test_four_commands.py has 1,000 rows and the limit of time."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(350, 4))
    table = pd.DataFrame(X, columns=["a", "b", "c", "d"]).assign(y=np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=350))
    table.head(200).to_csv(tmp_path / "train.csv", index=False)
    table.tail(150).to_csv(tmp_path / "new.csv", index=False)
    for line in (
        "fit train.csv -t y",
        "evaluate train.kstonet new.csv",
        "predict train.kstonet new.csv -o predictions.csv",
        "report train.kstonet new.csv --train train.csv",
    ):
        type_(line)
    page = (tmp_path / "report.html").read_text()
    assert "Where 90 % intervals cover" in page
    assert "choice of the settings" in page
    times = page.partition("Where the time of the training went")[2].partition("</table>")[0]
    assert ">intervals</th>" in times
