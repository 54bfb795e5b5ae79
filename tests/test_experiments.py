"""The experiments run, resume where they stopped, and choose by validation; on data made here."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.utils import Bunch

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from experiments import common, coverage, report, uci, uci_models  # noqa: E402
from experiments.splits import Split  # noqa: E402
from kstonet import KStoNetRegressor  # noqa: E402
from kstonet.datasets import make_measurement_error  # noqa: E402
from kstonet.problem import Problem  # noqa: E402
from kstonet.tuning import candidates, search  # noqa: E402

pytestmark = pytest.mark.usefixtures("few_folds", "few_steps")  # how good the results are is in the tables of the experiments


def test_results_survive_a_kill(tmp_path):
    """The process is killed while a part runs: what was finished is there, and is not run again."""
    script = f"""
import sys, time
sys.path.insert(0, {str(ROOT)!r})
from pathlib import Path
from experiments.common import Results
results = Results(Path({str(tmp_path / "r.json")!r}))
results.run("a", lambda: {{"x": 1.0}})
results.run("b", lambda: time.sleep(60) or {{}})
"""
    process = subprocess.Popen([sys.executable, "-c", script], env=os.environ | {"PYTHONPATH": str(ROOT / "src")})
    for _ in range(600):
        if (tmp_path / "r.json").exists():
            break
        time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    results = common.Results(tmp_path / "r.json")
    assert results.run("a", lambda: pytest.fail("ran again"))["x"] == 1.0
    results.run("b", lambda: {"x": 2.0})
    assert list(json.loads((tmp_path / "r.json").read_text())["parts"]) == ["a", "b"]


def test_missing_parts_are_run_with_a_bar(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", lambda: 0.0)  # writing the file may take a while
    results = common.Results(tmp_path / "r.json")
    results.run("a", lambda: {"x": 1.0})
    calls = {
        "a": lambda: pytest.fail("ran again"),
        "b": lambda: {"forest": {"rmse": 2.00001}, "path": [1.0]},
        "c": lambda: {"x": 3},
    }
    results.run_all(calls)
    said = capsys.readouterr()
    assert said.out.splitlines() == ["b {'seconds': 0.0, 'forest': 2.0}", "c {'x': 3, 'seconds': 0.0}"]
    assert re.fullmatch(r"\[r\] █{16}░{8} 2/3  b  0.0 s, 0.0 s left\n\[r\] █{24} 3/3  c  0.0 s\n", said.err)
    results.run_all(calls)
    assert capsys.readouterr() == ("", "")


X, Y = make_measurement_error(160, random_state=0)
TRAIN, TEST = np.arange(110), np.arange(110, 160)


def test_test_rows_are_judged_once_and_never_shown():
    split = Split(X, Y, TRAIN, TEST)
    shown, _ = split.rows
    assert not set(map(tuple, shown)) & set(map(tuple, X[TEST]))
    seen = []
    judged = split.judge({"a": "model"}, lambda model, *rows: seen.append(rows) or {"model": model})
    assert judged == {"a": {"model": "model"}}
    np.testing.assert_array_equal(seen[0][0], X[TEST])
    with pytest.raises(RuntimeError, match="closed"):
        _ = split.rows
    with pytest.raises(RuntimeError, match="closed"):
        split.judge({}, lambda *_: {})
    with pytest.raises(ValueError, match="in common"):
        Split(X, Y, TRAIN, np.array([109]))


def test_no_test_row_reaches_a_fit(monkeypatch):
    """Everything the experiment fits, searches included, sees training rows only."""
    fitted = []
    for estimator in (KStoNetRegressor, uci_models.SameSearchSVR, uci_models.ChosenRidge, uci_models.ChosenSVR):
        original = estimator.fit

        def spy(self, X, y, *arguments, original=original, **named):
            fitted.append(np.asarray(y))
            return original(self, X, y, *arguments, **named)

        monkeypatch.setattr(estimator, "fit", spy)
    new_problem = Problem.of

    def watched(cls, rows, *arguments, **named):
        """Whatever is trained, by a search too, is a problem first."""
        fitted.append(rows.y)
        return new_problem(rows, *arguments, **named)

    monkeypatch.setattr(Problem, "of", classmethod(watched))
    y = np.where(np.arange(160) < 110, Y, 1e6 + Y)  # test rows give themselves away
    monkeypatch.setattr(Split, "load", classmethod(lambda cls, *_: cls(X, y, TRAIN, TEST)))
    small_search(monkeypatch)
    for column in ("rbf", "defaults"):
        uci.one_split("yacht", 0, column, None)
    assert len(fitted) > 7
    assert max(np.abs(y).max() for y in fitted) < 1e3


def small_search(monkeypatch):
    monkeypatch.setattr(candidates, "CS", (1.0, 10.0))
    monkeypatch.setattr(candidates, "GAMMA_MULTIPLES", (1.0,))
    monkeypatch.setattr(search, "RUNGS", ((0.05, 1),))


def test_small_runs(monkeypatch, tmp_path):
    monkeypatch.setattr(Split, "load", classmethod(lambda cls, *_: cls(X, Y, TRAIN, TEST)))
    small_search(monkeypatch)
    results = common.Results(tmp_path / "uci.json")
    part = results.run("yacht|0|rbf", lambda: uci.one_split("yacht", 0, "rbf", None))
    assert 0.5 < part["coverage"]["0.95"] <= 1.0
    assert part["rmse"] < Y.std() * 1.2
    others = results.run("yacht|0|rivals", lambda: uci.one_split("yacht", 0, "rivals", None))
    assert others["random forest"]["rmse"] < Y.std() * 1.2
    assert "| yacht | rbf | 1 |" in uci.summary(results)
    assert "| yacht | 1 | " in uci.summary(results)
    monkeypatch.setattr(uci, "networks", lambda n: {k: m.set_params(max_epochs=20) for k, m in uci_models.networks(n).items()})
    others = results.run("yacht|0|networks", lambda: uci.one_split("yacht", 0, "networks", None))
    assert set(others) - {"seconds"} == set(uci_models.NETWORKS)
    assert others["DNN"]["rmse"] < Y.std() * 1.2
    assert np.isfinite(others["MC dropout"]["nll"])
    assert "| set | splits | KNN | DNN | MC dropout |" in uci.summary(results)
    kinds = coverage.one_split("yacht", 0, None)
    assert set(kinds) == {"training", "crossfit", "crossfit, Student's t"}
    assert kinds["training"]["rmse"] == pytest.approx(kinds["crossfit"]["rmse"], rel=0.01)  # residuals change the intervals
    assert "| crossfit |" in coverage.table({kind: [scores] for kind, scores in kinds.items()}, deviation=False)


def test_the_picture_of_intervals_in_the_papers_form(monkeypatch, tmp_path):
    monkeypatch.setattr(coverage, "SETTINGS", {name: {"max_iter": 3, "residuals": "training"} for name in coverage.SHOWN})
    points = coverage.picture_points()
    assert {name: np.shape(values) for name, values in points.items()} == {
        "observed": (20,), "paper, last iterate": (20, 2), "default": (20, 2)
    }  # fmt: skip
    coverage.picture(points, tmp_path / "coverage.json")
    assert (tmp_path / "coverage.png").stat().st_size > 10_000


def test_fixed_settings_stand_beside_the_svr_with_the_same_kernel_and_c(monkeypatch):
    monkeypatch.setattr(Split, "load", classmethod(lambda cls, *_: cls(X, Y, TRAIN, TEST)))
    part = uci.one_split("yacht", 0, "fixed", None)
    svr = SVR(C=10.0, epsilon=0.01, gamma=1 / X.shape[1], tol=1e-6)
    scaled = StandardScaler().fit(X[TRAIN])
    mean, size = Y[TRAIN].mean(), Y[TRAIN].std()
    svr.fit(scaled.transform(X[TRAIN]), (Y[TRAIN] - mean) / size)
    expected = common.rmse(Y[TEST], mean + size * svr.predict(scaled.transform(X[TEST])))
    assert part["svr_rmse"] == pytest.approx(expected, rel=1e-3)
    assert part["chosen"] == ""


def test_the_first_call_stands_beside_the_ridge_regression_that_won_its_choice(monkeypatch):
    monkeypatch.setattr(Split, "load", classmethod(lambda cls, *_: cls(X, Y, TRAIN, TEST)))
    network = uci_models.fitted_network("defaults", "yacht", X[TRAIN], Y[TRAIN], None, None)
    alone = uci_models.ChosenRidge(network).fit(X[TRAIN], Y[TRAIN])
    rows, new = (alone.x_scaler.transform(each) for each in (X[TRAIN], X[TEST]))
    target = (Y[TRAIN] - Y[TRAIN].mean()) / Y[TRAIN].std()
    system = np.ones((len(rows) + 1, len(rows) + 1))  # with an intercept that is not penalised
    system[:-1, :-1] = alone.kernel(rows, rows) + alone.choice["ridge"] * np.eye(len(rows))
    system[-1, -1] = 0.0
    *coef, constant = np.linalg.solve(system, [*target, 0.0])
    expected = Y[TRAIN].mean() + Y[TRAIN].std() * (alone.kernel(new, rows) @ coef + constant)
    np.testing.assert_allclose(alone.predict(X[TEST]), expected, rtol=1e-6)
    part = uci.one_split("yacht", 0, "defaults", None)
    assert part["svr_rmse"] == pytest.approx(common.rmse(Y[TEST], expected), rel=1e-6)
    assert part["chosen"] != ""
    machine = uci_models.ChosenSVR(network).fit(X[TRAIN], Y[TRAIN])
    theirs = SVR(kernel="precomputed", C=machine.choice["C"], epsilon=machine.choice["epsilon"], tol=1e-6)
    theirs.fit(machine.kernel(machine.X, machine.X), machine.targets.outputs(Y[TRAIN])[machine.order, 0])
    expected = Y[TRAIN].mean() + Y[TRAIN].std() * theirs.predict(machine.kernel(new, machine.X))
    np.testing.assert_allclose(machine.predict(X[TEST]), expected, atol=1e-2 * Y.std())
    assert part["machine_rmse"] == pytest.approx(common.rmse(Y[TEST], machine.predict(X[TEST])), rel=1e-6)


def test_the_papers_c_has_the_smallest_error_on_a_ninth_of_the_training_rows(monkeypatch):
    monkeypatch.setattr(Split, "load", classmethod(lambda cls, *_: cls(X, Y, TRAIN, TEST)))
    monkeypatch.setattr(uci_models, "PAPER_C_OF_OTHERS", (1e-3, 1.0))
    part = uci.one_split("concrete", 0, "paper", None)
    assert float(part["svr_chosen"]["C"]) == 1.0  # 0.001 fits nothing
    assert "coverage" not in part
    parts = {"concrete|0|paper": part}
    assert f"concrete {part['rmse']:.3g}" in report.uci(parts)[0].paper_settings
    part = uci.one_split("yacht", 0, "paper", None)
    assert float(part["svr_chosen"]["C"]) == 200.0  # printed


def test_year_prediction_runs_on_some_of_its_rows(monkeypatch):
    """Data with the set's features and labels, and a tenth of its rows: no copy of it is at hand."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((51_534, 90), dtype=np.float32)
    y = np.clip(np.round(1998 + 8 * X[:, 0] + rng.normal(scale=4, size=len(X))), 1922, 2011)
    bunch = Bunch(data=X, target=y, train_idx=[np.arange(46_371)], test_idx=[np.arange(46_371, 51_534)])
    monkeypatch.setattr("kstonet.datasets.load", lambda name, data_home: bunch)
    monkeypatch.setitem(uci.ROWS, "YearPredictionMSD", 300)
    monkeypatch.setitem(uci_models.PAPER_EXCEPTIONS["YearPredictionMSD"], "max_iter", 3)
    assert len(Split.load("YearPredictionMSD", 0, None, 300).rows[0]) == 300
    for column in ("fixed", "paper"):
        part = uci.one_split("YearPredictionMSD", 0, column, None)
        assert part["rmse"] < 0.9 * y[46_371:].std()


def test_sets_with_few_splits_stop_at_their_last(monkeypatch, tmp_path):
    ran = []
    monkeypatch.setattr(uci, "one_split", lambda name, number, *_: ran.append((name, number)) or {"rmse": 1.0, "svr_rmse": 1.0})
    given = [
        "--sets",
        "yacht",
        "YearPredictionMSD",
        "--splits",
        "2",
        "--columns",
        "defaults",
        "--out",
        str(tmp_path / "r.json"),
    ]
    monkeypatch.setattr(sys, "argv", ["uci", *given])
    uci.main()
    assert ran == [("yacht", 0), ("YearPredictionMSD", 0), ("yacht", 1)]


def test_times_are_added_up_over_twenty_splits(tmp_path):
    results = common.Results(tmp_path / "uci.json")
    assert uci.times(results) == ""
    results.parts = {f"{name}|0|fixed": {"seconds": 18.0} for name in uci.PUBLISHED_SECONDS}
    assert "| yacht | 1 | 18.0 | 0.1 | 0.333 |" in uci.times(results)
    assert "| all of these | | | 0.8 | at least 73.5 |" in uci.times(results)


def test_rivals_that_were_not_installed_have_an_empty_cell(tmp_path):
    results = common.Results(tmp_path / "uci.json")
    results.parts = {f"yacht|{i}|rivals": {"random forest": {"rmse": 1.0 + i}} for i in range(2)}
    assert "| yacht | 2 | 1.5 ± 0.5 |  |  |" in uci.summary(results)


def test_parts_without_intervals_count_for_the_means(tmp_path):
    results = common.Results(tmp_path / "uci.json")
    parts = [{"rmse": 1.0, "svr_rmse": 2.0}, {"rmse": 2.0, "svr_rmse": 2.0}]
    results.parts = {f"yacht|{i}|tuned": part for i, part in enumerate(parts)}
    assert "| yacht | tuned | 2 | 1.5 ± 0.5 | 2 ± 0 | 0.5 | – | – | – | – | – |" in uci.summary(results)
    levels = {str(level): level for level in uci.LEVELS}
    fields = ("coverage", "width", "student_coverage", "student_width")
    parts[1] |= {"nll": 0.25, "crps": 0.5} | dict.fromkeys(fields, levels)
    assert "0.25 | 0.5 | 80.0 / 90.0 / 95.0 (1 of the splits) | 0.95 |" in uci.summary(results)
