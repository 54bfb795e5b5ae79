"""One file from the web to the disk, by pooch: bounded, retried, checked, and never half-written."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from kstonet._progress import status
from kstonet._words import readable_bytes

TIMEOUT = 30.0  # seconds without a byte
DEADLINE = 1800.0  # seconds for one file
ATTEMPTS = 3
WAIT = 1.0  # seconds before the second attempt; doubles with every further one
MAX_BYTES = 2**30  # the largest file of the registry has 211 MB
CHUNK = 2**18
# Some archives turn away unknown agents; a server must not pack what is packed already, as requests would unpack it.
HEADERS = {"User-Agent": "kstonet-datasets", "Accept-Encoding": "identity"}


class DatasetError(OSError):
    """A data set could not be had: not found, not downloadable, or not what it should be.

    The message says what was tried and how to provide the file by hand.

    Examples
    --------
    >>> from kstonet.datasets import DatasetError
    >>> issubclass(DatasetError, OSError)
    True
    """


class _Watch:
    """What pooch takes for a progress bar: shows how much has come, and ends a download that leaves all bounds."""

    def __init__(self, url: str) -> None:
        self._url, self._done, self._shown = url, 0, 0.0
        self._started = time.monotonic()
        self.total = 0  # set by pooch; 0 where the server does not say

    def update(self, count: int) -> None:
        """So many bytes more, rounded up to a chunk."""
        self._done += count
        now = time.monotonic()
        if max(self._done - CHUNK, self.total) >= MAX_BYTES:  # of the last chunk only a part may have come
            raise DatasetError(f"more than the {readable_bytes(MAX_BYTES)} that any data set here has")
        if now - self._started > DEADLINE:
            raise DatasetError(f"{readable_bytes(self._done)} in {DEADLINE:.0f} s, too slow")
        if now - self._shown > 0.2:
            done = f"{readable_bytes(min(self._done, self.total))} of " if self.total else ""
            status(f"kstonet: {self._url}  {done}{readable_bytes(self.total or self._done)}")
            self._shown = now

    def reset(self) -> None:
        """All has come; pooch then counts it once more."""
        self._done = 0

    def close(self) -> None:
        """Nothing is open."""

    def finish(self, size: int) -> None:
        """Say what has come."""
        status(f"kstonet: {self._url}  {readable_bytes(size)} in {time.monotonic() - self._started:.1f} s", final=True)


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
    ImportError
        Where pooch is not installed.

    Examples
    --------
    >>> from pathlib import Path
    >>> from kstonet.datasets._download import fetch
    >>> fetch("https://archive.ics.uci.edu/static/public/243/yacht+hydrodynamics.zip", Path("yacht.zip"))  # doctest: +SKIP
    """
    pooch = _pooch()
    from requests import exceptions  # pooch's own dependency

    reason = ""
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(WAIT * 2 ** (attempt - 1))
        watch = _Watch(url)
        downloader = pooch.HTTPDownloader(progressbar=watch, chunk_size=CHUNK, timeout=TIMEOUT, headers=HEADERS)
        try:
            with _silent(pooch.get_logger()):
                pooch.retrieve(url, sha256, fname=path.name, path=path.parent, downloader=downloader)
        except exceptions.HTTPError as error:
            reason = f"the server answered {error.response.status_code} ({error.response.reason})"
            if error.response.status_code < 500 and error.response.status_code not in (408, 429):  # these two may pass
                raise DatasetError(reason) from error
        except exceptions.Timeout as error:
            reason = f"timed out ({error})"
        except exceptions.ConnectionError as error:
            reason = f"no connection ({error})"
        except exceptions.RequestException as error:
            reason = f"broke off ({error})"
        except ValueError as error:  # pooch's word for a wrong checksum
            raise DatasetError(f"the file is damaged or was changed at the source: {error}") from error
        else:
            watch.finish(path.stat().st_size)
            return
    raise DatasetError(f"{reason}, {ATTEMPTS} attempts")


def _pooch() -> Any:
    try:
        import pooch
    except ImportError as error:
        raise ImportError(
            "downloading data sets needs the package pooch: pip install 'kstonet[data]'. Without it, provide the files by "
            "hand; kstonet.datasets.load says how with download_if_missing=False."
        ) from error
    return pooch


@contextlib.contextmanager
def _silent(logger: logging.Logger) -> Iterator[None]:
    """Pooch reports every step of a download; ours has a line of its own."""
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)
