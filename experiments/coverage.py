"""Do prediction intervals cover? The paper's experiment (Section 5.2), and the UCI sets.

    python -m experiments.coverage simulated [--sets 100]
    python -m experiments.coverage uci [--uci-sets yacht ...] [--splits 20] [--data DIR]

``simulated``: training sets of 500 rows of the measurement-error data and one test set of 500; coverage of nominal 95 %
intervals, averaged over the test points, mean and standard deviation over the training sets. "paper" has the settings of the
paper's appendix, as printed, and its formula (training residuals), at the last iterate and averaged over 25; "published code"
has what the published code is called with for this example instead (C = 1, Lasso, larger steps) and the same formula;
"default" has this library's defaults. A picture in the paper's form shows 20 test points. ``uci`` compares the three kinds of
residuals on the original splits, everything else the default: nothing is tuned, nothing set aside. Honest residuals give the
widths by their counted quantiles; beside them stand the quantiles of the Student's t that was fitted to them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from experiments.common import Results, parser, rmse
from experiments.figures import BLACK, BLUE, legend_below, new_figure, save
from experiments.splits import Split
from experiments.uci import LEVELS, SETS
from kstonet import KStoNetRegressor
from kstonet._files import write_whole
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage, crps_student, mean_width, nll_student, winkler_score
from kstonet.uncertainty.distribution import PredictiveDistribution

# The appendix, Section "uncertainty2num".
PAPER = {
    "activation": "tanh", "C": 10.0, "epsilon": 0.05, "noise_variance": 1e-3, "step_size": 5e-6, "friction": 0.1,
    "temperature": 1.0, "penalty": "none", "residuals": "training", "max_iter": 50,
}  # fmt: skip
PUBLISHED_CODE = PAPER | {"C": 1.0, "step_size": 5e-5, "friction": 1.0, "penalty": "lasso", "alpha": 5e-5}
SETTINGS: dict[str, dict[str, Any]] = {
    "paper, last iterate": PAPER | {"n_average": 1},
    "paper, averaged over 25": PAPER | {"n_average": 25},
    "published code, last iterate": PUBLISHED_CODE | {"n_average": 1},
    "published code, averaged over 25": PUBLISHED_CODE | {"n_average": 25},
    "paper's network, cross-fitted residuals": PAPER | {"n_average": 25, "residuals": "crossfit"},
    "default, last iterate": {"n_average": 1},
    "default": {},
}
PICTURE, SHOWN, POINTS = "picture", ("paper, last iterate", "default"), 20
KINDS = ("training", "crossfit")
STUDENT = ", Student's t"


def scores(distribution: PredictiveDistribution, y: np.ndarray) -> dict[str, float]:
    """Coverage, width and scores of a model's intervals."""
    bounds = distribution.interval(LEVELS)
    out = {"rmse": rmse(y, distribution.mean)}
    for i, level in enumerate(LEVELS):
        out |= {f"coverage_{level}": float(coverage(y, bounds[:, :, i])), f"width_{level}": float(mean_width(bounds[:, :, i]))}
    out["winkler_0.95"] = float(winkler_score(y, bounds[:, :, LEVELS.index(0.95)], 0.95))
    out["nll"] = float(nll_student(y, distribution.mean, distribution.std, distribution.df))
    return out | {"crps": float(crps_student(y, distribution.mean, distribution.std, distribution.df))}


def trained(seed: int, names: Iterable[str]) -> tuple[dict[str, KStoNetRegressor], np.ndarray, np.ndarray]:
    """Models of some settings on one simulated training set, and the test rows."""
    X, y = make_measurement_error(500, random_state=seed)
    models = {name: KStoNetRegressor(tuning="none", random_state=seed, **SETTINGS[name]).fit(X, y) for name in names}
    return models, *make_measurement_error(500, random_state=10_000)


def one_set(seed: int) -> dict[str, Any]:
    """All settings on one simulated training set."""
    models, X_test, y_test = trained(seed, SETTINGS)
    return {name: scores(model.predict_dist(X_test), y_test) for name, model in models.items()}


def picture_points() -> dict[str, Any]:
    """Observations of some test points and the intervals of models trained on the first training set."""
    models, X_test, y_test = trained(0, SHOWN)
    bounds = {name: model.predict_interval(X_test[:POINTS]).tolist() for name, model in models.items()}
    return {"observed": y_test[:POINTS].tolist()} | bounds


def picture(points: dict[str, Any], out: Path) -> None:
    """95 % intervals of the test points and what was observed, as in the paper's figure."""
    observed = np.array(points["observed"])
    places = np.arange(1, len(observed) + 1)
    figure, axes = new_figure(1, len(SHOWN), 10, 3.6)
    axes[0, 1].sharey(axes[0, 0])
    for ax, name in zip(axes.flat, SHOWN, strict=True):
        bounds = np.array(points[name])
        middle, half = bounds.mean(axis=1), np.ptp(bounds, axis=1) / 2
        ax.errorbar(places, middle, half, fmt="none", capsize=3, color=BLACK, label="95 % prediction interval")
        ax.plot(places, observed, "*", color=BLUE, markersize=8, label="observed")
        inside = round(coverage(observed, bounds) * len(observed))
        ax.set(title=f"{name}: {inside} of {len(observed)} inside", xlabel="test point", xticks=places[4::5])
        ax.grid(alpha=0.25, linewidth=0.5)
    axes[0, 0].set_ylabel("response")
    legend_below(figure, axes, 2)
    save(figure, out)


def one_split(name: str, number: int, data: str | None) -> dict[str, Any]:
    """All kinds of residuals on one split of a UCI set."""
    split = Split.load(name, number, data)
    X, y = split.rows
    models = {kind: KStoNetRegressor(tuning="none", residuals=kind, random_state=0).fit(X, y) for kind in KINDS}
    judged = split.judge(models, with_student)
    honest = {f"{kind}{STUDENT}": judged[kind][STUDENT] for kind in KINDS[1:]}
    return {kind: judged[kind][""] for kind in KINDS} | honest


def with_student(model: KStoNetRegressor, X: np.ndarray, y: np.ndarray) -> dict[str, dict[str, float]]:
    """Scores of a fitted model's intervals, and of those with the quantiles of its Student's t."""
    distribution = model.predict_dist(X)
    return {"": scores(distribution, y), STUDENT: scores(replace(distribution, factor=None), y)}


def table(rows: dict[str, list[dict[str, float]]], deviation: bool) -> str:
    """Means over training sets or splits, as Markdown."""
    lines = ["| | coverage 80 % | 90 % | 95 % | width 95 % | RMSE | NLL | CRPS |", "|---|---|---|---|---|---|---|---|"]
    for name, parts in rows.items():
        cells = []
        for level in LEVELS:
            values = 100 * np.array([part[f"coverage_{level}"] for part in parts])
            cells.append(f"{values.mean():.2f}" + (f" (sd {values.std(ddof=1):.2f})" if deviation and len(values) > 1 else ""))
        for field in ("width_0.95", "rmse", "nll", "crps"):
            cells.append(f"{np.mean([part[field] for part in parts]):.4g}" if field in parts[0] else "–")
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    """Run what is missing and print the tables."""
    arguments = parser(__doc__ or "", "coverage")
    arguments.add_argument("which", choices=("simulated", "uci"))
    arguments.add_argument("--sets", type=int, default=100, help="training sets of the simulated experiment")
    arguments.add_argument("--splits", type=int, default=20, help="splits of the UCI sets")
    arguments.add_argument("--uci-sets", nargs="*", default=SETS, help="names of UCI sets")
    given = arguments.parse_args()
    results = Results(given.out)
    if given.which == "simulated":
        results.run(PICTURE, picture_points)
        results.run_all({f"simulated|{seed}": partial(one_set, seed) for seed in range(given.sets)})
    else:
        splits = product(range(given.splits), given.uci_sets)
        results.run_all({f"uci|{name}|{number}": partial(one_split, name, number, given.data) for number, name in splits})
    text = "# Coverage of prediction intervals\n\nMade by `python -m experiments.coverage simulated` and `... uci`.\n"
    simulated = [part for key, part in results.parts.items() if key.startswith("simulated|")]
    if simulated:
        text += f"\n## Measurement-error data, {len(simulated)} training sets (paper: 93.81 last iterate, 94.03 averaged)\n\n"
        text += table({name: [part[name] for part in simulated] for name in SETTINGS}, deviation=True) + "\n"
    for name in dict.fromkeys(key.split("|")[1] for key in results.parts if key.startswith("uci|")):
        parts = [part for key, part in results.parts.items() if key.startswith(f"uci|{name}|")]
        text += f"\n## {name}, {len(parts)} splits\n\n"
        text += table({kind: [part[kind] for part in parts] for kind in parts[0] if kind != "seconds"}, deviation=False) + "\n"
    write_whole(given.out.with_suffix(".md"), text)
    if PICTURE in results.parts:
        picture(results.parts[PICTURE], given.out)
    print(text)


if __name__ == "__main__":
    main()
