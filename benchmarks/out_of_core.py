"""Training with kernel values in files, beside the same training in memory; each in a process of its own, one after the other.

    python benchmarks/out_of_core.py [--rows 200000] [--features 20] [--units 20] [--rank 1000] [--leaf-rows 1000]
                                     [--memory 1.0] [--scratch FOLDER]

The rows, the target and the kernel are those of benchmarks/scale.py. With files the Gram may take so many GB of memory
(``max_memory``), and the system enforces it: one more GB for the rest of the fit, in memory that is not a file's, is all that
it gives (``RLIMIT_DATA``). Memory is the largest amount that is not a file's above that before the fit, looked up ten times a
second. Figures are in benchmarks/results/out_of_core.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from _measure import OtherLoad, machine
from kstonet._files import write_whole
from kstonet.gram import LowRank
from scale import draw, network, truth

RESULTS = Path(__file__).parent / "results" / "out_of_core.json"
BESIDE = 1.0  # GB that a fit takes beside its Gram: latent values, intervals, threads


def kilobytes(name: str) -> int:
    """A figure of this process, by the system."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1])


class Largest(threading.Thread):
    """The largest amount of memory that is not a file's, above that at the start."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.before = kilobytes("RssAnon")
        self.bytes, self.ended = 0, threading.Event()

    def run(self) -> None:
        """Look it up until the end."""
        while not self.ended.wait(0.1):
            self.bytes = max(self.bytes, 1024 * (kilobytes("RssAnon") - self.before))


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """One training."""
    n, p = options["rows"], options["features"]
    X, new, y = draw(np.random.default_rng(n), n, p)
    solver = LowRank(options["rank"], options["leaf_rows"], scratch=options["scratch"])
    limit = options["memory"] and options["memory"] * 1e9
    model = network(p, options["units"], solver=solver, max_iter=6, n_average=2, max_memory=limit)
    plan = model.explain_plan(X)
    if options["memory"]:
        most = kilobytes("VmData") * 1024 + int((options["memory"] + BESIDE) * 1e9)
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    others, largest = OtherLoad(), Largest()
    largest.start()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds = {"wall_s": time.perf_counter() - wall, "cpu_s": time.process_time() - cpu}
    largest.ended.set()
    return seconds | {
        "plan": str(model.plan_),
        "memory_GB": largest.bytes / 1e9,
        "estimated_GB": plan.bytes / 1e9,
        "files_GB": plan.filed_bytes / 1e9,
        "error": float(np.sqrt(np.mean((model.predict(new) - truth(new)) ** 2)) / truth(new).std()),
        "other_cores": others.cores(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("rows", 200_000), ("features", 20), ("units", 20), ("rank", 1000), ("leaf-rows", 1000)):
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--memory", type=float, default=1.0, help="GB")
    parser.add_argument("--scratch", default=tempfile.gettempdir())
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(json.dumps(measure(given.one)))
        return
    options = {name: getattr(given, name) for name in ("rows", "features", "units", "rank", "leaf_rows")}
    found: dict[str, Any] = {"command": "python benchmarks/out_of_core.py", "machine": machine(), **options}
    for name, place in (
        ("memory", {"memory": None, "scratch": None}),
        ("files", {"memory": given.memory, "scratch": given.scratch}),
    ):
        command = [sys.executable, __file__, "--one", json.dumps(options | place)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        found[name] = json.loads(done.stdout.splitlines()[-1])
        print(name, found[name], flush=True)
    found["wall_ratio"] = found["files"]["wall_s"] / found["memory"]["wall_s"]
    write_whole(RESULTS, json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
