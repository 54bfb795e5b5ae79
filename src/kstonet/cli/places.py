"""Where a command may write: never over its inputs, nor over a file of another kind, unless ``--force`` says so."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from kstonet._files import destination
from kstonet._words import quoted, readable_bytes
from kstonet.cli.output import Output
from kstonet.cli.tables import FORMATS, STDIN, column_names, format_of, require_package
from kstonet.persistence import read_metadata
from kstonet.tables import InputError

MODEL, PREDICTIONS, REPORT = "model", "predictions", "report"
EXAMPLES = {MODEL: "model.kstonet", PREDICTIONS: "predictions.csv", REPORT: "report.html"}
PROBE = 4096  # bytes that are written to see whether a folder can be written to
PREDICTED = ("mean", "class")  # a table of predictions has a column of such a name; of several targets, one as weight_mean


def check_output(out: str, kind: str, inputs: Sequence[str | None] = (), *, force: bool = False) -> None:
    """Refuse a place where the result cannot or should not be written; ask before the work.

    Parameters
    ----------
    out : str
        Path of the output; "-" is standard output.
    kind : {"model", "predictions", "report"}
        What will be written.
    inputs : sequence of str or None
        Files that the command reads.
    force : bool
        Replace an input or a file of another kind nevertheless.

    Raises
    ------
    InputError
        Where the output is an input, or exists and holds something else.
    OSError
        Where it cannot be written.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "train.csv"
    ...     _ = path.write_text("x,y")
    ...     check_output("m.kstonet", "model", [str(path)])
    """
    if out == STDIN:
        return
    if kind == PREDICTIONS:
        require_package(format_of(out, written=True))
    path = destination(out, EXAMPLES[kind])
    _try_folder(path)
    if force:
        return
    read = [place for place in inputs if place not in (None, STDIN) and Path(place).exists()]
    same = [place for place in read if path.is_file() and os.path.samefile(place, path)]
    if same:
        raise InputError(
            f"--out {out!r} is a file that this command reads ({quoted(same)}); it would be replaced by the {kind}. Name "
            f"another file, such as {EXAMPLES[kind]!r}, or use --force."
        )
    if path.is_file() and path.stat().st_size and not IS[kind](path):
        raise InputError(
            f"--out {out!r} exists ({readable_bytes(path.stat().st_size)}) and {NOT[kind]}; name another file, or use --force "
            "to replace it."
        )
    if kind != PREDICTIONS and path.suffix.lower() in FORMATS:
        raise InputError(
            f"--out {out!r} is named like a table, but a {kind} is written; name it such as {EXAMPLES[kind]!r}, or use --force."
        )


def _try_folder(path: Path) -> None:
    """Make a file beside the output and remove it: rights alone do not tell of full disks and file systems for reading."""
    if path.exists() and not path.is_file():
        return  # a device or a pipe
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name[:40]}.") as file:
            file.write(b"0" * PROBE)
            file.flush()
    except OSError as error:
        raise OSError(error.errno, f"{error.strerror}; name a file elsewhere", str(path)) from error


def _is_model(path: Path) -> bool:
    try:
        read_metadata(path)
    except (ValueError, OSError):
        return False
    return True


def _is_predictions(path: Path) -> bool:
    try:
        names = column_names(str(path))
    except (ValueError, OSError):
        return False
    return any(name == word or name.startswith(f"{word}_") or name.endswith("_mean") for name in names for word in PREDICTED)


def _is_report(path: Path) -> bool:
    return b"Made with kstonet" in path.read_bytes()


IS: dict[str, Callable[[Path], bool]] = {MODEL: _is_model, PREDICTIONS: _is_predictions, REPORT: _is_report}
NOT = {
    MODEL: "is not a model of kstonet",
    PREDICTIONS: "does not hold predictions of kstonet (a column 'mean' or 'class')",
    REPORT: "is not a report of kstonet",
}


def write_or_rescue(write: Callable[[str], None], out: str, output: Output) -> str:
    """Write a file; where that fails after all, write it to the folder of temporary files, and say so as an error.

    Parameters
    ----------
    write : callable
        Writes the result to the path it is given.
    out : str
    output : Output

    Returns
    -------
    str
        Where the result is: ``out``, or the other place.
    """
    try:
        write(out)
    except OSError as error:
        elsewhere = str(Path(tempfile.mkdtemp(prefix="kstonet-")) / Path(out).name)
        write(elsewhere)
        output.error(
            f"{out!r} could not be written ({error.strerror or error}). The result is not lost: it is in {elsewhere!r}."
        )
        return elsewhere
    return out
