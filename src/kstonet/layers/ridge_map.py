"""The linear map from targets to the coefficients of kernel ridge regressions with an intercept, on fixed rows.

With A = K + ridge·W⁻¹ (W the weights of the rows), α = Q·y with Q = A⁻¹ - A⁻¹11ᵀA⁻¹/(1ᵀA⁻¹1). Q is never formed: the Gram, or
an inverse of its matrix, applies A⁻¹ in a precision of its own, and products with the matrix correct what that leaves over.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from kstonet._arrays import to_numpy
from kstonet.gram import DenseGram, Gram, RegularisedGram
from kstonet.gram.base import EVERY_ROW, DiagonalSolver
from kstonet.gram.inverted import InvertedSolver

OF_RESIDUALS = 1e-3  # what regressions may leave of their equations, over their largest residual
MOST_CORRECTIONS = 10
CERTAIN = 0.1  # of what they may leave: a correction that is expected to leave so little needs no proof
STALLED = 0.5  # of what was left over: with more than that left, a further correction is of no use
SYSTEMS_BYTES = 2**30  # of solvers with rows left out that are kept at once; one always is


class Regression(NamedTuple):
    """Kernel ridge regressions: coefficients (n, m), intercepts (m,), and the coefficients' kernel expansions (n, m)."""

    coef: np.ndarray
    intercept: np.ndarray
    image: np.ndarray


class RidgeMap:
    """Kernel ridge regressions on the rows of a Gram.

    Parameters
    ----------
    gram : Gram
        The kernel on the training rows.
    ridge : float
        Positive: one over the weight C of a squared loss.
    weights : ndarray of shape (n,), optional
        Sample weights; rows of weight zero take no part.
    """

    def __init__(self, gram: Gram, ridge: float, weights: np.ndarray | None = None) -> None:
        self.gram, self.ridge, self.weights = gram, ridge, weights
        self._systems: dict[bytes, _System] = {}

    @cached_property
    def row_ridges(self) -> np.ndarray:
        """The ridge of every row, over its weight; infinite for rows that take no part."""
        weights = np.ones(self.gram.n) if self.weights is None else self.weights
        return np.asarray(np.divide(self.ridge, weights, out=np.full(self.gram.n, np.inf), where=weights > 0))

    @cached_property
    def _least(self) -> float:
        """A bound of Qᵢᵢ from below, for where rounding has eaten it.

        1/Qᵢᵢ is the variance of row i given all others, and any one of them alone predicts it with a variance of at most this.
        """
        ridges = self.row_ridges[np.isfinite(self.row_ridges)]
        return 1.0 / (4.0 * float(to_numpy(self.gram.diagonal()).max()) + 2.0 * float(ridges.max()))

    def _system(self, sample_weight: np.ndarray | None) -> _System:
        """The system without the rows that ``sample_weight`` hides."""
        ridges = self.row_ridges
        if sample_weight is not None:
            ridges = np.where(sample_weight == 0.0, np.inf, ridges)
        key = np.packbits(np.isfinite(ridges)).tobytes()
        if key not in self._systems:
            solver = None if sample_weight is None else self._system(None).solver.without(ridges)
            hidden = list(self._systems)[1:]
            if hidden and sum(self._systems[held].solver.nbytes for held in hidden) > SYSTEMS_BYTES:
                del self._systems[hidden[0]]
            self._systems[key] = _System(self.gram, ridges, solver or _new_solver(self.gram, ridges))
        return self._systems[key]

    def diagonal(self, sample_weight: np.ndarray | None = None, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """Qᵢᵢ, without the rows of weight zero: a row's residual, left out of the regression, is αᵢ/Qᵢᵢ.

        At some ``rows``, by default all; those that are last in :func:`~kstonet.gram.factored.factor_order` cost less.
        """
        return np.asarray(np.maximum(self._system(sample_weight).diagonal(rows), self._least))

    def solve(self, targets: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients (n, m) and intercepts (m,) for targets (n, m); rows of weight zero are left out of the regression."""
        found = self.regress(targets, sample_weight)
        return found.coef, found.intercept

    def regress(self, targets: np.ndarray, sample_weight: np.ndarray | None) -> Regression:
        """What :meth:`solve` gives, with the kernel's part of the fitted values; corrected until they solve the equations."""
        return self._system(sample_weight).regress(targets)

    def among(self, X: np.ndarray, rows: np.ndarray) -> RidgeMap:
        """The same regressions on some of the rows alone, whose features are in X: kernel, ridge and weights stay."""
        weights = None if self.weights is None else self.weights[rows]
        return RidgeMap(DenseGram(X[rows], self.gram.kernel), self.ridge, weights)


def _new_solver(gram: Gram, ridges: np.ndarray) -> DiagonalSolver:
    """The Gram's own, or one from the columns that it hands out."""
    return gram.regularised(ridges) if isinstance(gram, RegularisedGram) else InvertedSolver.of_gram(gram, ridges)


class _System:
    """One set of rows that count."""

    def __init__(self, gram: Gram, ridges: np.ndarray, solver: DiagonalSolver) -> None:
        self.gram, self.solver = gram, solver
        self.seen = np.isfinite(ridges)
        self._every = bool(self.seen.all())
        self._finite = np.where(self.seen, ridges, 0.0)
        self._ones = self._applied_to_ones()[0]

    def _product(self, rows: np.ndarray) -> np.ndarray:
        return to_numpy(self.gram.product(self.gram.array(rows)))

    def _applied_to_ones(self) -> np.ndarray:
        """A⁻¹1, of shape (1, n)."""
        rows = self.seen[None, :].astype(np.float64)
        solved, before = self.solver.solve(rows), np.inf
        for _ in range(MOST_CORRECTIONS):
            left = np.where(self.seen, rows - self._product(solved) - self._finite * solved, 0.0)
            size = float(np.abs(left).max())
            if size <= self.solver.accuracy or size > STALLED * before:
                break
            solved, before = solved + self.solver.solve(left), size
        return solved

    def diagonal(self, rows: np.ndarray | slice) -> np.ndarray:
        return np.asarray(self.solver.diagonal(rows) - self._ones[rows] ** 2 / self._ones.sum())

    def regress(self, targets: np.ndarray) -> Regression:
        left = rows = np.where(self.seen, targets.T, 0.0)
        before = float(np.abs(rows).max())
        coef, intercept = np.zeros_like(rows), np.zeros(len(rows))
        certain = False
        for _ in range(1 + MOST_CORRECTIONS):
            step = self.solver.solve(left)
            constant = step.sum(axis=1) / self._ones.sum()
            coef += step - constant[:, None] * self._ones
            intercept += constant
            residuals = self._finite * coef
            image = rows - residuals - intercept[:, None]  # of coefficients that solve the equations
            if certain:
                break
            product = self._product(coef)
            left, image = np.where(self.seen, image - product, 0.0), product
            size, enough = float(np.abs(left).max()), OF_RESIDUALS * float(np.abs(residuals).max())
            if size <= enough or size > STALLED * before:
                break
            # a correction leaves the same share each time: where that is next to nothing, no product has to show it
            certain = self._every and size * size / before <= CERTAIN * enough
            before = size
        return Regression(np.ascontiguousarray(coef.T), intercept, np.ascontiguousarray(image.T))
