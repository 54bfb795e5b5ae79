"""The comparisons with other models, small and on generated data: figures, the tables, and a run that is resumed."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[2]


rough = pytest.mark.usefixtures("few_folds", "few_steps")  # how good the results are is in the tables of the benchmarks


@pytest.fixture
def script(monkeypatch):
    """A script of the benchmarks as a module."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=150)
    (tmp_path / "data" / "waves").mkdir(parents=True)
    np.savez(tmp_path / "data" / "waves" / "data.npz", X=X, y=y, fold=np.arange(150) % 5)
    return str(tmp_path / "data")


@rough
def test_regressors(script, folder, tmp_path):
    tabular = script("tabular")
    results = script("_comparison").Results(tmp_path / "tabular.json")
    for model in ("kstonet none", "SVR tuned", "Gaussian process", "HistGradientBoosting"):
        part = {"set": "waves", "n": 90, "fold": 0, "model": model}
        record = tabular.measure(part, folder)
        assert (record["rows"], record["test_rows"]) == (90, 30)
        assert 0 < record["error"] < 0.7
        assert record["cpu_s"] > 0
        assert ("coverage_95" in record) == (model in ("kstonet none", "Gaussian process"))
        results.add(part | record)
    assert 0.7 <= results.records["waves", 90, 0, "kstonet none"]["coverage_95"] <= 1
    text = tabular.markdown(results, [], None)
    assert "kstonet none: 95 % covers" in text
    assert "| SVR tuned |" in text


@rough
def test_seeds(script, folder, tmp_path):
    seeds = script("seeds")
    results = script("_comparison").Results(tmp_path / "seeds.json")
    for seed in range(2):
        part = {"set": "waves", "n": 90, "fold": 0, "model": f"none, seed {seed}"}
        results.add(part | seeds.measure(part, folder))
    first, second = (record["error"] for record in results.finished())
    assert first != second
    assert f"{max(first, second) / ((first + second) / 2):.3f}" in seeds.markdown(results)


@rough
def test_classifiers(script, tmp_path):
    classification = script("classification")
    results = script("_comparison").Results(tmp_path / "classification.json")
    for model in ("kstonet", "SVC tuned", "logistic regression"):
        part = {"set": "iris", "n": 100, "fold": 0, "model": model}
        record = classification.measure(part, None)
        assert record["error"] < 0.15
        assert 0 < record["log_loss"] < 0.6
        results.add(part | record)
    assert "÷ SVC" in classification.markdown(results, [], None)


def test_simulated_classes(script):
    classification = script("classification")
    for name in classification.SIMULATED:
        X, y, X_test, y_test = classification.load(None, name, 300, 1)
        assert len(X) == len(y) == 300
        assert len(X_test) == len(y_test) == classification.TEST_ROWS
        assert set(y_test) <= set(y), name


def test_a_run_is_resumed(script, tmp_path, monkeypatch):
    comparison = script("_comparison")
    ran = []

    def run_part(path, part, data, limit_s):
        ran.append(part["fold"])
        return part | ({"failed": "killed"} if part["fold"] == 1 and len(ran) < 3 else {"error": 0.5})

    monkeypatch.setattr(comparison, "run_part", run_part)
    monkeypatch.setattr(sys, "argv", ["tabular.py", "--data", "/somewhere", "--models", "kstonet none"])
    parts = [{"set": "waves", "n": 90, "fold": fold, "model": "one"} for fold in (0, 1)]
    for _ in range(2):
        results = comparison.Results(tmp_path / "results.json")
        comparison.run_all(Path("tabular.py"), parts, results, None, redo=False, limit_s=1.0)
    assert ran == [0, 1, 1]  # what failed is tried again, what is there is not
    stored = comparison.Results(tmp_path / "results.json")
    assert stored.head["commands"] == ["python benchmarks/tabular.py --data DIR --models 'kstonet none'"]
    assert len(stored.finished()) == 2


def test_ratios(script):
    comparison = script("_comparison")
    records = [
        {"set": name, "n": 1, "fold": 0, "model": model, "error": error}
        for model, errors in (("CatBoost", (0.2, 0.4, 0.1)), ("other", (0.1, 0.8, 0.1)))
        for name, error in zip("abc", errors, strict=True)
    ]
    rows = comparison.ratio_rows(records, "error", ("CatBoost", "other"), "abc", n=1)
    assert rows[0][-2:] == ["1.000", "–"]
    assert rows[1][-2:] == ["1.000", "1 of 3, 1 equal"]


def test_ratios_are_over_the_folds_that_both_have(script):
    comparison = script("_comparison")
    errors = {("CatBoost", 0): 0.2, ("CatBoost", 1): 0.6, ("other", 0): 0.1}
    records = [{"set": "a", "n": 1, "fold": fold, "model": model, "error": e} for (model, fold), e in errors.items()]
    rows = comparison.ratio_rows(records, "error", ("CatBoost", "other"), "a", n=1)
    assert rows == [["CatBoost", "0.400", "1.000", "–"], ["other", "0.100", "0.500", "1 of 1"]]


def test_many_tables(script, tmp_path):
    many, comparison = script("many_tables"), script("_comparison")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    for kind, y in (("reg", np.exp(X[:, 0] + 0.3 * rng.normal(size=200))), ("cls", (X[:, 0] > 0).astype(int))):
        (tmp_path / kind).mkdir()
        np.savez(tmp_path / kind / f"{kind}.npz", X=X, y=y)
    models = ["kstonet", "kstonet, target as it is", "kstonet classifier", "SVC tuned"]
    parts = many.parts_of(tmp_path, [300, 1500], models)
    assert [(part["set"], part["n"]) for _, part in parts] == [("reg", 1500)] * 2 + [("cls", 1000)] * 2  # few rows: one size
    results = comparison.Results(tmp_path / "many.json")
    for folder, part in parts:
        record = many.measure(folder, part)
        assert (record["rows"], record["test_rows"]) == (140, 60)
        assert 0 <= record["error"] < 0.9
        results.add(record)
    assert results.records["reg", 1500, 0, "kstonet"]["transform"] == "log"
    results.add(results.records["reg", 1500, 0, "kstonet, target as it is"] | {"model": "CatBoost"})
    assert "failed" in many.measure(tmp_path / "reg", {"set": "reg", "n": 1500, "model": "SVC tuned"})
    page = many.page(results)
    ratio = results.records["reg", 1500, 0, "kstonet"]["error"] / results.records["reg", 1500, 0, "CatBoost"]["error"]
    assert f"| kstonet | 1 | {ratio:.3f} |" in page
    assert "| SVC tuned | 1 | 1.000 |" in page


@rough
def test_data_frames(script, tmp_path):
    frames, comparison = script("data_frames"), script("_comparison")
    rng = np.random.default_rng(0)
    colours, x = rng.choice(["red", "blue", ""], 200), rng.normal(size=200)
    for kind, y in (("reg", x + (colours == "red")), ("cls", np.where(x > 0, "yes", "no"))):
        (tmp_path / kind).mkdir()
        np.savez(tmp_path / kind / "table.npz", x=np.where(x > 1.5, np.nan, x), colour=colours, large=x > 1, y=y)
    X, y, X_test, _ = frames.load(tmp_path / "reg" / "table.npz", 100)
    assert (len(X), len(X_test)) == (100, 100)
    assert X["colour"].isna().any()
    assert list(X) == ["x", "colour", "large"]
    parts = frames.parts_of(tmp_path, [80, 300], ["kstonet", "HistGradientBoosting"])
    assert [(part["set"], part["n"]) for _, part in parts[:4]] == [("cls/table", 300)] * 2 + [("reg/table", 300)] * 2
    results = comparison.Results(tmp_path / "frames.json")
    comparison.run_tables(tmp_path / "script.py", frames.measure, parts[:1], results, 1)
    for folder, part in parts[1:4]:
        results.add(frames.measure(folder, part))
    assert not [record for record in results.records.values() if "failed" in record or not 0 <= record["error"] < 0.9]
    for record in list(results.records.values()):
        results.add(record | {"model": "CatBoost"})
    page = frames.page(results)
    assert "## Regressions, up to 300 training rows" in page
    assert "| kstonet | 1 |" in page


@rough
def test_missing_values(script, folder, tmp_path):
    missing, comparison = script("missing_values"), script("_comparison")
    X, _, _, _ = missing.load(Path(folder) / "waves" / "data.npz", "30 % at random", 0)
    assert 0.2 < np.isnan(X).mean() < 0.4
    X, _, X_test, _ = missing.load(Path(folder) / "waves" / "data.npz", "the largest", 0)
    np.testing.assert_allclose(np.isnan(np.vstack([X, X_test])).mean(axis=0), [0.2, 0.0, 0.2], atol=0.01)
    results = comparison.Results(tmp_path / "missing.json")
    for name in ("waves", "waves thirds"):
        for model in ("kstonet", "kstonet, medians", "HistGradientBoosting"):
            part = {"set": f"{name}, 10 % at random", "n": 1000, "fold": 0, "model": model}
            record = missing.measure(Path(folder), part)
            assert record["rows"] == 80
            assert 0 < record["error"] < (1.1 if name == "waves" else 2.0)  # of the mean's; a log loss
            results.add(record)
        results.add(record | {"model": "CatBoost"})
        assert not results.records[f"{name}, 10 % at random", 1000, 0, "kstonet, medians"]["expected"]
    page = missing.page(results)
    assert "## Numbers, missing: 10 % at random" in page
    assert "## Classes, missing: 10 % at random" in page
    assert page.count("| waves | ") == 2


@rough
def test_resting(script, folder, tmp_path):
    resting, comparison = script("resting"), script("_comparison")
    path = Path(folder) / "waves" / "data.npz"
    assert len(resting.load(path)[1]) == 120  # without those of the first fold
    assert [part["n"] for _, part in resting.parts_of({"waves": path}, [60, 61], 1)] == [60, 60]
    results = comparison.Results(tmp_path / "resting.json")
    for place, part in resting.parts_of({"waves": path}, [60], 1):
        results.add(resting.measure(place, part))
    rests, goes_on = results.finished()
    assert rests["error"] != goes_on["error"]
    assert 0 < rests["error"] < 0.7
    assert f"| 60 | 1 | {rests['error'] / goes_on['error']:.4f} |" in resting.page(results)


def test_joined(script, folder, tmp_path):
    joined, resting, comparison = script("joined"), script("resting"), script("_comparison")
    path = Path(folder) / "waves" / "data.npz"
    results = comparison.Results(tmp_path / "joined.json")
    for place, part in resting.parts_of({"waves": path}, [60], 1, joined.MODELS):
        results.add(joined.measure(place, part))
    together, alone = results.finished()
    assert together["error"] != alone["error"]
    assert 0 < together["error"] < 0.7
    assert f"| 60 | 1 | {together['error'] / alone['error']:.4f} |" in joined.page(results)
