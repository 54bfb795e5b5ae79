"""Iterations of Algorithm 1 on a GPU: the work above the first layer there, and on the CPU as it would be without.

    python benchmarks/gpu_loop.py [--rows 60000] [--features 20] [--classes 7] [--units 20 50] [--device cuda]

Rows are simulated: classes follow random ridge functions of Gaussian features. In both trainings the kernel matrix and the
regressions of the first layer are on the device; imputation and the multinomial regression are there in one of them, and in
NumPy on all cores in the other. Times are those of the history, for every iteration; "largest_difference" is that of the
probabilities of the first 1,000 rows. Results are written after every number of units.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from kstonet import KStoNetClassifier
from kstonet._files import write_whole
from kstonet.layers.heads import CategoricalHead

RESULTS = Path(__file__).parent / "results" / "gpu_loop.json"
PARTS = ("seconds_impute", "seconds_first_layer", "seconds_regressions")


def simulated(rows: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Features, and the class whose ridge function is largest after some noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(rows, features))
    scores = np.sin(X @ rng.normal(size=(features, classes)) / np.sqrt(features) * 2.0)
    return X, (scores + 0.2 * rng.normal(size=scores.shape)).argmax(axis=1)


def trained(X: np.ndarray, y: np.ndarray, units: int, device: str, *, above: bool) -> tuple[dict[str, Any], np.ndarray]:
    """Seconds of a training, and probabilities; ``above`` says whether the work above the first layer is on the device."""
    CategoricalHead.takes_tensors = above  # a head that is given NumPy arrays alone keeps all of it on the CPU
    model = KStoNetClassifier(
        tuning="none", hidden_layer_sizes=(units,), max_iter=3, n_average=1, residuals=None, device=device, random_state=0
    )
    begin = time.perf_counter()
    model.fit(X, y)
    seconds = {"fit_seconds": time.perf_counter() - begin}
    return seconds | {part: [record[part] for record in model.history_] for part in PARTS}, model.predict_proba(X[:1000])


def main() -> None:
    """Train twice with every number of units, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--features", type=int, default=20)
    parser.add_argument("--classes", type=int, default=7)
    parser.add_argument("--units", nargs="+", type=int, default=[20, 50])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    sizes = {"rows": given.rows, "features": given.features, "classes": given.classes}
    X, y = simulated(**sizes)
    trained(X[:1000], y[:1000], given.units[0], given.device, above=True)  # the device loads its libraries
    results = []
    for units in given.units:
        there, proba = trained(X, y, units, given.device, above=True)
        here, expected = trained(X, y, units, given.device, above=False)
        results.append(
            {
                **sizes,
                "units": units,
                "cpu_cores": os.cpu_count(),
                "device": there,
                "cpu": here,
                "largest_difference": float(np.abs(proba - expected).max()),
            }
        )
        print(results[-1], flush=True)
        write_whole(given.out, json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
