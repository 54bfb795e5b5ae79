"""The training problem: rows as they were given, standardised rows and outputs, and the Grams made on them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kstonet._words import readable_bytes
from kstonet.gram import Gram, Kernel, LowRank, make_gram
from kstonet.gram.devices import memory_limit
from kstonet.gram.expansion import Expansion
from kstonet.gram.footprint import matrices_bytes
from kstonet.gram.kernels import RBF
from kstonet.gram.making import AUTO, GramFactory, gram_factory
from kstonet.gram.memory import GramTooLargeError
from kstonet.gram.planning import choose_solver, dense_fits
from kstonet.layers.ridge_map import RidgeMap
from kstonet.scaling import Scaler
from kstonet.tables.roles import Roles
from kstonet.targets import MappedTargets, Targets, TargetsKind

SAMPLED = 200  # training rows that a model keeps to average over; root mean squares are then known to about 5 %
MOST_COLUMNS = 12_000  # rows of a Gram from outside: a squared loss inverts the matrix of its columns


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
    roles : Roles, optional
        Which columns stand for categories and missing values; None where all are numbers.
    """

    X: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None = None
    pairwise: bool = False
    roles: Roles | None = None

    @property
    def indicators(self) -> np.ndarray | None:
        """Columns that are centred, but not scaled."""
        return None if self.roles is None else self.roles.indicators

    @property
    def groups(self) -> np.ndarray | None:
        """The same number for columns that share one length scale."""
        return None if self.roles is None else self.roles.groups

    def take(self, rows: np.ndarray, against: np.ndarray | None = None) -> Rows:
        """Some of the rows; the columns of a kernel matrix become those of the rows ``against`` (default: the same rows)."""
        columns = rows if against is None else against
        X = self.X[np.ix_(rows, columns)] if self.pairwise else self.X[rows]
        weights = None if self.weights is None else self.weights[rows]
        return Rows(X, self.y[rows], weights, self.pairwise, self.roles)

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
        As in :func:`kstonet.gram.make_gram`; "auto" also considers whether the loss is squared.
    each : float, optional
        Bytes that each of several Grams may take, as :meth:`share` decides.
    """

    X: np.ndarray
    solver: str | GramFactory = AUTO
    device: str | None = None
    max_memory: float | None = None
    each: float | None = None
    held: dict[tuple[Kernel, Any], Gram] = field(default_factory=dict)
    resolved: dict[tuple[bool, bool], str] = field(default_factory=dict)
    maps: dict[tuple[Kernel, float], RidgeMap] = field(default_factory=dict)

    def chosen(self, *, pairwise: bool, squared: bool) -> str | GramFactory:
        """The solver, with "auto" resolved for a loss; once, for the Grams held leave less memory to later questions."""
        if self.solver != AUTO:
            return self.solver
        key = pairwise, squared
        if key not in self.resolved:
            options: dict[str, Any] = {"device": self.device, "max_memory": self.max_memory}
            self.resolved[key] = choose_solver(len(self.X), pairwise=pairwise, squared=squared, **options)[0]
        return self.resolved[key]

    def affords_squared(self, *, pairwise: bool) -> bool:
        """Whether a squared loss is affordable: it inverts or factors a dense matrix, or has a Gram that needs none.

        A device factors whatever matrix it can hold.
        """
        chosen = self.chosen(pairwise=pairwise, squared=True)
        if isinstance(gram_factory(chosen), LowRank) or (chosen == "dense" and self.device is not None):
            return True
        if chosen == "dense":
            return dense_fits(len(self.X), self.max_memory, squared=True)
        return len(self.X) <= MOST_COLUMNS and self.device is None

    def check_memory(self, *, pairwise: bool) -> None:
        """Raise now what :meth:`new` would raise after a long choice: that the Gram does not fit."""
        chosen = self.chosen(pairwise=pairwise, squared=False)
        low_rank = gram_factory(chosen)
        limit = memory_limit(self.max_memory, self.device)
        if isinstance(low_rank, LowRank):
            fits = low_rank.refusal(low_rank.sizes(len(self.X), limit, self.device), limit, given=True) is None
        else:
            fits = chosen != "dense" or self.device is not None or dense_fits(len(self.X), self.max_memory)
        if not fits:
            self.new(RBF())

    def share(self, groups: int, *, pairwise: bool, squared: bool) -> None:
        """Have the Grams of several kernels share the memory; raise before the first dense one is made that they do not fit."""
        if groups == 1:
            self.each = None
            return
        self.each = memory_limit(self.max_memory, self.device) / groups
        n = len(self.X)
        needed = matrices_bytes(n, squared=squared)
        if self.chosen(pairwise=pairwise, squared=squared) == "dense" and self.device is None and needed > self.each:
            raise GramTooLargeError(
                f"{groups} dense kernel matrices of n={n:,} rows need {readable_bytes(groups * needed)} together; the limit is "
                f"{readable_bytes(groups * self.each)} ({'max_memory' if self.max_memory else '80 % of what is available'}). "
                "Give the units fewer different kernels, use fewer rows or solver='low_rank', or a larger max_memory if the "
                "machine has it."
            )

    def new(self, kernel: Kernel, *, squared: bool = False) -> Gram:
        """A Gram that is not held, for a first layer with or without a squared loss."""
        solver = self.chosen(pairwise=kernel.precomputed, squared=squared)
        most = self.max_memory if self.each is None else self.each
        return make_gram(self.X, kernel, solver=solver, device=self.device, max_memory=most)

    def of(self, kernel: Kernel, *, squared: bool = False) -> Gram:
        """The Gram of a kernel, made when it is first asked for."""
        key = (kernel, self.chosen(pairwise=kernel.precomputed, squared=squared))
        if key not in self.held:
            self.held[key] = self.new(kernel, squared=squared)
        return self.held[key]

    def ridge_map(self, kernel: Kernel, ridge: float, weights: np.ndarray | None) -> RidgeMap:
        """The map from targets to coefficients of kernel ridge regressions, made when it is first asked for."""
        if (kernel, ridge) not in self.maps:
            self.maps[kernel, ridge] = RidgeMap(self.of(kernel, squared=True), ridge, weights)
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
    kind : TargetsKind
        Learns the targets of a part of the rows anew.
    validation : tuple of ndarray, optional
        Standardised rows and outputs whose loss is watched during training.
    """

    rows: Rows
    scaler: Scaler
    targets: Targets
    X: np.ndarray
    outputs: np.ndarray
    grams: Grams
    kind: TargetsKind
    standardize: bool = True
    validation: tuple[np.ndarray, np.ndarray] | None = None

    @classmethod
    def of(cls, rows: Rows, targets: TargetsKind, *, standardize: bool = True, **gram: Any) -> Problem:
        """Standardise the rows; ``gram`` are the options of :func:`kstonet.gram.make_gram`."""
        scaled = standardize and not rows.pairwise
        scaler = Scaler.fit(rows.X, rows.weights, rows.indicators) if scaled else Scaler.identity(rows.X.shape[1])
        known = targets.of(rows.y, rows.weights, standardize)
        X = scaler.forward(rows.X)
        return cls(rows, scaler, known, X, known.outputs(rows.y), Grams(X, **gram), targets, standardize)

    @property
    def weights(self) -> np.ndarray | None:
        """Sample weights."""
        return self.rows.weights

    @property
    def n_scales(self) -> int:
        """How many features can have a length scale of their own."""
        return self.X.shape[1] if self.rows.groups is None else int(self.rows.groups.max()) + 1

    @property
    def columns(self) -> np.ndarray:
        """The outputs as numeric columns (n, k): standardised targets, or indicators of the classes."""
        return self.targets.columns(self.outputs)

    def mapped(self, kind: str) -> Problem:
        """The same problem, its target learned as the square root or the logarithm; "none" leaves it as it is."""
        if kind == "none":
            return self
        as_kind = MappedTargets(kind)
        known = as_kind.of(self.rows.y, self.rows.weights, self.standardize)
        return replace(self, targets=known, outputs=known.outputs(self.rows.y), kind=as_kind)

    def part(self, rows: np.ndarray) -> Problem:
        """The same problem on some of the rows, standardised on these alone."""
        grams = self.grams
        return Problem.of(
            self.rows.take(rows),
            self.kind,
            standardize=self.standardize,
            solver=grams.solver,
            device=grams.device,
            max_memory=grams.max_memory,
        )

    def some_rows(self, expansion: Expansion) -> np.ndarray | None:
        """Some of the standardised rows, drawn by their weights; None where X holds kernel values.

        Where the first layer keeps the same rows, it is that array: a file holds it once.
        """
        if self.rows.pairwise:
            return None
        n, weights = len(self.X), self.weights
        if n <= SAMPLED:
            return next((part.basis for part in expansion.parts if np.array_equal(part.basis, self.X)), self.X)
        share = None if weights is None else weights / weights.sum()
        chosen = np.random.default_rng(0).choice(n, SAMPLED, replace=False, p=share)
        return np.asarray(self.X[np.sort(chosen)])

    def with_validation(self, rows: Rows) -> Problem:
        """The problem with rows to watch."""
        return replace(self, validation=(self.scaler.forward(rows.X), self.targets.outputs(rows.y)))
