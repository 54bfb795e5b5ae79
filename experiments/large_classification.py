"""MNIST (Section 4.2) and CoverType (Section 4.3), on a stated number of rows or on all of them.

    python -m experiments.large_classification [--sets mnist covertype] [--rows N] [--models NAME ...] [--device cuda]

``--rows`` is the number of training rows, and of test rows (where there are as many); 0 takes all: the official split of
MNIST, two stratified halves of CoverType. Default: 5,000. The rows are prepared as in the published code: pixels
with the mean and deviation of all pixels, the ten numeric columns of CoverType standardised. MNIST: K-StoNet with 20 units,
6 iterations, beside LeNet-300-100 (Adam, 300 epochs). CoverType: K-StoNet with 50 units and four values of gamma, 2
iterations, beside a DNN with 1,000 and 50 units (SGD with momentum). "Defaults" has this library's settings for the same
units; "first call" is ``KStoNetClassifier(random_state=0)`` with everything chosen from the training rows, intervals included.
SVM and kernel ridge regression (one against the rest) have the RBF kernel, their C or ridge and gamma chosen by three folds of
2,000 training rows (:mod:`experiments.machines`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from experiments.baselines import DNNClassifier
from experiments.common import Results, parser
from experiments.figures import draw_paths, legend_below, new_figure, save
from experiments.machines import searched
from experiments.paths import Summary, training_path, write_report
from kstonet import KStoNetClassifier, datasets

PAPER, DEFAULTS, FIRST_CALL = "K-StoNet, paper's settings", "K-StoNet, defaults", "K-StoNet, first call"
DNN, SVM, RIDGE = "DNN", "SVM", "kernel ridge"
MODELS = (DNN, PAPER, DEFAULTS, FIRST_CALL, SVM, RIDGE)
MACHINES = {SVM: "C", RIDGE: "ridge"}
SETS = ("mnist", "covertype")
ROWS, ALL_ROWS = 5000, (60_000, 290_506)
WATCHED = 20_000  # test rows whose accuracy is followed during a training, which keeps their kernel values
PUBLISHED = {"mnist": {PAPER: (100.0, 98.87), DNN: (100.0, 98.38)}, "covertype": {PAPER: (99.29, 94.23), DNN: (98.13, 94.07)}}
# The appendix. The values of gamma that it prints for CoverType are those of the published code's 1/gamma.
PAPER_SETTINGS: dict[str, dict[str, Any]] = {
    "mnist": {
        "activation": "softplus", "C": 10.0, "epsilon": 1e-4, "noise_variance": 1e-9, "step_size": 5e-13, "gamma": "auto",
    },
    "covertype": {
        "activation": "tanh", "C": 10.0, "epsilon": 0.01, "noise_variance": 0.005, "step_size": 5e-5,
        "gamma": [2.0] * 29 + [1.0] * 10 + [0.5] * 5 + [0.2] * 6,
    },
}  # fmt: skip
SHARED: dict[str, Any] = {"friction": 0.1, "temperature": 1.0, "alpha": 1e-4}

Split = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Size:
    """Units and epochs; the default is the paper's."""

    units: int
    iterations: int
    default_iterations: int
    layers: tuple[int, int]
    epochs: int


SIZES = {"mnist": Size(20, 6, 15, (300, 100), 300), "covertype": Size(50, 2, 15, (1000, 50), 200)}


def prepare(name: str, X: np.ndarray, y: np.ndarray, rows: int) -> Split:
    """Training and test rows of a set, at most ``rows`` of each (0: all), prepared as in the published code."""
    if name == "mnist":
        train, test = np.arange(60_000), np.arange(60_000, 70_000)
        rng = np.random.default_rng(0)
        train, test = (rng.permutation(part)[: rows or None] for part in (train, test))
        pixels = (X[np.concatenate([train, test])].astype(np.float64) / 255.0 - 0.1307) / 0.3081
        return pixels[: len(train)], y[train], pixels[len(train) :], y[test]
    train, test = train_test_split(np.arange(len(X)), train_size=0.5, stratify=y, random_state=1)
    train, test = train[: rows or None], test[: rows or None]
    X_train, X_test = (X[part].astype(np.float64) for part in (train, test))
    mean, deviation = X_train[:, :10].mean(axis=0), X_train[:, :10].std(axis=0)
    for part in (X_train, X_test):
        part[:, :10] = (part[:, :10] - mean) / deviation
    return X_train, y[train], X_test, y[test]


@lru_cache(maxsize=1)
def load(name: str, rows: int, data: str | None) -> Split:
    """The rows of one set, read once."""
    X, y = datasets.load(name, data_home=data, return_X_y=True)
    return prepare(name, X, y, rows)


def models(name: str, size: Size, device: str | None = None) -> dict[str, Callable[[], Any]]:
    """The models of one set, K-StoNets with their kernel matrix on a device."""
    kstonet: dict[str, Any] = {"hidden_layer_sizes": (size.units,), "standardize": False, "residuals": None}
    kstonet |= {"random_state": 0, "device": device}
    solver = {"solver": "adam", "learning_rate": 0.001, "batch_size": 128}
    if name == "covertype":
        solver = {"solver": "momentum", "learning_rate": 0.01, "batch_size": 500}
    return {
        DNN: lambda: DNNClassifier(
            size.layers, "relu", max_epochs=size.epochs, standardize=False, dtype="float32", random_state=0, **solver
        ),
        PAPER: lambda: KStoNetClassifier(
            tuning="none",
            max_iter=size.iterations,
            n_average=min(size.iterations, 3),
            **kstonet,
            **SHARED,
            **PAPER_SETTINGS[name],
        ),
        DEFAULTS: lambda: KStoNetClassifier(tuning="none", max_iter=size.default_iterations, **kstonet),
        FIRST_CALL: lambda: KStoNetClassifier(random_state=0, device=device),
    }


def one_run(model: Any, split: Split) -> dict[str, Any]:
    """The path of one training, and the accuracy of the finished model."""
    X, y, X_test, y_test = split
    path = training_path(model, X, y, X_test[:WATCHED], y_test[:WATCHED])
    rows = {"train_rows": len(X), "test_rows": len(X_test)}
    return path | rows | {"model_train": float(model.score(X, y)), "model_test": float(model.score(X_test, y_test))}


def one_machine(machine: str, split: Split) -> dict[str, Any]:
    """Accuracy, settings and CPU seconds of a model without a path, its search included."""
    X, y, X_test, y_test = split
    started = time.process_time()
    model, settings = searched(MACHINES[machine], X, y)
    part = {"cpu_seconds": time.process_time() - started, "train_rows": len(X), "test_rows": len(X_test), "chosen": settings}
    return part | {"model_test": float(model.score(X_test, y_test))}


def run(
    results: Results,
    name: str,
    rows: int,
    split: Callable[[], Split],
    size: Size,
    wanted: Sequence[str] = MODELS,
    device: str | None = None,
) -> None:
    """Run what is missing of one set; sizes of the same set stand beside each other in the results."""
    calls: dict[str, Callable[[], dict[str, Any]]] = {
        model: lambda make=make: one_run(make(), split()) for model, make in models(name, size, device).items()
    }
    calls |= {machine: lambda machine=machine: one_machine(machine, split()) for machine in MACHINES}
    results.run_all({f"{name}|{rows}|{model}": calls[model] for model in wanted})


def finished(parts: dict[str, Any]) -> list[tuple[str, str, dict[str, dict[str, Any]]]]:
    """Set, rows and trainings by model."""
    pairs = dict.fromkeys(tuple(key.split("|")[:2]) for key in parts)
    return [
        (name, rows, {key.split("|")[2]: part for key, part in parts.items() if key.startswith(f"{name}|{rows}|")})
        for name, rows in pairs
    ]


def table(parts: dict[str, Any]) -> str:
    """Accuracies, ours and the paper's, as Markdown."""
    lines = [
        "| set | training / test rows | model | epochs | training | test, last epoch | test, model | "
        "paper, all rows: training | test | CPU seconds |",
        "|---" * 10 + "|",
    ]
    for name, _, found in finished(parts):
        for model, part in found.items():
            theirs = [f"{value:.2f}" for value in PUBLISHED[name].get(model, ())] or ["–", "–"]
            has_path = "epoch" in part
            cells = [
                name,
                f"{part['train_rows']:,} / {part['test_rows']:,}",
                model,
                str(part["epoch"][-1]) if has_path else "–",
            ]
            cells += [f"{100 * part[key]:.2f}" if key in part else "–" for key in ("final_train", "final_test", "model_test")]
            seconds = part["elapsed"][-1] if has_path else part["cpu_seconds"]
            lines.append("| " + " | ".join([*cells, *theirs, f"{seconds:.0f}"]) + " |")
    return "\n".join(lines)


NOTES = """
The model of a K-StoNet is the mean over its last iterations. The paper's figures are for all rows; its 98.87 % on MNIST is
that of the third of six iterations, the best on the test rows. With more than 20,000 rows the first call on a CPU
approximates its kernel matrix. When it did so with 20,000, it had 97.63 % on MNIST in 69 CPU seconds, and 85.25 % on
CoverType in 201 (with an earlier choice of length scales); the matrix is factored as a whole now. All rows of MNIST and
CoverType were trained on a GPU, the others on the CPU; the 290,506 rows of CoverType with 1,000 landmarks, and leaves of
4,540 rows for each of the paper's four kernels, 18,157 rows for that of the first call. CPU seconds of the first call include
its choice and its intervals, those of SVM and kernel ridge their search on 2,000 rows.
"""


def picture(parts: dict[str, Any], out: Path) -> None:
    """Accuracy by epoch, one row of panels per set: the paper's figure for MNIST, and the same for CoverType."""
    sets = finished(parts)
    figure, axes = new_figure(len(sets), 2, 9.0, 3.3 * len(sets) + 0.6)
    for row, (name, _, found) in zip(axes, sets, strict=True):
        sizes = next(iter(found.values()))
        paths = {model: part for model, part in found.items() if "epoch" in part}
        for ax, which in zip(row, ("train", "test"), strict=True):
            draw_paths(ax, paths, which, ylabel=f"{which}ing accuracy")
            ax.set_title(f"{name}, {sizes['train_rows']:,} / {sizes['test_rows']:,} rows", fontsize="medium")
    legend_below(figure, axes, 3)
    save(figure, out)


def summary(parts: dict[str, Any]) -> list[Summary]:
    """One line per set and size."""
    section = {"mnist": "MNIST, test accuracy (Section 4.2)", "covertype": "CoverType, test accuracy (Section 4.3)"}
    out = []
    for name, _, found in finished(parts):
        rows = next(iter(found.values()))["train_rows"]

        def cell(*names: str, found: dict[str, Any] = found) -> str:
            return "; ".join(f"{n} {100 * found[n]['model_test']:.2f} %" for n in names if n in found)

        theirs = "; ".join(f"{model.split(',')[0]} {figures[1]:.2f} %" for model, figures in PUBLISHED[name].items())
        note = "all rows" if rows in ALL_ROWS else f"{rows:,} training rows here, all rows in the paper"
        out.append(Summary(section[name], theirs, cell(PAPER, DNN), cell(FIRST_CALL, DEFAULTS, SVM, RIDGE), note))
    return out


def main() -> None:
    """Run what is missing; write table and picture."""
    arguments = parser(__doc__ or "", "large_classification")
    arguments.add_argument("--sets", nargs="*", choices=SETS, default=SETS)
    arguments.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    arguments.add_argument("--rows", type=int, help="training and test rows; 0 takes all")
    arguments.add_argument("--device", help="where K-StoNets have their kernel matrix, such as cuda; default: the CPU")
    given = arguments.parse_args()
    results = Results(given.out)
    chosen: Sequence[str] = given.sets
    for name in chosen:
        rows = ROWS if given.rows is None else given.rows
        split = partial(load, name, rows, given.data)
        run(results, name, rows, split, SIZES[name], given.models, given.device)
    title = "MNIST and CoverType (Sections 4.2 and 4.3)"
    write_report(given.out, title, "python -m experiments.large_classification", table(results.parts) + "\n" + NOTES)
    picture(results.parts, given.out)


if __name__ == "__main__":
    main()
