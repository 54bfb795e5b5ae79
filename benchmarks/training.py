"""A whole K-StoNet training beside single scikit-learn SVR fits, in one run.

    python benchmarks/training.py [--out benchmarks/results/training.json] [--n 10000]

Measures, on Gaussian rows with p = 54 and a smooth target (C = 10, epsilon = 0.01): a training of 40 iterations, 5 units, the
seconds of its parts; the same with prediction intervals prepared; one ``sklearn.svm.SVR`` fit of the same data; one iteration
of the published approach, which fits a scikit-learn SVR per unit to the same latent values; and the prediction of n new rows,
means alone and with intervals. Then the same at n = 500 and 1,000. Ratios are what counts: run it on a quiet machine.

    python benchmarks/training.py --squared [--out benchmarks/results/squared.json]

Measures what a first call trains instead, ridge regressions in the first layer, at n = 500, 1,000, 6,000 and 10,000: twenty
units with the choice's number of iterations, at fixed settings and with default intervals; the first call itself, with its
choice; and one ``sklearn.svm.SVR`` fit of the same data.

    python benchmarks/training.py --first-calls [--out benchmarks/results/first_calls.json]

Measures first calls on few rows instead, regressor and classifiers of two and three classes: Friedman's function of eight
features. Seconds of the processor, with one thread of BLAS, say the same on a busy machine as on a quiet one, nearly.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVR
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole


def data(n: int, p: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, p))
    y = np.sin(X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.1 * rng.normal(size=n)
    return X, (y - y.mean()) / y.std()


def timed(work: Any) -> tuple[float, Any]:
    started = time.perf_counter()
    result = work()
    return time.perf_counter() - started, result


def measure(n: int, p: int, *, rivals: bool) -> dict[str, Any]:
    X, y = data(n, p)
    settings = {"C": 10.0, "random_state": 0, "max_iter": 40}
    seconds, model = timed(lambda: KStoNetRegressor((5,), tuning="none", residuals=None, warm_start=True, **settings).fit(X, y))
    parts = {part: sum(r[f"seconds_{part}"] for r in model.history_) for part in ("impute", "first_layer", "regressions")}
    loop = sum(parts.values())
    row: dict[str, Any] = {
        "n": n,
        "p": p,
        "training_s": seconds,
        "set_up_s": seconds - loop,
        **{f"{name}_s": value for name, value in parts.items()},
        "impute_share": parts["impute"] / seconds,
        "iteration_s": loop / len(model.history_),
        "train_mse": model.history_[-1]["loss"],
        "worst_gap": max(r["svr_gap"] for r in model.history_),
    }
    row["with_intervals_s"], full = timed(lambda: KStoNetRegressor((5,), tuning="none", **settings).fit(X, y))
    new = np.random.default_rng(1).normal(size=X.shape)
    full.predict_interval(new[:2])  # the factors exist from now on
    row["predict_means_s"], _ = timed(lambda: full.predict(new))
    row["predict_intervals_s"], _ = timed(lambda: full.predict_interval(new))
    row["intervals_over_means"] = row["predict_intervals_s"] / row["predict_means_s"]
    row["rows_kept"] = full.n_support_
    if rivals:
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        row["one_svr_s"], _ = timed(lambda: SVR(C=10.0, epsilon=0.01, cache_size=2000).fit(Z, y))
        states: list[Any] = []  # of one more iteration, whose latent values are the targets of the first layer
        model.set_params(max_iter=1, callback=states.append).fit(X, y)
        latents = states[0].latents[0]
        row["published_iteration_s"], _ = timed(
            lambda: [SVR(C=10.0, epsilon=0.01, cache_size=2000).fit(Z, latents[:, j]) for j in range(5)]
        )
        row["training_over_one_svr"] = seconds / row["one_svr_s"]
        row["with_intervals_over_one_svr"] = row["with_intervals_s"] / row["one_svr_s"]
        row["published_over_ours_per_iteration"] = row["published_iteration_s"] / row["iteration_s"]
    return row


def measure_squared(out: Path) -> None:
    """Trainings with a squared loss beside one scikit-learn SVR: wall seconds, and seconds of the processor."""
    rows: list[dict[str, Any]] = []
    fixed = KStoNetRegressor((20,), tuning="none", loss="squared", C=10.0, max_iter=6, n_average=3, random_state=0)
    fixed.fit(*data(100, 8))  # what a process does once
    for n, p in ((500, 8), (1000, 8), (6000, 32), (10_000, 54)):
        X, y = data(n, p)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        works = {
            "squared": lambda X=X, y=y: fixed.fit(X, y),
            "first_call": lambda X=X, y=y: KStoNetRegressor(random_state=0).fit(X, y),
            "one_svr": lambda Z=Z, y=y: SVR(C=10.0, epsilon=0.01, cache_size=2000).fit(Z, y),
        }
        row: dict[str, Any] = {"n": n, "p": p}
        for name, work in works.items():
            started = time.process_time()
            row[f"{name}_s"], _ = timed(work)
            row[f"{name}_cpu_s"] = time.process_time() - started
        for name in ("squared", "first_call"):
            row[f"{name}_over_one_svr"] = row[f"{name}_s"] / row["one_svr_s"]
        rows.append({key: round(value, 3) for key, value in row.items()})
        print(json.dumps(rows[-1]), flush=True)
    write_record(out, "python benchmarks/training.py --squared", rows)


def few_rows(n: int, classes: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's function with noise, or classes of equal size by its value."""
    rng = np.random.default_rng(0)
    X = rng.random((n, 8))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4] + rng.normal(size=n)
    return X, y if classes is None else np.searchsorted(np.quantile(y, np.arange(1, classes) / classes), y)


def measure_first_calls(out: Path) -> None:
    """Seconds of the processor that first calls take, the choice and the intervals included."""
    rows = []
    with threadpool_limits(limits=1, user_api="blas"):
        for name, kind, classes in (
            ("regressor", KStoNetRegressor, None),
            *((f"{k} classes", KStoNetClassifier, k) for k in (2, 3)),
        ):
            kind(random_state=0).fit(*few_rows(60, classes))  # what a process does once
            for n in (150, 300, 500, 1000):
                X, y = few_rows(n, classes)
                started = time.process_time()
                wall, _ = timed(lambda kind=kind, X=X, y=y: kind(random_state=0).fit(X, y))
                rows.append(
                    {"model": name, "n": n, "p": 8, "cpu_s": round(time.process_time() - started, 3), "wall_s": round(wall, 3)}
                )
                print(json.dumps(rows[-1]), flush=True)
    write_record(out, "python benchmarks/training.py --first-calls", rows)


def write_record(out: Path, command: str, rows: list[dict[str, Any]]) -> None:
    record = {"command": command, "machine": f"{platform.machine()}, {os.cpu_count()} cores", "rows": rows}
    write_whole(out, json.dumps(record, indent=1) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--n", type=int, default=10000)
    instead = parser.add_mutually_exclusive_group()
    instead.add_argument("--first-calls", action="store_true", help="measure first calls on few rows instead")
    instead.add_argument("--squared", action="store_true", help="measure trainings with a squared loss instead")
    arguments = parser.parse_args()
    name = "first_calls" if arguments.first_calls else "squared" if arguments.squared else "training"
    out = arguments.out or Path(f"benchmarks/results/{name}.json")
    out.parent.mkdir(parents=True, exist_ok=True)
    if arguments.first_calls:
        measure_first_calls(out)
        return
    if arguments.squared:
        measure_squared(out)
        return
    rows = []
    for n, p in ((500, 8), (1000, 8), (arguments.n, 54)):
        rows.append(measure(n, p, rivals=True))
        print(json.dumps({k: round(v, 4) if isinstance(v, float) else v for k, v in rows[-1].items()}), flush=True)
        write_record(out, "python benchmarks/training.py", rows)


if __name__ == "__main__":
    main()
