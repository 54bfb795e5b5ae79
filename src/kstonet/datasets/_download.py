"""One file from the web to the disk: bounded, retried, checked, and never half-written."""

from __future__ import annotations

import hashlib
import http.client
import os
import sys
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

TIMEOUT = 30.0  # seconds without a byte
DEADLINE = 1800.0  # seconds for one file
ATTEMPTS = 3
WAIT = 1.0  # seconds before the second attempt; doubles with every further one
MAX_BYTES = 2**30  # the largest file of the registry has 211 MB
CHUNK = 2**18


class DatasetError(OSError):
    """A data set could not be had: not found, not downloadable, or not what it should be.

    The message says what was tried and how to provide the file by hand.

    Examples
    --------
    >>> from kstonet.datasets import DatasetError
    >>> issubclass(DatasetError, OSError)
    True
    """


@contextmanager
def atomic_write(path: Path) -> Iterator[IO[bytes]]:
    """A binary file that appears at ``path`` complete, or not at all.

    Parameters
    ----------
    path : Path
        File to write. Its folder must exist.

    Yields
    ------
    file object
        A new file beside ``path``; renamed to it when the block ends, removed when the block fails.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._download import atomic_write
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with atomic_write(Path(folder) / "a") as out:
    ...         _ = out.write(b"whole")
    ...     (Path(folder) / "a").read_bytes()
    b'whole'
    """
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")  # unique: two processes may fetch the same file
    try:
        with part.open("xb") as out:
            yield out
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def _size(count: int) -> str:
    """``count`` bytes in readable units."""
    return f"{count / 1e6:.1f} MB" if count >= 1e5 else f"{count / 1e3:.1f} kB"


def _show(line: str, *, final: bool) -> None:
    """A line on stderr: rewritten in place on a terminal, printed once, when final, in a log."""
    if sys.stderr.isatty():
        print(f"\r\033[K{line}", end="\n" if final else "", file=sys.stderr, flush=True)
    elif final:
        print(line, file=sys.stderr, flush=True)


def _receive(url: str, out: IO[bytes]) -> str:
    """Copy the body at ``url`` to ``out`` and return its sha256; an OSError says what went wrong."""
    # Some archives turn away the default agent of urllib.
    request = urllib.request.Request(url, headers={"User-Agent": "kstonet-datasets"})
    started, shown = time.monotonic(), 0.0
    digest, done = hashlib.sha256(), 0
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        length = response.headers.get("Content-Length", "")
        total = int(length) if length.isdigit() else None
        while chunk := response.read(CHUNK):
            out.write(chunk)
            digest.update(chunk)
            done += len(chunk)
            now = time.monotonic()
            if done > MAX_BYTES:
                raise OSError(f"more than the {_size(MAX_BYTES)} that any data set here has")
            if now - started > DEADLINE:
                raise TimeoutError(f"{_size(done)} in {DEADLINE:.0f} s, too slow")
            if now - shown > 0.2:
                of = f" of {_size(total)}" if total else ""
                _show(f"kstonet: {url}  {_size(done)}{of}", final=False)
                shown = now
    # urllib's read(amount) ends quietly where the connection broke off.
    if total is not None and done != total:
        raise OSError(f"broke off after {done} of {total} bytes")
    _show(f"kstonet: {url}  {_size(done)} in {time.monotonic() - started:.1f} s", final=True)
    return digest.hexdigest()


def fetch(url: str, path: Path, *, sha256: str | None = None) -> None:
    """Download ``url`` to ``path``.

    Server errors, timeouts and broken connections are tried again, a bounded number of times; an address that is refused
    (404, 403) and a file with the wrong checksum are not. ``path`` appears only when the file is complete and right.

    Parameters
    ----------
    url : str
        Address of the file.
    path : Path
        File to write. Its folder must exist.
    sha256 : str, optional
        Expected checksum of the whole file.

    Raises
    ------
    DatasetError
        With the reason.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._download import fetch
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, copy = Path(folder) / "source", Path(folder) / "copy"
    ...     _ = source.write_bytes(b"1 2 3")
    ...     fetch(source.as_uri(), copy)
    ...     copy.read_bytes()
    b'1 2 3'
    """
    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        try:
            with atomic_write(path) as out:
                found = _receive(url, out)
                if sha256 is not None and found != sha256:
                    raise DatasetError(f"the file has sha256 {found}, not {sha256}: it is damaged or was changed at the source")
            return
        except DatasetError:
            raise
        except urllib.error.HTTPError as error:
            error.close()
            reason = f"the server answered {error.code} ({error.reason})"
            if error.code < 500 and error.code not in (408, 429):  # too slow, too many: may pass; the others will not
                raise DatasetError(reason) from error
        except urllib.error.URLError as error:
            reason = f"no connection ({error.reason})"
        except (OSError, http.client.HTTPException) as error:
            reason = str(error) or type(error).__name__
    raise DatasetError(f"{reason}, {ATTEMPTS} attempts")
