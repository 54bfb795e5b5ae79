"""Data of a kernel-expanded network (Section 3.1, second example): K-StoNets, a KNN and two DNNs.

    python -m experiments.simulated_knn

5,000 training and 5,000 test rows, noise of variance 1. K-StoNet with 5 and with 10 units, C = 5, epsilon = 0.01, 40
iterations, with the appendix's noise and step size, and with automatic ones and softplus (this library's defaults
otherwise). KNN with 5 units by SGD (rate 0.01, as in the published command), DNNs with one and three layers of 50 units
(rate 0.005), batches of 100, 1,000 epochs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from experiments.baselines import DNNRegressor, KernelNetworkRegressor
from experiments.common import Results, parser
from experiments.figures import draw_paths, legend_below, new_figure, save
from experiments.paths import Summary, training_path, write_report
from kstonet import KStoNetRegressor
from kstonet.datasets import make_kernel_network

PAPER, DEFAULTS, WIDE = "K-StoNet, paper's settings", "K-StoNet, defaults", ", 10 units"
# The appendix, "Simulated KNN Data"; its λ is twice this alpha.
PAPER_SETTINGS: dict[str, Any] = {
    "activation": "tanh", "C": 5.0, "epsilon": 0.01, "noise_variance": 1e-3, "step_size": 5e-4, "friction": 0.1,
    "temperature": 1.0, "alpha": 5e-5, "standardize": False,
}  # fmt: skip
SGD: dict[str, Any] = {
    "activation": "tanh", "solver": "sgd", "batch_size": 100, "standardize": False, "dtype": "float32", "random_state": 0,
}  # fmt: skip


SEED = 1  # weights w₂ of a typical size, |w₂|² = 3.4; with seed 0 it is 0.7, and the data are nearly pure noise


@dataclass(frozen=True)
class Size:
    """How much of everything; the default is the paper's."""

    rows: int = 5000
    epochs: int = 1000
    iterations: int = 40


@lru_cache(maxsize=1)
def data(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows; made once, since the five regressions behind them take a while."""
    return make_kernel_network(rows, rows, random_state=SEED)


def models(size: Size) -> dict[str, Callable[[], Any]]:
    """The models, cheap ones first."""

    def kstonet(units: int, **settings: Any) -> Callable[[], KStoNetRegressor]:
        return lambda: KStoNetRegressor(
            (units,), tuning="none", max_iter=size.iterations, residuals=None, random_state=0, **settings
        )

    sgd = {"max_epochs": size.epochs, **SGD}
    return {
        "DNN, one layer": lambda: DNNRegressor((50,), learning_rate=0.005, **sgd),
        "DNN, three layers": lambda: DNNRegressor((50, 50, 50), learning_rate=0.005, **sgd),
        PAPER: kstonet(5, **PAPER_SETTINGS),
        DEFAULTS: kstonet(5, C=5.0),
        PAPER + WIDE: kstonet(10, **PAPER_SETTINGS),
        DEFAULTS + WIDE: kstonet(10, C=5.0),
        "KNN": lambda: KernelNetworkRegressor((5,), learning_rate=0.01, standardize_kernel=True, **sgd),
    }


def one_run(model: Any, rows: int) -> dict[str, Any]:
    """The path of one training, and the test error of the finished model."""
    X, y, X_test, y_test = data(rows)
    path = training_path(model, X, y, X_test, y_test)
    return path | {"model_test": float(np.mean((y_test - model.predict(X_test)) ** 2))}


def run(results: Results, size: Size) -> None:
    """Run what is missing."""
    results.run("data", lambda: {"mean_only": float(np.mean((data(size.rows)[3] - data(size.rows)[1].mean()) ** 2))})
    results.run_all({name: lambda make=make: one_run(make(), size.rows) for name, make in models(size).items()})


def paths_of(parts: dict[str, Any]) -> dict[str, Any]:
    """The finished trainings."""
    return {name: part for name, part in parts.items() if name != "data"}


def table(parts: dict[str, Any]) -> str:
    """Errors, as Markdown."""
    lines = [
        "| model | epochs | training MSE, last | test MSE, last | test MSE, best | test MSE of the model | CPU seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, part in paths_of(parts).items():
        cells = [name, str(part["epoch"][-1])]
        cells += [f"{part[key]:.3f}" for key in ("final_train", "final_test", "best_test", "model_test")]
        lines.append("| " + " | ".join([*cells, f"{part['elapsed'][-1]:.0f}"]) + " |")
    lines.append(f"| the mean of y | – | – | {parts['data']['mean_only']:.3f} | – | – | – |")
    return "\n".join(lines)


NOTES = """
The model of a K-StoNet is the mean over its last ten iterations. The signal of these data is small beside the noise (last
row): a training error of 1, the paper's goal, is the variance of the noise, and a test error can hardly be much below the
last row. The published generator has no tanh, which this one has (the paper's formula).
"""


def picture(parts: dict[str, Any], out: Path) -> None:
    """The paper's figure: training left, testing right."""
    figure, axes = new_figure(1, 2, 9.0, 4.2)
    for ax, which in zip(axes[0], ("train", "test"), strict=True):
        draw_paths(ax, paths_of(parts), which, ylabel=f"{which}ing MSE")
        ax.set_ylim(0.5, 2.0)
        ax.axhline(1.0, color="0.6", linewidth=0.8, label="variance of the noise")
    legend_below(figure, axes, 3)
    save(figure, out)


def summary(parts: dict[str, Any]) -> list[Summary]:
    """The line of this result."""

    def cell(*names: str) -> str:
        found = [(name, parts[name]) for name in names if name in parts]
        return "; ".join(f"{name.split('K-StoNet, ')[-1]} {p['final_train']:.2f} / {p['final_test']:.2f}" for name, p in found)

    return [
        Summary(
            "Simulated KNN data, training / test MSE (Section 3.1)",
            "K-StoNet trains to about 1.0 and is best on test rows (a figure, no numbers)",
            cell(PAPER, PAPER + WIDE, "KNN", "DNN, one layer", "DNN, three layers"),
            cell(DEFAULTS, DEFAULTS + WIDE),
            f"noise of variance 1; predicting the mean of y has a test MSE of {parts['data']['mean_only']:.2f}",
        )
    ]


def main() -> None:
    """Run what is missing; write table and picture."""
    given = parser(__doc__ or "", "simulated_knn").parse_args()
    results = Results(given.out)
    run(results, Size())
    text = table(results.parts) + "\n" + NOTES
    write_report(given.out, "Simulated KNN data (Section 3.1)", "python -m experiments.simulated_knn", text)
    picture(results.parts, given.out)


if __name__ == "__main__":
    main()
