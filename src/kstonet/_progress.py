"""Progress, always on standard error: a bar of how much is done, how long it took and how long it will take; lines.

A line moves on a terminal and in a notebook, whose output is replaced after a carriage return, too.
"""

from __future__ import annotations

import shutil
import sys
import time
from typing import Any

WIDTH = 24
NOTEBOOK_WIDTH = 120  # characters


class Bar:
    """One line that moves on a terminal and in a notebook; elsewhere about ten lines in all.

    Parameters
    ----------
    name : str
    total : int or None
        None: not known yet, see :meth:`expect`.
    done : int, default=0
        Finished before: they count, but not for the time that is left.
    last : str, optional
        Name of the last step, if it is unlike the others: how long it takes is not known from them.

    Examples
    --------
    >>> from kstonet._progress import Bar
    >>> bar = Bar("training", total=3)
    >>> bar.advance("loss 0.1")
    >>> bar.close()
    """

    def __init__(self, name: str, total: int | None, done: int = 0, last: str | None = None) -> None:
        self._name, self._total, self._last = name, total, last
        self._before = self._done = done
        self._started = time.perf_counter()

    def expect(self, total: int, spent: float = 0.0) -> None:
        """So many in all; the work on them began some seconds ago."""
        self._total, self._started = total, time.perf_counter() - spent

    def advance(self, text: str) -> None:
        """One more is done."""
        self._done += 1
        if moves():
            self.show(text)
        elif self._total is None or self._done % max(1, self._total // 10) == 0 or self._done == self._total:
            write(self._line(text) + "\n")

    def catch_up(self, done: int) -> None:
        """So many more were finished before."""
        self._before, self._done = self._before + done, self._done + done

    def show(self, text: str) -> None:
        """Say what goes on, with nothing more done; only where the line moves."""
        if moves():
            _rewrite(self._line(text))

    def clear(self) -> None:
        """Make room for a line of something else."""
        if moves():
            _rewrite("")

    def close(self) -> None:
        """End the line that moves."""
        if moves():
            write("\n")

    def _line(self, text: str) -> str:
        if self._total is None:
            return f"[{self._name}] {text}"
        filled = round(WIDTH * self._done / self._total)
        before, after = f"[{self._name}] {'█' * filled}{'░' * (WIDTH - filled)} {self._done}/{self._total}  ", ""
        here = self._done - self._before
        if here:
            spent = time.perf_counter() - self._started
            to_come = self._total - self._done
            alike = to_come - bool(self._last and to_come)
            left = [f"{duration(spent / here * alike)} left"] if alike else []
            after = f"  {', '.join([duration(spent), *left])}" + (f", then {self._last}" if alike < to_come else "")
        if moves():  # a line that wraps cannot move
            text = text[: max(0, _room() - len(before) - len(after))]
            return f"{before}{text}{after}"[: max(0, _room())]
        return before + text + after


def losses(record: dict[str, Any]) -> str:
    """The losses of one iteration, to read.

    Examples
    --------
    >>> from kstonet._progress import losses
    >>> losses({"loss": 0.25, "validation_loss": 0.5})
    'loss 0.25, validation 0.5'
    """
    text = f"loss {record['loss']:.4g}"
    return text if "validation_loss" not in record else f"{text}, validation {record['validation_loss']:.4g}"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Examples
    --------
    >>> from kstonet._progress import duration
    >>> duration(8.31), duration(400), duration(9000)
    ('8.3 s', '6.7 min', '2.5 h')
    """
    for size, unit in ((3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.1f} {unit}"
    return f"{seconds:.1f} s"


def write(text: str) -> None:
    """To standard error, at once."""
    sys.stderr.write(text)
    sys.stderr.flush()


def _in_notebook() -> bool:
    """Whether standard error is the output of a notebook's cell."""
    return type(sys.stderr).__module__.partition(".")[0] == "ipykernel"


def moves() -> bool:
    """Whether a line can be replaced: on a terminal, and in a notebook.

    Examples
    --------
    >>> from kstonet._progress import moves
    >>> moves() in (True, False)
    True
    """
    return sys.stderr.isatty() or _in_notebook()


def _room() -> int:
    """Characters of a line that does not wrap; in a notebook it may."""
    return NOTEBOOK_WIDTH if _in_notebook() else shutil.get_terminal_size().columns - 1


def _rewrite(line: str) -> None:
    """Replace the line; a notebook knows no sequence that erases the rest of it, so blanks do."""
    write(f"\r{line:<{_room()}}" + ("" if line else "\r") if _in_notebook() else f"\r{line}\x1b[K")


def moving(line: str) -> None:
    """A line that the next one replaces on a terminal or in a notebook; elsewhere a line like others.

    Examples
    --------
    >>> from kstonet._progress import moving
    >>> moving("trained 3 of 9")
    """
    if moves():
        _rewrite(line[: max(0, _room())])
    else:
        write(f"{line}\n")


def status(line: str, *, final: bool = False) -> None:
    """A line that is rewritten in place where that is possible; elsewhere, such as in a log, only the final one is written.

    Examples
    --------
    >>> from kstonet._progress import status
    >>> status("downloading: 3 MB")
    >>> status("downloaded: 5 MB", final=True)
    """
    if moves():
        _rewrite(line)
        write("\n" if final else "")
    elif final:
        write(f"{line}\n")
