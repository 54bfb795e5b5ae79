"""Sufficient dimension reduction: the few directions of X through which the prediction follows it.

If E[y|x] = g(Bᵀx), every gradient lies in the span of B, and so do the leading eigenvectors of the average gradient outer
product E ∇f∇fᵀ of a network f that has learned it. (Sufficient reduction by the last hidden layer of a StoNet, Liang et al.
2022, arXiv:2210.04349, is nonlinear: it is :meth:`~kstonet.KStoNetRegressor.transform`.) The number of directions is found by
forward tests: d of them suffice where kernel ridge regressions on more have no smaller leave-one-out errors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtr

from kstonet.interpretation.importance import outer_product
from kstonet.trained import TrainedNetwork
from kstonet.tuning.judging import Rows
from kstonet.tuning.stationary import FAMILIES

MOST_ROWS = 800  # of the regressions on reduced rows
MOST_DIRECTIONS = 10  # that are tested; a reduction to more is none
AHEAD = 2  # directions further on that a test compares with: two may matter together, as in a product
LEVEL = 0.01  # of the tests
FLOOR = 1e-6  # of eigenvalues over the largest
FAMILY = "matern32"  # neither rough nor smooth


@dataclass(frozen=True)
class SufficientReduction:
    """Directions of X that the prediction follows.

    Parameters
    ----------
    directions : ndarray of shape (n_encoded, n_directions)
        One direction per column, in the units of the (encoded) columns of X and of length one for standardised columns.
    eigenvalues : ndarray of shape (n_encoded,)
        Share of the mean squared gradient along each eigenvector, the largest first.
    mean : ndarray of shape (n_encoded,)
        What is subtracted from X first.
    tests : list of dict
        One for each number of directions that was tried: "directions", "error" (the mean squared leave-one-out error of a
        kernel ridge regression on them, as a share of the variance) and "p_value" of the hypothesis that they suffice. Empty
        where the number was given.
    """

    directions: np.ndarray
    eigenvalues: np.ndarray
    mean: np.ndarray
    tests: list[dict[str, Any]]

    @property
    def n_directions(self) -> int:
        """The number of directions."""
        return int(self.directions.shape[1])

    def transform(self, X: np.ndarray) -> np.ndarray:
        """The coordinates of rows along the directions.

        Parameters
        ----------
        X : ndarray of shape (n, n_encoded)
            Rows; of tables, the encoded ones.

        Returns
        -------
        ndarray of shape (n, n_directions)
        """
        return np.asarray((np.asarray(X, dtype=np.float64) - self.mean) @ self.directions)


def sufficient_reduction(
    network: TrainedNetwork, rows: np.ndarray, columns: np.ndarray | None, n_directions: int | None = None
) -> SufficientReduction:
    """The leading directions of a network.

    Parameters
    ----------
    network : TrainedNetwork
        The network.
    rows : ndarray of shape (n, p)
        Standardised rows.
    columns : ndarray of shape (n, k) or None
        Their standardised targets, which the tests need.
    n_directions : int, optional
        Number of directions; tested by default.

    Returns
    -------
    SufficientReduction
    """
    values, vectors = np.linalg.eigh(outer_product(network, rows))
    values, vectors = np.maximum(values[::-1], 0.0), vectors[:, ::-1]
    vectors = vectors * np.where(vectors.sum(axis=0) < 0, -1.0, 1.0)  # a sign that does not depend on the machine
    tests: list[dict[str, Any]] = []
    if n_directions is None:
        assert columns is not None
        n_directions, tests = _tested(rows @ vectors, columns, values)
    directions = vectors[:, :n_directions] / network.scaler.scale[:, None]
    return SufficientReduction(directions, values / (values.sum() or 1.0), network.scaler.mean, tests)


def _tested(along: np.ndarray, columns: np.ndarray, values: np.ndarray) -> tuple[int, list[dict[str, Any]]]:
    """The smallest number of directions that no test rejects."""
    some = np.random.default_rng(0).permutation(len(along))[:MOST_ROWS]
    every = Rows(along[some] * np.sqrt(values / max(values[0], 1e-300) + FLOOR), columns[some], None)
    most = min(along.shape[1], MOST_DIRECTIONS)
    errors: dict[int, np.ndarray] = {}

    def squared(d: int) -> np.ndarray:
        if d not in errors:
            errors[d] = (replace(every, X=every.X[:, :d]).best_width(FAMILIES[FAMILY]).fit.errors ** 2).mean(axis=1)
        return errors[d]

    tests = []
    for d in range(1, most + 1):
        further = [k for k in range(d + 1, d + 1 + AHEAD) if k <= most]
        p = min((_p_value(squared(d) - squared(k)) * len(further) for k in further), default=1.0)
        tests.append({"directions": d, "error": float(squared(d).mean()), "p_value": min(1.0, p)})
        if p > LEVEL:
            break
    return len(tests), tests


def _p_value(gains: np.ndarray) -> float:
    """One-sided paired t-test of the hypothesis that the mean gain is not positive."""
    n, spread = len(gains), float(gains.std(ddof=1))
    return float(stdtr(n - 1, -gains.mean() / (spread / np.sqrt(n)))) if spread > 0 else 1.0
