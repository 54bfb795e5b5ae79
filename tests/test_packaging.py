"""What is built is what is meant: wheel and source archive, each installed into a virtual environment of its own.

Dependencies are lent by the environment of the tests; tests/long/test_install.py fetches them into an empty one.
"""

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

import kstonet

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "kstonet"
MEGABYTES = 2  # a promise: what kstonet adds to scikit-learn's size
SECONDS = 1  # a promise: what kstonet adds to scikit-learn's import


ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}  # which would show the source


def output(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run([*map(str, command)], cwd=cwd, env=ENVIRONMENT, capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Both archives, made by the build system that pyproject.toml names; nothing is fetched."""
    folder = tmp_path_factory.mktemp("built")
    output(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-t", "sdist", "-d", folder)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return {"wheel": wheel, "sdist": sdist}


def install(archive: Path, folder: Path) -> Path:
    """A new virtual environment with the archive in it, and the packages of the tests behind it; returns its Python."""
    output(sys.executable, "-m", "venv", "--without-pip", folder)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    places = dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))
    # A folder named in a .pth file is searched last, and the .pth files inside it (an editable kstonet) are not read.
    (site_packages(python) / "packages_of_the_tests.pth").write_text("\n".join(places), encoding="utf-8")
    pip = [sys.executable, "-m", "pip", "--python", python, "--disable-pip-version-check", "install", "--quiet"]
    output(*pip, "--no-index", "--no-deps", "--no-build-isolation", archive, cwd=folder)
    return python


def site_packages(python: Path) -> Path:
    return Path(output(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())


@pytest.fixture(scope="module")
def python(built: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """That of an environment with the wheel: the source archive installs the same files."""
    return install(built["wheel"], tmp_path_factory.mktemp("wheel") / "environment")


def test_the_wheel_holds_the_library_and_nothing_else(built):
    with zipfile.ZipFile(built["wheel"]) as wheel:
        names = set(wheel.namelist())
        size = sum(item.file_size for item in wheel.infolist())
    ours = {f"kstonet/{path.relative_to(SOURCE).as_posix()}" for path in SOURCE.rglob("*.*") if "__pycache__" not in path.parts}
    assert {name for name in names if not re.match(r"kstonet-[^/]+\.dist-info/", name)} == ours
    assert {"kstonet/py.typed", "kstonet/report/static/chart.js", "kstonet/report/static/page.css"} <= names
    assert any(name.endswith(".dist-info/licenses/LICENSE") for name in names)
    assert size < MEGABYTES * 1e6


def test_the_source_archive_makes_the_same_files(built, tmp_path):
    """pip makes a wheel of the source archive when it installs it."""
    python = install(built["sdist"], tmp_path / "environment")
    found = site_packages(python)
    with zipfile.ZipFile(built["wheel"]) as wheel:
        for name in wheel.namelist():
            if name.startswith("kstonet/"):
                assert (found / name).read_bytes() == wheel.read(name), name
            elif name.endswith("/entry_points.txt"):  # the commands, which test_the_command_starts starts
                assert (found / name).read_bytes() == wheel.read(name)
    assert (python.parent / "kstonet").exists() or (python.parent / "kstonet.exe").exists()


def test_it_imports_trains_and_knows_its_version(python, tmp_path):
    code = """
from importlib.metadata import version
import kstonet, numpy as np
X = np.random.default_rng(0).normal(size=(40, 2))
model = kstonet.KStoNetRegressor(tuning="none", max_iter=3, n_average=1, random_state=0).fit(X, X[:, 0])
assert model.predict_interval(X).shape == (40, 2)
print(kstonet.__file__, version("kstonet"), sep="\\n")
"""
    file, version = output(python, "-c", code, cwd=tmp_path).splitlines()
    assert Path(file).is_relative_to(site_packages(python))
    assert version == kstonet.__version__


def test_the_command_starts(python, tmp_path):
    assert output(python.parent / "kstonet", "--version", cwd=tmp_path).strip() == f"kstonet {kstonet.__version__}"


def test_experiments_are_asked_for_in_a_checkout(python, tmp_path):
    """The package does not hold them; beside them (as in an editable installation) the command is theirs."""
    command = [python.parent / "kstonet-experiments", "list"]
    alone = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)
    assert alone.returncode == 1
    assert "in a checkout, pip install --editable" in alone.stderr
    beside = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT | {"PYTHONPATH": str(ROOT)}, capture_output=True, text=True)
    assert beside.returncode == 0, beside.stderr
    assert "full_row_rank" in beside.stdout


def test_the_comparators_of_the_paper_stay_in_the_checkout(python, tmp_path):
    """First alone, then beside the checkout."""
    code = """
import sys
try:
    import kstonet.baselines
except ImportError as error:
    print(error)
sys.path.append(sys.argv[1])
import kstonet.baselines
"""
    said = output(python, "-c", code, ROOT, cwd=tmp_path)
    assert "kstonet.baselines has moved to experiments.baselines" in said


def test_import_time_beyond_scikit_learn(python, tmp_path):
    """The best of five counts: what else the machine does only adds. scikit-learn's own import may take longer than ours."""
    code = "import time, sklearn; start = time.perf_counter(); import kstonet; print(time.perf_counter() - start)"
    assert any(float(output(python, "-c", code, cwd=tmp_path)) < SECONDS for _ in range(5))


def test_the_metadata_say_what_is_needed(built, tmp_path):
    with zipfile.ZipFile(built["wheel"]) as wheel:
        wheel.extractall(tmp_path)
    metadata = PathDistribution(next(tmp_path.glob("*.dist-info"))).metadata
    needed = metadata.get_all("Requires-Dist")
    assert {re.split(r"[^\w-]", line)[0] for line in needed if "extra ==" not in line} == {"numpy", "scipy", "scikit-learn"}
    assert metadata["License-Expression"] == "BSD-3-Clause"
    oldest = re.fullmatch(r">=3\.(\d+)", metadata["Requires-Python"])[1]
    named = [line.rpartition(".")[2] for line in metadata.get_all("Classifier") if "Python :: 3." in line]
    assert named[0] == oldest
    assert str(sys.version_info.minor) in named
