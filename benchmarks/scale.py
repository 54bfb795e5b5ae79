"""How time, memory and error grow with the number of rows, on simulated data; every size in a process of its own.

    python benchmarks/scale.py [--sizes 1000 4000 12000 16000 50000 ...] [--features 90] [--units 20] [--iterations 12]
                               [--rank R --leaf-rows L] [--residuals crossfit] [--out benchmarks/results/scale.json]

Gaussian rows; the target is a smooth function of five features and noise of a tenth of its variance. RBF kernel whose length
scales know which features matter, squared loss, C = 30, ``solver="auto"``: dense up to 12,000 rows, low rank beyond. Errors are
those of the noise-free target on 2,000 new rows, relative to its standard deviation. Seconds are CPU seconds of all threads,
because the machine may have other work; peak memory is that of the process above its size before ``fit``, beside the estimate
that ``explain_plan`` gave. A size that was measured before with the same options is measured again only with ``--again``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from _measure import OtherLoad, PeakMemory, machine
from _report import exponent, number
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.gram import LowRank

SIZES = [1_000, 2_000, 4_000, 8_000, 16_000, 50_000, 100_000, 500_000]
RELEVANT, NOISE = 5, 0.1
NEW = 2_000


def truth(X: np.ndarray) -> np.ndarray:
    """A smooth function of five features, of variance about one."""
    return np.asarray((np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + np.tanh(X[:, 3] + X[:, 4])) / 1.3)


def draw(rng: np.random.Generator, n: int, p: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, new rows, and the targets of the former."""
    X, new = rng.normal(size=(n, p)), rng.normal(size=(NEW, p))
    return X, new, truth(X) + np.sqrt(NOISE) * rng.normal(size=n)


def network(p: int, units: int, **settings: Any) -> KStoNetRegressor:
    """With a kernel that knows which features matter."""
    scales = np.where(np.arange(p) < RELEVANT, 2.0, 50.0)
    kernel: dict[str, Any] = {"kernel": "rbf", "gamma": 0.5, "length_scale": scales, "C": 30.0}
    return KStoNetRegressor((units,), tuning="none", loss="squared", random_state=0, **kernel, **settings)


def measure(options: dict[str, Any]) -> dict[str, Any]:
    """One training, in this process."""
    n, p, iterations = options["n"], options["features"], options["iterations"]
    rng = np.random.default_rng(n)
    X, new, y = draw(rng, n, p)
    solver = "auto" if options["rank"] is None else LowRank(options["rank"], options["leaf_rows"])
    length = {"max_iter": iterations, "n_average": max(1, iterations // 4)}
    model = network(p, options["units"], solver=solver, residuals=options["residuals"], **length)
    plan = model.explain_plan(X)
    others, memory = OtherLoad(), PeakMemory()
    wall, started = time.perf_counter(), time.process_time()
    model.fit(X, y)
    seconds, elapsed, peak = time.process_time() - started, time.perf_counter() - wall, memory.above_baseline()
    started = time.process_time()
    predicted = model.predict(new)
    result = options | {
        "solver": plan.solver,
        "rank_taken": model.plan_.rank,
        "leaf_taken": model.plan_.leaf_rows,
        "trace_left_out": model.plan_.trace_left_out,
        "cpu_seconds": seconds,
        "wall_seconds": elapsed,
        "seconds_estimated": plan.seconds,
        "predict_seconds": time.process_time() - started,
        "peak_bytes": peak,
        "bytes_estimated": plan.bytes,
        "error": float(np.sqrt(np.mean((predicted - truth(new)) ** 2)) / truth(new).std()),
        "other_cores": others.cores(),
    }
    if options["residuals"] is not None:
        low, high = model.predict_interval(new, 0.9).T
        observed = truth(new) + np.sqrt(NOISE) * rng.normal(size=NEW)
        result["coverage_90"] = float(np.mean((low <= observed) & (observed <= high)))
    return result


def table(rows: list[dict[str, Any]]) -> str:
    """The results in Markdown, with the growth of time and memory between the sizes of each solver."""
    header = (
        "rows", "units", "solver", "landmarks", "leaf", "trace left out", "CPU s", "wall s", "predict 2,000 rows, s",
        "peak GB", "estimated GB", "error", "90 % intervals cover",
    )  # fmt: skip
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for row in rows:
        cells = [
            f"{row['n']:,}", str(row["units"]), row["solver"],
            *(f"{row[key]:,}" if row[key] else "–" for key in ("rank_taken", "leaf_taken")),
            number(row["trace_left_out"], 2), number(row["cpu_seconds"]), number(row["wall_seconds"]),
            number(row["predict_seconds"], 2), number(row["peak_bytes"] / 1e9), number(row["bytes_estimated"] / 1e9),
            number(row["error"]), number(row.get("coverage_90")),
        ]  # fmt: skip
        lines.append("| " + " | ".join(cells) + " |")
    lines.append("")
    keys = ("solver", "features", "units", "iterations", "rank", "leaf_rows", "residuals")
    for kind in sorted({tuple(str(row[key]) for key in keys) for row in rows}):
        own = [row for row in rows if tuple(str(row[key]) for key in keys) == kind]
        sizes = [row["n"] for row in own]
        time_growth, memory_growth = (exponent(sizes, [row[key] for row in own]) for key in ("cpu_seconds", "peak_bytes"))
        if time_growth is not None and memory_growth is not None:
            what = f"{kind[0]}, {kind[2]} units, {kind[3]} iterations, {sizes[0]:,} to {sizes[-1]:,} rows"
            lines.append(f"- {what}: CPU time grows like n^{time_growth:.2f}, peak memory like n^{memory_growth:.2f}.")
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", type=int, nargs="*", default=SIZES)
    parser.add_argument("--features", type=int, default=90)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--iterations", type=int, default=12)
    parser.add_argument("--rank", type=int)
    parser.add_argument("--leaf-rows", type=int)
    parser.add_argument("--residuals", choices=("crossfit", "training", "none"), default="crossfit")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/scale.json"))
    parser.add_argument("--one", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(json.loads(arguments.one))))
        return
    rows = json.loads(arguments.out.read_text())["rows"] if arguments.out.exists() else []
    for n in arguments.sizes:
        options = {name: getattr(arguments, name) for name in ("features", "units", "iterations", "rank", "leaf_rows")}
        options |= {"n": n, "residuals": None if arguments.residuals == "none" else arguments.residuals}
        same = [row for row in rows if all(row[key] == value for key, value in options.items())]
        if same and not arguments.again:
            continue
        command = [sys.executable, __file__, "--one", json.dumps(options)]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        new = json.loads(done.stdout.splitlines()[-1])
        print(json.dumps(new), flush=True)
        rows = [row for row in rows if row not in same] + [new]
        rows.sort(key=lambda row: (row["solver"] != "dense", str(row["rank"]), row["n"]))
        record = {"command": "python benchmarks/scale.py", "machine": machine(), "rows": rows}
        write_whole(arguments.out, json.dumps(record, indent=1) + "\n")
        heading = "# Growth with the number of rows\n\nMade by `python benchmarks/scale.py`, which says what is measured.\n\n"
        write_whole(arguments.out.with_suffix(".md"), heading + table(rows))


if __name__ == "__main__":
    main()
