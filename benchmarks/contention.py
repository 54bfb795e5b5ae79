"""How a training fares beside other work: its time alone, and its time beside processes that keep the cores busy.

    python benchmarks/contention.py [--busy 2] [--rows 3000] [--repeats 3] [--out benchmarks/results/contention.json]

The others multiply matrices with one thread each. A machine of c cores that shares them fairly among b others and a training
with c threads leaves the training c/(b + c) of them: with two others on two cores it takes twice its time. Times are wall
seconds; every fit has a process of its own, quiet and busy ones in turn, and the medians count. Run it on a machine without
other work: the load that is not its own is written beside the results.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

from kstonet._files import write_whole

RESULTS = Path(__file__).parent / "results" / "contention.json"
OTHERS = """
import os
os.environ["OPENBLAS_NUM_THREADS"] = "1"
import numpy as np
A = np.random.default_rng(0).normal(size=(800, 800))
while True:
    A @ A
"""
FIT = """
import sys, time
import numpy as np
from kstonet import KStoNetRegressor
n, options = int(sys.argv[1]), eval(sys.argv[2])
rng = np.random.default_rng(0)
X = rng.normal(size=(n, 20))
y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.1 * rng.normal(size=n)
KStoNetRegressor(tuning="none", max_iter=2).fit(X[:50], y[:50])
begin = time.perf_counter()
KStoNetRegressor(random_state=0, **options).fit(X, y)
print(time.perf_counter() - begin)
"""
KINDS = {"first call": {}, "ten iterations, means only": {"tuning": "none", "max_iter": 10, "residuals": None}}


def seconds(rows: int, options: dict[str, object], busy: int) -> float:
    """One fit, beside ``busy`` other processes."""
    others = [subprocess.Popen([sys.executable, "-c", OTHERS]) for _ in range(busy)]
    try:
        done = subprocess.run([sys.executable, "-c", FIT, str(rows), repr(options)], capture_output=True, text=True, check=True)
    finally:
        for other in others:
            other.kill()
            other.wait()
    return float(done.stdout)


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--busy", type=int, metavar="B", default=2, help="other processes")
    parser.add_argument("--rows", type=int, metavar="N", default=3000)
    parser.add_argument("--repeats", type=int, metavar="K", default=3)
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    load, results = os.getloadavg()[0], []
    for name, options in KINDS.items():
        times = [(seconds(given.rows, options, 0), seconds(given.rows, options, given.busy)) for _ in range(given.repeats)]
        quiet, busy = (statistics.median(own) for own in zip(*times, strict=True))
        results.append({"training": name, "rows": given.rows, "quiet_s": quiet, "busy_s": busy, "ratio": busy / quiet})
        print(results[-1], flush=True)
        record = {"others": given.busy, "cores": os.cpu_count(), "load_before": load, "trainings": results}
        write_whole(given.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
