"""Readers of the file formats in which the public archives keep the data sets.

A reader is called with the files of one source, in the order of its addresses, and gives X and y. It raises ValueError (or the
error of the module that unpacks) where the files have another form.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import struct
import warnings
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import IO, Protocol, cast

import numpy as np
from scipy.io import arff

GZIP_MAGIC = b"\x1f\x8b"


class Reader(Protocol):
    """What turns the files of a source into arrays."""

    def __call__(self, paths: Sequence[Path], dtype: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """X in ``dtype`` and y, at most ``max_rows`` rows of them."""


@contextmanager
def unpacked(path: Path, member: str | None) -> Iterator[IO[bytes]]:
    """The bytes of ``path``, or of the file named ``member`` in the zip archive at ``path``, without their gzip coat if any."""
    with ExitStack() as stack:
        stream: IO[bytes]
        if member is None:
            stream = stack.enter_context(path.open("rb"))
        else:
            archive = stack.enter_context(zipfile.ZipFile(path))
            names = [name for name in archive.namelist() if PurePosixPath(name).name == member]
            if not names:
                raise ValueError(f"the archive holds {archive.namelist()[:10]}, but no {member}")
            stream = stack.enter_context(archive.open(names[0]))
        buffered = stack.enter_context(io.BufferedReader(stream))  # type: ignore[type-var]
        if buffered.peek(2)[:2] == GZIP_MAGIC:
            yield cast(IO[bytes], stack.enter_context(gzip.open(buffered)))
        else:
            yield buffered


def numbers(lines: Iterable[str], dtype: str, *, delimiter: str | None = None, max_rows: int | None = None) -> np.ndarray:
    """A table of numbers, one row per line that is not empty."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of an empty file, which is an error here
        table = np.loadtxt(lines, dtype=dtype, delimiter=delimiter, comments=None, ndmin=2, max_rows=max_rows)
    if table.size == 0:
        raise ValueError("the file holds no rows")
    return table


@dataclass(frozen=True)
class Table:
    r"""One text file of numbers, plain, gzipped or in a zip archive, with the target in one of its columns.

    Parameters
    ----------
    features : slice
        Columns of X.
    target : int
        Column of y.
    delimiter : str, optional
        Separator of the columns. If not given, blanks and tabs separate them.
    header : int, default=0
        Number of lines before the first row.
    record : int, optional
        Number of values per row, if rows extend over several lines.
    labels : mapping, optional
        Numbers that stand for the words of the target.
    member : str, optional
        Name of the file inside a zip archive.
    sha256 : str, optional
        Expected checksum of the unpacked text, for a set without another fingerprint. Archives may be packed again, the text
        does not change.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._formats import Table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.csv"
    ...     _ = path.write_text("a,b,y\n1,2,9\n3,4,8\n")
    ...     Table(slice(0, 2), 2, delimiter=",", header=1)([path], "float64", 10)
    (array([[1., 2.],
           [3., 4.]]), array([9., 8.]))
    """

    features: slice
    target: int
    delimiter: str | None = None
    header: int = 0
    record: int | None = None
    labels: Mapping[str, str] | None = None
    member: str | None = None
    sha256: str | None = None

    def __call__(self, paths: Sequence[Path], dtype: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """X and y of the one file in ``paths``."""
        if self.sha256 is not None:
            self._check(paths[0])
        with unpacked(paths[0], self.member) as stream, io.TextIOWrapper(stream, encoding="utf-8-sig") as text:
            lines = self._lines(text)
            if self.record is None:
                table = numbers(lines, dtype, delimiter=self.delimiter, max_rows=max_rows)
            else:
                values = np.array([word for line in lines for word in line.split()], dtype=dtype)
                if values.size == 0 or values.size % self.record:
                    raise ValueError(f"{values.size} numbers do not make rows of {self.record}")
                table = values.reshape(-1, self.record)
        return np.ascontiguousarray(table[:, self.features]), table[:, self.target].copy()

    def _lines(self, text: Iterable[str]) -> Iterator[str]:
        for k, line in enumerate(text):
            if k < self.header:
                continue
            for word, number in (self.labels or {}).items():
                line = line.replace(word, number)
            yield line

    def _check(self, path: Path) -> None:
        digest = hashlib.sha256()
        with unpacked(path, self.member) as stream:
            while chunk := stream.read(2**20):
                digest.update(chunk)
        if digest.hexdigest() != self.sha256:
            raise ValueError(f"the text has sha256 {digest.hexdigest()}, not {self.sha256}: damaged or changed at the source")


@dataclass(frozen=True)
class BenchmarkFolder:
    r"""data.txt, index_features.txt and index_target.txt of a set in the repository of the benchmark's splits.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._formats import BenchmarkFolder
    >>> texts = {"data.txt": "7 1 2\n8 3 4\n", "index_features.txt": "1\n2\n", "index_target.txt": "0\n"}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name, text in texts.items():
    ...         _ = (Path(folder) / name).write_text(text)
    ...     BenchmarkFolder()([Path(folder) / name for name in texts], "float64", 10)
    (array([[1., 2.],
           [3., 4.]]), array([7., 8.]))
    """

    def __call__(self, paths: Sequence[Path], dtype: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """X and y by the column numbers in the two index files."""
        data, features, target = paths
        with data.open(encoding="utf-8") as lines:
            table = numbers(lines, dtype, max_rows=max_rows)
        columns = []
        for path in (features, target):
            with path.open(encoding="utf-8") as lines:
                columns.append(numbers(lines, "float64", max_rows=table.shape[1] + 1).astype(int).ravel())
        return table[:, columns[0]], table[:, columns[1][0]].copy()


@dataclass(frozen=True)
class Arff:
    r"""An ARFF file whose attributes are all numbers and whose last one is the target.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._formats import Arff
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "table.arff"
    ...     _ = path.write_text("@relation r\n@attribute a real\n@attribute y real\n@data\n1,2\n3,4\n")
    ...     Arff()([path], "float64", 10)
    (array([[1.],
           [3.]]), array([2., 4.]))
    """

    def __call__(self, paths: Sequence[Path], dtype: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """X and y of the one file in ``paths``."""
        with paths[0].open(encoding="utf-8") as text:
            try:
                rows, meta = arff.loadarff(text)
            except (arff.ArffError, StopIteration) as error:
                raise ValueError(f"not a readable ARFF file ({error})") from error
        table = np.column_stack([rows[name].astype(dtype) for name in meta.names()])[:max_rows]
        return np.ascontiguousarray(table[:, :-1]), table[:, -1].copy()


@dataclass(frozen=True)
class Idx:
    """The four gzipped idx files of MNIST: training images and labels, test images and labels.

    Examples
    --------
    >>> import gzip, struct, tempfile
    >>> from pathlib import Path
    >>> from kstonet.datasets._formats import Idx
    >>> images = struct.pack(">IIII", 2051, 1, 1, 2) + bytes([7, 8])
    >>> labels = struct.pack(">II", 2049, 1) + bytes([5])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     paths = [Path(folder) / str(k) for k in range(4)]
    ...     for path, content in zip(paths, [images, labels, images, labels]):
    ...         _ = path.write_bytes(gzip.compress(content))
    ...     Idx()(paths, "uint8", 10)
    (array([[7, 8],
           [7, 8]], dtype=uint8), array([5, 5], dtype=uint8))
    """

    def __call__(self, paths: Sequence[Path], dtype: str, max_rows: int) -> tuple[np.ndarray, np.ndarray]:
        """Images as rows and labels, training part first."""
        train_images, train_labels, test_images, test_labels = (_read_idx(path, max_rows) for path in paths)
        X = np.concatenate([images.reshape(len(images), -1) for images in (train_images, test_images)])
        return X.astype(dtype, copy=False), np.concatenate([train_labels, test_labels])


def _read_idx(path: Path, max_rows: int) -> np.ndarray:
    """One idx file of bytes: two zeros, the type 8, the number of axes, their lengths (big-endian), the values."""
    with unpacked(path, None) as stream:
        head = stream.read(4)
        if len(head) < 4 or head[:3] != b"\x00\x00\x08" or head[3] not in (1, 3):
            raise ValueError(f"{path.name} is no idx file of bytes: it begins with {head!r}")
        lengths = stream.read(4 * head[3])
        if len(lengths) < 4 * head[3]:
            raise ValueError(f"{path.name} ends in its header")
        shape = struct.unpack(f">{head[3]}I", lengths)
        if shape[0] > max_rows or any(length > 2**10 for length in shape[1:]):
            raise ValueError(f"{path.name} announces the shape {shape}, larger than the set")
        size = int(np.prod(shape))
        values = stream.read(size + 1)
    if len(values) != size:
        raise ValueError(
            f"{path.name} announces {size} values of shape {shape} and holds {'fewer' if len(values) < size else 'more'}"
        )
    return np.frombuffer(values, dtype=np.uint8).reshape(shape)
