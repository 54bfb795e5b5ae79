"""Doctests are collected from src/; files that need an extra are left out where the extra is not installed."""

import gc
import os
from importlib.util import find_spec

# With ``pytest -n auto`` every core has a worker: estimators in it take no further cores unless a test asks for them. Neither
# does scikit-learn's gradient boosting: threads of OpenMP that have to share a core wait for each other without letting go of
# it, and a fit of a tenth of a second takes several. OpenMP reads its variable once, when scikit-learn is imported.
if workers := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    own_cores = str(max((os.cpu_count() or 1) // int(workers), 1))
    os.environ.setdefault("LOKY_MAX_CPU_COUNT", own_cores)
    os.environ.setdefault("OMP_NUM_THREADS", own_cores)

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
