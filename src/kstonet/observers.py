"""Who watches a training: progress, callbacks, early stopping. An observer hears of every iteration and may ask to stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from kstonet._progress import Bar, losses, write
from kstonet.iro import IROState
from kstonet.trained import TrainedNetwork


class Stop(Enum):
    """What an observer may ask for."""

    CHAIN = "this chain has run long enough"
    TRAINING = "the whole training ends here"


@dataclass(frozen=True)
class Iteration:
    """One iteration, as observers see it.

    Parameters
    ----------
    state : IROState
        Where the chain stands.
    record : dict
        Losses, score, health and seconds of the iteration; it is also in the history.
    chain : int
        Number of the chain.
    model : callable
        Makes the trained network as it stands.
    """

    state: IROState
    record: dict[str, Any]
    chain: int
    model: Callable[[], TrainedNetwork]


class Observer:
    """Hears of a training; does nothing unless a method is overridden."""

    def begins(self, task: str) -> None:
        """A task begins: "chain", "iteration" or "intervals"."""

    def iteration(self, done: Iteration) -> Stop | None:
        """An iteration is done."""

    def resumed(self, records: Sequence[dict[str, Any]], state: IROState) -> None:
        """A chain goes on that an earlier process has brought to a state; these are its records."""

    def ended(self, task: str) -> None:
        """The task "intervals" has ended."""

    def interrupted(self, model: TrainedNetwork) -> None:
        """The user has interrupted the training or its intervals; this is the model so far."""

    def close(self) -> None:
        """No further iteration follows."""


class EarlyStopping(Observer):
    """Ends a chain whose loss has not fallen by a fraction for some iterations.

    Parameters
    ----------
    tol : float
        The fraction.
    patience : int
        How many iterations to wait.
    """

    def __init__(self, tol: float, patience: int) -> None:
        self._tol, self._patience = tol, patience
        self._best, self._waiting = np.inf, 0

    def begins(self, task: str) -> None:
        """Every chain starts anew."""
        if task == "chain":
            self._best, self._waiting = np.inf, 0

    def iteration(self, done: Iteration) -> Stop | None:
        """The loss of the validation rows decides, where there are some."""
        self._compare(done.record)
        return Stop.CHAIN if self._waiting >= self._patience else None

    def resumed(self, records: Sequence[dict[str, Any]], state: IROState) -> None:
        """Wait as long as if all had been one process."""
        for record in records:
            self._compare(record)

    def _compare(self, record: dict[str, Any]) -> None:
        loss = record.get("validation_loss", record["loss"])
        fell = loss < self._best * (1.0 - self._tol)
        self._best, self._waiting = (loss, 0) if fell else (self._best, self._waiting + 1)


class Ends(Observer):
    """Keeps where every chain stands, so that training can go on from there."""

    def __init__(self) -> None:
        self.states: dict[int, IROState] = {}

    def iteration(self, done: Iteration) -> Stop | None:
        """Keep the state."""
        self.states[done.chain] = done.state
        return None

    def resumed(self, records: Sequence[dict[str, Any]], state: IROState) -> None:
        """Keep the state."""
        self.states[records[-1]["chain"]] = state


class Progress(Observer):
    """Reports to standard error.

    Parameters
    ----------
    name : str
        What is trained.
    total : int
        Iterations to come.
    verbose : int
        1: a bar with the loss and the time left (on a terminal and in a notebook one line that moves; elsewhere about ten
        lines). 2: a line per iteration with the seconds of every part.
    intervals : bool, default=False
        Whether intervals will be prepared after the iterations; they are the last step of the bar.
    """

    def __init__(self, name: str, total: int, verbose: int, intervals: bool = False) -> None:
        self._name, self._verbose, self._intervals = name, verbose, intervals
        self._bar = Bar(name, total + intervals, last="intervals" if intervals else None)
        self._started = 0.0

    def begins(self, task: str) -> None:
        """Say that intervals are being prepared."""
        if task == "intervals":
            self._started = time.perf_counter()
            if self._verbose == 1:
                self._bar.show("preparing intervals")

    def iteration(self, done: Iteration) -> Stop | None:
        """Show one more iteration."""
        record, rest_after = done.record, done.state.rest_after
        if self._verbose >= 2:
            parts = (
                f"SVR gap {record['svr_gap']:.1e}  seconds: impute {record['seconds_impute']:.2f}, "
                f"first layer {record['seconds_first_layer']:.2f}, regressions {record['seconds_regressions']:.2f}"
            )
            if rest_after is not None and done.state.iteration > rest_after:
                parts = "the network rests: iterations no longer help at rows that are hidden from them"
            write(f"[{self._name}] iteration {record['iteration']:4d}  {losses(record)}  {parts}\n")
        else:
            self._bar.advance(losses(record))
        return None

    def resumed(self, records: Sequence[dict[str, Any]], state: IROState) -> None:
        """Say where the chain goes on."""
        if self._verbose >= 2:
            write(f"[{self._name}] goes on after iteration {state.iteration}\n")
        else:
            self._bar.catch_up(len(records))

    def ended(self, task: str) -> None:
        """Show that the intervals are there."""
        if self._verbose >= 2:
            write(f"[{self._name}] intervals  seconds: {time.perf_counter() - self._started:.2f}\n")
        else:
            self._bar.advance("intervals prepared")
            self._bar.close()

    def close(self) -> None:
        """End the line that moves, unless the intervals are still to come."""
        if self._verbose == 1 and not self._intervals:
            self._bar.close()
