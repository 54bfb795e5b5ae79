"""The commands, in this process: what they write is what the library says, and every refusal is one sentence."""

import io
import json
import re
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import balanced_accuracy_score, r2_score, root_mean_squared_error

import kstonet
from kstonet.cli import main, training
from kstonet.cli.tables import read_table
from kstonet.metrics import coverage, crps_student
from kstonet.persistence import read_metadata

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good choices and intervals are is tested elsewhere


def library_view(files, target):
    """Model, inputs and truth, without the command line."""
    table, path = files
    frame = pd.read_csv(table)
    return kstonet.load(path), frame.drop(columns=target), frame[target].to_numpy()


def test_predictions_are_the_librarys(run, regression, tmp_path):
    table, path = regression
    model, X, _ = library_view(regression, "price")
    run("predict", path, table, "--coverage", "0.8", "--coverage", "0.975", "--out", tmp_path / "p.csv")
    predictions = read_table(str(tmp_path / "p.csv")).astype(float)
    assert list(predictions.columns) == ["mean", "std", "lower_80", "upper_80", "lower_97.5", "upper_97.5"]
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(predictions[["mean", "std"]], np.column_stack([mean, std]))
    np.testing.assert_array_equal(predictions[["lower_97.5", "upper_97.5"]], model.predict_interval(X, 0.975))


def test_class_probabilities_are_the_librarys(run, classification, tmp_path):
    table, path = classification
    model, X, _ = library_view(classification, "heat")
    run("predict", path, table, "--out", tmp_path / "p.tsv")
    predictions = read_table(str(tmp_path / "p.tsv"))
    names = ["class"] + [f"p_{c}{end}" for c in ("gas", "oil", "wood") for end in ("", "_lower_95", "_upper_95")]
    assert list(predictions.columns) == names
    assert predictions["class"].tolist() == model.predict(X).tolist()
    np.testing.assert_array_equal(predictions[["p_gas", "p_oil", "p_wood"]].astype(float), model.predict_proba(X))
    bounds = model.predict_proba_interval(X)
    np.testing.assert_array_equal(predictions[["p_oil_lower_95", "p_oil_upper_95"]].astype(float), bounds[:, 1])


def test_predictions_on_standard_output_and_as_json(run, regression):
    table, path = regression
    result = run("predict", path, table)
    lines = result.stdout.splitlines()
    assert lines[0] == "mean,std,lower_95,upper_95"
    assert len(lines) == 81
    rows = json.loads(run("predict", path, table, "--json").stdout)["predictions"]
    assert ",".join(map(str, rows[0].values())) == lines[1]


@pytest.mark.parametrize("suffix", ["parquet", "feather"])
def test_tables_of_other_formats(run, regression, tmp_path, flats, suffix):
    pytest.importorskip("pyarrow")
    new, out = tmp_path / f"new.{suffix}", tmp_path / f"out.{suffix}"
    shuffled = flats[["heat", "city", "balcony", "area"]].astype({"city": "category"})
    getattr(shuffled, f"to_{suffix}")(new)
    run("predict", regression[1], new, "--out", out)
    expected = run("predict", regression[1], regression[0]).stdout.splitlines()
    found = getattr(pd, f"read_{suffix}")(out)
    assert len(found) == len(expected) - 1
    assert str(found["mean"][0]) == expected[1].split(",")[0]


def test_scores_of_regression(run, regression):
    table, path = regression
    model, X, y = library_view(regression, "price")
    found = json.loads(run("evaluate", path, table, "--json").stdout)
    mean, std = model.predict(X, return_std=True)
    distribution = model.predict_dist(X)
    expected = {
        "rmse": root_mean_squared_error(y, mean),
        "r2": r2_score(y, mean),
        "nll": -distribution.logpdf(y).mean(),
        "crps": crps_student(y, mean, std, distribution.df),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)
    assert [each["level"] for each in found["intervals"]] == [0.8, 0.9, 0.95]
    assert found["intervals"][1]["coverage"] == coverage(y, model.predict_interval(X, 0.9))
    shown = run("evaluate", path, table).stdout
    assert all(word in shown for word in ("RMSE", "R²", "NLL", "CRPS", "80%", "mean width"))


def test_scores_of_classification(run, classification):
    table, path = classification
    model, X, y = library_view(classification, "heat")
    found = json.loads(run("evaluate", path, table, "--json").stdout)
    assert found["accuracy"] == model.score(X, y)
    assert found["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(y, model.predict(X)))
    assert {"mcc", "log_loss", "brier", "ece"} <= found.keys()
    assert "Matthews" in run("evaluate", path, table).stdout


def test_one_row_can_be_evaluated(run, regression, tmp_path, flats):
    flats.head(1).to_csv(tmp_path / "one.csv", index=False)
    assert json.loads(run("evaluate", regression[1], tmp_path / "one.csv", "--json").stdout)["r2"] is None
    assert "not defined" in run("evaluate", regression[1], tmp_path / "one.csv").stdout


def test_fit_says_what_it_does(run, tmp_path, flats, monkeypatch):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    monkeypatch.chdir(tmp_path)
    result = run("fit", "flats.csv", "-t", "heat", "--max-iter", 3, "--holdout", 0.25, "--json")
    found = json.loads(result.stdout)
    assert (tmp_path / "flats.kstonet").exists()
    assert found["model"] == "flats.kstonet"
    assert (found["task"], found["task_reason"]) == ("classification", "'heat' holds text, 3 classes")
    assert (found["rows"], found["inputs"], found["iterations"]) == (60, 6, 3)
    assert found["held_out"]["rows"] == 20
    assert found["seconds"]["total"] > sum(found["seconds"][part] for part in ("impute", "first_layer", "regressions"))
    assert found["interrupted"] is False
    for words in (
        "classification ('heat' holds text, 3 classes)",
        "'city' (3 categories)",
        "20 rows: accuracy",
        "flats.kstonet",
    ):
        assert words in result.stderr


def test_held_out_scores_are_those_of_evaluate(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    options = ("--target", "price", "--tuning", "none", "--max-iter", 3, "--json", "--out", tmp_path / "m.kstonet")
    held_out = json.loads(run("fit", tmp_path / "flats.csv", *options, "--holdout", 0.3, "--seed", 5).stdout)["held_out"]
    held = training._held_out(np.zeros(len(flats)), 0.3, 5)
    flats[held].to_csv(tmp_path / "held.csv", index=False)
    found = json.loads(run("evaluate", tmp_path / "m.kstonet", tmp_path / "held.csv", "--json").stdout)
    assert held_out.pop("intervals") == found.pop("intervals")
    assert held_out == pytest.approx({name: found[name] for name in held_out})


def test_quiet_says_nothing(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    result = run("fit", tmp_path / "flats.csv", "--target", "heat", "--max-iter", 2, "-q", "--out", tmp_path / "m.kstonet")
    assert result.output == ""


def test_a_seed_gives_the_same_predictions(run, classification, tmp_path):
    table, path = classification
    run("fit", table, "--target", "5", "--max-iter", 4, "--seed", 0, "-q", "--out", tmp_path / "again.kstonet")
    assert run("predict", tmp_path / "again.kstonet", table).stdout == run("predict", path, table).stdout


def test_parameters_arrive(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    options = ("--units", "4,2", "--C", "3", "--gamma", "0.25", "--seed", "7", "--max-iter", "2", "--drop", "heat")
    run("fit", tmp_path / "flats.csv", "--target", "price", *options, "--out", tmp_path / "m.kstonet")
    model = kstonet.load(tmp_path / "m.kstonet")
    assert (model.hidden_layer_sizes, model.C, model.gamma, model.random_state, model.max_iter) == ((4, 2), 3.0, 0.25, 7, 2)
    info = json.loads(run("info", tmp_path / "m.kstonet", "--json").stdout)
    assert info["parameters"] == {"hidden_layer_sizes": [4, 2], "C": 3.0, "gamma": 0.25, "random_state": 7, "max_iter": 2}
    assert [column["name"] for column in info["table"]["columns"]] == ["area", "city", "balcony"]


def test_a_plain_fit_is_the_first_call_in_python(run, regression, classification, tmp_path):
    for (table, _), target, make in (
        (regression, "price", kstonet.KStoNetRegressor),
        (classification, "heat", kstonet.KStoNetClassifier),
    ):
        path = tmp_path / "plain.kstonet"
        found = json.loads(run("fit", table, "-t", target, "--json", "-o", path).stdout)
        model, X, truth = library_view((table, path), target)
        ours = make(random_state=0).fit(X, truth)
        assert model.get_params() == ours.get_params()
        assert found["tuning_reason"] == ours.tuning_["reason"]
        assert (found["tuned"]["loss"], found["iterations"]) == ("squared", ours.n_iter_)
        answer = "predict_proba" if target == "heat" else "predict"
        np.testing.assert_array_equal(getattr(model, answer)(X), getattr(ours, answer)(X))


def test_what_was_chosen_is_said(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    path = tmp_path / "m.kstonet"
    fit = run("fit", tmp_path / "flats.csv", "-t", "price", "--kernel", "matern32", "--units", "3", "-o", path)
    reason = kstonet.load(path).tuning_["reason"]
    for shown in (fit.stderr, run("info", path).stdout):
        assert "loss squared, max_iter 6" in shown
        assert re.search("length(_scale| scales) [0-9.e+]+ to ", shown)  # as a range, not one by one
        assert reason in shown
    assert json.loads(run("info", path, "--json").stdout)["parameters"]["kernel"] == "matern32"


def test_fixed_defaults_are_those_of_the_library(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    path = tmp_path / "m.kstonet"
    options = ("--tuning", "none", "--loss", "squared", "--max-iter", 2, "--json")
    found = json.loads(run("fit", tmp_path / "flats.csv", "-t", "price", *options, "-o", path).stdout)
    assert (found["tuned"], found["tuning_reason"], found["iterations"]) == (None, None, 2)
    model = kstonet.load(path)
    assert (model.tuning, model.loss, model.trained_.hidden_layer_sizes) == ("none", "squared", (5,))


def test_missing_values_are_imputed_on_request(run, tmp_path, flats):
    flats.loc[[2, 5], "area"] = None
    flats.loc[7, "city"] = None
    flats.to_csv(tmp_path / "flats.csv", index=False)
    fit = ("fit", tmp_path / "flats.csv", "--target", "price", "--max-iter", 2, "--out", tmp_path / "m.kstonet")
    message = run(*fit, code=2).stderr
    lines = message.splitlines()
    assert lines[0] == "Error: 2 columns cannot be used as they are:"
    assert lines[1] == "  column 'area' misses values in rows 3, 6; --impute fills them in, and puts missing categories aside."
    assert lines[2].startswith("  column 'city' misses values in row 8;")
    assert lines[3].endswith(" --impute")
    assert not (tmp_path / "m.kstonet").exists()
    run(*fit, "--impute", "--tuning", "none")
    new = "city,balcony,area,heat\n,,,\n"
    assert len(run("predict", tmp_path / "m.kstonet", "-", stdin=new).stdout.splitlines()) == 2
    shown = run("info", tmp_path / "m.kstonet").stdout
    assert f"{flats['area'].median():g}" in shown
    assert re.search(r"city .* a category of its own", shown)
    assert re.search(r"heat .* none of these", shown)
    assert "refused" not in shown


def test_numbers_are_expected_from_others_on_request(run, tmp_path, flats):
    flats["square feet"] = 10.76 * flats["area"]
    flats.loc[::3, "area"] = None
    flats.to_csv(tmp_path / "flats.csv", index=False)
    path = tmp_path / "m.kstonet"
    run("fit", tmp_path / "flats.csv", "-t", "price", "--impute", "--tuning", "none", "--max-iter", 2, "-o", path)
    assert "expected from the others" in run("info", path).stdout
    known = flats.assign(area=flats["square feet"] / 10.76)
    for name, table in {"known": known, "missing": known.assign(area=None)}.items():
        table.drop(columns="price").to_csv(tmp_path / f"{name}.csv", index=False)
    written = [run("predict", path, tmp_path / f"{name}.csv").stdout for name in ("known", "missing")]
    means = [pd.read_csv(io.StringIO(text))["mean"] for text in written]
    assert np.corrcoef(means)[0, 1] > 0.99


@pytest.mark.parametrize(
    ("new", "message"),
    [
        (
            "area,city,balcony,heat\n30,Basel,true,gas\n",
            "column 'city' holds 'Basel' in row 1, a category the model does not know",
        ),
        ("area,balcony,heat\n30,true,gas\n", "the model needs column 'city', which the table lacks"),
        ("area,city,balcony,heat\n30,,true,gas\n", "values are missing: column 'city' in row 1."),
        ("area,city,balcony,heat\nx,Bern,true,gas\n", "column 'area' must hold finite numbers, but holds 'x' in row 1."),
        ("area,area,city\n1,2,3\n", "standard input has more than one column named 'area'"),
        ("", "standard input is empty."),
    ],
)
def test_tables_that_do_not_fit_the_model(run, regression, new, message):
    result = run("predict", regression[1], "-", stdin=new, code=2)
    assert result.stdout == ""
    assert re.fullmatch(f"Error: {re.escape(message)}.*\n", result.stderr)


def test_unknown_categories_can_be_ignored(run, regression):
    new = "area,city,balcony,heat\n30,Basel,true,gas\n"
    assert run("predict", regression[1], "-", "--unknown", "ignore", stdin=new).stdout.startswith("mean,")


def test_extra_columns_are_noted_and_the_target_is_not(run, regression):
    new = "heat,owner,price,balcony,city,area\ngas,me,1,true,Bern,30\n"
    result = run("predict", regression[1], "-", stdin=new)
    assert result.stderr == "Note: ignored: column 'owner', which the model does not use.\n"
    assert json.loads(run("predict", regression[1], "-", "--json", "-q", stdin=new).stdout)["notes"] == [result.stderr[6:-1]]


BAD_TABLES = {
    "one column": ("y\n1\n2\n", "y", "the table has no column besides the target 'y'; add columns to predict it from."),
    "no target": ("a,b\n1,2\n", "y", "there is no column 'y'; the table has 'a', 'b'."),
    "text target": (
        "a,y\n1,u\n2,v\n3,u\n4,v\n",
        "--task=regression",
        "column 'y' must hold finite numbers, but holds 'u' in row",
    ),
    "one class": ("a,y\n1,u\n2,u\n3,u\n4,u\n", "y", "the target 'y' has one class only, 'u'; a classifier needs at least two."),
    "dates": ("a,y\n2020-01-01,1.5\n2020-01-02,2\n", "y", "column 'a' holds dates or times such as '2020-01-01'"),
    "few rows": ("a,y\n1,1\n2,5\n3,2\n4,2.5\n", "y", "the table has 4 rows; a model that can be relied on needs at least 10"),
    "negative C": ("a,y\n" + "1,1\n2,5.5\n" * 10, "--C=-1", "C=-1.0 must be one positive number"),
    "C in words": ("a,y\n1,1\n2,5\n3,2\n4,2.5\n", "--C=much", "--C 'much' must be a number or tune."),
    "gamma in words": ("a,y\n1,1\n2,5\n", "--gamma=much", "--gamma 'much' must be a number or scale, auto, tune."),
    "unknown kernel": ("a,y\n1,1\n2,5\n", "--kernel=round", "--kernel 'round' must be one of "),
    "units in words": ("a,y\n1,1\n2,5\n", "--units=many", "--units 'many' must be a whole number such as 5"),
}


@pytest.mark.parametrize("case", BAD_TABLES)
def test_bad_training_tables(run, tmp_path, case):
    content, option, message = BAD_TABLES[case]
    extra = [option] if option.startswith("--") else []
    target = "y" if extra else option
    result = run("fit", "-", "--target", target, *extra, "--out", tmp_path / "m.kstonet", stdin=content, code=2)
    assert f"Error: {message}" in result.stderr
    assert "Traceback" not in result.output


def test_bad_files_are_refused_before_the_work(run, tmp_path, regression, monkeypatch):
    table, path = regression
    assert "there is no file" in run("fit", tmp_path / "none.csv", "--target", "y", code=2).stderr
    fit = ("fit", table, "--target", "price", "--out")
    assert "does not exist; create it first" in run(*fit, tmp_path / "no" / "m.kstonet", code=2).stderr
    assert "is a folder" in run(*fit, tmp_path, code=2).stderr
    with monkeypatch.context() as patch:
        patch.setattr("os.access", lambda *_: False)
        assert "is not yours to write to" in run(*fit, tmp_path / "m.kstonet", code=2).stderr
    assert "is a table, but a model file comes first" in run("info", table, code=2).stderr
    assert "is not a file" in run("info", tmp_path / "none.kstonet", code=2).stderr
    said = run("predict", path, table, "--out", tmp_path / "p.ods", code=2).stderr
    assert "let it end in .csv" in said
    assert "--format" not in said  # which is about the table that is read
    assert "coverage=[95.0] must lie strictly between 0 and 1" in run("predict", path, table, "--coverage", 95, code=2).stderr


def test_usage_errors_are_two(run):
    run("fit", code=2)
    run("fit", "t.csv", "--target", "y", "--task", "cooking", code=2)
    run("nothing", code=2)
    assert "fit" in run("--help").stdout
    assert run("--version").stdout.strip() == f"kstonet {kstonet.__version__}"


def test_evaluation_needs_the_truth(run, regression, classification, tmp_path, flats):
    flats.drop(columns="price").to_csv(tmp_path / "t.csv", index=False)
    assert "the table lacks the target 'price'" in run("evaluate", regression[1], tmp_path / "t.csv", code=2).stderr
    flats.assign(heat="sun").to_csv(tmp_path / "t.csv", index=False)
    message = run("evaluate", classification[1], tmp_path / "t.csv", code=2).stderr
    assert "'heat' holds 'sun' in rows 1, 2, 3, 4, 5 and 75 more, a class the model does not know" in message


def test_a_model_of_the_library_is_shown_but_not_used(run, tmp_path, regression):
    X = np.linspace(0, 1, 30)[:, None]
    kstonet.save(kstonet.StoNetRegressor(max_iter=2, random_state=0).fit(X, X[:, 0]), tmp_path / "m.kstonet")
    assert "StoNetRegressor" in run("info", tmp_path / "m.kstonet").stdout
    message = run("predict", tmp_path / "m.kstonet", regression[0], code=2).stderr
    assert "holds a StoNetRegressor, but not the names of its columns" in message
    kstonet.save(kstonet.MultiTargetSVR().fit(X, X[:, 0]), tmp_path / "svr.kstonet")
    assert json.loads(run("info", tmp_path / "svr.kstonet", "--json").stdout)["class"] == "MultiTargetSVR"


def test_codes_that_are_categories_are_so_in_python(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"code": rng.integers(1, 4, 60), "x": rng.normal(size=60)})
    table["y"] = table["x"] + (table["code"] == 2)
    table.to_csv(tmp_path / "t.csv", index=False)
    fit = ("fit", tmp_path / "t.csv", "--target", "y", "--categorical", "code", "--max-iter", 2, "--tuning", "none")
    run(*fit, "--out", tmp_path / "m.kstonet")
    model = kstonet.load(tmp_path / "m.kstonet")
    assert model.encoding_.special[0].categories == ("1", "2", "3")
    run("predict", tmp_path / "m.kstonet", tmp_path / "t.csv", "--out", tmp_path / "p.csv")
    mean = read_table(str(tmp_path / "p.csv"))["mean"].astype(float)
    for codes in (int, float, str, "category"):
        np.testing.assert_array_equal(model.predict(table[["code", "x"]].astype({"code": codes})), mean)


def test_a_model_of_a_data_frame_saved_from_python_predicts(run, tmp_path, flats):
    X, y = flats.drop(columns="price"), flats["price"]
    X.loc[::9, "city"] = None
    model = kstonet.StoNetRegressor(max_iter=2, random_state=0).fit(X, y)
    kstonet.save(model, tmp_path / "m.kstonet")
    X[X.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)  # in another order, as text, with missing values
    run("predict", tmp_path / "m.kstonet", tmp_path / "new.csv", "--out", tmp_path / "p.csv")
    predictions = read_table(str(tmp_path / "p.csv")).astype(float)
    np.testing.assert_array_equal(predictions[["lower_95", "upper_95"]], model.predict_interval(X))
    message = run("evaluate", tmp_path / "m.kstonet", tmp_path / "new.csv", code=2).stderr
    assert "was saved from Python and does not name its target" in message


def test_info(run, regression, classification):
    shown = run("info", regression[1]).stdout
    for words in ("KStoNetRegressor", "'price', regression", "80 rows, 4 iterations", "Bern, Genève, Zürich", "refused"):
        assert words in shown
    assert "gas, oil, wood" in run("info", classification[1]).stdout


def test_names_are_no_markup(run, tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"[bold]größe[/bold]": rng.normal(size=30), "[x]": rng.choice(["[red]", "ß", "日本"], 30), "[/y]": rng.normal(size=30)}
    )
    table.to_csv(tmp_path / "t.csv", index=False)
    path = tmp_path / "[m].kstonet"
    assert "Next: kstonet predict" in run("fit", tmp_path / "t.csv", "-t", "[/y]", "--max-iter", 2, "--out", path).stderr
    assert f"to {tmp_path / '[p].csv'}:" in run("predict", path, tmp_path / "t.csv", "--out", tmp_path / "[p].csv").stderr
    shown = run("info", path).stdout
    for words in ("[bold]größe[/bold]", "[red], ß, 日本", "'[/y]'"):
        assert words in shown
    assert "there is no column '[z]'" in run("fit", tmp_path / "t.csv", "--target", "[z]", code=2).stderr


def test_unexpected_errors_are_one(run, regression, monkeypatch):
    def broken(*_):
        raise RuntimeError("a wheel came off")

    monkeypatch.setattr("kstonet.cli.predict.score", broken)
    result = run("evaluate", *reversed(regression), code=1)
    assert result.stderr.startswith("Error: unexpected RuntimeError: a wheel came off. Say --debug")
    assert "Traceback" in run("evaluate", *reversed(regression), "--debug", code=1).stderr


def test_warnings_of_the_library_are_notes(run, tmp_path, flats):
    flats.to_csv(tmp_path / "flats.csv", index=False)
    fit = ("fit", tmp_path / "flats.csv", "--target", "price", "--max-iter", 2, "--out", tmp_path / "m.kstonet")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = run(*fit, "--units", "2,3", "--tuning", "none").stderr
    assert "Note: the network 2-3-1 (hidden units and outputs) is not pyramidal" in said


def test_a_model_without_intervals_predicts(run, regression, classification, tmp_path):
    for (table, path), columns in ((regression, "mean"), (classification, "class,p_gas,p_oil,p_wood")):
        model = kstonet.load(path)
        model.trained_ = replace(model.trained_, residuals=None, uncertainty=None, calibration=None)
        kstonet.save(model, tmp_path / "m.kstonet", metadata=read_metadata(path))
        result = run("predict", tmp_path / "m.kstonet", table)
        assert result.stdout.splitlines()[0] == columns
        assert "without intervals" in result.stderr
        assert "intervals" not in json.loads(run("evaluate", tmp_path / "m.kstonet", table, "--json").stdout)


def test_report(run, regression, tmp_path):
    table, path = regression
    run("report", path, table, "-o", tmp_path / "r.html", "--title", "Flats & prices", "--train", table)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<h1>Flats &amp; prices</h1>" in page
    assert all(name in page for name in ("city", "Genève", "balcony"))


def test_without_the_extra_the_message_names_it(monkeypatch):
    monkeypatch.setattr("kstonet.cli.find_spec", lambda name: None if name == "rich" else True)
    with pytest.raises(SystemExit, match=r"the command line needs rich: pip install 'kstonet\[cli\]'\."):
        main()


def test_demo(run, monkeypatch):
    monkeypatch.setattr("kstonet.demo.main", print)
    assert run("demo").stdout == "['--folder', '.']\n"
