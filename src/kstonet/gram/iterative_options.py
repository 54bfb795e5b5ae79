"""How an iterative Gram is made: the factory that ``solver="iterative"`` stands for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from kstonet._records import storable
from kstonet.gram.devices import block_bytes, placing
from kstonet.gram.iterative import IterativeGram
from kstonet.gram.low_rank import LowRankGram
from kstonet.gram.low_rank_options import LowRank


@storable()
@dataclass(frozen=True)
class Iterative(LowRank):
    """How an :class:`IterativeGram` is made; ``solver="iterative"`` is ``solver=Iterative()``.

    The kernel is exact at any number of rows, and memory that of ``solver="low_rank"``. A training takes some hundred passes
    over the n² kernel values, which are computed anew every time: this is meant for a GPU, and for the squared loss of a first
    call. Every step of a support vector regression is a system of its own, so that the ε-insensitive loss takes many more.

    Parameters
    ----------
    rank, leaf_rows, tolerance, seed, scratch
        As in :class:`LowRank`, of the approximation that preconditions. They decide on time and memory; the model is the same
        up to the accuracy of the solver, but for the leverages behind leave-one-out residuals, which are the approximation's.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.gram import Iterative
    >>> X = np.random.default_rng(0).normal(size=(400, 2))
    >>> options = {"tuning": "none", "loss": "squared", "max_iter": 3, "random_state": 0}
    >>> model = KStoNetRegressor(solver=Iterative(rank=50, leaf_rows=100), **options).fit(X, np.sin(X[:, 0]))
    >>> model.plan_.solver, model.plan_.approximate
    ('iterative', False)
    """

    name: ClassVar[str] = "iterative"

    tolerance: float = 1e-7

    def _made(self, near: LowRankGram, X: np.ndarray, device: str | None) -> IterativeGram:
        return IterativeGram(X, near, placing(device), block_bytes(device))
