"""What the pictures of the experiments share: a figure without a window, one colour per model, paths of a training."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from kstonet._files import open_whole
from kstonet.plotting.style import MODELS, require_matplotlib

BLUE, VERMILLION, GREEN, PURPLE, ORANGE, SKY, BLACK = MODELS

#: The same model has the same colour and line in every picture.
LOOKS: dict[str, tuple[str, str]] = {
    "K-StoNet, paper's settings": (BLUE, "-"),
    "K-StoNet, paper's settings, 10 units": (BLUE, "--"),
    "K-StoNet, automatic noise": (PURPLE, "-"),
    "K-StoNet, defaults": (SKY, "-"),
    "K-StoNet, defaults, 10 units": (SKY, "--"),
    "K-StoNet, chosen by validation": (BLACK, "-"),
    "K-StoNet, first call": (BLACK, "--"),
    "KNN": (GREEN, "-"),
    "DNN": (VERMILLION, "-"),
    "DNN with Lasso": (VERMILLION, "--"),
    "DNN, one layer": (VERMILLION, "-"),
    "DNN, two layers": (ORANGE, "-"),
    "DNN, three layers": (ORANGE, "-"),
}


def look(name: str) -> dict[str, str]:
    """Colour and line of a model."""
    color, line = LOOKS[name]
    return {"color": color, "linestyle": line}


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Any, np.ndarray]:
    """A figure and its axes, always an array of two dimensions; pyplot and its windows are not touched."""
    require_matplotlib("a picture of an experiment")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def draw_paths(ax: Any, paths: dict[str, dict[str, Any]], which: str, *, against: str = "epoch", **labels: Any) -> None:
    """Lines of ``train`` or ``test`` of some paths (:func:`experiments.common.training_path`) on a logarithmic time axis.

    A few epochs alone have a linear one.
    """
    for name, path in paths.items():
        ax.plot(path[against], path[which], label=name, linewidth=1.4, **look(name))
    few = against == "epoch" and all(path[against][-1] < 10 for path in paths.values())
    ax.set(xscale="linear" if few else "log", xlabel="epoch" if against == "epoch" else "CPU seconds of training", **labels)
    ax.grid(alpha=0.25, linewidth=0.5)


def legend_below(figure: Any, axes: np.ndarray, columns: int) -> None:
    """One legend for all panels, under them."""
    shown: dict[str, Any] = {}
    for ax in axes.flat:
        for line, name in zip(*ax.get_legend_handles_labels(), strict=True):
            shown.setdefault(name, line)
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize="small")


def save(figure: Any, out: Path) -> None:
    """Write the picture beside a results file."""
    with open_whole(out.with_suffix(".png")) as file:
        figure.savefig(file, format="png", dpi=130)
