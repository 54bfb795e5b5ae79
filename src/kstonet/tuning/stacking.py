"""Which candidates are better together: greedy selection on errors of rows that were left out.

Candidates err at different rows, and their weighted mean errs less than the best of them. As in Caruana, Niculescu-Mizil, Crew
& Ksikes (2004), the candidate that makes the mean of all picks best is picked again and again, with repetition. Each pick is a
unit of the first layer.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kstonet.tuning.judging import Candidate, Rows


def greedy_stack(candidates: Sequence[Candidate], rows: Rows, picks: int, most: int) -> list[tuple[Candidate, int]]:
    """The candidates that were picked and how often, the most frequent first.

    Parameters
    ----------
    candidates : sequence of Candidate
        All judged on the same rows.
    rows : Rows
        These rows.
    picks : int
        Number of picks.
    most : int
        How many different candidates may be picked.

    Returns
    -------
    list of (Candidate, int)

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.tuning.stationary import FAMILIES
    >>> X = np.random.default_rng(0).normal(size=(80, 2))
    >>> rows = Rows(X, np.sin(2 * X[:, :1]) + np.abs(X[:, 1:]), None)
    >>> stack = greedy_stack([rows.best_width(family) for family in FAMILIES.values()], rows, 20, 2)
    >>> len(stack), sum(times for _, times in stack)
    (2, 20)
    """
    weights = np.ones(len(rows)) if rows.weights is None else rows.weights
    errors = np.stack([(one.fit.errors * np.sqrt(weights)[:, None]).ravel() for one in candidates])
    products = errors @ errors.T
    times = np.zeros(len(candidates), dtype=int)
    for pick in range(1, picks + 1):
        together = (times @ products @ times + 2.0 * products @ times + np.diagonal(products)) / pick**2
        if np.count_nonzero(times) >= most:
            together[times == 0] = np.inf
        times[int(together.argmin())] += 1
    order = [place for place in np.argsort(-times, kind="stable").tolist() if times[place]]
    return [(candidates[place], int(times[place])) for place in order]
