"""A bar on standard error: how much is done, how long it took, how long it will take."""

from __future__ import annotations

import sys
import time

WIDTH = 24


class Bar:
    """One line that moves on a terminal; elsewhere about ten lines in all.

    Parameters
    ----------
    name : str
    total : int
    done : int, default=0
        Finished before: they count, but not for the time that is left.

    Examples
    --------
    >>> from kstonet._bar import Bar
    >>> bar = Bar("training", total=3)
    >>> bar.advance("loss 0.1")
    >>> bar.close()
    """

    def __init__(self, name: str, total: int, done: int = 0) -> None:
        self._name, self._total = name, total
        self._before = self._done = done
        self._started = time.perf_counter()

    def advance(self, text: str) -> None:
        """One more is done."""
        self._done += 1
        if sys.stderr.isatty():
            self.show(text)
        elif self._done % max(1, self._total // 10) == 0 or self._done == self._total:
            write(self._line(text) + "\n")

    def show(self, text: str) -> None:
        """Say what goes on, with nothing more done; on a terminal only."""
        if sys.stderr.isatty():
            write(f"\r{self._line(text)}\x1b[K")

    def clear(self) -> None:
        """Make room for a line of something else."""
        if sys.stderr.isatty():
            write("\r\x1b[K")

    def close(self) -> None:
        """End the line that moves."""
        if sys.stderr.isatty():
            write("\n")

    def _line(self, text: str) -> str:
        filled = round(WIDTH * self._done / self._total)
        line = f"[{self._name}] {'█' * filled}{'░' * (WIDTH - filled)} {self._done}/{self._total}  {text}"
        here = self._done - self._before
        if not here:
            return line
        spent = time.perf_counter() - self._started
        return f"{line}  {duration(spent)}, {duration(spent / here * (self._total - self._done))} left"


def duration(seconds: float) -> str:
    """Seconds as a person says them.

    Examples
    --------
    >>> from kstonet._bar import duration
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
