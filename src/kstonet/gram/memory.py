"""Memory is estimated before it is taken."""

from __future__ import annotations

import os
from pathlib import Path

from kstonet._words import readable_bytes

#: Share of the machine's available memory that a Gram may take unless ``max_memory`` says otherwise.
DEFAULT_FRACTION = 0.8


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
    """Bytes this process may still take: the machine's available memory or the container's limit, the smaller."""
    candidates = []
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                candidates.append(int(line.split()[1]) * 1024)
    except OSError:
        pass
    if not candidates and hasattr(os, "sysconf"):
        candidates.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text().strip()
        used = int(Path("/sys/fs/cgroup/memory.current").read_text())
        if limit != "max":
            candidates.append(max(int(limit) - used, 0))
    except (OSError, ValueError):
        pass
    return min(candidates) if candidates else 8 * 2**30


def require_memory(n: int, needed: int, limit: float, description: str, *, given: bool) -> None:
    """Raise :class:`GramTooLargeError` unless ``needed`` bytes fit; ``given`` says whether the user set the limit."""
    if needed > limit:
        origin = "max_memory" if given else f"{DEFAULT_FRACTION:.0%} of what is available"
        raise GramTooLargeError(
            f"A dense Gram matrix of n={n:,} rows needs {readable_bytes(needed)} ({description}); the limit is "
            f"{readable_bytes(limit)} ({origin}). Use fewer rows, or a larger max_memory if the "
            "machine has it."
        )
