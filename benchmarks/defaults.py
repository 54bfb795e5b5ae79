"""CPU and wall seconds of ``KStoNetRegressor().fit`` on generated rows, intervals included, by the number of rows.

    python benchmarks/defaults.py [--sizes 500 1000 2000] [--features 8] [--tuning fast]

Every size has a process of its own with one thread (``--threads`` for more). The rows are standard normal, three features
matter, and the noise has a standard deviation of 0.1 (the target's is 0.87). Results are added to
benchmarks/results/defaults.json, one line each; the error on 2,000 new rows is in standard deviations of the target, beside
the error of the noise alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np

from _comparison import ONE_THREAD, fingerprint, rounded, timed_fit
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage

NOISE, NEW_ROWS = 0.1, 2000
RESULTS = Path(__file__).parent / "results" / "defaults.json"


def draw(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    return X, np.sin(1.5 * X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + NOISE * rng.normal(size=n)


def measure(n: int, p: int, tuning: str) -> dict[str, Any]:
    X, y = draw(n + NEW_ROWS, p)
    model = KStoNetRegressor(tuning=tuning, random_state=0)
    model, record = timed_fit(lambda: model.fit(X[:n], y[:n]))
    new, unit = y[n:], float(y[n:].std())
    trained = sum(step[key] for step in model.history_ for key in step if key.startswith("seconds_"))
    return record | {
        "iterations": len(model.history_),
        "iterations_wall_s": float(trained),
        "error": float(np.sqrt(np.mean((model.predict(X[n:]) - new) ** 2))) / unit,
        "noise": NOISE / unit,
        "coverage_95": float(coverage(new, model.predict_interval(X[n:]))),
        "source": fingerprint(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", nargs="+", type=int, default=[500, 1000, 2000], metavar="N")
    parser.add_argument("--features", type=int, default=8, metavar="P")
    parser.add_argument("--tuning", choices=("fast", "thorough", "none"), default="fast")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(**arguments.worker)))
        return
    for n in arguments.sizes:
        part = {"n": n, "p": arguments.features, "tuning": arguments.tuning}
        environment = os.environ | dict.fromkeys(ONE_THREAD, str(arguments.threads))
        command = [sys.executable, __file__, "--worker", json.dumps(part)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
        line = json.dumps(rounded(part | {"threads": arguments.threads} | json.loads(done.stdout.splitlines()[-1])))
        print(line, flush=True)
        write_whole(RESULTS, (RESULTS.read_text(encoding="utf-8") if RESULTS.exists() else "") + line + "\n")


if __name__ == "__main__":
    main()
