"""Doctests are collected from src/; files that need an extra are left out where the extra is not installed."""

import gc
import os
from importlib.util import find_spec

# With ``pytest -n auto`` every core has a worker: estimators in it take no further cores unless a test asks for them.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", str(max((os.cpu_count() or 1) // int(workers), 1)))

collect_ignore = [] if find_spec("torch") else ["src/kstonet/gram/torch.py"]
fused = ["src/kstonet/gram/torch_distances.py", "src/kstonet/gram/torch_products.py"]
collect_ignore += [] if find_spec("torch") and find_spec("triton") else fused
collect_ignore += [] if find_spec("dask") and find_spec("distributed") else ["src/kstonet/dask"]
collect_ignore += [] if all(map(find_spec, ("typer", "rich", "pandas", "safetensors"))) else ["src/kstonet/cli"]
collect_ignore += [] if find_spec("pandas") else ["src/kstonet/tables"]
collect_ignore += ["src/kstonet/baselines.py", "src/kstonet/cli/encoding.py"]  # deprecated: importing them warns
collect_ignore_glob = ["*conftest.py"]  # nothing to test in them, and they all have the same name


def pytest_collection_finish():
    """What was imported and collected stays to the end: the garbage collector need not look through it again and again."""
    gc.collect()
    gc.freeze()
