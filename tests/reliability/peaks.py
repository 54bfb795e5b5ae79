"""The peak of the memory that a fit takes, in a process of its own: ``python -m tests.reliability.peaks KIND ROWS``.

Prints the peak above what the process held before the fit, the least and the most that ``explain_plan`` had said before it, and
what the fit itself says (``verbose=1``) when its kernels are chosen and before the training takes its memory, all in bytes.
"""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone

from kstonet import KStoNetClassifier, KStoNetRegressor

FEW: dict[str, Any] = {"max_iter": 3, "n_average": 2, "random_state": 0}
KINDS: dict[str, Any] = {
    "means": KStoNetRegressor(tuning="none", residuals=None, **FEW),
    "intervals": KStoNetRegressor(tuning="none", **FEW),
    "squared": KStoNetRegressor(tuning="none", loss="squared", **FEW),
    "many units": KStoNetRegressor(
        50, "tanh", tuning="none", loss="squared", **FEW
    ),  # with softplus it may rest, and take less
    "default": KStoNetRegressor(random_state=0),
    "search": KStoNetRegressor(C="tune", **FEW),
    "classifier": KStoNetClassifier(random_state=0),
    "kernels": KStoNetRegressor(
        tuning="none", kernel=["rbf", "laplacian", "matern32"], hidden_layer_sizes=3, residuals=None, **FEW
    ),
}


def resident(name: str) -> int:
    """Bytes of this process: "VmRSS" now, "VmHWM" at most since :func:`forget`."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def forget() -> None:
    """Begin a new peak."""
    Path("/proc/self/clear_refs").write_text("5")


def measured(kind: str, n: int) -> tuple[int, int, int, int]:
    """Peak of a fit in this process, the least and the most that were said before it, and what the fit said itself."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 8))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] + 0.1 * rng.normal(size=n)
    model = KINDS[kind]
    y = np.digitize(y, [-0.5, 0.5]) if hasattr(model, "predict_proba") else y
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clone(model).fit(X[:250], y[:250])  # every library is loaded
        before = model.explain_plan(X, y)
        forget()
        held = resident("VmRSS")
        model.fit(X, y)
    return resident("VmHWM") - held, before.least_bytes or before.bytes, before.bytes, model.plan_.bytes


def in_process(kind: str, n: int) -> tuple[int, int, int, int]:
    """The same of a fit in a process of its own."""
    command = [sys.executable, "-m", "tests.reliability.peaks", kind, str(n)]
    peak, least, most, said = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    return peak, least, most, said


if __name__ == "__main__":
    print(json.dumps(measured(sys.argv[1], int(sys.argv[2]))))
