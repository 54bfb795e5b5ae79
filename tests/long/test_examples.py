"""Every example runs as a reader would run it, and fast enough to be read on."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from scipy.stats import betabinom

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_*.py"))
SECONDS = 120  # an example takes ten at most on a machine of its own; test machines are shared
RATE = 1e-4  # of a false alarm, below and above


def intervals_of_mapie_cover(said: str) -> None:
    """The six lines of the table: coverage by chance (see tests/estimators/test_mapie.py), and the same by MAPIE and by us."""
    lines = re.findall(r"^(.+?) +(\d+\.\d)% +(\d+\.\d{2}) ", said, flags=re.MULTILINE)
    table = [(name, float(covered) / 100, float(width)) for name, covered, width in lines]
    assert len(table) == 6
    low, high = betabinom(1000, 90, 10).ppf([RATE, 1.0 - RATE]) / 1000  # split at level 0.9 after 99 rows; others know more
    assert all(low <= covered <= high and 0.5 < width < 4.0 for _, covered, width in table)
    (_, *by_mapie), (_, *by_us) = table[-2:]
    assert by_mapie == by_us


SAID = {"plot_conformal_with_mapie": intervals_of_mapie_cover}


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
    SAID.get(path.stem, str)(done.stdout)
    assert not list(tmp_path.iterdir()), "an example leaves files behind"
