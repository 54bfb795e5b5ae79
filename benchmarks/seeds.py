"""How much a fit depends on its seed: errors of KStoNetRegressor with 20 seeds on the same rows of real tables.

    python benchmarks/seeds.py [--sets NAME ...] [--size 2000] [--fold 0] [--seeds 20] [--tuning fast]
        [--units 20 20] [--data DIR]

The seed decides where training starts, and the imputation; the choice does not depend on it. Training rows and test rows are
those of ``tabular.py``; "measurement error" is the paper's example, with as many rows for the test as for training.
``--units`` gives the sizes of the hidden layers, which are one layer as chosen otherwise. Every fit has a process of its own
with one thread, and finished fits are kept in the results file, so that a second run goes on where the first stopped. What is
asked: the worst error is at most 1.10 times the median.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from pathlib import Path

import numpy as np

from _comparison import Record, Results, fingerprint, median, notes, opening, run_all, table, timed_fit
from _report import number
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.datasets import make_measurement_error
from tabular import RESULTS, SETS, load

MOST = 1.10  # worst over median error that is asked for
SIMULATED = "measurement error"


def rows(folder: str, part: Record) -> tuple[np.ndarray, ...]:
    """Training and test rows."""
    if part["set"] != SIMULATED:
        return load(folder, part["set"], part["n"], part["fold"])
    X, y = make_measurement_error(2 * part["n"], random_state=part["fold"])
    return X[: part["n"]], y[: part["n"]], X[part["n"] :], y[part["n"] :]


def measure(part: Record, folder: str) -> Record:
    """Error of one seed, in standard deviations of the test targets."""
    X, y, X_test, y_test = rows(folder, part)
    tuning, *units, seed = part["model"].split(", ")
    sizes = tuple(map(int, units[0].removeprefix("units ").split("-"))) if units else None
    model = KStoNetRegressor(sizes, tuning=tuning, residuals=None, random_state=int(seed.removeprefix("seed ")))
    model, record = timed_fit(lambda: model.fit(X, y))
    error = float(np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)) / y_test.std())
    return record | {"rows": len(y), "error": error, "source": fingerprint()}


def markdown(results: Results) -> str:
    """The report: one row per set, size, fold and tuning."""
    found: dict[tuple[str, int, int, str], list[float]] = {}
    for record in results.finished():
        key = (record["set"], record["n"], record["fold"], record["model"].split(", seed")[0])
        found.setdefault(key, []).append(record["error"])
    rows = []
    for (name, n, fold, tuning), errors in found.items():
        ratio = max(errors) / median(errors)
        cells = [name, f"{n:,}", str(fold), tuning, str(len(errors)), number(min(errors)), number(median(errors))]
        rows.append([*cells, number(max(errors)), f"{ratio:.3f}" + ("" if ratio <= MOST else f" (above {MOST:.2f})")])
    header = ("set", "n", "fold", "tuning", "seeds", "best", "median", "worst", "worst ÷ median")
    text = "Test RMSE over the standard deviation of the test targets, without intervals (they do not change predictions).\n\n"
    return opening(results, "Errors by seed") + text + table(header, rows) + notes(results, [])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=SETS)
    parser.add_argument("--size", type=int, metavar="N", default=2000, help="training rows")
    parser.add_argument("--fold", type=int, metavar="K", default=0)
    parser.add_argument("--seeds", type=int, metavar="COUNT", default=20)
    parser.add_argument("--tuning", choices=("fast", "thorough", "none"), default="fast")
    parser.add_argument("--units", nargs="+", type=int, metavar="COUNT", help="sizes of the hidden layers")
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("KSTONET_DATA"), help="folder of the sets")
    parser.add_argument("--out", metavar="FILE", type=Path, default=RESULTS / "seeds.json")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="of one fit")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.data)))
        return
    if arguments.data is None:
        sys.exit("no data: name the folder of the sets by --data or the environment variable KSTONET_DATA.")
    results = Results(arguments.out)
    kind = arguments.tuning + (f", units {'-'.join(map(str, arguments.units))}" if arguments.units else "")
    parts = [
        {"set": name, "n": arguments.size, "fold": arguments.fold, "model": f"{kind}, seed {seed}"}
        for name in arguments.sets
        for seed in range(arguments.seeds)
    ]
    run_all(Path(__file__).resolve(), parts, results, arguments.data, redo=False, limit_s=arguments.limit)
    write_whole(results.path.with_suffix(".md"), markdown(results))
    print(markdown(results))


if __name__ == "__main__":
    main()
