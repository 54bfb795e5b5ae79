"""Imports go one way (CONTRIBUTING.md), and optional packages stay in the files that carry their name."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kstonet

ROOT = Path(kstonet.__file__).parent

# A part may import from the parts before it, and from itself.
ORDER = [
    "_arrays", "_registry", "_records", "_words", "_files", "_progress", "_checks", "threads", "tables", "scaling",
    "target_map", "metrics", "gram", "solvers", "imputation", "layers", "storage", "network", "noise", "initialisation",
    "iro", "checkpoint", "uncertainty", "resting", "class_start", "stacked_start", "targets", "trained", "problem",
    "settings", "row_sums", "sum_layers", "sum_training", "stream", "observers", "training", "tuning", "interpretation",
    "estimators", "dask", "pipeline", "plotting", "persistence", "onnx_export", "report", "datasets", "demo", "cli",
    "baselines",  # deprecated: forwards to experiments
]  # fmt: skip
INDEPENDENT = [{"gram", "imputation"}, {"solvers", "imputation"}]  # parts that must not know each other
OPTIONAL = (
    "torch",
    "triton",
    "dask",
    "matplotlib",
    "pandas",
    "polars",
    "typer",
    "rich",
    "onnx",
    "safetensors",
    "pooch",
    "requests",
)


def imported_modules(path: Path) -> set[str]:
    modules = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            modules |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name}: relative import"
            modules.add(node.module or "")
    return modules


def part_of(path: Path) -> str:
    relative = path.relative_to(ROOT)
    return relative.parts[0].removesuffix(".py")


FILES = sorted(path for path in ROOT.rglob("*.py") if path != ROOT / "__init__.py")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_one_way(path: Path) -> None:
    part = part_of(path)
    assert part in ORDER, f"{part} has no place in the order of DESIGN.md"
    for module in imported_modules(path):
        if not module.startswith("kstonet."):
            continue
        other = module.split(".")[1]
        assert ORDER.index(other) <= ORDER.index(part), f"{path.name} ({part}) imports {module}, which stands above it"
        assert not any(part in pair and other in pair and part != other for pair in INDEPENDENT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_optional_packages_stay_in_their_files(path: Path) -> None:
    for module in imported_modules(path):
        name = module.split(".")[0]
        if name in ("torch", "dask"):
            assert name in path.stem


def test_the_walk_sees_a_wrong_import(tmp_path: Path) -> None:
    bad = tmp_path / "bad.py"
    bad.write_text("from kstonet.estimators import MultiTargetSVR\n")
    assert imported_modules(bad) == {"kstonet.estimators"}


def test_importing_kstonet_imports_nothing_optional() -> None:
    core = (
        "sklearn.base, sklearn.preprocessing, sklearn.utils.validation, sklearn.exceptions, scipy.linalg, scipy.sparse.linalg"
    )
    code = (
        f"import sys, {core}\nbefore = set(sys.modules)\nimport kstonet\n"
        f"print([m for m in {OPTIONAL!r} if m in set(sys.modules) - before])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"
