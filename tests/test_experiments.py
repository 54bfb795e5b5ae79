"""The experiments run, resume where they stopped, and choose by validation; on data made here."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from experiments import common, coverage, probabilities, uci  # noqa: E402
from kstonet.datasets import make_measurement_error  # noqa: E402


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


def test_choice_is_the_smallest_validation_error():
    class Model:
        def __init__(self, C, gamma):
            self.error = abs(np.log10(C) - 1.5) + abs(gamma - 0.5)

        def fit(self, X, y):
            return self

        def predict(self, X):
            return np.full(len(X), self.error)

    X, y = np.zeros((20, 2)), np.zeros(20)
    chosen, table = common.choose(Model, X, y, common.validation_parts(20, 2, 0))
    assert chosen == {"C": 30.0, "gamma": 0.5}  # from the grid, then three times its best
    assert len(table) == 14
    for fit, look in common.validation_parts(20, 3, 0):
        assert len(look) == 4
        assert not set(fit) & set(look)


def test_small_runs(monkeypatch, tmp_path):
    X, y = make_measurement_error(160, random_state=0)
    monkeypatch.setattr(uci, "split_of", lambda *_: (X[:110], y[:110], X[110:], y[110:]))
    monkeypatch.setattr(coverage, "split_of", uci.split_of)
    results = common.Results(tmp_path / "uci.json")
    part = results.run("yacht|0", lambda: uci.one_split("yacht", 0, None))
    assert 0.5 < part["coverage"]["0.95"] <= 1.0
    assert part["rmse"] < y.std() * 1.2
    wide = results.run("yacht|0|units", lambda: uci.wider("yacht", 0, part, None))
    assert wide["units"] in (5, 20)
    assert "| yacht | 5 | 1 |" in uci.summary(results)
    assert f"chosen: {wide['units']}" in uci.summary(results)
    kinds = coverage.one_split("yacht", 0, part["chosen"], None)
    assert set(kinds) == {"training", "loo", "loo, conformal", "crossfit", "crossfit, conformal"}
    assert kinds["training"]["rmse"] == kinds["crossfit"]["rmse"]  # the kind of residuals changes the intervals only
    assert "| crossfit |" in coverage.table({kind: [scores] for kind, scores in kinds.items()}, deviation=False)


def test_probabilities_of_one_simulated_set():
    part = probabilities.one_set(0)
    assert 0.3 < part["plain_coverage"] <= 1.0
    assert 0.0 < part["plain_width"] < 1.0
