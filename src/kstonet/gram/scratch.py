"""Arrays in files, for what does not fit into memory.

The system reads their pages when they are used and takes the memory back when something else needs it. A file has no name: it
is gone when its arrays are, and when the process ends, however it ends. Its room on the disk is reserved first: a disk that is
full in the middle would end the process without a word.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from typing import IO, Any

import numpy as np

from kstonet._words import readable_bytes
from kstonet.gram.memory import GramTooLargeError

ZEROS = bytes(2**20)
TOGETHER = 2**28  # bytes of a file that holds many arrays: a process may map some ten thousand files, and no more
SMALL, ALIGNED = 2**16, 64  # bytes of arrays that stay in memory, and of the steps in which others begin


class Scratch:
    """A folder for such files.

    Parameters
    ----------
    folder : str

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = Scratch(folder).keep(np.eye(200))
    ...     print(kept.sum(), os.listdir(folder))
    200.0 []
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._file, self._taken = np.empty(0, np.uint8), 0

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy in another process has files of its own."""
        return Scratch, (self.folder,)

    @property
    def room(self) -> int:
        """Bytes that are free on its disk; none where it is no folder that can be written to."""
        usable = os.path.isdir(self.folder) and os.access(self.folder, os.W_OK)
        return shutil.disk_usage(self.folder).free if usable else 0

    def empty(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """An array whose values are in a file of its own; zero at first."""
        size = max(int(np.prod(shape)) * np.dtype(dtype).itemsize, 1)
        with tempfile.TemporaryFile(prefix="kstonet-", dir=self.folder) as file:
            try:
                _reserve(file, size)
            except OSError as error:
                raise GramTooLargeError(
                    f"scratch={self.folder!r} has no room for a file of {readable_bytes(size)} ({error.strerror}). Name a "
                    "folder on a larger disk, or use fewer landmarks and smaller leaves: LowRank(rank=..., leaf_rows=...)."
                ) from error
            return np.asarray(np.memmap(file, dtype=dtype, mode="r+", shape=shape))

    def keep(self, values: np.ndarray) -> np.ndarray:
        """A copy in a file that it shares with others; a small array stays as it is."""
        size = values.nbytes
        if size < SMALL:
            return values
        if self._taken + size > len(self._file):
            self._file, self._taken = self.empty((max(TOGETHER, size),), np.uint8), 0
        kept = self._file[self._taken : self._taken + size].view(values.dtype).reshape(values.shape)
        self._taken += -(-size // ALIGNED) * ALIGNED
        kept[...] = values
        return kept


def _reserve(file: IO[bytes], size: int) -> None:
    """Take the room on the disk, or raise an OSError."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file.fileno(), 0, size)
        return
    for begin in range(0, size, len(ZEROS)):  # macOS and Windows
        file.write(ZEROS[: size - begin])
    file.flush()
