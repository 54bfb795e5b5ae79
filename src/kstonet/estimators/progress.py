"""What a training shows while it runs: one line that moves, or one line per iteration."""

from __future__ import annotations

import sys
import time
from typing import Any

WIDTH = 24


class Progress:
    """Reports to standard error.

    Parameters
    ----------
    name : str
    total : int
        Iterations to come.
    verbose : int
        0: nothing. 1: a bar with the loss and the time left (on a terminal one line that moves; elsewhere about ten lines).
        2: a line per iteration with the seconds of every part.
    """

    def __init__(self, name: str, total: int, verbose: int) -> None:
        self._name, self._total, self._verbose = name, total, verbose
        self._done, self._started = 0, time.perf_counter()

    def update(self, record: dict[str, Any]) -> None:
        """Show one more iteration."""
        self._done += 1
        if self._verbose >= 2:
            self._write(
                f"[{self._name}] iteration {record['iteration']:4d}  {_losses(record)}  SVR gap {record['svr_gap']:.1e}  "
                f"seconds: impute {record['seconds_impute']:.2f}, first layer {record['seconds_first_layer']:.2f}, "
                f"regressions {record['seconds_regressions']:.2f}\n"
            )
        elif self._verbose:
            self._bar(record)

    def close(self) -> None:
        """End the line that moves."""
        if self._verbose == 1 and sys.stderr.isatty():
            self._write("\n")

    def _bar(self, record: dict[str, Any]) -> None:
        spent = time.perf_counter() - self._started
        left = spent / self._done * (self._total - self._done)
        filled = round(WIDTH * self._done / self._total)
        text = (
            f"[{self._name}] {'█' * filled}{'░' * (WIDTH - filled)} {self._done}/{self._total}  {_losses(record)}  "
            f"{spent:.1f} s, {left:.1f} s left"
        )
        if sys.stderr.isatty():
            self._write("\r" + text + "\x1b[K")
        elif self._done % max(1, self._total // 10) == 0 or self._done == self._total:
            self._write(text + "\n")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _losses(record: dict[str, Any]) -> str:
    text = f"loss {record['loss']:.4g}"
    return text if "validation_loss" not in record else f"{text}, validation {record['validation_loss']:.4g}"
