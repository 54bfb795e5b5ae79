"""The training problem: rows as they were given, standardised rows and outputs, and the Grams made on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kstonet.gram import DenseGram, Gram, Kernel, make_gram
from kstonet.gram.memory import DEFAULT_FRACTION, available_memory
from kstonet.layers.ridge import RidgeMap
from kstonet.scaling import Scaler
from kstonet.targets import Targets


@dataclass(frozen=True)
class Rows:
    """Rows as users give them, validated.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Features; with ``pairwise`` the kernel values of the rows against each other.
    y : ndarray of shape (n,) or (n, k)
        Targets.
    weights : ndarray of shape (n,), optional
        Sample weights.
    pairwise : bool
        Whether X is a kernel matrix, of which a part has fewer columns, too.
    indicators : ndarray of bool of shape (p,), optional
        Columns of 0 and 1 that stand for categories and missing values: they are centred, but not scaled.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    pairwise: bool = False
    indicators: np.ndarray | None = None

    def take(self, rows: np.ndarray, against: np.ndarray | None = None) -> Rows:
        """Some of the rows; the columns of a kernel matrix become those of the rows ``against`` (default: the same rows)."""
        columns = rows if against is None else against
        X = self.X[np.ix_(rows, columns)] if self.pairwise else self.X[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Rows(X, self.y[rows], weights, self.pairwise, self.indicators)

    def that_count(self) -> Rows:
        """Without the rows of weight zero, which do not take part in training."""
        return self if self.weights is None else self.take(np.flatnonzero(self.weights > 0))


@dataclass
class Grams:
    """Makes the Gram of a kernel on fixed rows, and holds those that trainings on the same rows share.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Standardised rows.
    solver, device, max_memory
        As in :func:`kstonet.gram.make_gram`.
    """

    X: np.ndarray
    solver: str = "auto"
    device: str | None = None
    max_memory: float | None = None
    held: dict[Kernel, Gram] = field(default_factory=dict)
    maps: dict[tuple[Kernel, float], RidgeMap] = field(default_factory=dict)

    def allows(self, more: int = 0) -> bool:
        """Whether a dense Gram of these rows, and ``more`` bytes, fit into the memory; others answer for themselves."""
        if self.device is not None or self.solver not in ("auto", "dense"):
            return True
        limit = DEFAULT_FRACTION * available_memory() if self.max_memory is None else self.max_memory
        return DenseGram.bytes_needed(len(self.X)) + more <= limit

    def new(self, kernel: Kernel) -> Gram:
        """A Gram that is not held."""
        return make_gram(self.X, kernel, solver=self.solver, device=self.device, max_memory=self.max_memory)

    def of(self, kernel: Kernel) -> Gram:
        """The Gram of a kernel, made when it is first asked for."""
        if kernel not in self.held:
            self.held[kernel] = self.new(kernel)
        return self.held[kernel]

    def ridge_map(self, kernel: Kernel, ridge: float, weights: np.ndarray | None) -> RidgeMap:
        """The map from targets to coefficients of kernel ridge regressions, made when it is first asked for."""
        if (kernel, ridge) not in self.maps:
            self.maps[kernel, ridge] = RidgeMap(self.of(kernel), ridge, weights)
        return self.maps[kernel, ridge]

    def clear(self) -> None:
        """Release the memory of all kernel matrices and maps."""
        self.held.clear()
        self.maps.clear()


@dataclass(frozen=True)
class Problem:
    """What is to be learnt.

    Parameters
    ----------
    rows : Rows
        As they were given.
    scaler : Scaler
        Standardises the features.
    targets : Targets
        Standardises numbers, or encodes classes.
    X : ndarray of shape (n, p)
        Standardised features.
    outputs : ndarray
        Targets as training sees them.
    grams : Grams
        The Grams on these rows.
    validation : tuple of ndarray, optional
        Standardised rows and outputs whose loss is watched during training.
    """

    rows: Rows
    scaler: Scaler
    targets: Targets
    X: np.ndarray
    outputs: np.ndarray
    grams: Grams
    standardize: bool = True
    validation: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, rows: Rows, targets: type[Targets], *, standardize: bool = True, **gram: Any) -> Problem:
        """Standardise the rows; ``gram`` are the options of :func:`kstonet.gram.make_gram`."""
        scaled = standardize and not rows.pairwise
        scaler = Scaler.fit(rows.X, rows.weights, rows.indicators) if scaled else Scaler.identity(rows.X.shape[1])
        known = targets.of(rows.y, rows.weights, standardize)
        X = scaler.forward(rows.X)
        return cls(rows, scaler, known, X, known.outputs(rows.y), Grams(X, **gram), standardize)

    @property
    def weights(self) -> np.ndarray | None:
        """Sample weights."""
        return self.rows.weights

    @property
    def columns(self) -> np.ndarray:
        """The outputs as numeric columns (n, k): standardised targets, or indicators of the classes."""
        return self.targets.columns(self.outputs)

    def part(self, rows: np.ndarray) -> Problem:
        """The same problem on some of the rows, standardised on these alone."""
        grams = self.grams
        return Problem.of(
            self.rows.take(rows),
            type(self.targets),
            standardize=self.standardize,
            solver=grams.solver,
            device=grams.device,
            max_memory=grams.max_memory,
        )

    def with_validation(self, rows: Rows) -> Problem:
        """The problem with rows to watch."""
        return replace(self, validation=(self.scaler.forward(rows.X), self.targets.outputs(rows.y)))
