"""Many fits and many rows in one process: its memory does not grow."""

import gc
import os
import subprocess
import sys

import pytest

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

FITS = 150 if os.environ.get("CI") else 1_000
ROWS = 10**6 if os.environ.get("CI") else 10**7

SOAK = """
import gc, sys, warnings
import numpy as np
from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetRegressor
from kstonet.gram.memory import release_memory
from tests.reliability.peaks import resident
warnings.simplefilter("ignore")
rng = np.random.default_rng(0)
X = rng.normal(size=(60, 3))
y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
short = {"max_iter": 2, "n_average": 1, "n_jobs": 1}
models = [KStoNetRegressor(tuning="none", **short), KStoNetClassifier(tuning="none", **short), StoNetRegressor(**short),
          KStoNetRegressor(loss="squared", tuning="none", **short), KStoNetRegressor(tuning="none", warm_start=True, **short)]

def fits(first, last):
    for k in range(first, last):
        model = models[k % len(models)]
        model.fit(X, y > 0 if hasattr(model, "predict_proba") else y).predict(X)

def held():
    gc.collect()
    release_memory()
    return resident("VmRSS")

fits(0, 60)
before = held()
fits(0, int(sys.argv[1]))
print((held() - before) / 1e6)
"""

BLOCKS = """
import sys
import numpy as np
from kstonet import KStoNetRegressor
from tests.reliability.peaks import resident
rng = np.random.default_rng(0)
X = rng.normal(size=(40, 2))
model = KStoNetRegressor(tuning="none", max_iter=2, n_average=1, random_state=0, residuals=None, epsilon=0.5).fit(X, X[:, 0])
rows, block = int(sys.argv[1]), 100_000
model.predict(rng.normal(size=(block, 2)))
before, total = resident("VmHWM"), 0.0  # the peak of one block
for _ in range(0, rows, block):
    total += float(model.predict(rng.normal(size=(block, 2))).sum())
assert np.isfinite(total)
print((resident("VmHWM") - before) / 1e6)
"""


def megabytes(script: str, count: int) -> float:
    gc.collect()
    done = subprocess.run([sys.executable, "-c", script, str(count)], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_memory_does_not_grow_with_the_number_of_fits() -> None:
    assert megabytes(SOAK, FITS) < 5.0


def test_rows_are_predicted_in_constant_memory() -> None:
    assert megabytes(BLOCKS, ROWS) < 20.0
