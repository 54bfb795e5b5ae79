"""Regressions that rest at the mean of their ridge regressions, beside the same with six iterations.

    python benchmarks/resting.py --data DIR [--tables DIR] [--sizes 250 800] [--draws 1] [--jobs 2]

What is compared
    KStoNetRegressor with its defaults, which rests as soon as iterations no longer help at rows that are hidden from a second
    chain, and the same without that rule. Both choose the same kernels.

The data
    Training rows of ``<DIR>/<set>/data.npz`` of ``--data`` (those of the first test fold or split are left out), and
    ``<DIR>/reg/<name>.npz`` of ``--tables`` with arrays X (numbers) and y. n rows are drawn for training and up to 2,500 others
    for testing.

How it is measured
    One thread per fit, ``--jobs`` processes. CPU seconds are those of ``fit``, choice and intervals included. Finished parts
    are kept in the results file (JSON lines).
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from itertools import product
from pathlib import Path
from unittest import mock

import numpy as np

from _comparison import Record, Results, geometric_mean, mean, median, opening, remarks, run_tables, table, timed_fit
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.metrics import coverage, winkler_score
from kstonet.targets import NumericTargets

RESULTS = Path(__file__).parent / "results"
RESTS, GOES_ON = "kstonet", "kstonet, six iterations"
FEWEST_TEST_ROWS, TEST_ROWS = 60, 2500


def load(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """Rows and targets, without those of the first test fold or split."""
    with np.load(path, allow_pickle=False) as stored:
        X, y = stored["X"].astype(float), stored["y"].astype(float).ravel()
        if "fold" in stored:
            kept = np.flatnonzero(stored["fold"] != 0)
        else:
            kept = stored["train_idx"][0] if "train_idx" in stored else np.arange(len(y))
    return X[kept], y[kept]


def endless() -> AbstractContextManager[object]:
    """Within it, regressions do not rest."""
    return mock.patch.object(NumericTargets, "rest_after", return_value=None)


def measure(path: Path, part: Record) -> Record:
    """Fit one model on one draw."""
    return measured(path, part, {GOES_ON: endless})


def measured(path: Path, part: Record, without: dict[str, Callable[[], AbstractContextManager[object]]]) -> Record:
    """Fit the first call on one draw, in the context of its model's name if it has one."""
    X, y = load(path)
    order = np.random.default_rng(1000 + part["fold"]).permutation(len(y))
    train, test = order[: part["n"]], order[part["n"] : part["n"] + TEST_ROWS]
    with without.get(part["model"], nullcontext)(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, seconds = timed_fit(lambda: KStoNetRegressor(random_state=0, n_jobs=1).fit(X[train], y[train]))
    bounds = model.predict_interval(X[test], 0.95)
    return part | {
        "cpu_s": seconds["cpu_s"],
        "error": float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)) / y[test].std()),
        "coverage_95": float(coverage(y[test], bounds)),
        "interval_score": float(winkler_score(y[test], bounds, 0.95)) / float(y[test].std()),
    }


def parts_of(
    paths: dict[str, Path], sizes: list[int], draws: int, models: tuple[str, str] = (RESTS, GOES_ON)
) -> list[tuple[Path, Record]]:
    """What is to be measured: both models on all draws of the regressions that have enough rows."""
    parts = []
    for name, path in paths.items():
        with np.load(path, allow_pickle=False) as stored:
            if stored["y"].dtype.kind != "f":  # classes
                continue
        rows = len(load(path)[1])
        for n, fold, model in product(sizes, range(draws), models):
            if n + FEWEST_TEST_ROWS <= rows:
                parts.append((path, {"set": name, "n": n, "fold": fold, "model": model}))
    return parts


def page(results: Results) -> str:
    """The table of the results."""
    return compared(results, "Regressions that rest", (RESTS, GOES_ON), ("at rest", "with six iterations"))


def compared(results: Results, title: str, models: tuple[str, str], said: tuple[str, str]) -> str:
    """A page that compares the first of two models with the second."""
    text = opening(results, title)
    text += f"Ratios to the figures {said[1]}, over all tables and draws; 95 % intervals of single fits.\n\n"
    found = {(r["set"], r["n"], r["fold"], r["model"]): r for r in results.finished()}
    rows = []
    for n in sorted({key[1] for key in found}):
        both = [(r, found.get((*key[:3], models[1]))) for key, r in found.items() if key[1] == n and key[3] == models[0]]
        pairs = [(own, other) for own, other in both if other is not None]
        if not pairs:
            continue
        errors, scores = ([own[field] / other[field] for own, other in pairs] for field in ("error", "interval_score"))
        cells = [f"{n:,}", str(len(pairs)), f"{geometric_mean(errors):.4f}", f"{median(errors):.4f}"]
        cells += [f"{min(errors):.2f} to {max(errors):.2f}", f"{geometric_mean(scores):.4f}", f"{median(scores):.4f}"]
        for column in zip(*pairs, strict=True):
            covered = [record["coverage_95"] for record in column]
            cells.append(f"{mean(covered):.1%}, {min(covered):.1%} to {max(covered):.1%} (± {np.std(covered):.1%})")
        cells.append(f"{median([own['cpu_s'] / other['cpu_s'] for own, other in pairs]):.2f}")
        rows.append(cells)
    header = ["rows", "fits", "error, geometric mean", "median", "range", "interval score, geometric mean", "median"]
    header += [f"intervals cover, {said[0]}", said[1], "CPU time, median"]
    return text + table(header, rows) + remarks(results)


def run(
    description: str | None,
    script: Path,
    measure: Callable[[Path, Record], Record],
    models: tuple[str, str],
    page: Callable[[Results], str],
    sizes: list[int],
) -> None:
    """Measure what is missing, and write the page."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", metavar="DIR", type=Path, required=True, help="folder of the sets")
    parser.add_argument("--tables", metavar="DIR", type=Path, help="folder of further tables")
    parser.add_argument("--sizes", nargs="+", type=int, metavar="N", default=sizes, help="training rows")
    parser.add_argument("--draws", type=int, metavar="COUNT", default=1)
    parser.add_argument("--jobs", type=int, metavar="COUNT", default=1, help="fits at a time")
    parser.add_argument("--out", metavar="FILE", type=Path, default=RESULTS / f"{script.stem}.json")
    arguments = parser.parse_args()
    paths = {path.parent.name: path for path in sorted(arguments.data.glob("*/data.npz"))}
    if arguments.tables is not None:
        paths |= {path.stem: path for path in sorted((arguments.tables / "reg").glob("*.npz"))}
    results = Results(arguments.out)
    run_tables(script, measure, parts_of(paths, arguments.sizes, arguments.draws, models), results, arguments.jobs)
    write_whole(results.path.with_suffix(".md"), page(results))
    print(page(results))


if __name__ == "__main__":
    run(__doc__, Path(__file__).resolve(), measure, (RESTS, GOES_ON), page, [250, 800])
