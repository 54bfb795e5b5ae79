"""How a low-rank Gram is made: its sizes, what they cost, and the factory that ``solver="low_rank"`` stands for."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._records import storable
from kstonet._words import readable_bytes
from kstonet.gram.devices import memory_limit, placing
from kstonet.gram.kernels import Kernel
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.memory import DEFAULT_FRACTION, GramTooLargeError

RANK = 1000  # landmarks; on protein data (37,000 rows) 500 were 0.3 % behind 2,000
LEAF_ROWS = 6000  # on the same data leaves of 2,300, 4,600 and 9,300 rows had errors of 3.27, 3.26 and 3.25
WORK = 1.5e12  # rows times squared size of a leaf: operations of the inverses, a minute or two
LEAF_ROWS_ON_DEVICE, WORK_ON_DEVICE = 20_000, 2e14  # a GPU does in seconds what two cores do in minutes
FEWEST_LEAF_ROWS, FEWEST_LANDMARKS = 300, 100  # less is another model
TOLERANCE = 1e-4  # share of the trace left out at which more landmarks are not worth their price


@storable()
@dataclass(frozen=True)
class LowRank:
    """How a :class:`LowRankGram` is made; ``solver="low_rank"`` is ``solver=LowRank()``.

    Parameters
    ----------
    rank : int, optional
        Largest number of landmarks. By default 1,000, or what memory allows.
    leaf_rows : int, optional
        Largest number of rows of a leaf, within which the kernel is exact; 0 for no leaves. By default 6,000 (20,000 on a
        device), or what time (two minutes or so for all leaves) and memory allow.
    tolerance : float, default=1e-4
        Share of the trace of K that the landmarks may leave out: fewer are taken where that is reached.
    seed : int, default=0
        Seed of the landmarks.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.gram import LowRank
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> options = {"tuning": "none", "loss": "squared", "max_iter": 3, "random_state": 0}
    >>> model = KStoNetRegressor(solver=LowRank(rank=50, leaf_rows=100), **options).fit(X, np.sin(X[:, 0]))
    >>> model.plan_.rank <= 50, model.score(X, np.sin(X[:, 0])) > 0.99
    (True, True)
    """

    rank: int | None = None
    leaf_rows: int | None = None
    tolerance: float = TOLERANCE
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name, least in (("rank", 1), ("leaf_rows", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least):
                raise ValueError(f"{name}={value!r} must be a whole number >= {least}, or None for what memory allows.")
        if not 0.0 <= self.tolerance < 1.0:
            raise ValueError(f"tolerance={self.tolerance!r} must be in [0, 1); it is a share of the trace.")

    def sizes(self, n: int, limit: float, device: str | None = None) -> tuple[int, int]:
        """Landmarks and rows of a leaf for n rows within ``limit`` bytes; the smallest allowed where nothing fits."""
        rank = min(n, RANK if self.rank is None else self.rank)
        most, work = (LEAF_ROWS, WORK) if device is None else (LEAF_ROWS_ON_DEVICE, WORK_ON_DEVICE)
        leaf = min(n, most, int((work / n) ** 0.5)) if self.leaf_rows is None else min(n, self.leaf_rows)

        def fits() -> bool:
            return self.bytes_needed(n, rank, leaf) <= limit

        while self.leaf_rows is None and leaf > FEWEST_LEAF_ROWS and not fits():
            leaf = max(FEWEST_LEAF_ROWS, leaf // 2)
        while self.rank is None and rank > FEWEST_LANDMARKS and not fits():
            rank = max(FEWEST_LANDMARKS, rank // 2)
        return rank, leaf

    @staticmethod
    def bytes_needed(n: int, rank: int, leaf_rows: int) -> int:
        """Bytes of factor, blocks and their inverses, and of the work arrays while they are made.

        Examples
        --------
        >>> LowRank.bytes_needed(500_000, 1000, 2500)
        10021075712
        """
        leaf = leaf_size(n, leaf_rows)
        held = 4 * n * (rank + 2 * leaf) + 24 * n + 24 * rank * rank
        return held + 8 * (4 * leaf * leaf + 3 * leaf * rank)

    def __call__(
        self,
        X: np.ndarray,
        kernel: Kernel,
        *,
        device: str | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
    ) -> LowRankGram:
        """Make the Gram; its values are stored in float32 whatever ``dtype`` is."""
        if kernel.precomputed:
            raise ValueError("solver='low_rank' needs features, not kernel='precomputed'; use solver='dense'.")
        limit = memory_limit(max_memory, device)
        rank, leaf_rows = self.sizes(len(X), limit, device)
        needed = self.bytes_needed(len(X), rank, leaf_rows)
        if needed > limit:
            origin = f"{DEFAULT_FRACTION:.0%} of what is available" if max_memory is None else "max_memory"
            raise GramTooLargeError(
                f"A low-rank Gram of n={len(X):,} rows with {rank:,} landmarks and leaves of {leaf_rows:,} rows needs "
                f"{readable_bytes(needed)}; the limit is {readable_bytes(limit)} ({origin}). Use fewer rows, or a smaller rank "
                "and smaller leaves: solver=LowRank(rank=..., leaf_rows=...), or a larger max_memory if the machine has it."
            )
        sizes = {"rank": rank, "leaf_rows": leaf_rows, "seed": self.seed}
        return LowRankGram(X, kernel, **sizes, tolerance=self.tolerance, place=placing(device))


def leaf_size(n: int, leaf_rows: int) -> int:
    """Rows of the largest leaf: n halved until it is at most ``leaf_rows``; 0 for none."""
    if leaf_rows == 0:
        return 0
    size = n
    while size > leaf_rows:
        size = (size + 1) // 2
    return size
