"""The wheel on every other Python at hand: ``make test-pythons`` installs it for each and runs a selection of the tests."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
MINORS = [int(minor) for minor in re.findall(r'Python :: 3\.(\d+)"', (ROOT / "pyproject.toml").read_text(encoding="utf-8"))]
EXTRAS = "cli,io"
TOOLS = ["pytest>=8", "hypothesis>=6.100"]
SELECTION = [
    "tests/test_imports.py",
    "tests/persistence/test_persistence_versions.py",  # files written by an earlier version
    "tests/persistence/test_persistence_models.py",
    "tests/cli/test_cli_commands.py",
    "tests/estimators/test_multi_target_svr.py",  # with scikit-learn's own checks of an estimator
    "tests/estimators/test_intervals.py",
    "tests/layers",
    "tests/report/test_report_page.py",
]
MINUTES = 15  # a selection takes one or two; what takes longer hangs


def places(minor: int) -> Iterator[Path]:
    """Where a Python may be: the PATH, the usual folders, and the versions that pyenv keeps."""
    for folder in (*os.get_exec_path(), "/usr/bin", "/usr/local/bin"):
        yield Path(folder) / f"python3.{minor}"
    kept = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from sorted(kept.glob(f"3.{minor}.*/bin/python3.{minor}"), reverse=True)


def find(minor: int) -> Path | None:
    """The first that starts and can make virtual environments (a name on the PATH may be an empty promise)."""
    ask = f"import sys, venv, ensurepip; sys.exit(sys.version_info[:2] != (3, {minor}))"
    for path in places(minor):
        if path.exists() and subprocess.run([path, "-I", "-c", ask], capture_output=True).returncode == 0:
            return path
    return None


def run(*command: str | Path, **options: object) -> None:
    subprocess.run([*map(str, command)], check=True, timeout=60 * MINUTES, **options)


def try_wheel(base: Path, wheel: Path, folder: Path) -> bool:
    """Install into a new virtual environment in the folder, test; whether all went well."""
    print(f"\n{base}: installing into {folder}", flush=True)
    start = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # it would show the source
    try:
        run(base, "-I", "-m", "venv", "--clear", folder)
        pip = [folder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        run(*pip, "--only-binary", ":all:", f"{wheel}[{EXTRAS}]", *TOOLS)  # a library to be compiled is not at hand
        print(f"installed in {time.perf_counter() - start:.0f} s", flush=True)
        one_thread = {"OPENBLAS_NUM_THREADS": "1"}
        run(
            folder / "bin" / "python",
            "-m",
            "pytest",
            "-q",
            "--disable-warnings",
            *SELECTION,
            cwd=ROOT,
            env=environment | one_thread,
        )
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"failed: {error}", flush=True)
        return False
    return True


def main() -> int:
    """Build the wheel, try it on every Python found but this one, and say which were."""
    here = sys.version_info.minor
    found = {minor: base for minor in MINORS if minor != here and (base := find(minor))}
    missing = [f"3.{minor}" for minor in MINORS if minor != here and minor not in found]
    if missing:
        print(f"Not found: Python {', '.join(missing)} (looked on the PATH, in /usr/bin, /usr/local/bin and among pyenv's).")
    if not found:
        print(f"No Python but 3.{here} is at hand, and `make test` tests that one: nothing to do.")
        return 0
    folder = Path(sys.prefix) / "pythons"
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT, stdout=subprocess.DEVNULL)
    wheel = max(folder.glob("*.whl"), key=lambda path: path.stat().st_mtime)
    well = {minor: try_wheel(base, wheel, folder / f"3.{minor}") for minor, base in found.items()}
    print("\n" + "\n".join(f"Python 3.{minor}: {'passed' if ok else 'FAILED'}" for minor, ok in well.items()))
    return 0 if all(well.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
