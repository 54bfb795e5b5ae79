"""Bytes that a training takes beside its data, from its sizes alone.

The constants are those of measured peaks (``tests/reliability/test_memory.py``), which lie within 20 % of the estimates. What
small arrays leave behind in the C library's own memory counts, too: it is never given back while a fit goes on.
"""

from __future__ import annotations

from dataclasses import dataclass

from kstonet.gram.blocks import BLOCK_BYTES
from kstonet.gram.cholesky import BLOCK, COLUMNS
from kstonet.gram.dense import LARGEST_INVERSE, MIXED_PRECISION_FROM, DenseGram

KEPT = {"squared": 28e6, "epsilon_insensitive": 10e6}  # bytes of freed blocks that stay with the process
CHOICE_ROWS = 1_600  # that kernels are chosen on
CHOICE_MATRICES = {False: (2.0, 2.3), True: (6.0, 0.6)}  # of so many rows, for numbers and for classes: held, and of a thread
CHOICE_THREADS = 4.5  # that have work
CHOICE_KEPT = 7e6  # bytes of freed blocks that stay with the process, of a thread
LAST_ROWS, LAST_MATRICES, LAST_THREADS = 3_200, 2.1, 2  # of classes: the last judgement, its matrices of a thread, and threads
DENSE_ROWS, DENSE_THREADS, DENSE_KEPT = 2_400, 6, 36e6  # from so many rows on, numbers are judged in neighbourhoods, too
INVERSE_WORK = 4  # bytes per pair of rows while the last matrix is inverted
FOLD_SHARE = 0.2  # of a matrix: the factors of its folds, with intervals
SOLVER_ARRAYS = 40  # of rows × units for every fold, with intervals and the ε-insensitive loss
FOLDS = 5
DEVICE_BLOCK, VALUES_AT_ONCE = 1024, 5  # rows whose kernel values a device computes together, and arrays of them meanwhile
SUMS_OF_PARTS = 36  # bytes per row and unit: right-hand sides and eight partial sums in float32
DEVICE_BLOCK_BYTES = 2**30  # of kernel values that a prediction computes at once: fewer, larger products suit a device
HARD = 13.3  # bytes per pair of rows of matrix and factor, between 12 and 16
FACTORED = 14.6  # likewise with a squared loss, where 16 are more frequent


@dataclass(frozen=True)
class Workload:
    """What a training is asked for, as far as its memory depends on it.

    Parameters
    ----------
    squared : bool
        Whether the first layer has a squared loss.
    units, averages : int
        Units of the first layer, and iterates that are kept.
    groups : int
        Distinct kernels of the first layer, with a squared loss distinct pairs of kernel and C: each has a matrix of its own.
    intervals : bool
        Whether intervals are prepared.
    threads : int
        Threads of a choice of kernels by their leave-one-out errors; 0 for no choice.
    searched : int
        Kernels that a search trains; 0 for no search.
    classes : bool
        Whether classes are learnt.
    """

    squared: bool
    units: int = 5
    averages: int = 1
    groups: int = 1
    intervals: bool = True
    threads: int = 0
    searched: int = 0
    classes: bool = False


def matrices_bytes(n: int, *, squared: bool = False, groups: int = 1, dtype: str = "float64", hard: bool = False) -> int:
    """Bytes of kernel matrices of n rows with their factors, or with the inverses that a squared loss needs.

    A squared loss of many rows has a factor instead, mostly in float32.

    ``hard`` is for a C that is not known yet: it may be so large that a factor in float32 will not do.

    Examples
    --------
    >>> matrices_bytes(10_000), matrices_bytes(10_000, squared=True)
    (1220480000, 1623840000)
    """
    if squared and n > LARGEST_INVERSE:
        return int(n * (groups * FACTORED * n + 8 * COLUMNS))
    if squared:
        return n * n * (16 * groups + INVERSE_WORK)
    if hard:
        return int(groups * n * (HARD * n + 8 * min(n, BLOCK)))
    return groups * DenseGram.bytes_needed(n, dtype)


def factor_bytes(n: int) -> int:
    """Bytes of a float32 factor on a device, and of the kernel values that are computed at once while it is made and corrected.

    Examples
    --------
    >>> factor_bytes(150_000)
    96451200000
    """
    return 4 * n * (n + BLOCK) + 8 * n * VALUES_AT_ONCE * DEVICE_BLOCK


def device_bytes(n: int, *, squared: bool, most: float, dtype: str = "float64") -> int:
    """Bytes of a dense matrix on a device with its factor, which mostly is in float32.

    Where that is more than ``most``, a squared loss makes do with a factor, and computes kernel values when it needs them.

    Examples
    --------
    >>> device_bytes(60_000, squared=True, most=100e9), device_bytes(150_000, squared=True, most=100e9)
    (43322880000, 96451200000)
    """
    whole = DenseGram.bytes_needed(n, dtype)
    forgets = squared and n > MIXED_PRECISION_FROM and whole > most
    return min(factor_bytes(n), whole) if forgets else whole


def passing_bytes(n: int, p: int, units: int, device: str | None) -> int:
    """Bytes of products with kernel values that are computed and forgotten.

    A device holds the rows, their features in float32, and partial sums; kernels without a fused product take up to 5 GB more.

    Examples
    --------
    >>> passing_bytes(1_000_000, 10, 20, None), passing_bytes(1_000_000, 10, 20, "cuda")
    (335544320, 840000000)
    """
    return VALUES_AT_ONCE * BLOCK_BYTES if device is None else 12 * n * p + SUMS_OF_PARTS * n * units


def latent_bytes(n: int, work: Workload) -> float:
    """Coefficients, values and latent values of the iterates, and the work of an iteration."""
    return 8.0 * n * work.units * (3 * work.averages + 6)


def dense_bytes(n: int, work: Workload) -> float:
    """The peak of a training on dense matrices.

    Examples
    --------
    >>> round(dense_bytes(10_000, Workload(squared=True)) / 1e9, 1)
    1.7
    """
    block = min(BLOCK_BYTES, 8 * n * n)
    held = peak = float(matrices_bytes(n, squared=work.squared, groups=work.groups, hard=work.searched > 0))
    inverted = work.squared and n <= LARGEST_INVERSE
    if inverted:
        held -= INVERSE_WORK * n * n
    if work.intervals and inverted:
        peak = max(peak, held + FOLD_SHARE * work.groups * 8 * n * n + block)
    elif work.intervals and not work.squared:
        peak = held + block + 8.0 * n * work.units * FOLDS * SOLVER_ARRAYS
    return peak + latent_bytes(n, work) + KEPT["squared" if work.squared else "epsilon_insensitive"]


def chosen_bytes(n: int, work: Workload, training: float) -> float:
    """The peak of a choice and the training after it."""
    if not work.threads:
        return training
    rows = min(n, CHOICE_ROWS)
    held, each = CHOICE_MATRICES[work.classes]
    threads = min(work.threads, CHOICE_THREADS)
    kept = CHOICE_KEPT * threads
    if n > DENSE_ROWS and not work.classes:
        kept = DENSE_KEPT * min(work.threads, DENSE_THREADS)
    choice = 8.0 * rows * rows * (held + each * threads)
    if work.classes:
        last = min(n, LAST_ROWS)
        choice = max(choice, 8.0 * last * last * LAST_MATRICES * min(work.threads, LAST_THREADS))
    return max(choice, training + kept)


def searched_bytes(parts: int, rows: int, last: int, work: Workload, training: float) -> float:
    """The peak of a search on ``parts`` of so many ``rows`` and on a ``last`` part, and of the training after it."""
    if not work.searched:
        return training
    every = parts * matrices_bytes(rows, groups=work.searched, hard=True)
    return max(every + KEPT["squared"], matrices_bytes(last, groups=work.searched, hard=True), training)
