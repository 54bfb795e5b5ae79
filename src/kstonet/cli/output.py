"""Output, errors and exit codes of a command.

Results go to standard output, everything else to standard error; with ``--json`` a result is one JSON object.
"""

from __future__ import annotations

import contextlib
import json
import shlex
import sys
import traceback
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, TextIO

import typer
from rich import box
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from kstonet import GramTooLargeError

UNEXPECTED, BAD_INPUT, INTERRUPTED = 1, 2, 130
BAD_INPUTS = (ValueError, OSError, GramTooLargeError)  # errors of the library about arguments, files and sizes


class SearchInterrupted(BaseException):
    """Ctrl-C during a search for parameters, where a KeyboardInterrupt would only end the candidate that is being trained."""


@dataclass
class Output:
    """The two streams of a command.

    Parameters
    ----------
    quiet : bool
        No notes and no progress.
    as_json : bool
        Results as JSON.
    """

    quiet: bool = False
    as_json: bool = False
    notes: list[str] = field(default_factory=list)
    stderr: Console = field(default_factory=lambda: Console(stderr=True, highlight=False))
    stdout: Console = field(default_factory=lambda: Console(highlight=False))

    def note(self, text: str) -> None:
        """Print a note for the user."""
        self.notes.append(text)
        if not self.quiet:
            self.stderr.print(Text("Note: ", style="yellow") + Text(text), soft_wrap=True)

    def say(self, content: str | Table) -> None:
        """Print progress or results for people; brackets in the text are not markup."""
        if not self.quiet:
            self.stderr.print(Text(content) if isinstance(content, str) else content)

    def error(self, text: str) -> None:
        """Print the error that ends the command."""
        self.stderr.print(Text("Error: ", style="bold red") + Text(text), soft_wrap=True)

    def result(self, values: dict[str, Any], content: RenderableType | None = None) -> None:
        """Print the result of the command, as JSON or as text."""
        if self.as_json:
            sys.stdout.write(json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
            sys.stdout.flush()
        elif content is not None:
            self.stdout.print(content)


def typed() -> str:
    """The command line as it was typed, for suggestions."""
    return shlex.join(["kstonet", *sys.argv[1:]])


def grid(lines: dict[str, Any]) -> Table:
    """Names and descriptions in two columns."""
    table = Table.grid(padding=(0, 2))
    table.add_column(style="bold cyan", no_wrap=True, min_width=8)
    table.add_column(overflow="fold")
    for name, content in lines.items():
        table.add_row(name, content if isinstance(content, Text) else Text(str(content)))
    return table


def titled(title: str, *headings: str, right: tuple[str, ...] = ()) -> Table:
    """An empty table with a title; the columns ``right`` are numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings:
        table.add_column(Text(heading), justify="right" if heading in right else "left")
    return table


@contextlib.contextmanager
def session(quiet: bool = False, as_json: bool = False, debug: bool = False) -> Iterator[Output]:
    """Run a command; print warnings as notes and exceptions as one sentence, and set the exit code.

    0 is success, 2 bad input, 130 an interruption, 1 anything unexpected.
    """
    output = Output(quiet, as_json)

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        output.note(_sentence(message))

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("default", UserWarning)
        warnings.showwarning = show
        try:
            yield output
        except typer.Exit:
            raise
        except BrokenPipeError:  # the reader of the pipe has closed it
            raise
        except (KeyboardInterrupt, SearchInterrupted):
            output.error("interrupted.")
            raise typer.Exit(INTERRUPTED) from None
        except Exception as error:
            if debug:
                traceback.print_exc()
            expected = isinstance(error, BAD_INPUTS)
            said = _sentence(error) if expected else f"unexpected {type(error).__name__}: {_sentence(error)}"
            output.error(said if expected or debug else f"{said} Say --debug for the whole story, and please report it.")
            raise typer.Exit(BAD_INPUT if expected else UNEXPECTED) from None


def _sentence(error: Any) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename!r}." if error.filename else f"{error.strerror}."
    text = "\n".join(" ".join(line.split()) if line[:1] != " " else line.rstrip() for line in str(error).split("\n"))
    if "\nThis would work: " in text:  # a command ends as it is typed
        return text
    return text if text.endswith((".", "!", "?")) else f"{text}."
