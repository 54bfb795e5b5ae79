"""When a chain rests: as soon as iterations no longer make the network better at rows that are hidden from it.

A classifier starts as the one-vs-rest machine of its kernel, a regression as the mean of its ridge regressions
(:mod:`kstonet.class_start`, :mod:`kstonet.stacked_start`). Both are fitted to the targets themselves, and are as good as their
kernels allow. Later refits know targets twice, as those of a row and by the latent values of its neighbours. Whether they help
is seen on rows that the refits do not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from kstonet.iro import IROState


def helpful_iterations(
    chain: Iterator[IROState], start: IROState, losses: Callable[[IROState], np.ndarray], max_iter: int, needed: float = 1.0
) -> int:
    """How many iterations lower the loss of hidden rows, each by so many standard errors at least; often none.

    Parameters
    ----------
    chain : iterator of IROState
        Goes on from ``start``; hidden rows have no weight in it.
    start : IROState
        The network that does not know the hidden rows.
    losses : callable
        The losses of a state's network at the hidden rows.
    max_iter : int
        Iterations at most.
    needed : float
        Standard errors.

    Examples
    --------
    >>> errors = {0: np.array([4.0, 3.0]), 1: np.array([1.0, 1.0]), 2: np.array([1.0, 1.5])}
    >>> start, *others = (IROState(iteration, None, (), {}) for iteration in errors)  # networks do not matter here
    >>> helpful_iterations(iter(others), start, lambda state: errors[state.iteration], 6)
    1
    """
    best = losses(start)
    for iteration in range(max_iter):
        new = losses(next(chain))
        gain = best - new
        if not gain.mean() > needed * gain.std() / np.sqrt(len(gain)):
            return iteration
        best = new
    return max_iter
