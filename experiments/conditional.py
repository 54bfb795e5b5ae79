"""Are intervals right where you look? Conditional coverage of this library's first call beside other ways to make intervals.

    python -m experiments.conditional [--sets yacht ...] [--splits 1] [--rows 500 ...] [--methods kstonet ...] [--data DIR]

The nine UCI sets and six development sets, original splits and folds, everything with its defaults and at most ``--rows`` of
the training rows; nothing is tuned on test rows. "kstonet" is ``KStoNetRegressor()``; "kstonet, one noise" the same network
with ``residuals="crossfit"``, whose noise depends on the predicted mean alone; "quantile boosting" scikit-learn's histogram
gradient boosting of quantiles, made conformal with a quarter of the training rows (CQR, Romano, Patterson and Candès 2019);
"MAPIE, CQR" MAPIE's conformalised quantile regression of scikit-learn's gradient boosting; "MAPIE, split" MAPIE's conformal
intervals of the boosted mean, of one width; both with the same quarter; "NGBoost" its normal distribution; "Gaussian process"
scikit-learn's with an anisotropic RBF kernel and white noise, on at most 300 rows. Methods whose package is missing are left
out.

90 % intervals: coverage, worst-slab coverage (the mean of ten seeds), the worst third by prediction and by the most important
feature, width and interval score, both over the standard deviation of the targets; then coverage and interval score of 95 %
intervals, the continuous ranked probability score (twice the pinball loss of 99 quantiles, over the same deviation) where a
method has a distribution, seconds of processor time, and the time that intervals took over that of the rest of the fit.

The least of three measured coverages is below 0.9 by chance alone. So thirds are added up over the splits of a set before the
least is taken, and beside it stands "by chance": the mean of the least where every row is covered with probability 0.9.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm, ttest_rel
from sklearn.ensemble import ExtraTreesRegressor, GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from experiments.common import Results, parser
from experiments.paths import Summary, write_report
from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, coverage_by_quantile, mean_width, pinball_loss, winkler_score, worst_slab_coverage

LEVELS, SEEDS = (0.9, 0.95), 10
QUANTILES = np.arange(1, 100) / 100  # of the continuous ranked probability score
UCI = (
    "yacht", "bostonHousing", "energy", "concrete", "wine-quality-red", "kin8nm", "power-plant", "naval-propulsion-plant",
    "protein-tertiary-structure",
)  # fmt: skip
DEVELOPMENT = ("autompg", "airfoil", "skillcraft", "sml", "pol", "elevators")
MANY = 1000  # rows from which conditional coverage can be asked for
GP_ROWS = 300  # beyond which an optimised Gaussian process costs more than all others together


class Predicted(NamedTuple):
    """What a method says of test rows."""

    means: np.ndarray
    bounds: np.ndarray  # (n, 2, levels)
    quantiles: np.ndarray | None = None  # (n, 99), where there is a distribution
    extra: float | None = None  # time that intervals took, over that of the rest of the fit


Predictor = Callable[[np.ndarray], Predicted]


def kstonet(X: np.ndarray, y: np.ndarray, **parameters: Any) -> Predictor:
    """The first call, or with one noise level."""
    started = time.perf_counter()
    model = KStoNetRegressor(random_state=0, **parameters).fit(X, y)
    used, own = time.perf_counter() - started, float(model.history_[-1]["seconds_intervals"])

    def predict(new: np.ndarray) -> Predicted:
        distribution = model.predict_dist(new)
        return Predicted(distribution.mean, distribution.interval(LEVELS), distribution.ppf(QUANTILES), own / (used - own))

    return predict


def _normal(mean: np.ndarray, std: np.ndarray) -> Predicted:
    """Means, intervals and quantiles of normal predictions."""
    reach = norm.ppf(0.5 + 0.5 * np.array(LEVELS))
    bounds = np.stack([mean[:, None] - std[:, None] * reach, mean[:, None] + std[:, None] * reach], axis=1)
    return Predicted(mean, bounds, mean[:, None] + std[:, None] * norm.ppf(QUANTILES))


def quantile_boosting(X: np.ndarray, y: np.ndarray) -> Predictor:
    """Conformalised quantile regression; the middle of an interval stands for the mean."""
    aside = len(X) // 4
    ends = []
    for level in LEVELS:
        models = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0).fit(X[aside:], y[aside:])
            for q in ((1 - level) / 2, (1 + level) / 2)
        ]
        low, high = (model.predict(X[:aside]) for model in models)
        rank = int(np.ceil((aside + 1) * level)) - 1
        ends.append((models, np.sort(np.maximum(low - y[:aside], y[:aside] - high))[min(rank, aside - 1)]))

    def predict(new: np.ndarray) -> Predicted:
        pairs = [(low.predict(new) - more, high.predict(new) + more) for (low, high), more in ends]
        bounds = np.stack([np.sort(np.column_stack(pair), axis=1) for pair in pairs], axis=2)
        return Predicted(bounds[:, :, 0].mean(axis=1), bounds)

    return predict


def mapie_cqr(X: np.ndarray, y: np.ndarray) -> Predictor:
    """Conformalised quantile regression, by MAPIE."""
    from mapie.regression import ConformalizedQuantileRegressor

    aside = len(X) // 4
    conformal = []
    for level in LEVELS:
        models = [
            GradientBoostingRegressor(loss="quantile", alpha=q, random_state=0).fit(X[aside:], y[aside:])
            for q in ((1 - level) / 2, (1 + level) / 2, 0.5)
        ]
        regressor = ConformalizedQuantileRegressor(models, confidence_level=level, prefit=True)
        conformal.append(regressor.conformalize(X[:aside], y[:aside]))

    def predict(new: np.ndarray) -> Predicted:
        found = [each.predict_interval(new, symmetric_correction=True) for each in conformal]
        return Predicted(found[0][0], np.sort(np.concatenate([bounds for _, bounds in found], axis=2), axis=1))

    return predict


def mapie_split(X: np.ndarray, y: np.ndarray) -> Predictor:
    """Split conformal intervals of one width."""
    from mapie.regression import SplitConformalRegressor

    aside = len(X) // 4
    mean = HistGradientBoostingRegressor(random_state=0).fit(X[aside:], y[aside:])
    split = SplitConformalRegressor(mean, confidence_level=list(LEVELS), prefit=True).conformalize(X[:aside], y[:aside])

    def predict(new: np.ndarray) -> Predicted:
        means, bounds = split.predict_interval(new)
        return Predicted(means, bounds)

    return predict


def ngboost(X: np.ndarray, y: np.ndarray) -> Predictor:
    """A normal distribution whose parameters are boosted."""
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=0, verbose=False).fit(X, y)

    def predict(new: np.ndarray) -> Predicted:
        found = model.pred_dist(new)
        return _normal(found.loc, found.scale)

    return predict


def gaussian_process(X: np.ndarray, y: np.ndarray) -> Predictor:
    """On at most ``GP_ROWS`` rows."""
    X, y = X[:GP_ROWS], y[:GP_ROWS]
    kernel = 1.0 * RBF(np.ones(X.shape[1]), (1e-2, 1e3)) + WhiteKernel(0.1, (1e-6, 1e1))
    model = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)).fit(X, y)
    return lambda new: _normal(*model.predict(new, return_std=True))


METHODS: dict[str, Callable[[np.ndarray, np.ndarray], Predictor]] = {
    "kstonet": kstonet,
    "kstonet, one noise": partial(kstonet, residuals="crossfit"),
    "quantile boosting": quantile_boosting,
    "MAPIE, CQR": mapie_cqr,
    "MAPIE, split": mapie_split,
    "NGBoost": ngboost,
    "Gaussian process": gaussian_process,
}
PACKAGES = {"MAPIE, CQR": "mapie", "MAPIE, split": "mapie", "NGBoost": "ngboost"}
COLUMNS = (
    "coverage", "worst_slab", "worst_third", "worst_feature", "width", "score", "coverage_95", "score_95", "crps", "cpu",
)  # fmt: skip


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


def one_part(name: str, number: int, data: str, rows: int, method: str) -> dict[str, Any]:
    """One method on one split."""
    X, y, X_test, y_test = load(name, number, data, rows)
    started = time.process_time()
    predicted = METHODS[method](X, y)(X_test)
    used = time.process_time() - started
    means, bounds, quantiles, extra = predicted
    importance = ExtraTreesRegressor(50, min_samples_leaf=5, random_state=0).fit(X, y).feature_importances_
    feature, scaled, unit = X_test[:, importance.argmax()], StandardScaler().fit(X).transform(X_test), float(np.std(y))
    narrow, wide = bounds[:, :, 0], bounds[:, :, 1]
    slabs = [worst_slab_coverage(y_test, narrow, scaled, n_directions=300, random_state=seed) for seed in range(SEEDS)]
    thirds, by_feature = (coverage_by_quantile(y_test, narrow, values) for values in (means, feature))
    return {
        "rows": len(X),
        "test_rows": len(X_test),
        "coverage": float(coverage(y_test, narrow)),
        "worst_slab": float(np.mean(slabs)),
        "worst_third": thirds.worst,
        "worst_feature": by_feature.worst,
        "thirds": [thirds.coverage.tolist(), thirds.count.tolist()],
        "feature_thirds": [by_feature.coverage.tolist(), by_feature.count.tolist()],
        "width": float(mean_width(narrow)) / unit,
        "score": float(winkler_score(y_test, narrow, LEVELS[0])) / unit,
        "coverage_95": float(coverage(y_test, wide)),
        "score_95": float(winkler_score(y_test, wide, LEVELS[1])) / unit,
        "crps": None if quantiles is None else 2.0 * float(pinball_loss(y_test, quantiles, QUANTILES)) / unit,
        "cpu": used,
        "extra": extra,
    }


Parts = dict[str, dict[str, Any]]


def by_method(parts: Parts) -> dict[str, Parts]:
    """Method to its parts, by "set|split|rows"."""
    found: dict[str, Parts] = {method: {} for method in METHODS}
    for key, part in parts.items():
        place, method = key.rsplit("|", 1)
        found[method][place] = part
    return {method: own for method, own in found.items() if own}


def common_places(found: dict[str, Parts]) -> list[str]:
    """The splits that all methods have done."""
    return sorted(set.intersection(*map(set, found.values())))


def table(found: dict[str, Parts]) -> str:
    """Means over sets and splits, as Markdown: of the splits that all methods have done."""
    common = common_places(found)
    text = f"Means of the {len(common)} splits that all of these methods have done.\n\n"
    lines = ["| | " + " | ".join(column.replace("_", " ") for column in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for method, own in found.items():
        values = [[own[place][column] for place in common] for column in COLUMNS]
        cells = ("–" if not v or None in v else f"{np.mean(v):.3f}" for v in values)
        lines.append(f"| {method} | " + " | ".join(cells) + " |")
    return text + "\n".join(lines) + "\n"


def pooled(own: Sequence[dict[str, Any]], name: str) -> tuple[float, float]:
    """The least coverage of three thirds, each added up over splits, and what it would be on average by chance alone."""
    covered, rows = np.zeros(3), np.zeros(3)
    for part in own:
        shares, counts = part[name]  # equal values stay together, which may leave fewer than three parts
        covered[: len(counts)] += np.array(shares) * counts
        rows[: len(counts)] += counts
    covered, rows = covered[rows > 0], rows[rows > 0]
    drawn = np.random.default_rng(0).binomial(rows.astype(int), LEVELS[0], size=(20_000, len(rows))) / rows
    return float((covered / rows).min()), float(drawn.min(axis=1).mean())


def of_kstonet(chosen: Parts) -> str:
    """The intervals of this library by set, with thirds added up over splits, and what they come to."""
    plain = ("worst_slab", "width", "score", "score_95", "crps", "cpu", "extra")
    heads = (
        "splits", "rows", "test rows", "coverage", "coverage 95", "worst third", "by chance", "worst by feature", "by chance",
        *(column.replace("_", " ") for column in plain),
    )  # fmt: skip
    text = "\n| kstonet | " + " | ".join(heads) + " |\n" + "|---" * (len(heads) + 1) + "|\n"
    found: dict[str, dict[str, float]] = {}
    for name in dict.fromkeys(key.split("|")[0] for key in chosen):
        own = list(by_method(of_set(chosen, name)).get("kstonet", {}).values())
        if not own:
            continue
        tests = [part["test_rows"] for part in own]
        both = [float(np.average([part[column] for part in own], weights=tests)) for column in ("coverage", "coverage_95")]
        thirds = [*pooled(own, "thirds"), *pooled(own, "feature_thirds")]
        means = [float(np.mean([part[column] for part in own])) for column in plain]
        cells = " | ".join(f"{value:.3f}" for value in (*both, *thirds, *means))
        text += f"| {name} | {len(own)} | {own[0]['rows']} | {sum(tests)} | {cells} |\n"
        found[name] = {"rows": own[0]["rows"], "95": both[1], "third": thirds[0], "chance": thirds[1], "slab": means[0]}
    many = {name: row["slab"] for name, row in found.items() if row["rows"] >= MANY}
    columns = {key: [row[key] for row in found.values()] for key in ("95", "third", "chance", "slab")}
    text += f"\nWorst slab: {np.mean(columns['slab']):.3f} on average over sets"
    if many:
        text += f", {min(many.values()):.3f} at least on sets of {MANY:,} rows or more ({min(many, key=many.__getitem__)})"
    third, chance = (f"{np.mean(columns[key]):.3f}" for key in ("third", "chance"))
    text += f". Worst third of the splits together: {third} on average, and by chance {chance}."
    least, most = (f"{100 * of(columns['95']):.1f}" for of in (min, max))
    return text + f" 95 % intervals cover {least} to {most} % on single sets.\n"


def of_set(parts: Parts, name: str) -> Parts:
    """The parts of one set."""
    return {key: part for key, part in parts.items() if key.startswith(f"{name}|")}


def best_or_tied(parts: Parts, column: str) -> tuple[int, int]:
    """On how many sets this library's intervals are best, or not worse than the best (paired t-test, 5 %); and of how many."""
    wins = sets = 0
    for name in (*UCI, *DEVELOPMENT):
        found = by_method(of_set(parts, name))
        own = found.pop("kstonet", {})
        rivals = []
        for method, theirs in found.items():
            common = [place for place in own if place in theirs and theirs[place][column] is not None]
            if not method.startswith("kstonet") and common:
                rivals.append(np.array([[own[place][column], theirs[place][column]] for place in common]))
        if not rivals:
            continue
        sets += 1
        best = min(rivals, key=lambda pairs: float((pairs[:, 1] - pairs[:, 0]).mean()))
        ahead = float((best[:, 1] - best[:, 0]).mean()) >= 0.0
        wins += ahead or (len(best) > 1 and bool(ttest_rel(best[:, 0], best[:, 1]).pvalue > 0.05))
    return wins, sets


def report(parts: Parts) -> str:
    """Tables for every number of rows: means, this library's intervals by set, and the sets on which these are best."""
    text = ""
    for rows in sorted({int(key.split("|")[2]) for key in parts}):
        chosen = {key: part for key, part in parts.items() if key.split("|")[2] == str(rows)}
        found = by_method(chosen)
        text += f"\n## At most {rows:,} training rows\n\n" + table({m: own for m, own in found.items() if m not in PACKAGES})
        if any(method in PACKAGES for method in found):
            text += "\n" + table(found)
        for column, words in (("score", "Interval score of 90 % intervals"), ("crps", "CRPS")):
            wins, sets = best_or_tied(chosen, column)
            if sets:
                text += (
                    f"\n{words}: kstonet is best, or not worse than the best by a paired t-test, on {wins} of {sets} sets.\n"
                )
        text += of_kstonet(chosen)
    return text.strip()


def summary(parts: Parts) -> list[Summary]:
    """One section of docs/results.md, from the largest number of rows; the paper has no such results."""
    if not parts:
        return []
    most = max(int(key.split("|")[2]) for key in parts)
    every = by_method({key: part for key, part in parts.items() if key.split("|")[2] == str(most)})
    found = {method: own for method, own in every.items() if method not in PACKAGES}
    common = common_places(found)

    def means(column: str) -> str:
        return ", ".join(f"{method} {np.mean([own[place][column] for place in common]):.3f}" for method, own in found.items())

    titles = {"worst_slab": "Worst-slab coverage of 90 % intervals", "score": "Interval score of 90 % intervals"}
    note = f"means over {len(common)} splits with at most {most:,} training rows; defaults only"
    return [Summary(title, "–", "–", means(column), note) for column, title in titles.items()]


def available(methods: Sequence[str]) -> list[str]:
    """The methods whose packages are installed."""
    return [method for method in methods if method not in PACKAGES or find_spec(PACKAGES[method])]


def main() -> None:
    """Run what is missing and print the tables."""
    arguments = parser(__doc__ or "", "conditional")
    arguments.add_argument("--sets", nargs="*", default=(*UCI, *DEVELOPMENT), help="names of sets")
    arguments.add_argument("--splits", type=int, default=1, help="splits or folds of every set")
    arguments.add_argument("--rows", type=int, nargs="*", default=[500], help="most training rows")
    arguments.add_argument("--methods", nargs="*", default=list(METHODS), choices=list(METHODS), help="names of methods")
    given = arguments.parse_args()
    results = Results(given.out)
    every = product(given.rows, range(given.splits), given.sets, available(given.methods))
    results.run_all({f"{name}|{k}|{rows}|{m}": partial(one_part, name, k, given.data, rows, m) for rows, k, name, m in every})
    write_report(given.out, "Conditional coverage", "python -m experiments.conditional", report(results.parts))


if __name__ == "__main__":
    main()
