"""What the solvers of a dense matrix share: some of the rows take part, the others have no coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from kstonet.gram.base import DIRECT, EVERY_ROW


class SolverOfRows(ABC):
    """(K + diag(ridges))⁻¹ on the rows with finite ridges.

    Parameters
    ----------
    ridges : ndarray of shape (n,)
        The number that is added to the diagonal for each row; infinite for rows that take no part.
    seen : ndarray of int
        Those that do, in an order of the solver's own.
    """

    accuracy = DIRECT

    def __init__(self, ridges: np.ndarray, seen: np.ndarray) -> None:
        self._ridges, self._seen = ridges, seen
        self._known = np.empty(0)  # last entries of the diagonal

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """The inverse applied to every row; zero for rows that take no part."""
        out = np.zeros((len(rows), len(self._ridges)))
        out[:, self._seen] = self._applied(rows[:, self._seen])
        return out

    def diagonal(self, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """The diagonal of the inverse at some rows, by default all; zero for rows that take no part."""
        asked = np.zeros(len(self._ridges), dtype=bool)
        asked[rows] = True
        places = np.flatnonzero(asked[self._seen])
        last = len(self._seen) - int(places[0]) if len(places) else 0
        if last > len(self._known):
            self._known = self._own_diagonal(last)
        out = np.zeros(len(self._ridges))
        out[self._seen[len(self._seen) - len(self._known) :]] = self._known
        return np.asarray(out[rows])

    @abstractmethod
    def _applied(self, own: np.ndarray) -> np.ndarray:
        """The inverse times a copy of the targets of its own rows, which may be overwritten."""

    @abstractmethod
    def _own_diagonal(self, last: int) -> np.ndarray:
        """The diagonal for the last of its own rows."""
