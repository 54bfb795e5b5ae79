"""Regressors on real tables: kstonet as it comes beside the models a user would pick instead, in one run.

    python benchmarks/tabular.py [--sets NAME ...] [--sizes 500 2000] [--folds 0 1] [--models NAME ...] [--data DIR]

What is compared
    KStoNetRegressor with ``tuning="fast"`` (its default), "thorough" and "none"; CatBoost, LightGBM, HistGradientBoosting, a
    random forest and NGBoost with their defaults; an SVR with RBF kernel whose C and gamma come from a grid search with
    3 folds; a Gaussian process with one width per feature and white noise, up to 1,000 rows; xRFM with its
    defaults, whose iteration is chosen on a fifth of the training rows.

The data
    ``<DIR>/<name>/data.npz`` with arrays X, y and fold; DIR is ``--data`` or the environment variable KSTONET_DATA. Test rows
    are those of fold k; the training rows are drawn from the others with seed k: all of them where there are fewer than n.
    Nothing is chosen on test rows.

How it is measured
    Every set, size, fold and model has a process of its own with one thread. CPU seconds are those of ``fit``: for kstonet
    with everything its intervals need, for the SVR with its grid search. Finished parts are kept in the results file (JSON
    lines), and a second run goes on where the first stopped; ``--redo`` measures again.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.model_selection import GridSearchCV, KFold, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from _comparison import (
    Record,
    Results,
    by_set,
    draw_ratios,
    fingerprint,
    median,
    missing_package,
    notes,
    opening,
    ratio_rows,
    run_all,
    table,
    timed_fit,
)
from _report import number
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage, crps_gaussian, crps_samples, mean_width

RESULTS = Path(__file__).parent / "results"
SETS = ("airfoil", "autompg", "elevators", "pol", "skillcraft", "sml")
LEVELS = (0.9, 0.95)
GP_UP_TO = 1000  # rows; its training is cubic, once per step of the search for widths
DRAWS = 200
PICTURED = 2000  # training rows of the picture


def catboost(p: int) -> Any:
    from catboost import CatBoostRegressor

    return CatBoostRegressor(random_seed=0, thread_count=1, verbose=0, allow_writing_files=False)


def lightgbm(p: int) -> Any:
    from lightgbm import LGBMRegressor

    return LGBMRegressor(random_state=0, n_jobs=1, verbose=-1)


def ngboost(p: int) -> Any:
    from ngboost import NGBRegressor

    return NGBRegressor(random_state=0, verbose=False)


class HeldOut(BaseEstimator):
    """xRFM, which asks for rows to choose its iteration by: a fifth of those it is given."""

    def fit(self, X: np.ndarray, y: np.ndarray) -> HeldOut:
        """Both parts."""
        from xrfm import xRFM

        train, look = train_test_split(np.arange(len(X)), test_size=0.2, random_state=0)
        self.model_ = xRFM(device="cpu", n_threads=1, random_state=0, verbose=False).fit(X[train], y[train], X[look], y[look])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Of the standardised target."""
        return np.asarray(self.model_.predict(X))


def xrfm(p: int) -> Any:
    """On standardised features and targets, as its authors prepare them."""
    return TransformedTargetRegressor(make_pipeline(StandardScaler(), HeldOut()), transformer=StandardScaler())


def tuned_svr(p: int) -> Any:
    """Gamma in multiples of 1/p, scikit-learn's "scale" for standardised features."""
    grid = {"svr__C": [1.0, 10.0, 100.0], "svr__gamma": [step / p for step in (0.1, 0.3, 1.0, 3.0, 10.0)]}
    machine = make_pipeline(StandardScaler(), SVR(epsilon=0.01, cache_size=1000))
    search = GridSearchCV(machine, grid, cv=KFold(3, shuffle=True, random_state=0), scoring="neg_mean_squared_error")
    return TransformedTargetRegressor(search, transformer=StandardScaler())


def gaussian_process(p: int) -> Any:
    kernel = ConstantKernel() * RBF(np.full(p, np.sqrt(p)), (1e-2, 1e4)) + WhiteKernel(0.1)
    return make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0))


class Model(NamedTuple):
    """How a model is made for p features, the package it needs, and the most rows it is measured with."""

    make: Callable[[int], Any]
    package: str | None = None
    up_to: int | None = None


MODELS = {
    "kstonet": Model(lambda p: KStoNetRegressor(random_state=0)),
    "kstonet thorough": Model(lambda p: KStoNetRegressor(tuning="thorough", random_state=0)),
    "kstonet none": Model(lambda p: KStoNetRegressor(tuning="none", random_state=0)),
    "CatBoost": Model(catboost, "catboost"),
    "LightGBM": Model(lightgbm, "lightgbm"),
    "HistGradientBoosting": Model(lambda p: HistGradientBoostingRegressor(random_state=0)),
    "random forest": Model(lambda p: RandomForestRegressor(random_state=0)),
    "SVR tuned": Model(tuned_svr),
    "Gaussian process": Model(gaussian_process, None, GP_UP_TO),
    "NGBoost": Model(ngboost, "ngboost"),
    "xRFM": Model(xrfm, "xrfm"),
}


def load(folder: str, name: str, n: int, fold: int) -> tuple[np.ndarray, ...]:
    """Training rows drawn with the number of the fold as seed, and the fold's own rows."""
    with np.load(Path(folder) / name / "data.npz", allow_pickle=False) as stored:
        X, y, folds = stored["X"], stored["y"].ravel(), stored["fold"]
    test = np.flatnonzero(folds == fold)
    others = np.flatnonzero(folds != fold)
    train = np.random.default_rng(fold).permutation(others)[:n]
    return X[train], y[train], X[test], y[test]


def gaussian_scores(y: np.ndarray, centre: np.ndarray, spread: np.ndarray) -> Record:
    bounds = {level: norm.ppf(0.5 + level / 2) * spread for level in LEVELS}
    intervals = {level: np.stack([centre - half, centre + half], axis=1) for level, half in bounds.items()}
    return interval_scores(y, intervals) | {"crps": crps_gaussian(y, centre, spread)}


def interval_scores(y: np.ndarray, intervals: dict[float, np.ndarray]) -> Record:
    scores = {}
    for level, interval in intervals.items():
        scores[f"coverage_{level * 100:g}"] = float(coverage(y, interval))
        scores[f"width_{level * 100:g}"] = float(mean_width(interval))
    return scores


def uncertainty(name: str, model: Any, X: np.ndarray, y: np.ndarray) -> Record:
    """Coverage, widths and CRPS of the models that predict a distribution; the fair estimate of the CRPS from draws."""
    if name.startswith("kstonet"):
        intervals = {level: model.predict_interval(X, level) for level in LEVELS}
        return interval_scores(y, intervals) | {"crps": float(crps_samples(y, model.sample_y(X, DRAWS), fair=True))}
    if name == "Gaussian process":
        return gaussian_scores(y, *model.predict(X, return_std=True))
    if name == "NGBoost":
        predicted = model.pred_dist(X).params
        return gaussian_scores(y, predicted["loc"], predicted["scale"])
    return {}


def measure(part: Record, folder: str) -> Record:
    """Fit one model on one part: errors and widths in standard deviations of the test targets."""
    X, y, X_test, y_test = load(folder, part["set"], part["n"], part["fold"])
    model = MODELS[part["model"]].make(X.shape[1])
    model, record = timed_fit(lambda: model.fit(X, y))
    unit = float(y_test.std())
    error = float(np.sqrt(np.mean((np.ravel(model.predict(X_test)) - y_test) ** 2)))
    scores = uncertainty(part["model"], model, X_test, y_test)
    scores = {name: value if name.startswith("coverage") else value / unit for name, value in scores.items()}
    record |= {"rows": len(y), "features": X.shape[1], "test_rows": len(y_test), "error": error / unit} | scores
    if part["model"].startswith("kstonet"):
        chosen = getattr(model, "tuned_", None) or {}
        record |= {"source": fingerprint(), "chosen": {name: str(value)[:120] for name, value in chosen.items()}}
    return record


def pooled(records: list[Record], field: str, name: str, n: int, model: str) -> float | None:
    """Share over the test rows of all folds."""
    found = [r for r in records if (r["set"], r["n"], r["model"]) == (name, n, model) and field in r]
    return sum(r[field] * r["test_rows"] for r in found) / sum(r["test_rows"] for r in found) if found else None


NOTES = f"""\
- **Error**: test RMSE over the standard deviation of the test targets, mean over the folds. **÷ CatBoost**: geometric mean over
  the sets of its ratio to CatBoost's, over the folds that both have. **wins**: sets with a smaller error than CatBoost's there.
- **CPU s**: CPU seconds of `fit`, median over sets and folds; for kstonet with its intervals, for the tuned SVR
  with its search.
- **Coverage** is pooled over the folds' test rows; widths and CRPS are in standard deviations of the test targets, means over
  the folds. CRPS of kstonet from {DRAWS} draws.
- The Gaussian process is not measured above {GP_UP_TO:,} rows; its ratio is over the sets it has. autompg has 353 training rows
  and airfoil 1,353, also where n is larger.
"""


def markdown(results: Results, absent: list[str], picture: Path | None) -> str:
    """The report."""
    records = results.finished()
    text = [opening(results, "Regression on real tables"), NOTES]
    for n in sorted({record["n"] for record in records}, reverse=True):
        here = [record for record in records if record["n"] == n]
        sets = [name for name in dict.fromkeys((*SETS, *(r["set"] for r in here))) if any(r["set"] == name for r in here)]
        folds = sorted({record["fold"] for record in here})
        text.append(f"\n## n = {n:,}, folds {', '.join(map(str, folds))}\n\n")
        rows = ratio_rows(here, "error", tuple(MODELS), sets, n=n)
        for row in rows:
            seconds = [record["cpu_s"] for record in here if record["model"] == row[0]]
            row += [number(median(seconds)), number(max(seconds)), str(len(seconds))]
        text.append(table(("error", *sets, "÷ CatBoost", "wins", "CPU s", "most", "fits"), rows))
        text.append("\n" + uncertainty_table(here, sets, n))
    if picture is not None:
        text.append(f"\n![Errors relative to CatBoost's by model, a dot per set]({picture.name})\n")
    return "".join([*text, notes(results, absent)])


def uncertainty_table(records: list[Record], sets: list[str], n: int) -> str:
    rows = []
    for model in MODELS:
        for field, label in (("coverage_95", "95 % covers"), ("coverage_90", "90 % covers")):
            shares = {name: pooled(records, field, name, n, model) for name in sets}
            if any(shares.values()):
                rows.append([f"{model}: {label}", *("–" if s is None else f"{100 * s:.1f}" for s in shares.values())])
        for field, label in (("width_95", "width of 95 %"), ("crps", "CRPS")):
            values = by_set(records, field, n=n, model=model)
            if values:
                rows.append([f"{model}: {label}", *(number(values.get(name)) for name in sets)])
    return table(("", *sets), rows) if rows else ""


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", metavar="NAME", default=SETS)
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", default=[2000, 500], help="training rows, as 10000")
    parser.add_argument("--folds", nargs="+", type=int, metavar="K", default=[0, 1])
    parser.add_argument("--models", nargs="+", choices=MODELS, metavar="NAME", default=list(MODELS), help=", ".join(MODELS))
    parser.add_argument("--data", metavar="DIR", default=os.environ.get("KSTONET_DATA"), help="folder of the sets")
    parser.add_argument("--out", metavar="FILE", type=Path, default=RESULTS / "tabular.json")
    parser.add_argument("--redo", action="store_true", help="measure again what the results file already holds")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="of one part")
    parser.add_argument("--report", action="store_true", help="only write the table and the picture again")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    return parser.parse_args()


def report(results: Results, absent: list[str]) -> None:
    """Write the table, and the picture where matplotlib is installed."""
    picture = None
    if missing_package("matplotlib"):
        absent = [*absent, "No picture: matplotlib is not installed."]
    elif results.finished():
        picture = results.path.with_suffix(".png")
        sizes = {record["n"] for record in results.finished()}
        n = PICTURED if PICTURED in sizes else max(sizes)
        label = f"test error relative to CatBoost's, {n:,} training rows; a dot per set, bar: geometric mean"
        draw_ratios(results.finished(), "error", tuple(MODELS), SETS, picture, label, n=n)
    write_whole(results.path.with_suffix(".md"), markdown(results, absent, picture))


def main() -> None:
    arguments = parse_arguments()
    if arguments.worker:
        print(json.dumps(measure(arguments.worker, arguments.data)))
        return
    if arguments.data is None:
        sys.exit("no data: name the folder of the sets by --data or the environment variable KSTONET_DATA.")
    results = Results(arguments.out)
    measured = {record["model"] for record in results.finished()}
    missing = [name for name in MODELS if missing_package(MODELS[name].package)]
    absent = [f"{name} is not measured: {MODELS[name].package} is not installed." for name in missing if name not in measured]
    for text in absent:
        print(text)
    if not arguments.report:
        models = [name for name in arguments.models if name not in missing]
        parts = [
            {"set": name, "n": n, "fold": fold, "model": model}
            for n in arguments.sizes
            for model in models
            for fold in arguments.folds
            for name in arguments.sets
            if MODELS[model].up_to is None or n <= MODELS[model].up_to
        ]
        run_all(Path(__file__).resolve(), parts, results, arguments.data, redo=arguments.redo, limit_s=arguments.limit)
    report(results, absent)
    rows = ratio_rows(results.finished(), "error", tuple(MODELS), SETS, n=arguments.sizes[0])
    print(table(("", *SETS, "÷ CatBoost", "wins"), rows))


if __name__ == "__main__":
    main()
