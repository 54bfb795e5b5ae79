"""What the columns of a matrix stand for, as far as a model treats them differently from numbers.

A category is a block of columns of 0 and 1, of which every row has one 1. Such columns belong together: they share one length
scale, and one unit. This holds for the columns that an encoding made, and for arrays whose columns somebody else has made: the
same table gives the same model.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

FEW_ROWS = 1000  # that tell most columns of numbers from those of 0 and 1


@dataclass(frozen=True)
class Roles:
    """Which columns are 0 and 1 for a category or a missing value, and which of them belong together.

    Parameters
    ----------
    indicators : ndarray of bool of shape (p,)
        Columns that stand for a category or a missing value: they are centred, but not scaled.
    groups : ndarray of int of shape (p,)
        From zero on: the same number for the columns of one category, a number of its own for every other column.
    """

    indicators: np.ndarray
    groups: np.ndarray

    @classmethod
    def of(cls, indicators: np.ndarray, blocks: list[slice]) -> Roles:
        """From the indicators of an encoding and the blocks of categories, which are indicators, too."""
        indicators, groups = indicators.copy(), np.arange(len(indicators))
        for block in blocks:
            indicators[block] = True
            groups[block] = block.start
        return cls(indicators, np.unique(groups, return_inverse=True)[1])


def category_blocks(X: np.ndarray, among: np.ndarray | None = None) -> list[slice]:
    """Blocks of two or more adjacent columns of 0 and 1, of which every row has exactly one 1.

    Parameters
    ----------
    X : ndarray of shape (n, p)
    among : ndarray of bool of shape (p,), optional
        Columns that may be part of a block.

    Examples
    --------
    >>> import numpy as np
    >>> colours, sizes = np.eye(3)[[0, 2, 1, 2]], np.eye(2)[[1, 0, 0, 1]]
    >>> category_blocks(np.hstack([np.arange(4.0)[:, None], colours, sizes]))
    [slice(1, 4, None), slice(4, 6, None)]
    """
    n, p = X.shape
    zero_or_one = np.zeros(p + 1, dtype=bool)
    zero_or_one[:p] = _zero_or_one(X[:FEW_ROWS])
    if among is not None:
        zero_or_one[:p] &= among
    some = np.flatnonzero(zero_or_one)
    if not n or len(some) < 2:
        return []
    ones = np.full(p + 1, n + 1.0)  # no block goes beyond a column of other numbers
    for column in some:  # one after the other: together they may be most of the table
        if _zero_or_one(X[:, column]):
            ones[column] = X[:, column].sum()
    total = np.concatenate([[0.0], np.cumsum(ones)])
    blocks, start = [], 0
    while start < p:
        stop = int(np.searchsorted(total, total[start] + n, side="left"))  # so many columns have n ones together
        complete = stop - start > 1 and stop <= p and total[stop] == total[start] + n
        if complete and (X[:, start:stop].sum(axis=1) == 1.0).all():
            blocks.append(slice(start, stop))
            start = stop
        else:
            start += 1
    return blocks


def _zero_or_one(X: np.ndarray) -> np.ndarray:
    """Which columns hold nothing else."""
    return np.asarray(((X == 0.0) | (X == 1.0)).all(axis=0))
