"""Verification that arrays are the benchmark's data, from any archive or file."""

from __future__ import annotations

import hashlib

import numpy as np

from kstonet.datasets._registry import DatasetInfo

BLOCK = 4096  # rows per block: bounds the float64 copy of a large set of bytes


def fingerprint(X: np.ndarray, y: np.ndarray) -> tuple[str, str]:
    """Two hashes of the rows (x, y): one that ignores their order, one that does not.

    Every row is written as little-endian float64, rounded to nine decimals: copies of a set agree in their decimal text, not
    always in its last printed digit or in the type of their numbers. The rows are hashed one by one; the first result is the
    sha256 of these hashes in sorted order, the second of these hashes in the order of the rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features.
    y : ndarray of shape (n,)
        Target.

    Returns
    -------
    content : str
    order : str

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.datasets._verify import fingerprint
    >>> X, y = np.array([[1, 2], [3, 4]]), np.array([0, 1])
    >>> same, other = fingerprint(X, y), fingerprint(X[::-1].astype(float), y[::-1])
    >>> same[0] == other[0], same[1] == other[1]
    (True, False)
    """
    rows: list[bytes] = []
    width = 8 * (X.shape[1] + 1)
    for start in range(0, len(X), BLOCK):
        block = np.column_stack([X[start : start + BLOCK], y[start : start + BLOCK]]).astype("<f8")
        raw = (np.round(block, 9) + 0.0).tobytes()  # + 0.0: no negative zeros
        rows += [hashlib.sha256(raw[k : k + width]).digest() for k in range(0, len(raw), width)]
    order = hashlib.sha256(b"".join(rows)).hexdigest()
    return hashlib.sha256(b"".join(sorted(rows))).hexdigest(), order


def verify(info: DatasetInfo, X: np.ndarray, y: np.ndarray) -> bool:
    """Check that X and y are the data of ``info``.

    Parameters
    ----------
    info : DatasetInfo
        The data set.
    X, y : ndarray
        Features and target to check.

    Returns
    -------
    bool
        Whether the rows stand in the benchmark's order, which the original splits refer to.

    Raises
    ------
    ValueError
        If they are other data.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.datasets import list_datasets
    >>> from kstonet.datasets._verify import verify
    >>> yacht = next(info for info in list_datasets() if info.name == "yacht")
    >>> verify(yacht, np.zeros((308, 5)), np.zeros(308))
    Traceback (most recent call last):
    ...
    ValueError: X has shape (308, 5) and y (308,); yacht has (308, 6) and (308,)
    """
    if X.shape != (info.n, info.p) or y.shape != (info.n,):
        raise ValueError(f"X has shape {X.shape} and y {y.shape}; {info.name} has {(info.n, info.p)} and {(info.n,)}")
    if X.dtype.kind not in "uif" or y.dtype.kind not in "uif":
        raise ValueError(f"X has type {X.dtype} and y {y.dtype}; {info.name} is made of numbers")
    if not (np.isfinite(X).all() and np.isfinite(y).all()):
        raise ValueError(f"X or y has values that are not finite; {info.name} has none")
    if info.target_range is not None and not (y.min() == info.target_range[0] and y.max() == info.target_range[1]):
        raise ValueError(
            f"y runs from {y.min()} to {y.max()}; in {info.name} from {info.target_range[0]} to {info.target_range[1]}"
        )
    if info.content is None:  # no copy at hand to take a fingerprint of; the checksum of the download stands for it
        return True
    content, order = fingerprint(X, y)
    if content != info.content:
        raise ValueError(f"the values are not those of {info.name}: fingerprint {content}, not {info.content}")
    return order == info.order


def original_splits(info: DatasetInfo) -> tuple[np.ndarray, np.ndarray] | tuple[None, None]:
    """The train/test splits that come with a set, as row numbers.

    The splits of the nine UCI regression sets were made by one script, which permutes the rows ``n_splits`` times with NumPy's
    legacy generator seeded with 1 and takes the first nine tenths for training. That generator's stream is frozen, so its
    permutations *are* the published index files.

    Parameters
    ----------
    info : DatasetInfo
        The data set.

    Returns
    -------
    train_idx : ndarray of shape (n_splits, n_train) or None
    test_idx : ndarray of shape (n_splits, n - n_train) or None

    Examples
    --------
    >>> from kstonet.datasets import list_datasets
    >>> from kstonet.datasets._verify import original_splits
    >>> yacht = next(info for info in list_datasets() if info.name == "yacht")
    >>> train_idx, test_idx = original_splits(yacht)
    >>> train_idx.shape, test_idx.shape
    ((20, 277), (20, 31))
    """
    if info.n_splits == 0:
        return None, None
    if info.n_train is not None:  # the official split: the head of the file trains, the rest tests
        rows = np.arange(info.n, dtype=np.int32)[None, :]
        return rows[:, : info.n_train], rows[:, info.n_train :]
    legacy = np.random.RandomState(1)
    rows = np.stack([legacy.permutation(info.n) for _ in range(info.n_splits)]).astype(np.int32)
    n_train = round(info.n * 9 / 10)
    return rows[:, :n_train], rows[:, n_train:]
