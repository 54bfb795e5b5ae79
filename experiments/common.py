"""What the experiments share: arguments, and results that survive an interruption."""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from kstonet import __version__
from kstonet._files import write_whole
from kstonet._progress import Bar

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
        return dict(self.parts[key])

    def run_all(self, calls: Mapping[str, Callable[[], dict[str, Any]]]) -> None:
        """Make the parts that are missing, in this order, with a bar of how many are done and how long the rest will take."""
        missing = [key for key in calls if key not in self.parts]
        if not missing:
            return
        bar = Bar(self.path.stem, len(calls), done=len(calls) - len(missing))
        for key in missing:
            bar.show(key)
            part = self.run(key, calls[key])
            bar.clear()
            print(key, in_short(part), flush=True)
            bar.advance(key)
        bar.close()

    def save(self) -> None:
        """Write the file."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"kstonet": __version__, "parts": self.parts}, indent=1) + "\n"
        write_whole(self.path, content)


def in_short(part: dict[str, Any]) -> dict[str, Any]:
    """What of a part fits a line: its numbers and words, and the errors of the models in it."""
    errors = {name: value["rmse"] for name, value in part.items() if isinstance(value, dict) and "rmse" in value}
    shown = {name: value for name, value in part.items() if isinstance(value, float | int | str)} | errors
    return {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in shown.items()}


def rmse(y: np.ndarray, prediction: np.ndarray) -> float:
    """Root mean squared error."""
    return float(np.sqrt(np.mean((y - prediction) ** 2)))
