"""The training, while it runs: loss, time per part, time left; and what Ctrl-C does to it."""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Group
from rich.live import Live
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn
from rich.text import Text

from kstonet.cli.messages import SearchInterrupted
from kstonet.cli.output import Output

TUNE = "tune"
PARTS = ("impute", "first_layer", "regressions")


def seconds_by_part(history: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds that the parts of the iterations took.

    Examples
    --------
    >>> seconds_by_part([{"seconds_impute": 1.0, "seconds_first_layer": 2.0, "seconds_regressions": 0.5}])
    {'impute': 1.0, 'first_layer': 2.0, 'regressions': 0.5}
    """
    return {part: float(sum(record[f"seconds_{part}"] for record in history)) for part in PARTS}


def parts_text(seconds: dict[str, float]) -> str:
    """Seconds by part, to read.

    Examples
    --------
    >>> parts_text({"impute": 1.0, "first_layer": 2.0})
    'impute 1.0 s, first layer 2.0 s'
    """
    return ", ".join(f"{part.replace('_', ' ')} {value:.1f} s" for part, value in seconds.items())


@contextlib.contextmanager
def watched(output: Output, model: Any) -> Iterator[Callable[[], bool]]:
    """Show the progress of ``model.fit`` on a terminal, and let Ctrl-C end it; the value says whether that happened.

    ``fit`` takes a KeyboardInterrupt for the wish to stop here, and returns a model without a word: hence the handler.
    """
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[said]}"),
        console=output.stderr,
    )
    total = model.max_iter * model.n_chains
    task = bar.add_task("building the kernel matrix", total=total, said="")
    below = Text("  Ctrl-C stops and keeps the model", style="dim")
    started, stopped, begun = time.perf_counter(), False, False

    def show(state: Any) -> None:
        record, done = model.history_[-1], len(model.history_)
        left = (time.perf_counter() - started) / done * (total - done)
        held_out = f", held out {record['validation_loss']:.4g}" if "validation_loss" in record else ""
        said = f"{done}/{total}, loss {record['loss']:.4g}{held_out}, {left:.0f} s left"
        bar.update(task, completed=done, description="training", said=said)
        below.plain = f"  {parts_text(seconds_by_part(model.history_))}; Ctrl-C stops and keeps the model"
        if done == total:
            bar.update(task, total=None, description="preparing intervals", said="")

    def begin(state: Any) -> None:
        """The search is over: what follows is a model, also where it is interrupted."""
        nonlocal begun
        begun = True

    def stop(number: int, frame: Any) -> None:
        nonlocal stopped
        if searches and not begun:
            raise SearchInterrupted
        stopped = True
        # Changes what is shown, but prints nothing: a signal may come in the middle of printing.
        bar.update(task, total=None, description="stopping, preparing intervals", said="")
        below.plain = "  Ctrl-C again hurries, at the price of the intervals"
        raise KeyboardInterrupt

    searches = TUNE in model.get_params(deep=False).values()
    display: Any = contextlib.nullcontext()
    if searches:
        # a search has more to say than a bar: it speaks for itself
        model.set_params(verbose=0 if output.quiet else 1, callback=begin)
    elif not output.quiet:
        display, model.callback = Live(Group(bar, below), console=output.stderr, transient=True), show
    before = signal.signal(signal.SIGINT, stop)
    try:
        with display:
            yield lambda: stopped
    finally:
        signal.signal(signal.SIGINT, before)
        model.set_params(callback=None, verbose=0)  # no part of the model


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C, for the moment it takes to write a file."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
