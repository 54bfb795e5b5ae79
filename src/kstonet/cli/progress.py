"""Progress of a training (loss, time per part, time left), and its interruption by Ctrl-C."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator
from typing import Any

from kstonet._progress import Bar, losses
from kstonet.cli.output import Output, SearchInterrupted

TUNE = "tune"
KEEPS = "Ctrl-C stops and keeps the model"
PARTS = ("choice", "impute", "first_layer", "regressions", "intervals")


def seconds_by_part(history: list[dict[str, Any]]) -> dict[str, float]:
    """Seconds that the parts of the iterations took.

    Examples
    --------
    >>> seconds_by_part([{"seconds_impute": 1.0, "seconds_first_layer": 2.0, "seconds_regressions": 0.5}])
    {'impute': 1.0, 'first_layer': 2.0, 'regressions': 0.5}
    """
    known = [part for part in PARTS if any(f"seconds_{part}" in record for record in history)]
    return {part: float(sum(record.get(f"seconds_{part}", 0.0) for record in history)) for part in known}


def parts_text(seconds: dict[str, float]) -> str:
    """Seconds of every part as text.

    Examples
    --------
    >>> parts_text({"impute": 1.0, "first_layer": 2.0})
    'impute 1.0 s, first layer 2.0 s'
    """
    return ", ".join(f"{part.replace('_', ' ')} {value:.1f} s" for part, value in seconds.items())


@contextlib.contextmanager
def watched(output: Output, model: Any) -> Iterator[Callable[[], bool]]:
    """Show the progress of ``model.fit`` on a terminal and let Ctrl-C end it; yield a function that tells whether that
    happened.

    ``fit`` ends at a KeyboardInterrupt and returns a model without a message, so a signal handler is needed to notice it.
    """
    searches = TUNE in model.get_params(deep=False).values()
    chooses = bool(model._asked()) and not searches
    shown = not output.quiet and not searches
    last = int(model.residuals is not None)  # the intervals are the last step
    bar = Bar("training", None if chooses else _iterations(model) + last, last="intervals" if last else None)
    stopped, begun = False, False

    def show(state: Any) -> None:
        nonlocal begun
        if shown:
            if not begun:  # what was chosen says how many iterations there will be
                bar.expect(_iterations(model) + last, sum(seconds_by_part(model.history_).values()))
            bar.advance(f"{losses(model.history_[-1])}; {KEEPS}")
            if last and len(model.history_) == _iterations(model):
                bar.show("preparing intervals")
        begun = True  # the networks that a search trains do not call this function

    def stop(number: int, frame: Any) -> None:
        nonlocal stopped
        if searches and not begun:
            raise SearchInterrupted
        stopped = True
        if shown:
            with contextlib.suppress(RuntimeError):  # the signal came in the middle of printing
                bar.show("stopping; Ctrl-C again hurries, at the price of the intervals")
        raise KeyboardInterrupt

    model.callback = show
    if searches:
        model.verbose = 0 if output.quiet else 1  # a search prints its own progress
    elif shown:
        bar.show("choosing kernel and width" if chooses else f"building the kernel matrix; {KEEPS}")
    before = signal.signal(signal.SIGINT, stop)
    try:
        yield lambda: stopped
        if shown and last and begun and not stopped:
            bar.advance("intervals prepared")
    finally:
        signal.signal(signal.SIGINT, before)
        model.set_params(callback=None, verbose=0)  # not part of the model
        if shown:
            bar.clear()


def _iterations(model: Any) -> int:
    """Iterations of a training: those that were chosen for it, or given."""
    trained = getattr(model, "trained_", None)
    chosen = {} if trained is None else trained.chosen
    return int(chosen.get("max_iter", model._given("max_iter"))) * int(model.n_chains)


@contextlib.contextmanager
def undisturbed() -> Iterator[None]:
    """Ignore Ctrl-C while a file is written."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
