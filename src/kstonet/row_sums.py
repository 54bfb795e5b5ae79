"""Sums over rows, and what is drawn for them: plain functions of NumPy arrays for some of the rows of a training.

Every function is pure, random numbers included: those of a row follow from its number among all rows. A part of the rows that
is lost is computed again, to the same bits, and results do not depend on how the rows are divided.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from kstonet.gram.blocks import row_blocks
from kstonet.gram.kernels import Kernel
from kstonet.gram.landmarks import Landmarks
from kstonet.imputation.chain import ChainSettings, run_chain
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.kernel import UnitGroup
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network, forward_above
from kstonet.scaling import Scaler
from kstonet.targets import Targets

CHUNK = 2048  # rows that are drawn, or widened to float64, together
WORDS = 4  # 64-bit numbers that Philox makes at once


@dataclass(frozen=True)
class Part:
    """Rows of one partition that count: features or a table, targets, weights or None, and the number of the first of them."""

    X: Any
    y: np.ndarray
    weights: np.ndarray | None
    begin: int = 0

    def __len__(self) -> int:
        return len(self.y)

    @property
    def counts(self) -> np.ndarray:
        """One weight per row."""
        return np.ones(len(self)) if self.weights is None else self.weights


@dataclass(frozen=True)
class Group:
    """Units that share a kernel and a ridge, and the landmarks they are expanded on."""

    kernel: Kernel
    landmarks: Landmarks
    ridge: float
    units: np.ndarray


@dataclass(frozen=True)
class FeaturePart:
    """Rows as training sees them.

    Parameters
    ----------
    factors : tuple of ndarray of shape (n, r)
        φ of the landmarks of every group, in float32.
    outputs : ndarray
        Standardised targets (n, k), or class codes (n,).
    weights : ndarray of shape (n,)
    begin : int
        Number of the first row among all rows.
    sampled, hidden : ndarray of int
        Rows of this partition that belong to the sample, and those that calibration hides.
    """

    factors: tuple[np.ndarray, ...]
    outputs: np.ndarray
    weights: np.ndarray
    begin: int
    sampled: np.ndarray
    hidden: np.ndarray

    def __len__(self) -> int:
        return len(self.outputs)

    def counted(self, hide: bool) -> np.ndarray:
        """The weights, with those of the hidden rows at zero where ``hide`` asks for it."""
        if not hide or not len(self.hidden):
            return self.weights
        weights = self.weights.copy()
        weights[self.hidden] = 0.0
        return weights


@dataclass(frozen=True)
class FirstLayer:
    """The first layer as it is sent to all partitions: weights (units of a group, r), intercepts, and its noise."""

    units: tuple[np.ndarray, ...]
    weights: tuple[np.ndarray, ...]
    intercept: np.ndarray
    variance: float = 1.0

    def values(self, part: FeaturePart, rows: np.ndarray | slice = slice(None)) -> np.ndarray:
        """Noise-free values at the rows of a partition, shape (n, units)."""
        places = np.arange(len(part))[rows]
        values = np.empty((len(places), len(self.intercept)))
        for factor, weights, units in zip(part.factors, self.weights, self.units, strict=True):
            for block in row_blocks(len(places), 1, most=CHUNK):
                values[block, units] = factor[places[block]].astype(np.float64) @ weights.T
        return np.asarray(values + self.intercept)

    def at(self, values: np.ndarray) -> RidgeLayer:
        """The layer of the engine, with these values: a Gaussian density around them."""
        groups: Any = tuple(UnitGroup(None, own) for own in self.units)  # type: ignore[arg-type]  # no matrix is asked for
        return RidgeLayer(groups, (), self.variance, fitted=values)


class RowNormals:
    """Standard normal numbers that belong to rows: any part of the rows draws the same ones as all rows together.

    A counter-based generator (Philox) gives every draw of every row and unit a place of its own in one stream, and the inverse
    of the normal distribution function takes exactly one number for each.

    Examples
    --------
    >>> import numpy as np
    >>> whole = RowNormals(7, 0, 10).standard_normal((10, 3))
    >>> np.array_equal(RowNormals(7, 4, 10).standard_normal((2, 3)), whole[4:6])
    True
    """

    def __init__(self, seed: int, begin: int, total: int) -> None:
        self._seed, self._begin, self._total, self._calls = seed, begin, total, 0

    def standard_normal(self, shape: tuple[int, int]) -> np.ndarray:
        """The next draw for every row and unit."""
        rows, units = shape
        first = (self._calls * self._total + self._begin) * units
        self._calls += 1
        stream = np.random.Philox(key=self._seed)
        stream.advance(first // WORDS)
        words = stream.random_raw(first % WORDS + rows * units)[first % WORDS :]
        return np.asarray(ndtri(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)).reshape(shape)


# -- before training -----------------------------------------------------------------------------------------------------------


def sums(part: Part, numeric: bool) -> tuple[np.ndarray, ...]:
    """Sum of the weights, and weighted sums of the features and, where they are numbers, of the targets."""
    w = part.counts
    return np.array(w.sum()), w @ part.X, *((w @ _columns(part.y),) if numeric else ())


def squares(part: Part, means: tuple[np.ndarray, ...]) -> tuple[np.ndarray, ...]:
    """Weighted sums of squares around the means."""
    w, values = part.counts, (part.X, _columns(part.y) if len(means) > 1 else None)
    return tuple(w @ (own - mean) ** 2 for own, mean in zip(values, means, strict=False) if own is not None)


def class_weights(part: Part, targets: Any) -> tuple[np.ndarray, ...]:
    """Weight of every class."""
    return (np.bincount(targets.outputs(part.y), weights=part.counts, minlength=len(targets.classes)),)


def labels(part: Part) -> np.ndarray:
    """The labels that occur."""
    return np.unique(part.y)


def _columns(y: np.ndarray) -> np.ndarray:
    return y.reshape(len(y), -1).astype(np.float64)


def featured(
    part: Part, scaler: Scaler, targets: Targets, groups: Sequence[Group], sample: np.ndarray, hidden: np.ndarray
) -> FeaturePart:
    """The rows with the features of the landmarks; ``sample`` and ``hidden`` are numbers of rows among all, ascending."""
    factors = tuple(np.empty((len(part), group.landmarks.rank), dtype=np.float32) for group in groups)
    for rows in row_blocks(len(part), max(group.landmarks.rank for group in groups)):
        X = scaler.forward(part.X[rows])
        for factor, group in zip(factors, groups, strict=True):
            factor[rows] = group.landmarks.features(group.kernel, X)
    outputs = targets.outputs(part.y)
    own = [within(numbers, part.begin, len(part)) for numbers in (sample, hidden)]
    return FeaturePart(factors, outputs, part.counts, part.begin, *own)


def within(numbers: np.ndarray, begin: int, size: int) -> np.ndarray:
    """The numbers of a range, counted from its begin."""
    low, high = np.searchsorted(numbers, [begin, begin + size])
    return np.asarray(numbers[low:high] - begin)


# -- where training starts -----------------------------------------------------------------------------------------------------


def start_moments(
    part: Part, scaler: Scaler, targets: Targets, mixtures: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, ...]:
    """Sums and products of the targets, their mixtures and directions of the features, of which latent values are made."""
    own = _start_columns(part, scaler, targets, mixtures)
    return np.array(float(len(own))), own.sum(axis=0), own.T @ own


def started(
    part: Part,
    scaler: Scaler,
    targets: Targets,
    mixtures: tuple[np.ndarray, np.ndarray],
    combination: np.ndarray,
    constant: np.ndarray,
) -> np.ndarray:
    """Latent values as a combination of the same columns."""
    return np.asarray(_start_columns(part, scaler, targets, mixtures) @ combination + constant)


def _start_columns(part: Part, scaler: Scaler, targets: Targets, mixtures: tuple[np.ndarray, np.ndarray]) -> np.ndarray:
    columns = targets.columns(targets.outputs(part.y))
    return np.hstack([columns, columns @ mixtures[0], scaler.forward(part.X) @ mixtures[1]])


def looked_up(part: FeaturePart, table: np.ndarray) -> np.ndarray:
    """Latent values of a classifier: one row of the table for every class."""
    return np.asarray(table[part.outputs])


# -- an iteration --------------------------------------------------------------------------------------------------------------


def normal_matrices(part: FeaturePart, hide: bool) -> tuple[Any, ...]:
    """ΣwφφT and Σwφ of every group, and Σw."""
    w = part.counted(hide)
    found = []
    for factor in part.factors:
        matrix, total = np.zeros((factor.shape[1],) * 2), np.zeros(factor.shape[1])
        for rows in row_blocks(len(factor), 1, most=CHUNK):
            wide = factor[rows].astype(np.float64)
            matrix += wide.T @ (w[rows, None] * wide)
            total += w[rows] @ wide
        found.append((matrix, total))
    return tuple(found), np.array(w.sum())


def right_sides(
    part: FeaturePart, latents: np.ndarray, units: Sequence[np.ndarray], activation: Activation | None, hide: bool
) -> tuple[Any, ...]:
    """Σwφy of every group and Σwy, and of (activated latent values, outputs) sums and products for the regression above."""
    w = part.counted(hide)
    sides = []
    for factor, own in zip(part.factors, units, strict=True):
        side = np.zeros((factor.shape[1], len(own)))
        for rows in row_blocks(len(factor), 1, most=CHUNK):
            side += factor[rows].astype(np.float64).T @ (w[rows, None] * latents[rows][:, own])
        sides.append(side)
    above: tuple[np.ndarray, ...] = ()
    if activation is not None:
        both = np.hstack([activation.value(latents), part.outputs])
        above = np.array(w.sum()), w @ both, both.T @ (w[:, None] * both)
    return tuple(sides), w @ latents, above


def squared_errors(part: FeaturePart, first: FirstLayer, uppers: tuple[UpperLayer, ...]) -> tuple[np.ndarray, ...]:
    """Sum of the head's loss over the rows."""
    if not len(part):
        return (np.array(0.0),)
    prediction = forward_above(uppers, first.values(part))[-1]
    return (np.array(uppers[-1].loss(prediction, part.outputs) * len(part)),)


def imputed(
    part: FeaturePart,
    first: FirstLayer,
    uppers: tuple[UpperLayer, ...],
    chain: ChainSettings,
    step_size: Any,
    draw: tuple[int, int],
) -> np.ndarray:
    """Step 1 of Algorithm 1: the latent values of these rows; ``draw`` is the seed and the number of all rows."""
    seed, total = draw
    values = first.values(part)
    network = Network((first.at(values), *uppers))
    for rows in row_blocks(len(part), 1, most=CHUNK):
        normals: Any = RowNormals(seed, part.begin + rows.start, total)
        drawn = run_chain(normals, network.conditionals(None, part.outputs, rows), (values[rows],), chain, step_size)
        values[rows] = drawn.latents[0]
    return values


def imputed_sides(part: FeaturePart, drawing: tuple[Any, ...], what: tuple[Any, ...]) -> tuple[Any, ...]:
    """The sums of :func:`right_sides` for latent values drawn by :func:`imputed`."""
    return right_sides(part, imputed(part, *drawing), *what)


# -- some rows -----------------------------------------------------------------------------------------------------------------


def sample_values(
    part: FeaturePart,
    latents: np.ndarray,
    first: FirstLayer,
    solved: Sequence[tuple[np.ndarray, np.ndarray]],
    total: float,
    hide: bool,
) -> tuple[np.ndarray, ...]:
    """At the rows of the sample: latent values, fitted ones, and fitted ones with the row itself left out of the regression.

    ``solved`` holds for every group the inverse of its normal equations and the mean of its features; a residual of a row that
    is left out is the residual over one less the leverage.
    """
    rows = part.sampled
    own, fitted = latents[rows], first.values(part, rows)
    left_out = own.copy()
    w = part.counted(hide)[rows]
    for factor, units, (inverse, mean) in zip(part.factors, first.units, solved, strict=True):
        apart = factor[rows].astype(np.float64) - mean
        leverage = w * (1.0 / total + np.einsum("ij,jk,ik->i", apart, inverse, apart, optimize=True))
        residual = (own - fitted)[:, units] / np.maximum(1.0 - leverage, 1e-10)[:, None]
        left_out[:, units] = own[:, units] - residual
    return own, fitted, left_out


def hidden_outputs(part: FeaturePart, first: FirstLayer, uppers: tuple[UpperLayer, ...]) -> tuple[np.ndarray, ...]:
    """Outputs of the network at the hidden rows."""
    return (forward_above(uppers, first.values(part, part.hidden))[-1],)
