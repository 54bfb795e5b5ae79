"""What the solvers of a dense matrix share: some of the rows take part, the others have no coefficients."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property

import numpy as np


class SolverOfRows(ABC):
    """(K + diag(ridges))⁻¹ on the rows with finite ridges.

    Parameters
    ----------
    ridges : ndarray of shape (n,)
        The number that is added to the diagonal for each row; infinite for rows that take no part.
    seen : ndarray of int
        Those that do, in an order of the solver's own.
    """

    def __init__(self, ridges: np.ndarray, seen: np.ndarray) -> None:
        self._ridges, self._seen = ridges, seen

    def solve(self, rows: np.ndarray) -> np.ndarray:
        """The inverse applied to every row; zero for rows that take no part."""
        out = np.zeros((len(rows), len(self._ridges)))
        out[:, self._seen] = self._applied(rows[:, self._seen])
        return out

    @cached_property
    def diagonal(self) -> np.ndarray:
        """The diagonal of the inverse; zero for rows that take no part."""
        out = np.zeros(len(self._ridges))
        out[self._seen] = self._own_diagonal()
        return out

    @abstractmethod
    def _applied(self, own: np.ndarray) -> np.ndarray:
        """The inverse times a copy of the targets of its own rows, which may be overwritten."""

    @abstractmethod
    def _own_diagonal(self) -> np.ndarray:
        """The diagonal for its own rows."""
