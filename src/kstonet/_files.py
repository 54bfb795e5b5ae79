"""The one place where files are written: whole or not at all, and on the disk when the call returns."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO

#: Names of streams that are open already; what they lead to must not be replaced under those who write there.
STREAMS = ("/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/fd/", "/proc/")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what spreadsheets take for the start of a formula
NUMBER = re.compile(r"[-+][0-9.,]+([eE][-+]?[0-9]+)?")
TEMPORARY = re.compile(r"\..+\.[0-9a-f]{12}\.tmp")
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # errors of writing that name no file


def destination(path: str | os.PathLike[str], example: str = "file", inputs: Iterable[str | os.PathLike[str]] = ()) -> Path:
    """Where a file can be written; ask before the work that makes its content.

    Parameters
    ----------
    path : str or path
    example : str
        A name for the file, for the message where a folder is given.
    inputs : iterable of str or path
        Files that are read: none of them may be the place, under whatever name.

    Returns
    -------
    Path
        With links followed, so that a link stays one; a device or a pipe as it is.

    Raises
    ------
    OSError
        Where the file cannot be written.

    Examples
    --------
    >>> from kstonet._files import destination
    >>> destination("/", "model.kstonet")
    Traceback (most recent call last):
    IsADirectoryError: path='/' is a folder; name a file in it, such as '/model.kstonet'.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"path={str(path)!r} is a folder; name a file in it, such as {str(path / example)!r}.")
    if _is_stream(path):
        return path
    path = Path(os.path.realpath(path))
    for name in inputs:
        if path.exists() and os.path.exists(name) and os.path.samefile(path, name):
            raise FileExistsError(f"path={str(path)!r} is read as {str(name)!r} and would be overwritten; name another file.")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"path={str(path)!r}: the folder {str(path.parent)!r} does not exist; create it first.")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"path={str(path)!r}: the folder is not yours to write to; name a file elsewhere.")
    if path.exists() and not os.access(path, os.W_OK):
        raise PermissionError(f"path={str(path)!r} is write-protected; allow writing, or name another file.")
    return path


def write_whole(path: str | os.PathLike[str], content: bytes | str) -> None:
    """Write a file, whole or not at all; text as UTF-8, with the line ends it has.

    Parameters
    ----------
    path : str or path
    content : bytes or str

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from kstonet._files import write_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.txt"
    ...     write_whole(path, "whole")
    ...     path.read_text()
    'whole'
    """
    with open_whole(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


@contextlib.contextmanager
def open_whole(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """A binary file to write to, which appears at ``path`` when the block ends, and not at all when the block fails.

    The file is written under a temporary name beside its place, and moved there when it is on the disk. Whatever happens
    before the move, an older file stays as it is; after it, the new one is complete and has the permissions of the older.
    A process that is killed meanwhile leaves the temporary file, ``.NAME.*.tmp``, behind. Devices and pipes are written to
    when the block ends, and never replaced.

    Parameters
    ----------
    path : str or path

    Yields
    ------
    binary file

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from kstonet._files import open_whole
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.npy"
    ...     with open_whole(path) as file:
    ...         np.save(file, np.arange(3))
    ...     np.load(path)
    array([0, 1, 2])
    """
    path = destination(path)
    if _is_stream(path):
        buffer = io.BytesIO()  # which can seek, as some formats need
        yield buffer
        # Appending matters where standard output is a file; opening must not create one where a device has gone.
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_APPEND), "wb") as stream:
            stream.write(buffer.getbuffer())
        return
    mode = stat.S_IMODE(path.stat().st_mode) if path.exists() else None
    temporary = path.with_name(f".{path.name[:40]}.{secrets.token_hex(6)}.tmp")  # a name has at most 255 bytes
    try:
        with open(temporary, "xb") as file:
            if mode is not None:
                os.chmod(temporary, mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        if error.filename == str(temporary) or (error.filename is None and error.errno in FULL):
            error.filename = str(path)  # the name the user knows
        raise
    finally:
        temporary.unlink(missing_ok=True)  # moved, never made, or not whole
    _sync_folder(path.parent)


def without_formula(text: str) -> str:
    """A text for a CSV file that no spreadsheet takes for a formula: one that starts like one is put behind an apostrophe.

    Numbers stay as they are.

    Examples
    --------
    >>> from kstonet._files import without_formula
    >>> without_formula("=HYPERLINK(1)"), without_formula("-1 or less"), without_formula("-1"), without_formula("plain")
    ("'=HYPERLINK(1)", "'-1 or less", '-1', 'plain')
    """
    return f"'{text}" if text.startswith(FORMULA) and not NUMBER.fullmatch(text) else text


def remove_temporary(folder: Path) -> None:
    """Remove what processes that were killed while they wrote left in a folder of our own."""
    for path in folder.glob(".*.tmp"):
        if TEMPORARY.fullmatch(path.name):
            path.unlink(missing_ok=True)


def _is_stream(path: Path) -> bool:
    """Whether a path leads to a device, a pipe, a socket or a stream that is open already."""
    try:
        status = os.stat(path)
    except OSError:
        return False
    kept = stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)
    return not kept or os.path.abspath(path).startswith(STREAMS)


def _sync_folder(folder: Path) -> None:
    """Put the move itself on the disk."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
