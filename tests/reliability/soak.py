"""Many fits, or many rows, in one process, and by how many MB its memory grows.

``python -m tests.reliability.soak fits 1000`` and ``python -m tests.reliability.soak rows 10000000``, on Linux.
"""

import gc
import subprocess
import sys
import warnings
from typing import Any

import numpy as np

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetRegressor
from kstonet.gram.memory import release_memory
from tests.reliability.peaks import resident

SHORT: dict[str, Any] = {"max_iter": 2, "n_average": 1, "n_jobs": 1}
FIRST = 60  # fits after which every library is loaded and every pool is as large as it gets
BLOCK = 100_000  # rows


def fits(count: int) -> float:
    """Growth by so many fits of five kinds, with predictions."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    models = [
        KStoNetRegressor(tuning="none", **SHORT),
        KStoNetClassifier(tuning="none", **SHORT),
        StoNetRegressor(**SHORT),
        KStoNetRegressor(loss="squared", tuning="none", **SHORT),
        KStoNetRegressor(tuning="none", warm_start=True, **SHORT),
    ]
    before = 0
    for k in range(FIRST + count):
        if k == FIRST:
            before = _held()
        model = models[k % len(models)]
        model.fit(X, y > 0 if hasattr(model, "predict_proba") else y).predict(X)
    return (_held() - before) / 1e6


def rows(count: int) -> float:
    """Growth of the peak from one block of rows to so many rows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    model = KStoNetRegressor(tuning="none", max_iter=2, n_average=1, random_state=0, residuals=None, epsilon=0.5).fit(
        X, X[:, 0]
    )
    model.predict(rng.normal(size=(BLOCK, 2)))
    before, total = resident("VmHWM"), 0.0
    for _ in range(0, count, BLOCK):
        total += float(model.predict(rng.normal(size=(BLOCK, 2))).sum())
    assert np.isfinite(total)
    return (resident("VmHWM") - before) / 1e6


def _held() -> int:
    gc.collect()
    release_memory()
    return resident("VmRSS")


def in_process(kind: str, count: int) -> float:
    """Growth in a process of its own, in MB."""
    command = [sys.executable, "-m", "tests.reliability.soak", kind, str(count)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print({"fits": fits, "rows": rows}[sys.argv[1]](int(sys.argv[2])))
