"""Kernel ridge regressions on a Gram that is no matrix at hand: the map from targets to coefficients by its own solver.

As in :class:`~kstonet.layers.ridge.RidgeMap`, α = Q·y with Q = A⁻¹ - A⁻¹11ᵀA⁻¹/(1ᵀA⁻¹1) and A = K + ridge·W⁻¹, but Q is never
formed.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from kstonet._arrays import to_numpy
from kstonet.gram import RegularisedGram
from kstonet.gram.base import DiagonalSolver
from kstonet.layers.ridge import Regression, RidgeMap

ACCURACY = 1e-6  # of the regressions' equations, over the size of the targets
MOST_CORRECTIONS = 10
SYSTEMS_BYTES = 2**30  # of solvers with rows left out that are kept at once; one always is


class StructuredRidgeMap(RidgeMap):
    """A :class:`RidgeMap` on a :class:`~kstonet.gram.RegularisedGram`."""

    gram: RegularisedGram

    @cached_property
    def _systems(self) -> dict[bytes, _System]:
        return {}

    def _system(self, sample_weight: np.ndarray | None) -> _System:
        """The system without the rows that ``sample_weight`` hides."""
        ridges = self.row_ridges.copy()
        ridges[self._hidden(sample_weight)] = np.inf
        key = np.packbits(np.isfinite(ridges)).tobytes()
        if key not in self._systems:
            if sample_weight is not None:
                self._system(None)  # the first, whatever is asked for first: solvers without some rows may be parts of it
            hidden = [held for held in self._systems if len(self._systems) > 1 and held != next(iter(self._systems))]
            if hidden and len(hidden) * self.gram.nbytes > SYSTEMS_BYTES:
                del self._systems[hidden[0]]
            self._systems[key] = _System(self.gram, ridges)
        return self._systems[key]

    def diagonal(self, sample_weight: np.ndarray | None = None) -> np.ndarray:
        """Qᵢᵢ, without the rows of weight zero."""
        return np.asarray(np.maximum(self._system(sample_weight).diagonal, self._least))

    def solve(self, targets: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n, m) and intercepts (m,)."""
        found = self.regress(targets, sample_weight)
        return found.coef, found.intercept

    def regress(self, targets: np.ndarray, sample_weight: np.ndarray | None) -> Regression:
        """Coefficients, intercepts and the kernel's part of the fitted values, corrected until they solve the equations."""
        return self._system(sample_weight).regress(targets)


class _System:
    """One set of rows that count."""

    def __init__(self, gram: RegularisedGram, ridges: np.ndarray) -> None:
        self.gram, self.ridges = gram, ridges
        self.seen = np.isfinite(ridges)
        self._finite = np.where(self.seen, ridges, 0.0)
        self._solver: DiagonalSolver = gram.regularised(ridges)
        self._ones = self._corrected(self.seen[None, :].astype(np.float64))[0]

    def _product(self, rows: np.ndarray) -> np.ndarray:
        return to_numpy(self.gram.product(self.gram.array(rows)))

    def _corrected(self, rows: np.ndarray) -> np.ndarray:
        """A⁻¹ applied to every row, to the accuracy of the equations."""
        solved = self._solver.solve(rows)
        for _ in range(MOST_CORRECTIONS):
            left = np.where(self.seen, rows - self._product(solved) - self._finite * solved, 0.0)
            if np.abs(left).max() <= ACCURACY * np.abs(rows).max():
                break
            solved += self._solver.solve(left)
        return solved

    @property
    def diagonal(self) -> np.ndarray:
        return np.asarray(self._solver.diagonal - self._ones**2 / self._ones.sum())

    def regress(self, targets: np.ndarray) -> Regression:
        rows = np.where(self.seen, targets.T, 0.0)
        size = max(float(np.abs(rows).max()), 1e-300)
        coef, intercept, image = np.zeros_like(rows), np.zeros(len(rows)), np.zeros_like(rows)
        left = rows
        for _ in range(1 + MOST_CORRECTIONS):
            step = self._solver.solve(left)
            constant = step.sum(axis=1) / self._ones.sum()
            coef += step - constant[:, None] * self._ones
            intercept += constant
            image = self._product(coef)
            left = np.where(self.seen, rows - image - self._finite * coef - intercept[:, None], 0.0)
            if np.abs(left).max() <= ACCURACY * size:
                break
        return Regression(np.ascontiguousarray(coef.T), intercept, np.ascontiguousarray(image.T))
