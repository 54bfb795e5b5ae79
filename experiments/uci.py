"""The UCI sets on their original splits: K-StoNet, its own first layer (an equally tuned SVR), and rivals.

    python -m experiments.uci [--sets yacht ...] [--splits 5] [--columns defaults tuned ...] [--device cuda] [--data DIR]

Columns:

defaults
    ``KStoNetRegressor()``, the first call: kernel, scales, ridge and size chosen from the training rows (tuning="fast").
fixed
    ``KStoNetRegressor(tuning="none")``: fixed settings, nothing is chosen.
paper
    The paper's architecture and settings: 5 units, C of {1, 2, 5, 10, 20} chosen on a ninth of the training rows. Means only.
rbf
    C and gamma of an RBF kernel chosen on validation parts of the training rows; 5 units, everything else the default.
tuned
    Everything "tune": kernel, gamma, length scales, C, units, noise; ten chains, three on the larger sets.
rivals
    Random forest, gradient boosting, Gaussian process (at most 1,000 rows), at scikit-learn's settings, and NGBoost at its own
    where it is installed.
networks
    The paper's comparators: its KNN (where the kernel matrix of the rows is its input: not on the largest sets), a DNN of 50
    units (Adam, 400 epochs), and the same with MC dropout.

YearPredictionMSD is run on 10,000 of its training rows and all of its test rows.

Beside every network stands its first layer alone. Beside "defaults" this is the kernel ridge regression that won the choice,
and in a table of its own the support vector regression with the same kernel, whose C and epsilon are searched; elsewhere it is
an SVR: beside "fixed" and "paper" with the same kernel and C, beside "rbf" and "tuned" with the same grid, the same validation
parts and the same rule (smallest mean error). Test rows are used once, by finished models (:mod:`experiments.splits`).
"""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from sklearn.pipeline import Pipeline

from experiments.common import Results, parser, rmse
from experiments.splits import Split
from experiments.uci_models import NETWORKS, RIVALS, ChosenSVR, fitted_network, networks, rivals, without_network
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.datasets import list_datasets
from kstonet.metrics import coverage, mean_width, nll_gaussian, winkler_score

SETS = ("yacht", "bostonHousing", "energy", "concrete", "wine-quality-red")
LARGE = ("kin8nm", "power-plant", "naval-propulsion-plant", "protein-tertiary-structure", "YearPredictionMSD")
SPLITS = {info.name: info.n_splits for info in list_datasets()}  # that exist
ROWS = {"YearPredictionMSD": 10_000}  # training rows taken, of 463,715; the test rows are all looked at
LEVELS = (0.8, 0.9, 0.95)
COLUMNS = ("defaults", "fixed", "paper", "rbf", "tuned")
OTHERS = {"rivals": RIVALS, "networks": NETWORKS}
# CPU seconds of one iteration of the published code, one thread; measured but for the last two, larger than kin8nm.
PUBLISHED_SECONDS = {
    "yacht": 1.5, "bostonHousing": 0.30, "energy": 0.71, "concrete": 0.94, "wine-quality-red": 3.1, "kin8nm": 108.0,
    "power-plant": 108.0, "naval-propulsion-plant": 108.0,
}  # fmt: skip


def one_split(
    name: str, number: int, column: str, data: str | None, device: str | None = None, n_jobs: int | None = None
) -> dict[str, Any]:
    """Fit the models of a column on the training rows of one split, then judge them."""
    split = Split.load(name, number, data, ROWS.get(name))
    X, y = split.rows
    if column in OTHERS:
        others = (rivals if column == "rivals" else networks)(len(X))
        return split.judge({other: model.fit(X, y) for other, model in others.items()}, plain_scores)
    network = fitted_network(column, name, X, y, device, n_jobs)
    alone = without_network(column, network)
    models = {"kstonet": network, "svr": alone.fit(X, y)}
    if column == "defaults":
        models["machine"] = ChosenSVR(network).fit(X, y)
    judged = scores if network.residuals is not None else plain_scores
    scored = split.judge(models, lambda model, *rows: (judged if model is network else plain_scores)(model, *rows))
    machine = {"machine_rmse": scored["machine"]["rmse"]} if "machine" in scored else {}
    return {
        **scored["kstonet"],
        "svr_rmse": scored["svr"]["rmse"],
        **machine,
        "n_chains": network.n_chains,
        "device": device or "cpu",
        "chosen": network.tuning_["reason"] if hasattr(network, "tuning_") else "",
        "svr_chosen": {key: str(value) for key, value in alone.choice.items()},
    }


def plain_scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """The error of the means, and of the predictive distribution where there is one."""
    found = {"rmse": rmse(y, model.predict(X))}
    if hasattr(model, "pred_dist"):
        found["nll"] = float(-model.pred_dist(X).logpdf(y).mean())
    elif isinstance(model, Pipeline) or getattr(model, "dropout", 0):
        found["nll"] = float(nll_gaussian(y, *model.predict(X, return_std=True)))
    return found


def scores(model: KStoNetRegressor, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """Errors and intervals of a fitted K-StoNet."""
    distribution = model.predict_dist(X)
    counted, student = (d.interval(LEVELS) for d in (distribution, distribution.uncalibrated))
    levels = list(enumerate(map(str, LEVELS)))
    return {
        "rmse": rmse(y, distribution.mean),
        "nll": distribution.nll(y),
        "crps": distribution.crps(y),
        "coverage": {level: float(coverage(y, counted[:, :, i])) for i, level in levels},
        "width": {level: float(mean_width(counted[:, :, i])) for i, level in levels},
        "winkler_95": float(winkler_score(y, counted[:, :, 2], 0.95)),
        "student_coverage": {level: float(coverage(y, student[:, :, i])) for i, level in levels},
        "student_width": {level: float(mean_width(student[:, :, i])) for i, level in levels},
    }


def summary(results: Results) -> str:
    """Markdown tables: means over the splits with their standard errors, and the paired comparison with the SVR."""
    lines = [
        "| set | column | splits | K-StoNet RMSE | first layer alone | p (paired t) | NLL | CRPS | coverage 80 / 90 / 95 % "
        "| width 95 % | with Student's t |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name in (*SETS, *LARGE):
        for column in COLUMNS:
            rows = _parts(results, name, column)
            if rows:
                lines.append(_line(name, column, rows))
    others = [_machines(results), *(_others(results, *each) for each in OTHERS.items())]
    return "\n\n".join(["\n".join(lines), *filter(None, others)])


def _machines(results: Results) -> str:
    """First calls beside the support vector regression with their best kernel; nothing where none was run."""
    lines = [
        "| set | splits | first call RMSE | SVR with its best kernel | ratio | p (paired t) |",
        "|---|---|---|---|---|---|",
    ]
    for name in (*SETS, *LARGE):
        rows = [row for row in _parts(results, name, "defaults") if "machine_rmse" in row]
        if rows:
            own, machine = ([row[field] for row in rows] for field in ("rmse", "machine_rmse"))
            ratio = f"{np.mean(own) / np.mean(machine):.3f}"
            cells = [name, str(len(rows)), _with_error(own), _with_error(machine), ratio, _paired(own, machine)]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def _others(results: Results, column: str, models: tuple[str, ...]) -> str:
    """The table of other models; nothing where none was run."""
    lines = [f"| set | splits | {' | '.join(models)} |", "|---" * (2 + len(models)) + "|"]
    for name in (*SETS, *LARGE):
        rows = _parts(results, name, column)
        if rows:
            lines.append(f"| {name} | {len(rows)} | " + " | ".join(_other_cell(rows, model) for model in models) + " |")
    return "\n".join(lines) if len(lines) > 2 else ""


def times(results: Results, splits: int = 20, iterations: int = 40) -> str:
    """How long fixed settings take, with intervals, scores and the SVR beside them; and the published code, training alone."""
    lines = ["| set | splits run | seconds a split | hours for 20 | published code, hours for 20 (training, 40 iterations) |"]
    lines += ["|---|---|---|---|---|"]
    total = published = 0.0
    for name, iteration in PUBLISHED_SECONDS.items():
        seconds = [part["seconds"] for part in _parts(results, name, "fixed")]
        if not seconds:
            return ""
        own, theirs = splits * np.mean(seconds) / 3600, splits * iterations * iteration / 3600
        total, published = total + own, published + theirs
        least = "at least " if name in ("power-plant", "naval-propulsion-plant") else ""
        lines.append(f"| {name} | {len(seconds)} | {np.mean(seconds):.1f} | {own:.3g} | {least}{theirs:.3g} |")
    lines.append(f"| all of these | | | {total:.3g} | at least {published:.3g} |")
    return "\n## Time at fixed settings, one thread\n\n" + "\n".join(lines) + "\n"


def _parts(results: Results, name: str, column: str) -> list[dict[str, Any]]:
    return [part for key, part in results.parts.items() if key.startswith(f"{name}|") and key.endswith(f"|{column}")]


def _other_cell(rows: list[dict[str, Any]], model: str) -> str:
    found = [row[model] for row in rows if model in row]
    if not found:
        return ""
    cell = _with_error([one["rmse"] for one in found])
    return f"{cell} (NLL {np.mean([one['nll'] for one in found]):.3g})" if "nll" in found[0] else cell


def _with_error(values: list[float]) -> str:
    if len(values) == 1:
        return f"{values[0]:.4g}"
    return f"{np.mean(values):.4g} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2g}"


def _paired(own: list[float], other: list[float]) -> str:
    return f"{stats.ttest_rel(own, other).pvalue:.2g}" if len(own) > 1 else ""


def _line(name: str, column: str, rows: list[dict[str, Any]]) -> str:
    own, svr = [row["rmse"] for row in rows], [row["svr_rmse"] for row in rows]
    cells = [name, column, str(len(rows)), _with_error(own), _with_error(svr), _paired(own, svr)]
    judged = [row for row in rows if "coverage" in row]  # files may hold means only
    if not judged:
        return "| " + " | ".join([*cells, *["–"] * 5]) + " |"

    def mean(field: str, level: str | None = None) -> float:
        return float(np.mean([row[field] if level is None else row[field][level] for row in judged]))

    counted, student = (
        " / ".join(f"{100 * mean(field, str(level)):.1f}" for level in LEVELS) for field in ("coverage", "student_coverage")
    )
    counted += f" ({len(judged)} of the splits)" if len(judged) < len(rows) else ""
    cells += [f"{mean('nll'):.3g}", f"{mean('crps'):.3g}", counted, f"{mean('width', '0.95'):.3g}", student]
    return "| " + " | ".join(cells) + " |"


def write(results: Results) -> str:
    """The tables as a Markdown file beside the results."""
    table = summary(results)
    on_gpu = dict.fromkeys(key.split("|")[0] for key, part in results.parts.items() if part.get("device", "cpu") != "cpu")
    text = "# UCI sets, original splits\n\nMade by `python -m experiments.uci` (± standard error over the splits; columns and "
    text += "rules in its first lines).\n"
    if on_gpu:
        text += f"Trained with the Gram matrix on a GPU (`--device cuda`): {', '.join(on_gpu)}.\n"
    text += _remarks(results)
    write_whole(results.path.with_suffix(".md"), f"{text}\n{table}\n{times(results)}")
    return table


def _remarks(results: Results) -> str:
    """Parts that were made by earlier code, and what was different about it."""
    said: dict[str, dict[str, list[str]]] = {}
    for key, part in results.parts.items():
        name, number, column = key.split("|")
        if "remark" in part:
            said.setdefault(part["remark"], {}).setdefault(f"{name} ({column})", []).append(number)
    lines = []
    for remark, sets in said.items():
        places = "; ".join(f"{name} splits {', '.join(sorted(numbers, key=int))}" for name, numbers in sets.items())
        lines.append(f"- made by earlier code ({remark}): {places}")
    return "\n" + "\n".join(lines) + "\n" if lines else ""


def main() -> None:
    """Run what is missing and print the table."""
    arguments = parser(__doc__ or "", "uci")
    arguments.add_argument("--sets", nargs="*", default=SETS)
    arguments.add_argument("--splits", type=int, default=5)
    every = (*COLUMNS, *OTHERS)
    arguments.add_argument("--columns", nargs="*", default=every, choices=every)
    arguments.add_argument("--device", help="where Gram matrices live, for example cuda; default: the CPU")
    arguments.add_argument("--n-jobs", type=int, help="threads")
    given = arguments.parse_args()
    results = Results(given.out)
    results.run_all(
        {
            f"{name}|{number}|{column}": partial(one_split, name, number, column, given.data, given.device, given.n_jobs)
            for number, name, column in product(range(given.splits), given.sets, given.columns)
            if number < SPLITS.get(name, given.splits)
        }
    )
    print(write(results))


if __name__ == "__main__":
    main()
