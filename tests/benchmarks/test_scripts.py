"""What benchmarks import from the library is still there: most of them run by hand only."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "benchmarks").glob("*.py"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_what_it_imports_is_there(script):
    for node in ast.walk(ast.parse(script.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "kstonet":
            try:
                module = importlib.import_module(node.module)
            except ImportError as error:
                missing = error.__cause__ or error  # kstonet's own errors are raised from the module that is missing
                if not isinstance(missing, ModuleNotFoundError) or (missing.name or "").startswith("kstonet"):
                    raise
                continue  # an extra that is not installed
            for name in node.names:
                assert hasattr(module, name.name) or importlib.import_module(f"{node.module}.{name.name}")
