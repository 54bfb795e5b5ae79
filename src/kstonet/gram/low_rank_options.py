"""How a low-rank Gram is made: its sizes, what they cost, and the factory that ``solver="low_rank"`` stands for."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from kstonet._records import storable
from kstonet._words import readable_bytes
from kstonet.gram.base import StructuredGram
from kstonet.gram.devices import memory_limit, placing
from kstonet.gram.kernels import Kernel
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.memory import DEFAULT_FRACTION, GramTooLargeError
from kstonet.gram.scratch import Scratch

RANK = 1000  # landmarks; on protein data (37,000 rows) 500 were 0.3 % behind 2,000
LEAF_ROWS = 12_000  # twice as large leaves took 1 % off the error of protein data and off the log loss of CoverType
WORK = 4.5e12  # rows times squared size of a leaf: operations of the inverses, a few minutes on two cores
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
        Largest number of rows of a leaf, within which the kernel is exact; 0 for no leaves. By default 12,000 (20,000 on
        a device), or what time (a few minutes for all leaves) and memory allow.
    tolerance : float, default=1e-4
        Share of the trace of K that the landmarks may leave out: fewer are taken where that is reached.
    seed : int, default=0
        Seed of the landmarks.
    scratch : str, optional
        A folder on a disk for what memory does not hold: factor, leaves and their inverses are in files there then, which are
        gone when they are no longer needed. Landmarks and leaves are as many and as large as if memory were large enough.
        By default, and on a device, they are made to fit.

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

    name: ClassVar[str] = "low_rank"

    rank: int | None = None
    leaf_rows: int | None = None
    tolerance: float = TOLERANCE
    seed: int = 0
    scratch: str | None = None

    def __post_init__(self) -> None:
        """Check the parameters."""
        for name, least in (("rank", 1), ("leaf_rows", 0)):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least):
                raise ValueError(f"{name}={value!r} must be a whole number >= {least}, or None for what memory allows.")
        if not 0.0 <= self.tolerance < 1.0:
            raise ValueError(f"tolerance={self.tolerance!r} must be in [0, 1); it is a share of the trace.")
        if self.scratch is not None:
            try:
                object.__setattr__(self, "scratch", os.fsdecode(self.scratch))
            except TypeError:
                raise ValueError(f"scratch={self.scratch!r} must be the path of a folder, or None for no files.") from None

    def sizes(self, n: int, limit: float, device: str | None = None) -> Sizes:
        """Landmarks and rows of a leaf for n rows within ``limit`` bytes; the smallest allowed where nothing fits."""
        rank = min(n, RANK if self.rank is None else self.rank)
        most, work = (LEAF_ROWS, WORK) if device is None else (LEAF_ROWS_ON_DEVICE, WORK_ON_DEVICE)
        leaf = min(n, most, int((work / n) ** 0.5)) if self.leaf_rows is None else min(n, self.leaf_rows)
        found = Sizes(n, rank, leaf)
        if self.scratch is not None and device is None and found.bytes > limit:
            found = replace(found, filed=True)
        while self.leaf_rows is None and found.leaf_rows > FEWEST_LEAF_ROWS and found.bytes > limit:
            found = replace(found, leaf_rows=max(FEWEST_LEAF_ROWS, found.leaf_rows // 2))
        while self.rank is None and found.rank > FEWEST_LANDMARKS and found.bytes > limit:
            found = replace(found, rank=max(FEWEST_LANDMARKS, found.rank // 2))
        return found

    def refusal(self, sizes: Sizes, limit: float, *, given: bool, device: str | None = None) -> str | None:
        """Why a Gram of these sizes cannot be made, and what helps; None where it can. ``given``: the user set the limit."""
        own = type(self).__name__
        of = f"A low-rank Gram of n={sizes.rows:,} rows with {sizes.rank:,} landmarks and leaves of {sizes.leaf_rows:,} rows"
        fewer = f"Use fewer rows, or a smaller rank and smaller leaves: solver={own}(rank=..., leaf_rows=...)"
        if sizes.bytes > limit:
            origin = "max_memory" if given else f"{DEFAULT_FRACTION:.0%} of what is available"
            needs = f"{of} needs {readable_bytes(sizes.bytes)}; the limit is {readable_bytes(limit)} ({origin})."
            files = "" if sizes.filed or device is not None else f", a folder for what does not fit: {own}(scratch=...)"
            return f"{needs} {fewer}{files}, or a larger max_memory if the machine has it."
        if self.scratch is not None and sizes.filed_bytes > (room := Scratch(self.scratch).room):
            has = f"has {readable_bytes(room)} left" if room else "is not a folder that can be written to"
            return f"{of} needs {readable_bytes(sizes.filed_bytes)} in files; scratch={self.scratch!r} {has}. {fewer}."
        return None

    def __call__(
        self,
        X: np.ndarray,
        kernel: Kernel,
        *,
        device: str | None = None,
        dtype: str = "float32",
        max_memory: float | None = None,
    ) -> StructuredGram:
        """Make the Gram; its values are stored in float32 whatever ``dtype`` is."""
        if kernel.precomputed:
            raise ValueError(f"solver={self.name!r} needs features, not kernel='precomputed'; use solver='dense'.")
        limit = memory_limit(max_memory, device)
        sizes = self.sizes(len(X), limit, device)
        refusal = self.refusal(sizes, limit, given=max_memory is not None, device=device)
        if refusal is not None:
            raise GramTooLargeError(refusal)
        scratch = Scratch(self.scratch) if sizes.filed and self.scratch is not None else None
        near = LowRankGram(
            X,
            kernel,
            rank=sizes.rank,
            leaf_rows=sizes.leaf_rows,
            tolerance=self.tolerance,
            seed=self.seed,
            place=placing(device),
            scratch=scratch,
        )
        return self._made(near, X, device)

    def _made(self, near: LowRankGram, X: np.ndarray, device: str | None) -> StructuredGram:
        return near


@dataclass(frozen=True)
class Sizes:
    """Of a low-rank Gram, and what they cost.

    Parameters
    ----------
    rows, rank, leaf_rows : int
    filed : bool
        Whether factor, blocks and their inverses are in files.

    Examples
    --------
    >>> sizes = Sizes(500_000, 1000, 2500)
    >>> sizes.bytes, replace(sizes, filed=True).bytes
    (10021075712, 205075712)
    """

    rows: int
    rank: int
    leaf_rows: int
    filed: bool = False

    @property
    def leaf(self) -> int:
        """Rows of the largest leaf: all rows halved until there are at most ``leaf_rows``; 0 for none."""
        if self.leaf_rows == 0:
            return 0
        size = self.rows
        while size > self.leaf_rows:
            size = (size + 1) // 2
        return size

    @property
    def bytes(self) -> int:
        """In memory, with the work arrays while they are made."""
        made = 8 * (4 * self.leaf**2 + 3 * self.leaf * self.rank)
        held = 24 * self.rows + 24 * self.rank**2
        return made + held + (0 if self.filed else self._large)

    @property
    def filed_bytes(self) -> int:
        """In files."""
        return self._large if self.filed else 0

    @property
    def _large(self) -> int:
        """Of factor, blocks and their inverses."""
        return 4 * self.rows * (self.rank + 2 * self.leaf)
