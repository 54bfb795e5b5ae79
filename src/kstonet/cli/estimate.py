"""What a training will cost: said before it begins, measured on a few of the rows."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from kstonet._progress import duration
from kstonet._words import counted, readable_bytes
from kstonet.gram.footprint import matrices_bytes
from kstonet.gram.memory import available_memory
from kstonet.gram.planning import LARGEST_FACTOR

WORTH_MEASURING = 2_000  # rows: a training on fewer takes less than a minute
PROBES = (250, 500)  # rows
EXPONENTS = (1.0, 2.0)  # of the work in the rows: what is cubic in them has its limits
LONG = 120.0  # seconds from which a faster way is worth a word


def memory_needed(n: int) -> int:
    """Bytes of the kernel matrix of so many rows, with the inverse or the factor of a squared loss.

    Examples
    --------
    >>> from kstonet._words import readable_bytes
    >>> readable_bytes(memory_needed(1_000))
    '20.0 MB'
    """
    return matrices_bytes(n, squared=n <= LARGEST_FACTOR)


def seconds_needed(model: Any, X: Any, y: np.ndarray, seed: int = 0) -> float:
    """Seconds that ``model.fit`` will take, extrapolated from fits on 250 and 500 of the rows.

    Parameters
    ----------
    model : estimator
        Not fitted; stays as it is.
    X, y : DataFrame or ndarray, and ndarray
        Training rows.
    seed : int
        Seed of the choice of rows.

    Returns
    -------
    float
        Right within a factor of two or so.
    """
    order = np.random.default_rng(seed).permutation(len(X))
    work, spent = [], 0.0
    for rows in PROBES:
        part = order[:rows]
        started, busy = time.perf_counter(), time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            clone(model).fit(_safe_indexing(X, part), y[part])
        work.append(time.process_time() - busy)  # other programs disturb the comparison of two times less than the times
        spent = time.perf_counter() - started
    growth = np.log(work[1] / work[0]) / np.log(PROBES[1] / PROBES[0])
    return float(spent * (len(X) / PROBES[1]) ** np.clip(growth, *EXPONENTS))


def forecast(model: Any, X: Any, y: np.ndarray, seed: int = 0) -> str:
    """Memory and, for many rows, time of a training, and what would be faster.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> forecast(KStoNetRegressor(), np.zeros((100, 2)), np.zeros(100))
    'about 200.0 kB of memory for the kernel matrix'
    """
    needed, there = memory_needed(len(X)), available_memory()
    said = f"about {readable_bytes(needed)} of memory for the kernel matrix"
    if needed > 0.5 * there:
        said += f" ({readable_bytes(there)} are available)"
    if len(X) < WORTH_MEASURING:
        return said
    seconds = None
    with contextlib.suppress(ValueError):  # classes that so few rows do not have: no estimate then
        seconds = seconds_needed(model, X, y, seed)
    if seconds is None:
        return said
    said += f", roughly {duration(seconds)} (from fits on {PROBES[0]} and {counted(PROBES[1], 'row')})"
    if seconds > LONG:
        said += ". Faster: --rows 2000 trains on a sample, --tuning none skips the choice of the kernel"
    return said
