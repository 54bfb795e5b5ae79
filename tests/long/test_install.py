"""Into an empty virtual environment, dependencies fetched: the core alone, then the steps of docs/newcomer.md as pasted."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOG = (ROOT / "docs" / "newcomer.md").read_text(encoding="utf-8")
STEPS = re.findall(r"^\$ (kstonet (?:fit|predict|report) flats.+)$", LOG, flags=re.MULTILINE)
SECONDS = 60  # a promise for 1,000 rows; of processor time, on one thread, since test machines are shared
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pastes shell commands")


def run(*command, cwd):
    return subprocess.run([*map(str, command)], cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=900)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("empty") / "environment"
    assert run(sys.executable, "-I", "-m", "venv", folder, cwd=ROOT).returncode == 0
    return folder


def install(environment, what):
    done = run(environment / "bin" / "pip", "--disable-pip-version-check", "install", "--quiet", what, cwd=ROOT)
    assert done.returncode == 0, done.stderr


def test_the_core_alone(environment, tmp_path):
    """From the source folder, by a wheel that pip builds in isolation."""
    install(environment, ".")
    code = """
import kstonet, numpy as np
X = np.random.default_rng(0).normal(size=(60, 2))
model = kstonet.KStoNetRegressor(max_iter=3, n_average=1, random_state=0).fit(X, X[:, 0])
print(model.predict_interval(X).shape, kstonet.__file__)
"""
    trained = run(environment / "bin" / "python", "-I", "-c", code, cwd=tmp_path)
    assert trained.stdout.startswith(f"(60, 2) {environment}"), trained.stderr
    refused = run(environment / "bin" / "kstonet", "--version", cwd=tmp_path)
    assert refused.returncode == 1
    assert "pip install 'kstonet[cli]'" in refused.stderr


def test_the_first_steps(environment, tmp_path):
    install(environment, ".[cli]")
    table = re.search(r"^```sh\n(python - <<'END'\n.*?\nEND)\n```", LOG, flags=re.MULTILINE | re.DOTALL)[1]
    assert [step.split()[1] for step in STEPS] == ["fit", "predict", "report"]
    begin = f'export PATH="{environment}/bin:$PATH" OPENBLAS_NUM_THREADS=1; unset PYTHONPATH; '
    made = run("sh", "-c", begin + table, cwd=tmp_path)
    assert made.returncode == 0, made.stderr
    before = os.times()
    for step in STEPS:
        done = run("sh", "-c", begin + step, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
    after = os.times()
    assert after.children_user + after.children_system - before.children_user - before.children_system < SECONDS
    assert (tmp_path / "predictions.csv").read_text(encoding="utf-8").startswith("mean,std,lower_95,upper_95\n")
    assert "</html>" in (tmp_path / "report.html").read_text(encoding="utf-8")
