"""What the paper's examples share: training paths, their Markdown file, and one line per result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import is_classifier

from kstonet._files import write_whole


@dataclass(frozen=True)
class Summary:
    """One section of docs/results.md: what the paper reports, and what was found here."""

    result: str
    paper: str
    paper_settings: str
    defaults: str
    note: str


def training_path(
    model: Any,
    X: np.ndarray,
    y: np.ndarray,
    X_test: np.ndarray,
    y_test: np.ndarray,
    *,
    points: int = 150,
    look: Callable[[Any], None] = lambda state: None,
) -> dict[str, Any]:
    """Fit a model of this library and watch the test rows; nothing is chosen or stopped by them.

    Returns ``train`` and ``test`` (mean squared error in the units of y, or accuracy) and ``elapsed`` CPU seconds at some
    ``epoch``s (all of the first 50, then about ``points`` more), and the last and the best value of the whole path. ``look`` is
    handed the state after every epoch.
    """
    started, used, arrivals = time.perf_counter(), time.process_time(), []

    def callback(state: Any) -> None:
        arrivals.append(time.perf_counter() - started)
        look(state)

    model.set_params(callback=callback).fit(X, y, X_val=X_test, y_val=y_test)
    share = (time.process_time() - used) / (time.perf_counter() - started)  # of the processor: the machine may be busy
    steps = np.array([sum(v for key, v in record.items() if key.startswith("seconds")) for record in model.history_])
    elapsed = share * (arrivals[0] - steps[0] + np.cumsum(steps))  # what precedes the first epoch counts, the watching does not
    train, test = (np.array([_measure(model, record, y, which) for record in model.history_]) for which in ("train", "test"))
    n = len(train)
    late = np.geomspace(50, n, points) if n > 50 else []
    kept = np.unique(np.concatenate([np.arange(min(n, 50)), np.round(late).astype(int) - 1])).astype(int)
    best = np.max if is_classifier(model) else np.min
    return {
        "epoch": (kept + 1).tolist(),
        "train": _short(train[kept]),
        "test": _short(test[kept]),
        "elapsed": _short(elapsed[kept]),
        "final_train": float(train[-1]),
        "final_test": float(test[-1]),
        "best_train": float(best(train)),
        "best_test": float(best(test)),
    }


def _measure(model: Any, record: dict[str, Any], y: np.ndarray, which: str) -> float:
    """Mean squared error or accuracy in a record of ``history_``; baselines and K-StoNets name and scale them differently."""
    if "epoch" in record:  # a baseline's
        name = "accuracy" if is_classifier(model) else "mse"
        return float(record[name if which == "train" else f"val_{name}"])
    name = "score" if is_classifier(model) else "loss"
    value = float(record[name if which == "train" else f"validation_{name}"])
    return value * float(np.var(y)) if name == "loss" and model.standardize else value


def _short(values: np.ndarray) -> list[float]:
    return [float(f"{value:.6g}") for value in values]


def parts_of(parts: dict[str, Any], *names: str) -> list[dict[str, Any]]:
    """The finished parts whose keys, split at ``|``, begin with these names."""
    return [part for key, part in parts.items() if tuple(key.split("|")[: len(names)]) == names]


def write_report(out: Path, title: str, command: str, text: str) -> None:
    """The Markdown file beside a results file, which is also printed."""
    whole = f"# {title}\n\nMade by `{command}`.\n\n{text.strip()}\n"
    out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(out.with_suffix(".md"), whole)
    print(whole)
