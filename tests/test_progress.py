"""The bar on standard error, on a terminal and in a log."""

import io
import sys

import pytest

from kstonet import _progress
from kstonet._progress import Bar


class Terminal(io.StringIO):
    """Standard error that says it is a terminal."""

    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass when a test says so."""
    now = [100.0]
    monkeypatch.setattr(_progress.time, "perf_counter", lambda: now[0])
    return now


def test_a_terminal_has_one_line_that_moves(monkeypatch, clock):
    seen = Terminal()
    monkeypatch.setattr(sys, "stderr", seen)
    bar = Bar("run", total=4, done=1)
    bar.show("b")
    clock[0] += 150
    bar.clear()
    bar.advance("b")
    clock[0] += 50
    bar.advance("c")
    bar.close()
    lines = seen.getvalue().removesuffix("\n").split("\r")[1:]
    assert [line.removesuffix("\x1b[K") for line in lines] == [
        "[run] " + "█" * 6 + "░" * 18 + " 1/4  b",  # nothing is known of the time yet
        "",
        "[run] " + "█" * 12 + "░" * 12 + " 2/4  b  2.5 min, 5.0 min left",  # two more; what was done before took no time
        "[run] " + "█" * 18 + "░" * 6 + " 3/4  c  3.3 min, 100.0 s left",
    ]
    assert seen.getvalue().count("\n") == 1


def test_the_total_may_be_known_later(monkeypatch, clock):
    seen = Terminal()
    monkeypatch.setattr(sys, "stderr", seen)
    bar = Bar("run", total=None)
    bar.show("choosing")
    clock[0] += 500
    bar.expect(4, spent=20.0)  # the first of them took that long
    bar.advance("a")
    lines = seen.getvalue().split("\r")[1:]
    assert [line.removesuffix("\x1b[K") for line in lines] == [
        "[run] choosing",
        "[run] " + "█" * 6 + "░" * 18 + " 1/4  a  20.0 s, 60.0 s left",
    ]


def test_a_log_has_about_ten_lines(monkeypatch, clock):
    seen = io.StringIO()
    monkeypatch.setattr(sys, "stderr", seen)
    bar = Bar("run", total=205)
    bar.show("first")
    for _ in range(205):
        clock[0] += 60
        bar.advance("x")
    bar.clear()
    bar.close()
    lines = seen.getvalue().splitlines()
    assert len(lines) == 11
    assert lines[-1] == "[run] " + "█" * 24 + " 205/205  x  3.4 h"


def test_a_line_fits_the_terminal(monkeypatch, clock):
    seen = Terminal()
    monkeypatch.setattr(sys, "stderr", seen)
    monkeypatch.setenv("COLUMNS", "70")
    bar = Bar("run", total=4)
    clock[0] += 1.0
    bar.advance("many words " * 20)
    line = seen.getvalue().removeprefix("\r").removesuffix("\x1b[K")
    assert len(line) == 69
    assert line.endswith("1.0 s, 3.0 s left")  # what is said gives way, not the time
