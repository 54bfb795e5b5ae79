"""The variance of a layer of support vector regressions: each unit has its own margin set.

Units are independent given the data, but for regressions of the same latent values, or of minus these: they have made the same
errors.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from kstonet._arrays import Array, to_numpy
from kstonet._records import storable
from kstonet.gram import Gram, StructuredGram
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.layers.margin import MarginFactor, thinned
from kstonet.threads import single_threaded


@storable(common="float m")
@dataclass(frozen=True)
class MarginUncertainty:
    """The margin sets of all units, with what the variance of eq. (SVRvareq) needs of them.

    The factors are made when they are first needed, and not stored with a model: the support vectors it keeps give them back.

    Parameters
    ----------
    expansion : Expansion
        The layer at new rows.
    columns : tuple of ndarray of int
        The margin set of every unit, as columns of the expansion part the unit belongs to.
    matrices : dict
        For units with a precomputed kernel, whose support vectors are not at hand: the kernel matrix of the margin set.
    diagonals : tuple
        For precomputed kernels, whose k(z, z) is not handed in: the value all training rows share. None elsewhere.
    ridges : tuple of ndarray
        For units with a squared loss, the ridges up to which the rows of their margin sets pin them down; empty for support
        vector regressions.
    common : ndarray of shape (m,), optional
        Correlation of every unit's error with one that all of them have, between -1 and 1; without it units are independent.
    """

    expansion: Expansion
    columns: tuple[np.ndarray, ...]
    matrices: dict[int, np.ndarray]
    diagonals: tuple[float | None, ...]
    ridges: tuple[np.ndarray, ...] = ()
    common: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        margins: Sequence[tuple[Gram, np.ndarray, np.ndarray]],
        expansion: Expansion,
        ridges: Sequence[np.ndarray] = (),
        common: np.ndarray | None = None,
    ) -> MarginUncertainty:
        """From (Gram, units, mask of the margin sets) of every group; ``expansion`` keeps all of their support vectors.

        With a squared loss, ``ridges`` holds the ridges of all training rows for every group.
        """
        columns: dict[int, np.ndarray] = {}
        own_ridges: dict[int, np.ndarray] = {}
        matrices: dict[int, np.ndarray] = {}
        diagonals = []
        for k, ((gram, units, margin), part) in enumerate(zip(margins, expansion.parts, strict=True)):
            diagonals.append(_shared_diagonal(gram) if part.holds_values else None)
            for unit, own in zip(units.tolist(), margin, strict=True):
                members = thinned(np.flatnonzero(own))
                columns[unit] = np.searchsorted(part.used, members)
                if part.holds_values:
                    matrices[unit] = gram.columns(members)[members]
                if ridges:
                    own_ridges[unit] = ridges[k][members]
        in_order = [tuple(values[unit] for unit in sorted(values)) for values in (columns, own_ridges)]
        return cls(expansion, in_order[0], matrices, tuple(diagonals), in_order[1], common)

    @cached_property
    def factors(self) -> dict[int, MarginFactor]:
        """The factored margin set of every unit: the same digits whether a fit or a stored model makes them."""
        with single_threaded():
            return self._factored()

    def _factored(self) -> dict[int, MarginFactor]:
        factors: dict[int, MarginFactor] = {}
        for part in self.expansion.parts:
            for unit, *others in self.alike(part):
                columns = self.columns[unit]
                matrix = self.matrices.get(unit)
                if matrix is None:
                    assert part.kernel is not None
                    rows = part.basis[columns]
                    matrix = np.asarray(part.kernel(rows, rows)) if len(rows) else np.empty((0, 0))
                factor = MarginFactor.of(matrix + np.diag(self.ridges[unit]) if self.ridges else matrix, columns)
                factors |= dict.fromkeys([unit, *others], factor)
        return factors

    def alike(self, part: ExpansionPart) -> list[list[int]]:
        """The units of a part, together where they have the same margin set: all rows, with a squared loss."""
        units = part.units.tolist()
        return [units] if self.ridges else [[unit] for unit in units]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "factors"}

    def covariance(self, X: np.ndarray, features: list[Array]) -> np.ndarray:
        """Of the variances that the margin sets leave."""
        variance = np.empty((len(X), len(self.columns)))
        for part, values, shared in zip(self.expansion.parts, features, self.diagonals, strict=True):
            assert part.kernel is not None
            diagonal = np.full(len(X), shared) if shared is not None else np.asarray(part.kernel.diagonal(X))
            for units in self.alike(part):
                variance[:, units] = self.factors[units[0]].variance(values, diagonal)[:, None]
        return self.joint(variance)

    def joint(self, variance: np.ndarray) -> np.ndarray:
        """Covariance (n, m, m) of values with these variances (n, m)."""
        if self.common is None:
            return np.asarray(variance[:, :, None] * np.eye(variance.shape[1]))
        shared = np.sqrt(variance) * self.common
        own = variance * (1.0 - self.common**2)
        return np.asarray(shared[:, :, None] * shared[:, None, :] + own[:, :, None] * np.eye(variance.shape[1]))

    def left_out(
        self,
        layers: Sequence[Any],
        expansion: Expansion,
        inputs: Any,
        outputs: np.ndarray,
        rows: np.ndarray | slice = EVERY_ROW,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The change of every row's values without that row, and S², shape (n, m)."""
        spans = self.spans(layers[-1])[rows]
        return [layer.left_out_shifts(spans, rows) for layer in layers], spans

    def spans(self, layer: Any) -> np.ndarray:
        """S² of every training row and unit, shape (n, m)."""
        spans = np.empty((len(layer.mean()), len(self.columns)))
        for group, part in zip(layer.groups, self.expansion.parts, strict=True):
            diagonal = to_numpy(group.gram.diagonal())
            for units in self.alike(part):
                members = part.used[self.factors[units[0]].columns]
                factor = replace(self.factors[units[0]], columns=np.arange(len(members)))  # of these kernel values alone
                own = np.empty(len(spans))
                for rows, values in _column_blocks(group.gram, members):
                    own[rows] = factor.variance(values, diagonal[rows])
                own = factor.spans(own, diagonal, members)
                if self.ridges:  # of a member it holds the noise of its own target, which other rows do not have
                    own[members] = np.maximum(own[members] - self.ridges[units[0]], 0.0)
                spans[:, units] = own[:, None]
        return spans

    def contradictions(self, expansion: Expansion) -> Iterator[str]:
        """What does not fit the first layer, or each other."""
        parts = self.expansion.parts
        if self.expansion.intercept.shape != expansion.intercept.shape:
            yield "intervals and predictions have first layers of different sizes"
        elif len(self.columns) != expansion.intercept.shape[1] or len(self.diagonals) != len(parts):
            yield "margin sets and units differ in number"
        elif self.ridges and [ridge.shape for ridge in self.ridges] != [columns.shape for columns in self.columns]:
            yield "there is not one ridge for every row of a margin set"
        elif not all((ridge > 0).all() for ridge in self.ridges):
            yield "a ridge is not positive"
        elif self.common is not None and (len(self.common) != len(self.columns) or (np.abs(self.common) > 1).any()):
            yield "the errors of units have impossible correlations"
        else:
            for part, diagonal in zip(parts, self.diagonals, strict=True):
                if part.kernel is None or (diagonal is not None) != part.holds_values:
                    yield "the kernel's diagonal is not where it belongs"
                for unit in part.units.tolist():
                    yield from self._contradictions_of(unit, part)

    def _contradictions_of(self, unit: int, part: ExpansionPart) -> Iterator[str]:
        columns, matrix = self.columns[unit], self.matrices.get(unit)
        whole = columns.ndim == 1 and columns.dtype.kind in "iu"
        if not whole or not ((columns >= 0) & (columns < len(part.used))).all():
            yield "a margin set is not made of support vectors"
        elif (matrix is not None) != part.holds_values:
            yield "a margin set lacks its kernel matrix"
        elif matrix is not None and matrix.shape != (len(columns),) * 2:
            yield "the kernel matrix of a margin set has a wrong size"


def _column_blocks(gram: Gram, members: np.ndarray) -> Iterator[tuple[Any, np.ndarray]]:
    """Kernel values of all training rows against the members: at once from a matrix, in blocks from what holds none."""
    if isinstance(gram, StructuredGram):
        yield from gram.column_blocks(members)
    else:
        yield slice(None), gram.columns(members)


def _shared_diagonal(gram: Gram) -> float:
    diagonal = to_numpy(gram.diagonal())
    value = float(diagonal.mean())
    if np.abs(diagonal - value).max() > 1e-6 * abs(value):
        raise ValueError(
            "prediction intervals with kernel='precomputed' need k(x, x) to be the same for all rows: it is not known for "
            f"new ones; here it lies between {diagonal.min():.3g} and {diagonal.max():.3g}. Normalise the kernel to "
            "k(x, y)/sqrt(k(x, x) k(y, y)), or use residuals=None for means only."
        )
    return value
