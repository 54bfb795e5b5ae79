"""Memory is estimated before it is taken."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from kstonet._words import readable_bytes

#: Share of the machine's available memory that a Gram may take unless ``max_memory`` says otherwise.
DEFAULT_FRACTION = 0.8
GROUPS = Path("/sys/fs/cgroup")
THREAD_ADDRESSES = 140e6  # bytes of address space that a thread reserves, for its stack and for blocks of its own
LIBRARY_ADDRESSES = 100e6  # that matrix libraries reserve when they are first used
OF_VERSION_1 = ("memory.limit_in_bytes", "memory.usage_in_bytes")


class GramTooLargeError(MemoryError):
    """Raised before allocating a Gram matrix that would not fit.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import DenseGram, GramTooLargeError, make_kernel
    >>> X = np.zeros((1000, 2))
    >>> try:
    ...     DenseGram(X, make_kernel("rbf", X), max_memory=1e6)
    ... except GramTooLargeError as error:
    ...     print(str(error).split(";")[0])
    A dense Gram matrix of n=1,000 rows needs 20.1 MB (matrix in float64, factor in float64)
    """


def available_memory() -> int:
    """Bytes this process may still take: of the machine, of its control groups and of its address space, the fewest."""
    candidates = [*_of_machine(), *_of_groups(), *_of_address_space()]
    return max(min(candidates), 0) if candidates else 8 * 2**30


def _of_machine() -> Iterator[int]:
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            yield int(line.split()[1]) * 1024
            return
    if hasattr(os, "sysconf"):
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def _of_groups() -> Iterator[int]:
    """What the limits of the process's control groups leave, the groups around it included (both versions of them)."""
    for most, taken in _limits(GROUPS, tuple(_lines("/proc/self/cgroup"))):
        try:
            with open(most, "rb") as limit, open(taken, "rb") as usage:
                left = int(limit.read()) - int(usage.read())
            # files that were read count as usage until the system needs their pages
            kept = (line.split() for line in _lines(str(most.parent / "memory.stat")))
            yield left + next((int(value) for name, value in kept if name in ("inactive_file", "total_inactive_file")), 0)
        except (OSError, ValueError):  # no such group, or no limit
            continue


@lru_cache(maxsize=1)
def _limits(root: Path, groups: tuple[str, ...]) -> tuple[tuple[Path, Path], ...]:
    """Files with the limit and the usage of the groups; a training asks for them hundreds of times."""
    found = [(root / "memory.max", root / "memory.current")]
    for line in groups:
        _, kinds, path = line.split(":", 2)
        top, names = (root, ("memory.max", "memory.current")) if not kinds else (root / "memory", OF_VERSION_1)
        if not kinds or "memory" in kinds.split(","):
            place = top / path.lstrip("/")
            folders = (folder for folder in (place, *place.parents) if folder.is_relative_to(top))
            found += [(folder / names[0], folder / names[1]) for folder in folders]
    return tuple(dict.fromkeys(found))


def _of_address_space() -> Iterator[int]:
    """What ``ulimit -v`` leaves."""
    try:
        import resource
    except ImportError:  # Windows
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most != resource.RLIM_INFINITY:
        pages = next(_lines("/proc/self/statm"), "0").split()[0]
        yield most - int(pages) * os.sysconf("SC_PAGE_SIZE")


def _lines(path: str) -> Iterator[str]:
    try:
        yield from Path(path).read_text().splitlines()
    except OSError:
        return


def release_memory() -> None:
    """Give freed memory back to the system where the C library keeps it: a choice of many small matrices leaves much."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (OSError, AttributeError, TypeError):  # not the GNU C library
        return


def require_memory(n: int, needed: int, limit: float, description: str, *, given: bool) -> None:
    """Raise :class:`GramTooLargeError` unless ``needed`` bytes fit; ``given`` says whether the user set the limit."""
    if needed > limit:
        origin = "max_memory" if given else f"{DEFAULT_FRACTION:.0%} of what is available"
        raise GramTooLargeError(
            f"A dense Gram matrix of n={n:,} rows needs {readable_bytes(needed)} ({description}); the limit is "
            f"{readable_bytes(limit)} ({origin}). Use fewer rows, or a larger max_memory if the "
            "machine has it."
        )


def require_room(n: int, needed: int, threads: int, *, adapts: bool = False) -> None:
    """Raise :class:`GramTooLargeError` unless a fit that takes ``needed`` bytes can end, with the threads it starts.

    A Gram that ``adapts`` to the memory is as large as that allows; only an address space ends in the middle.

    Examples
    --------
    >>> require_room(100, 1_000_000, threads=0)
    """
    reserved, advice = LIBRARY_ADDRESSES, "Use fewer rows or residuals=None, or give max_memory to try it nevertheless."
    left = next(_of_address_space(), None)
    if left is not None and threads > 1:
        reserved, advice = (
            reserved + threads * THREAD_ADDRESSES,
            f"Use n_jobs=1, or raise the limit of the address space. {advice}",
        )
    for what, room, wanted in (
        ("memory", None if adapts else available_memory(), float(needed)),
        ("address space (ulimit -v)", left, needed + reserved),
    ):
        if room is not None and wanted > room:
            needs = f"A fit of n={n:,} rows needs about {readable_bytes(wanted)} of {what}"
            raise GramTooLargeError(f"{needs}; {readable_bytes(room)} are left. {advice}")
