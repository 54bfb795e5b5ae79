"""The command lists, runs and reports; docs/results.md is what the results files say."""

import json
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from experiments import command, coverage, report  # noqa: E402


def test_list_names_every_experiment_and_what_is_done(tmp_path):
    (tmp_path / "qsar.json").write_text(json.dumps({"parts": {"a": {}, "b": {}}}))
    lines = command.listing(tmp_path).splitlines()
    assert [line.split()[0] for line in lines] == list(command.EXPERIMENTS)
    assert "2 parts done" in next(line for line in lines if line.startswith("qsar"))
    assert "not run" in lines[0]


def test_every_module_of_an_experiment_is_known():
    helpers = {"__init__", "__main__", "command", "common", "figures", "machines", "paths", "report", "splits", "uci_models"}
    modules = {path.stem for path in (ROOT / "experiments").glob("*.py")} - helpers
    assert modules == set(command.EXPERIMENTS) == set(report.SUMMARIES)


@pytest.fixture
def calls(monkeypatch):
    """What would have been run; ``uci`` fails."""
    seen = []

    class Ended:
        def __init__(self, returncode):
            self.returncode = returncode

    def run(line, **_):
        seen.append(line[2:])
        return Ended(3 if "experiments.uci" in line else 0)

    monkeypatch.setattr(command.subprocess, "run", run)
    monkeypatch.setattr(command, "write_document", lambda: seen.append(["document"]))
    return seen


def test_run_hands_on_what_belongs_to_the_experiment(calls, tmp_path):
    assert command.main(["run", "coverage", "--data", str(tmp_path), "--sets", "3"]) == 0
    data = ["--data", str(tmp_path)]
    assert calls == [
        ["experiments.coverage", "simulated", *data, "--sets", "3"],
        ["experiments.coverage", "uci", *data, "--sets", "3"],
        ["document"],
    ]


def test_a_file_of_ones_own_leaves_the_document_alone(calls, tmp_path):
    assert command.main(["run", "full_row_rank", "--out", str(tmp_path / "r.json")]) == 0
    assert calls == [["experiments.full_row_rank", "--out", str(tmp_path / "r.json")]]


def test_run_all_goes_on_after_a_failure_and_says_so(calls, capsys):
    assert command.main(["run", "all"]) == 1
    assert len(calls) == sum(len(experiment.runs) for experiment in command.EXPERIMENTS.values()) + 1
    assert calls[-1] == ["document"]
    assert "uci ended with status 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "message"),
    [(["run", "nothing"], "invalid choice"), (["run", "all", "--out", "x.json"], "--data only"), (["list", "--x"], "--x")],
)
def test_wrong_lines_are_refused(line, message, capsys):
    with pytest.raises(SystemExit):
        command.main(line)
    assert message in capsys.readouterr().err


def test_the_command_runs_a_module_in_a_process_of_its_own(capfd, tmp_path):
    pytest.importorskip("matplotlib")
    nothing = ["--epsilons", "--networks"]
    assert command.main(["run", "measurement_error", "--out", str(tmp_path / "r.json"), *nothing]) == 0
    assert (tmp_path / "r.md").read_text(encoding="utf-8") in capfd.readouterr().out


def test_a_result_without_table_is_left_out(tmp_path):
    (tmp_path / "qsar.json").write_text(json.dumps({"parts": {}}))
    assert report.report(tmp_path) == report.HEAD + "\n"


def test_summaries_of_the_other_experiments():
    parts = {"yacht|0|rbf": {"rmse": 0.5, "svr_rmse": 0.6}, "yacht|1|rbf": {"rmse": 0.3, "svr_rmse": 0.4}}
    (row,) = report.uci(parts)
    assert "yacht 0.4 (0.5)" in row.defaults
    assert row.paper == "yacht 0.856"
    (row,) = report.coverage({"simulated|0": {name: {"coverage_0.95": 0.9} for name in coverage.SETTINGS}})
    assert "90.00 %" in row.paper_settings
    parts = {"digits|0": {"paper_ece": 0.05, "default_ece": 0.01}}
    parts |= {f"simulated linear, C=1|{i}": {"paper_coverage": 0.4, "default_coverage": 0.9 + i / 50} for i in range(2)}
    errors, coverages = report.probabilities(parts)
    assert (errors.paper_settings, errors.defaults) == ("digits 0.050", "digits 0.010")
    assert (coverages.paper_settings, coverages.defaults) == ("linear, C=1 40.0%", "linear, C=1 91.0%")


def test_the_document_is_what_the_results_files_say():
    assert report.DOCUMENT.read_text(encoding="utf-8") == report.report(command.RESULTS), "run `python -m experiments report`"
