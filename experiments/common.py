"""What the experiments share: arguments, resumable results, choosing hyperparameters on validation rows."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from kstonet import __version__, datasets

RESULTS = Path(__file__).parent / "results"


def parser(description: str, name: str) -> argparse.ArgumentParser:
    """The arguments every experiment takes."""
    out = argparse.ArgumentParser(description=description)
    out.add_argument("--data", default=os.environ.get("KSTONET_DATA"), help="folder of the data sets (default: KSTONET_DATA)")
    out.add_argument(
        "--out", type=Path, default=RESULTS / f"{name}.json", help="results file; finished parts are not run again"
    )
    return out


class Results:
    """A JSON file of finished parts, written whole or not at all after each of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.parts: dict[str, Any] = json.loads(path.read_text())["parts"] if path.exists() else {}

    def run(self, key: str, call: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The stored part, or the one made now."""
        if key not in self.parts:
            started = time.perf_counter()
            part = call()
            self.parts[key] = part | {"seconds": round(time.perf_counter() - started, 2)}
            self.save()
            print(key, {name: value for name, value in part.items() if isinstance(value, float | int | str)}, flush=True)
        return dict(self.parts[key])

    def save(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        unfinished = self.path.with_suffix(".tmp")
        unfinished.write_text(json.dumps({"kstonet": __version__, "parts": self.parts}, indent=1) + "\n")
        unfinished.replace(self.path)


def split_of(name: str, split: int, data: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training and test rows of an original split."""
    bunch = datasets.load(name, data_home=data)
    X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.float64)
    train, test = bunch.train_idx[split], bunch.test_idx[split]
    return X[train], y[train], X[test], y[test]


def rmse(y: np.ndarray, prediction: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((y - prediction) ** 2)))


def validation_parts(n: int, repeats: int, seed: int, most: int = 3000) -> list[tuple[np.ndarray, np.ndarray]]:
    """Random 80/20 parts of at most ``most`` training rows: (rows to fit, rows to look at)."""
    out = []
    for r in range(repeats):
        order = np.random.default_rng([seed, r]).permutation(n)[:most]
        out.append((order[len(order) // 5 :], order[: len(order) // 5]))
    return out


def choose(
    make: Callable[..., Any],
    X: np.ndarray,
    y: np.ndarray,
    parts: Iterable[tuple[np.ndarray, np.ndarray]],
    C: tuple[float, ...] = (1.0, 10.0, 100.0, 1000.0),
    shape: tuple[float, ...] = (0.5, 1.0, 2.0),
) -> tuple[dict[str, float], dict[str, float]]:
    """The C and gamma·p with the smallest mean validation error: a grid, then C a third and three times the best.

    Returns the choice, and the table of mean validation errors.
    """
    parts = list(parts)
    table: dict[tuple[float, float], float] = {}

    def error(c: float, s: float) -> float:
        if (c, s) not in table:
            scores = []
            for fit, look in parts:
                model = make(C=c, gamma=s / X.shape[1]).fit(X[fit], y[fit])
                scores.append(rmse(y[look], model.predict(X[look])))
            table[c, s] = float(np.mean(scores))
        return table[c, s]

    for c, s in itertools.product(C, shape):
        error(c, s)
    c, s = min(table, key=lambda pair: table[pair])
    for factor in (1 / 3, 3.0):
        error(c * factor, s)
    c, s = min(table, key=lambda pair: table[pair])
    return {"C": c, "gamma": s / X.shape[1]}, {f"C={a:g} gamma*p={b:g}": round(v, 6) for (a, b), v in table.items()}
