"""Every benchmark starts: what it imports from the library is still there."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NEEDS = {"gpu": "torch", "mnist_gpu": "torch", "large_gpu": "torch", "cluster": "distributed", "onnx_export": "onnx"}
SCRIPTS = sorted(path for path in (ROOT / "benchmarks").glob("*.py") if not path.stem.startswith("_"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_it_says_what_it_does(script):
    needed = NEEDS.get(script.stem)
    if needed and not find_spec(needed):
        pytest.skip(f"{needed} is an extra")
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, str(script), "--help"]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": path})
    assert run.returncode == 0, run.stderr
    assert "usage" in run.stdout
