"""The real data sets of the paper, from a folder, a cache or the public archives, verified in each case."""

from __future__ import annotations

import difflib
import hashlib
import os
import tempfile
import urllib.parse
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from kstonet._files import open_whole
from kstonet.datasets._download import DatasetError, fetch
from kstonet.datasets._registry import DATASETS, DatasetInfo
from kstonet.datasets._verify import original_splits, verify

# What unpacking and reading a file that is not what it should be may raise.
UNREADABLE = (ValueError, LookupError, EOFError, OSError, zipfile.BadZipFile, zlib.error, NotImplementedError)


def list_datasets() -> list[DatasetInfo]:
    """List all data sets that :func:`load` accepts.

    Returns
    -------
    list of DatasetInfo

    Examples
    --------
    >>> from kstonet.datasets import list_datasets
    >>> for info in list_datasets():
    ...     if info.n < 1000:
    ...         print(info.name, info.n, info.p, info.target)
    bostonHousing 506 13 median house value (1000 USD)
    energy 768 8 heating load
    yacht 308 6 residuary resistance per unit weight of displacement
    """
    return list(DATASETS)


def load(
    name: str, *, data_home: str | os.PathLike[str] | None = None, return_X_y: bool = False, download_if_missing: bool = True
) -> Any:
    """Load a real data set of the paper.

    The set is taken from ``<data_home>/<name>/data.npz``, else from the cache, else downloaded from the public archives, one
    after the other, and cached. In each case the values are compared with fingerprints of the benchmark's before they are
    returned. Values are not centred, scaled or encoded.

    Parameters
    ----------
    name : str
        Name or alias from :func:`list_datasets`. Case and hyphens do not matter.
    data_home : path, optional
        Folder with one ``<name>/data.npz`` (arrays X and y) per set. If not given, the environment variable KSTONET_DATA is
        used, if set.
    return_X_y : bool, default=False
        Whether to return only the tuple (data, target).
    download_if_missing : bool, default=True
        Whether to download a set that is neither in ``data_home`` nor in the cache. If False, a missing set is an error.

    Returns
    -------
    Bunch or tuple
        With ``data`` of shape (n, p), ``target`` of shape (n,), ``feature_names`` (None where the features have no names),
        ``train_idx`` and ``test_idx`` (one original split per row, as row numbers; None where the set has none, or where this
        copy has its rows in another order), ``DESCR`` and ``filename``.

    Raises
    ------
    ValueError
        For an unknown name, or a data folder that does not exist.
    DatasetError
        If the set cannot be found or fails the verification; the message lists what was tried and how to provide the file.

    Notes
    -----
    The cache is the folder of the environment variable KSTONET_HOME, by default ``~/.cache/kstonet``. Without a network, put a
    file of one of the archives, as it is, into ``<cache>/<name>/``; it is read instead of being downloaded.

    Examples
    --------
    >>> from kstonet.datasets import load
    >>> boston = load("boston")  # doctest: +SKIP
    >>> boston.data[boston.train_idx[0]].shape  # doctest: +SKIP
    (455, 13)
    >>> load("bosten")
    Traceback (most recent call last):
    ...
    ValueError: name='bosten' is not a data set of kstonet; did you mean 'boston'? list_datasets() lists all names.
    """
    info = _find(name)
    tried: list[str] = []
    home = _data_home(data_home)
    path = home / info.name / "data.npz" if home is not None else None
    cached = _cache() / info.name / "data.npz"
    if path is not None and path.is_file():
        try:
            X, y, in_order = _read(info, path)
        except UNREADABLE as error:  # an unreadable file in the given folder is an error
            raise DatasetError(f"{path}: {error}. Replace the file or remove it.") from error
    else:
        if path is not None:
            tried.append(f"{path}: no such file")
        found = _from_cache(info, cached, tried)
        if found is None and download_if_missing:
            found = _from_archives(info, cached, tried)
        if found is None:
            raise DatasetError(_explain(info, cached, tried, download_if_missing))
        path = cached
        X, y, in_order = found
    if return_X_y:
        return X, y
    train_idx, test_idx = original_splits(info) if in_order else (None, None)
    return Bunch(
        data=X,
        target=y,
        feature_names=None if info.feature_names is None else list(info.feature_names),
        train_idx=train_idx,
        test_idx=test_idx,
        DESCR=_describe(info, in_order),
        filename=str(path),
    )


def _find(name: str) -> DatasetInfo:
    """The set called ``name``, up to case and hyphens."""
    known = {_plain(alias): (alias, info) for info in DATASETS for alias in (info.name, *info.aliases)}
    if not isinstance(name, str):
        raise ValueError(f"name={name!r} is not a data set of kstonet; give one of {[info.name for info in DATASETS]}.")
    if _plain(name) in known:
        return known[_plain(name)][1]
    close = difflib.get_close_matches(_plain(name), known, n=1)
    if close:
        hint = f"did you mean {known[close[0]][0]!r}? list_datasets() lists all names."
    else:
        hint = f"give one of {[info.name for info in DATASETS]}."
    raise ValueError(f"name={name!r} is not a data set of kstonet; {hint}")


def _plain(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _data_home(given: str | os.PathLike[str] | None) -> Path | None:
    """The folder of data sets: the argument, or the environment variable, or None."""
    value = given if given is not None else os.environ.get("KSTONET_DATA") or None
    if value is None:
        return None
    folder = Path(value).expanduser()
    if not folder.is_dir():
        origin = f"data_home={os.fspath(value)!r}" if given is not None else f"the environment variable KSTONET_DATA={value!r}"
        raise ValueError(f"{origin} is not a folder; give one that holds <name>/data.npz, or leave it unset to use the cache.")
    return folder


def _cache() -> Path:
    return Path(os.environ.get("KSTONET_HOME") or "~/.cache/kstonet").expanduser()


def _read(info: DatasetInfo, path: Path) -> tuple[np.ndarray, np.ndarray, bool]:
    """X, y and whether the rows are in the benchmark's order, from an npz file."""
    with path.open("rb") as stream:
        original = hashlib.file_digest(stream, "sha256").hexdigest() == info.sha256
    if not zipfile.is_zipfile(path):
        raise ValueError("not an npz file")
    with np.load(path, allow_pickle=False) as arrays:
        missing = {"X", "y"} - set(arrays.files)
        if missing:
            raise ValueError(f"it holds the arrays {arrays.files}; {sorted(missing)} are missing")
        X, y = arrays["X"], arrays["y"]
    # The benchmark's own file is known by its checksum; any other, by its content.
    return X, y, original or verify(info, X, y)


def _from_cache(info: DatasetInfo, path: Path, tried: list[str]) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """The cached set, or None, with the reason added to ``tried``."""
    if not path.is_file():
        tried.append(f"{path}: no such file")
        return None
    try:
        return _read(info, path)
    except UNREADABLE as error:  # the cached copy is replaced if possible
        tried.append(f"{path}: {error}")
        return None


def _from_archives(info: DatasetInfo, path: Path, tried: list[str]) -> tuple[np.ndarray, np.ndarray, bool] | None:
    """The set from the first source that has it, stored at ``path``; or None, with the reasons added to ``tried``."""
    try:
        _cache().mkdir(parents=True, exist_ok=True)
        scratch = tempfile.TemporaryDirectory(dir=_cache(), prefix=".download-")
    except OSError as error:
        raise _unwritable(error) from error
    with scratch as temporary:
        for source in info.sources:
            place, files = "", []
            try:
                for k, url in enumerate(source.urls):
                    name = urllib.parse.unquote(urllib.parse.urlsplit(url).path).rsplit("/", 1)[-1]
                    own = path.parent / name  # put there by the user
                    place = str(own) if own.is_file() else url
                    files.append(own if own.is_file() else Path(temporary) / name)
                    if not own.is_file():
                        fetch(url, files[-1], sha256=source.sha256[k] if source.sha256 else None)
                if len(files) > 1:
                    place = f"{source.urls[0]} and its companions"
                # One row more than the set has: enough to see that a file is too long, and a bound on the memory it takes.
                X, y = source.reader(files, info.dtype, info.n + 1)
                in_order = verify(info, X, y)
            except UNREADABLE as error:
                tried.append(f"{place}: {error}")
                continue
            y = y.astype("float64" if info.task == "regression" else "uint8", copy=False)
            try:
                path.parent.mkdir(exist_ok=True)
                with open_whole(path) as out:
                    np.savez_compressed(out, X=X, y=y)
            except OSError as error:
                raise _unwritable(error) from error
            return X, y, in_order
    return None


def _unwritable(error: OSError) -> DatasetError:
    return DatasetError(
        f"the cache {_cache()} cannot be written ({error}); set the environment variable KSTONET_HOME to a folder that can."
    )


def _explain(info: DatasetInfo, path: Path, tried: list[str], download: bool) -> str:
    """What was tried, and what the user can do."""
    lines = [f"{info.name} could not be loaded. Tried:", *(f"  - {line}" for line in tried)]
    if not download:
        lines.append("Downloading was not allowed (download_if_missing=False).")
    lines += [
        f"To provide it by hand: put data.npz (X of shape {(info.n, info.p)}, y of shape {(info.n,)}) at "
        f"<folder>/{info.name}/data.npz and give data_home=<folder> or set KSTONET_DATA to it;",
        f"or download one of the following elsewhere and put the files, as they are, into {path.parent}:",
        *(f"  - {' '.join(source.urls)}" for source in info.sources),
    ]
    return "\n".join(lines)


def _describe(info: DatasetInfo, in_order: bool) -> str:
    """The text of ``DESCR``."""
    if info.n_splits == 0:
        splits = "No original splits."
    elif not in_order:
        splits = "This copy has the rows in another order than the benchmark: its splits do not apply and are left out."
    elif info.n_train is not None:
        splits = f"Original split: the first {info.n_train} rows for training, the others for testing."
    else:
        splits = f"Original splits: {info.n_splits} random ones, nine tenths of the rows for training."
    lines = [
        info.title,
        "=" * len(info.title),
        "",
        f"{info.n} rows, {info.p} features, {info.task}. Target: {info.target}. {splits}",
        *([info.note] if info.note else []),
        "",
        "Sources:",
        *(f"- {source.urls[0]}" for source in info.sources),
    ]
    return "\n".join(lines)
