"""First calls on numbers of which some are missing, with what is expected of these or medians, beside CatBoost.

    python benchmarks/missing_values.py --data DIR [--sets NAME ...] [--draws 2] [--tables DIR] [--jobs 2]

What is compared
    KStoNetRegressor or KStoNetClassifier, the same with medians in place of missing numbers, CatBoost and
    HistGradientBoosting, all with their defaults. The latter two handle missing values themselves.

The data
    Up to 1,000 rows of ``<DIR>/<set>/data.npz``, but at most two thirds, for training and up to 2,000 others for testing; the
    rows of the first test fold or split are left out. In both, values are missing in three ways: one in ten at random, three in
    ten at random, and the largest fifth of the values of every other column. For classes, targets are cut into thirds.

    ``--tables`` names a folder of data frames as data_frames.py reads them, which miss values of their own: up to 1,500
    training rows.

How it is measured
    One thread per fit, ``--jobs`` processes; root mean squared errors are relative to those of the training rows' mean, and
    classes are compared by their log loss. CPU seconds are those of ``fit``, intervals included. Finished parts are kept in
    the results file (JSON lines).
"""

from __future__ import annotations

import argparse
import warnings
from contextlib import nullcontext
from itertools import product
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import log_loss

import data_frames
from _comparison import (
    Record,
    Results,
    geometric_mean,
    mean,
    median,
    missing_package,
    opening,
    remarks,
    run_tables,
    table,
    timed_fit,
)
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage
from kstonet.tables.encoding import TableEncoding
from tabular import catboost

RESULTS = Path(__file__).parent / "results"
SETS = (
    "airfoil", "autompg", "bostonHousing", "concrete", "elevators", "energy", "kin8nm", "pol", "skillcraft", "sml",
    "wine-quality-red", "yacht",
)  # fmt: skip
MEDIANS = "kstonet, medians"
MODELS = ("kstonet", MEDIANS, "CatBoost", "HistGradientBoosting")
THIRDS = " thirds"  # what sets are called whose targets are classes
WAYS = ("10 % at random", "30 % at random", "the largest")
ROWS, TRAINING_SHARE, TEST_ROWS = 1000, 2 / 3, 2000
ROWS_OF_FRAMES = 1500
COVERAGES = ("coverage_95", "of_rows_with_missing")
HEAD = ["kstonet", "CatBoost", "HistGradientBoosting", "expected values taken"]  # and of numbers:
HEAD += ["95 % intervals cover", "rows with missing values"]
LARGEST = 0.8  # quantile of a column above which its values are missing


def load(path: Path, way: str, draw: int, *, classes: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows and targets, other rows and targets."""
    with np.load(path, allow_pickle=False) as stored:
        given = stored["fold"] != 0 if "fold" in stored else stored["train_idx"][0]
        X, y = stored["X"][given].astype(float), stored["y"][given].astype(float).ravel()
    rng = np.random.default_rng(draw)
    X = np.where(absent(X, way, rng), np.nan, X)
    y = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y) if classes else y
    order = rng.permutation(len(y))
    n = min(ROWS, int(TRAINING_SHARE * len(y)))
    train, test = order[:n], order[n : n + TEST_ROWS]
    return X[train], y[train], X[test], y[test]


def absent(X: np.ndarray, way: str, rng: np.random.Generator) -> np.ndarray:
    """Which values are missing."""
    if way == "the largest":
        return (np.arange(X.shape[1]) % 2 == 0) & (np.quantile(X, LARGEST, axis=0) < X)
    return rng.random(X.shape) < float(way.split(" ")[0]) / 100


def made(name: str, *, classes: bool) -> Any:
    """A model with its defaults."""
    if name == "CatBoost":
        return data_frames.catboost_of_classes("") if classes else catboost(0)
    if name == "HistGradientBoosting":
        return (HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor)(random_state=0)
    return (KStoNetClassifier if classes else KStoNetRegressor)(random_state=0, n_jobs=1)


def measure(folder: Path, part: Record) -> Record:
    """Fit one model on one set with missing values."""
    medians = mock.patch.object(TableEncoding, "expecting", lambda self, columns, weights=None: self)
    with medians if part["model"] == MEDIANS else nullcontext():
        if "/" in part["set"]:
            return data_frames.measure(folder, part | {"model": part["model"].removesuffix(", medians")}) | part
        return _with_holes(folder, part)


def _with_holes(folder: Path, part: Record) -> Record:
    name, way = part["set"].split(", ")
    classes = name.endswith(THIRDS)
    X, y, X_test, y_test = load(folder / name.removesuffix(THIRDS) / "data.npz", way, part["fold"], classes=classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = timed_fit(lambda: made(part["model"], classes=classes).fit(X, y))
    seconds.pop("warnings", None)
    record = part | seconds | {"rows": len(y)}
    if isinstance(model, KStoNetRegressor | KStoNetClassifier):
        record["expected"] = model.encoding_.expected is not None
    if classes:
        return record | {"error": float(log_loss(y_test, model.predict_proba(X_test)))}
    away = np.asarray(model.predict(X_test), dtype=float) - y_test
    record["error"] = float(np.sqrt(np.mean(away**2) / np.mean((y.mean() - y_test) ** 2)))
    if isinstance(model, KStoNetRegressor):
        bounds, holes = model.predict_interval(X_test, 0.95), np.isnan(X_test).any(axis=1)
        record["coverage_95"] = float(coverage(y_test, bounds))
        record["of_rows_with_missing"] = float(coverage(y_test[holes], bounds[holes]))
    return record


def page(results: Results) -> str:
    """The tables of the results."""
    text = opening(results, "First calls with missing numbers")
    text += "Ratios to the error with medians, in the geometric mean over the draws and, in the last line, the sets.\n\n"
    for classes, way in product((False, True), WAYS):
        text += _of_way(results, way, classes=classes)
    text += _of_frames(results)
    seconds = {m: [r["cpu_s"] for r in results.finished() if r["model"] == m] for m in MODELS}
    text += "CPU seconds (median): " + ", ".join(f"{m} {median(s):.1f}" for m, s in seconds.items() if s) + ".\n"
    return text + remarks(results)


def _of_way(results: Results, way: str, *, classes: bool) -> str:
    """The table of one way in which values are missing; empty where nothing was measured."""
    records = {(r["set"], r["fold"], r["model"]): r for r in results.finished() if r["set"].endswith(f", {way}")}
    names = [name for name in dict.fromkeys(set_ for set_, _, _ in records) if name.split(", ")[0].endswith(THIRDS) == classes]
    rows, columns = [], {model: [] for model in MODELS}
    for name in names:
        draws = [fold for set_, fold, model in records if (set_, model) == (name, MEDIANS)]
        own = {m: [records[key] for d in draws if (key := (name, d, m)) in records] for m in MODELS}
        if not draws or any(len(found) < len(draws) for found in own.values()):
            continue
        error = {model: geometric_mean([record["error"] for record in found]) for model, found in own.items()}
        for model in MODELS:
            columns[model].append(error[model] / error[MEDIANS])
        cells = [f"{error[MEDIANS]:.3f}"] + [f"{columns[m][-1]:.3f}" for m in MODELS if m != MEDIANS]
        covers = [] if classes else [f"{mean([record[field] for record in own['kstonet']]):.1%}" for field in COVERAGES]
        taken = sum(record["expected"] for record in own["kstonet"])
        rows.append([name.split(", ")[0].removesuffix(THIRDS), *cells, f"{taken} of {len(draws)}", *covers])
    if not rows:
        return ""
    last = [f"{geometric_mean(columns[m]):.3f}" for m in MODELS if m != MEDIANS]
    rows.append(["all", "", *last, *[""] * (1 if classes else 3)])
    head = ["set", f"{'log loss' if classes else 'error'} with medians", *HEAD]
    return f"## {'Classes' if classes else 'Numbers'}, missing: {way}\n\n" + table(head[: len(rows[0])], rows) + "\n"


def _of_frames(results: Results) -> str:
    """Ratios to the error, or the log loss of classes, with medians."""
    records = {(r["set"], r["model"]): r for r in results.finished() if "/" in r["set"]}
    text = ""
    for kind, title, field in (("reg", "errors of regressions", "error"), ("cls", "log losses of classes", "log_loss")):
        sets = [set_ for set_, model in records if model == MEDIANS and set_.startswith(kind)]
        sets = [set_ for set_ in sets if all((set_, model) in records for model in MODELS)]
        ratios = {m: [records[s, m][field] / records[s, MEDIANS][field] for s in sets] for m in MODELS if m != MEDIANS}
        rows = [
            [s.partition("/")[2], f"{records[s, MEDIANS][field]:.3f}", *(f"{v[k]:.3f}" for v in ratios.values())]
            for k, s in enumerate(sets)
        ]
        if rows:
            rows.append(["all", "", *(f"{geometric_mean(values):.3f}" for values in ratios.values())])
            text += f"## Data frames, {title}\n\n" + table(["table", "with medians", *ratios], rows) + "\n"
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR")
    parser.add_argument("--tables", metavar="DIR")
    parser.add_argument("--sets", nargs="+", default=list(SETS))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--draws", type=int, default=2)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=str(RESULTS / "missing_values.json"))
    given = parser.parse_args()
    results = Results(Path(given.out))
    models = [name for name in given.models if name != "CatBoost" or not missing_package("catboost")]
    if given.tables:
        run_tables(
            Path(__file__), measure, data_frames.parts_of(Path(given.tables), [ROWS_OF_FRAMES], models), results, given.jobs
        )
    if given.data:
        parts = [
            (Path(given.data), {"set": f"{name}, {way}", "n": ROWS, "fold": draw, "model": model})
            for draw in range(given.draws)
            for way in WAYS
            for name in (*given.sets, *(name + THIRDS for name in given.sets))
            for model in models
        ]
        run_tables(Path(__file__), measure, parts, results, given.jobs)
    write_whole(Path(given.out).with_suffix(".md"), page(results))


if __name__ == "__main__":
    main()
