"""Every example runs as a reader would run it, and fast enough to be read on."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
SECONDS = 120  # an example takes ten at most on a machine of its own; test machines are shared


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path):
    """In a process and a folder of its own; a warning of NumPy's is an error, as in all tests."""
    search = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"MPLBACKEND": "Agg", "PYTHONPATH": search, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", str(path)],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=SECONDS,
    )
    assert done.returncode == 0, done.stderr
    if done.stdout.startswith("Skipped:"):
        pytest.skip(done.stdout.strip())
    assert done.stdout.strip()
    assert not list(tmp_path.iterdir()), "an example leaves files behind"
