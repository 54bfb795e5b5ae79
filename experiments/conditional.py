"""Are intervals right where you look? Conditional coverage of this library's first call beside other ways to make intervals.

    python -m experiments.conditional [--sets yacht ...] [--splits 1] [--rows 500] [--data DIR]

The nine UCI sets and six development sets, original splits and folds, everything with its defaults and at most ``--rows`` of
the training rows; nothing is tuned on test rows. "kstonet" is ``KStoNetRegressor()``; "kstonet, one noise" the same network
with ``residuals="crossfit"``, whose noise depends on the predicted mean alone; "quantile boosting" scikit-learn's histogram
gradient boosting of two quantiles, made conformal with a quarter of the training rows (CQR, Romano, Patterson and Candès 2019);
"MAPIE, split" MAPIE's conformal intervals of the boosted mean, of one width, with the same quarter; "Gaussian process"
scikit-learn's with an anisotropic RBF kernel and white noise, on at most 300 rows. 90 % intervals: coverage, worst-slab
coverage (the mean of ten seeds), the worst third by prediction and by the most important feature, width and interval score,
both over the standard deviation of the targets, and seconds of processor time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.ensemble import ExtraTreesRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.common import Results, parser
from experiments.paths import Summary, write_report
from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, coverage_by_quantile, mean_width, winkler_score, worst_slab_coverage

LEVEL, SEEDS = 0.9, 10
UCI = (
    "yacht", "bostonHousing", "energy", "concrete", "wine-quality-red", "kin8nm", "power-plant", "naval-propulsion-plant",
    "protein-tertiary-structure",
)  # fmt: skip
DEVELOPMENT = ("autompg", "airfoil", "skillcraft", "sml", "pol", "elevators")
GP_ROWS = 300  # beyond which an optimised Gaussian process costs more than all others together

Predictor = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]  # rows to means and intervals


def kstonet(X: np.ndarray, y: np.ndarray, **parameters: Any) -> Predictor:
    """The first call, or with one noise level."""
    model = KStoNetRegressor(random_state=0, **parameters).fit(X, y)
    return lambda new: (model.predict(new), model.predict_interval(new, LEVEL))


def quantile_boosting(X: np.ndarray, y: np.ndarray) -> Predictor:
    """Conformalised quantile regression; the middle of an interval stands for the mean."""
    aside = len(X) // 4
    models = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0).fit(X[aside:], y[aside:])
        for q in ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
    ]
    low, high = (model.predict(X[:aside]) for model in models)
    rank = int(np.ceil((aside + 1) * LEVEL)) - 1
    more = np.sort(np.maximum(low - y[:aside], y[:aside] - high))[min(rank, aside - 1)]

    def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        bounds = np.sort(np.column_stack([models[0].predict(new) - more, models[1].predict(new) + more]), axis=1)
        return bounds.mean(axis=1), bounds

    return predict


def mapie_split(X: np.ndarray, y: np.ndarray) -> Predictor:
    """Split conformal intervals of one width."""
    from mapie.regression import SplitConformalRegressor

    aside = len(X) // 4
    mean = HistGradientBoostingRegressor(random_state=0).fit(X[aside:], y[aside:])
    split = SplitConformalRegressor(mean, confidence_level=LEVEL, prefit=True).conformalize(X[:aside], y[:aside])

    def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        means, bounds = split.predict_interval(new)
        return means, bounds[:, :, 0]

    return predict


def gaussian_process(X: np.ndarray, y: np.ndarray) -> Predictor:
    """On at most ``GP_ROWS`` rows."""
    X, y = X[:GP_ROWS], y[:GP_ROWS]
    kernel = 1.0 * RBF(np.ones(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)).fit(X, y)

    def predict(new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        mean, std = model.predict(new, return_std=True)
        return mean, mean[:, None] + 1.645 * std[:, None] * np.array([-1.0, 1.0])

    return predict


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Predictor]] = {
    "kstonet": kstonet,
    "kstonet, one noise": partial(kstonet, residuals="crossfit"),
    "quantile boosting": quantile_boosting,
    "MAPIE, split": mapie_split,
    "Gaussian process": gaussian_process,
}
COLUMNS = ("coverage", "worst_slab", "worst_third", "worst_feature", "width", "score", "cpu")


def load(name: str, number: int, data: str, rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of an original split, or of a fold of a development set."""
    stored = np.load(Path(data) / name / "data.npz", allow_pickle=False)
    X, y = stored["X"].astype(np.float64), stored["y"].astype(np.float64)
    if name in DEVELOPMENT:
        train, test = np.flatnonzero(stored["fold"] != number), np.flatnonzero(stored["fold"] == number)
    else:
        train, test = stored["train_idx"][number], stored["test_idx"][number]
    train = np.random.default_rng(0).permutation(train)[:rows]
    return X[train], y[train], X[test], y[test]


def one_split(name: str, number: int, data: str, rows: int) -> dict[str, Any]:
    """All methods on one split."""
    X, y, X_test, y_test = load(name, number, data, rows)
    importance = ExtraTreesRegressor(50, min_samples_leaf=5, random_state=0).fit(X, y).feature_importances_
    feature, scaled, unit = X_test[:, importance.argmax()], StandardScaler().fit(X).transform(X_test), float(np.std(y))
    out: dict[str, Any] = {"rows": len(X), "test_rows": len(X_test)}
    for method, fit in METHODS.items():
        started = time.process_time()
        means, bounds = fit(X, y)(X_test)
        slabs = [worst_slab_coverage(y_test, bounds, scaled, n_directions=300, random_state=seed) for seed in range(SEEDS)]
        out[method] = {
            "coverage": float(coverage(y_test, bounds)),
            "worst_slab": float(np.mean(slabs)),
            "worst_third": coverage_by_quantile(y_test, bounds, means).worst,
            "worst_feature": coverage_by_quantile(y_test, bounds, feature).worst,
            "width": float(mean_width(bounds)) / unit,
            "score": float(winkler_score(y_test, bounds, LEVEL)) / unit,
            "cpu": time.process_time() - started,
        }
    return out


def table(parts: list[dict[str, Any]]) -> str:
    """Means over sets and splits, as Markdown."""
    lines = ["| | " + " | ".join(column.replace("_", " ") for column in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for method in METHODS:
        cells = (f"{np.mean([part[method][column] for part in parts]):.3f}" for column in COLUMNS)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(parts: dict[str, Any]) -> list[Summary]:
    """One section of docs/results.md; the paper has no such results."""
    if not parts:
        return []

    def means(column: str) -> str:
        return ", ".join(f"{method} {np.mean([part[method][column] for part in parts.values()]):.3f}" for method in METHODS)

    titles = {"worst_slab": "Worst-slab coverage of 90 % intervals", "score": "Interval score of 90 % intervals"}
    note = f"means over {len(parts)} splits with at most a few hundred training rows; defaults only"
    return [Summary(title, "–", "–", means(column), note) for column, title in titles.items()]


def main() -> None:
    """Run what is missing and print the tables."""
    arguments = parser(__doc__ or "", "conditional")
    arguments.add_argument("--sets", nargs="*", default=(*UCI, *DEVELOPMENT), help="names of sets")
    arguments.add_argument("--splits", type=int, default=1, help="splits or folds of every set")
    arguments.add_argument("--rows", type=int, default=500, help="most training rows")
    given = arguments.parse_args()
    results = Results(given.out)
    splits = product(range(given.splits), given.sets)
    calls = {f"{name}|{k}|{given.rows}": partial(one_split, name, k, given.data, given.rows) for k, name in splits}
    results.run_all(calls)
    text = f"90 % intervals; means over {len(results.parts)} splits.\n\n{table(list(results.parts.values()))}\n"
    for key, part in results.parts.items():
        name, number, _ = key.split("|")
        text += f"\n## {name}, split {number}: {part['rows']} training and {part['test_rows']} test rows\n\n{table([part])}\n"
    write_report(given.out, "Conditional coverage", "python -m experiments.conditional", text)


if __name__ == "__main__":
    main()
