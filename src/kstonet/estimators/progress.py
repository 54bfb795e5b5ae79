"""What a training shows while it runs: one line that moves, or one line per iteration."""

from __future__ import annotations

from typing import Any

from kstonet._bar import Bar, write


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
        self._name, self._verbose, self._bar = name, verbose, Bar(name, total)

    def update(self, record: dict[str, Any]) -> None:
        """Show one more iteration."""
        if self._verbose >= 2:
            write(
                f"[{self._name}] iteration {record['iteration']:4d}  {_losses(record)}  SVR gap {record['svr_gap']:.1e}  "
                f"seconds: impute {record['seconds_impute']:.2f}, first layer {record['seconds_first_layer']:.2f}, "
                f"regressions {record['seconds_regressions']:.2f}\n"
            )
        elif self._verbose:
            self._bar.advance(_losses(record))

    def close(self) -> None:
        """End the line that moves."""
        if self._verbose == 1:
            self._bar.close()


def _losses(record: dict[str, Any]) -> str:
    text = f"loss {record['loss']:.4g}"
    return text if "validation_loss" not in record else f"{text}, validation {record['validation_loss']:.4g}"
