"""One or several numbers per row, and maps of a single one: how they are trained, predicted and calibrated."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kstonet._records import storable
from kstonet.class_start import FEWEST_HIDDEN
from kstonet.imputation.base import Latents
from kstonet.initialisation import TARGET_SHARE, TrainingRows, initial_latents
from kstonet.iro import IROSettings, IROState, iro
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.network import Network
from kstonet.resting import helpful_iterations
from kstonet.scaling import Scaler
from kstonet.stacked_start import STACKED_SHARE, has_several_kernels, is_stacked, keeps_means, stacked_start
from kstonet.target_map import TargetMap
from kstonet.targets.base import PLAIN
from kstonet.uncertainty.calibration import IntervalCalibration, TrainingEnd
from kstonet.uncertainty.cross_fitting import part_of_many
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.tempering import Tempering

FEW_ROWS, CLEARLY = 1000, 3.0  # rows up to which iterations have to help by so many standard errors
BEYOND = 0.25  # of the range of the training targets, by which predictions may leave it


@storable(limits="float 2 k")
@dataclass(frozen=True)
class NumericTargets:
    """One or several numbers per row, standardised for training.

    Parameters
    ----------
    scaler : Scaler
        Between the units of the data and those of training.
    single : bool
        Whether there is one target, given without an axis of its own.
    map : TargetMap, optional
        What is done to a single target before it is standardised.
    limits : ndarray of shape (2, k), optional
        Between which predictions are held, in the units in which targets are standardised.
    """

    scaler: Scaler
    single: bool
    map: TargetMap | None = None
    limits: np.ndarray | None = None

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray | None = None, standardize: bool = True) -> NumericTargets:
        """For targets of shape (n,) or (n, k)."""
        columns = y.reshape(len(y), -1)
        scaler = Scaler.fit(columns, weights) if standardize else Scaler.identity(columns.shape[1])
        return cls(scaler, y.ndim == 1)

    @property
    def n_outputs(self) -> int:
        """Number of targets."""
        return len(self.scaler.mean)

    @property
    def spread(self) -> np.ndarray:
        """What one standard deviation of the training targets is, in their units, (k,)."""
        return self.scaler.scale if self.map is None else np.array([self.map.spread])

    def mapped(self, y: np.ndarray) -> np.ndarray:
        """Targets as columns (n, k), in the units in which they are standardised."""
        columns = y.reshape(len(y), -1)
        return columns if self.map is None else self.map.forward(columns)

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Standardised columns (n, k)."""
        return self.scaler.forward(self.mapped(y))

    def unsmeared(self, outputs: np.ndarray) -> np.ndarray:
        """Columns (n, k) of numbers whose outputs these are, within the limits of predictions."""
        values = self.held(self.scaler.backward(outputs))
        return values if self.map is None else self.map.backward(values)

    def with_limits(self, y: np.ndarray) -> NumericTargets:
        """With limits of predictions: the range of the training targets, and ``BEYOND`` of it on either side.

        Kernels of a distance learn nothing about places far from all rows. A wide one with a small ridge, which is a polynomial
        nearly, may predict there three times the largest target; trees never leave the range. On 250 real tables with 300 and
        with up to 1,500 rows the limits changed five of the root mean squared errors, to 0.60 to 0.99 of what they were.
        """
        columns = y.reshape(len(y), -1)
        low, high = columns.min(axis=0), columns.max(axis=0)
        further = BEYOND * (high - low)
        limits = np.stack([low - further, high + further])
        return replace(self, limits=limits if self.map is None else self.map.forward(np.maximum(limits, 0.0)))

    def held(self, values: np.ndarray) -> np.ndarray:
        """Predictions (n, k) within their limits, in the units in which targets are standardised."""
        return values if self.limits is None else np.clip(values, *self.limits)

    def with_error(self, error: np.ndarray) -> NumericTargets:
        """With the root mean squared errors (k,) that outputs have out of sample, which the mean of a map takes account of."""
        if self.map is None:
            return self
        return replace(self, map=self.map.with_error(float(error[0] * self.scaler.scale[0])))

    def columns(self, outputs: np.ndarray) -> np.ndarray:
        """The outputs are columns already."""
        return outputs

    def judged(self, outputs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Every target has the same say."""
        return Scaler.fit(outputs, weights).forward(outputs)

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """The output layer is of the kind of the hidden layers above the first."""
        return UPPER_LAYERS[kind](inputs, self.n_outputs, activation, penalty, alpha)

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """Latent values that know the targets."""
        if is_stacked(network):
            return stacked_start(network, rows)
        share = STACKED_SHARE if has_several_kernels(network) else TARGET_SHARE
        latents = initial_latents(rng, rows.X, rows.outputs, network.hidden_sizes, activation, share)
        return rows.refitted(network, latents), latents

    def rest_after(
        self, network: Network, rows: TrainingRows, activation: Activation, loop: IROSettings, max_iter: int
    ) -> int | None:
        """As soon as iterations no longer make the mean of ridge regressions better at rows that were hidden from it.

        Where training does not start as such a mean, it has a way to go, and goes on. A fifth of few rows is moved by luck: of
        49 tables with 120 rows 12 gained by a standard error, and erred 0.9 % more than at rest; likewise 3 of 31 with 300.
        """
        if not (is_stacked(network) and keeps_means(activation)):
            return None
        hidden = np.zeros(len(rows.outputs), dtype=bool)
        hidden[part_of_many(len(hidden))] = True
        seen = np.where(hidden, 0.0, 1.0 if rows.weights is None else rows.weights)
        hidden &= True if rows.weights is None else rows.weights > 0
        if hidden.sum() < FEWEST_HIDDEN or not seen.any():
            return 0
        rng = np.random.default_rng(1)
        start = IROState(0, *stacked_start(network, replace(rows, weights=seen)), dict(rng.bit_generator.state))
        chain = iro(rows.inputs, rows.outputs, start, loop, seen)

        def losses(state: IROState) -> np.ndarray:
            errors = state.network.forward(rows.inputs)[-1][hidden] - rows.outputs[hidden]
            return np.asarray((errors**2).mean(axis=1))

        return helpful_iterations(chain, start, losses, max_iter, CLEARLY if len(hidden) <= FEW_ROWS else 1.0)

    def score(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """R², averaged over the targets."""
        if self.map is not None:
            known = self.with_error(np.sqrt(np.mean((outputs - prediction) ** 2, axis=0)))
            prediction, outputs = known.in_units(prediction).reshape(outputs.shape), self.unsmeared(outputs)
        spread = ((outputs - outputs.mean(axis=0)) ** 2).sum(axis=0)
        left = ((outputs - prediction) ** 2).sum(axis=0)
        return float(np.mean(1.0 - left / np.where(spread > 0, spread, 1.0)))

    def losses(self, predictions: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Squared error of the mean over the iterates."""
        return np.asarray(((predictions.mean(axis=0) - outputs) ** 2).mean(axis=1))

    def calibration(self, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> IntervalCalibration:
        """Noise and half-widths of intervals."""
        return IntervalCalibration.learn(end, uncertainty, residuals)

    def derivatives(self, predictions: np.ndarray, tempering: Tempering = PLAIN) -> np.ndarray:
        """Of predicted numbers with respect to the outputs (iterates, n, k) of every iterate: (iterates, n, k, k)."""
        iterates, n, k = predictions.shape
        slopes = np.broadcast_to(np.diag(self.scaler.scale / iterates), (iterates, n, k, k))
        values = self.scaler.backward(predictions.mean(axis=0))
        if self.limits is not None:
            slopes = slopes * (values == self.held(values))[None, :, :, None]
        return slopes if self.map is None else np.asarray(slopes * self.map.mean_slope(values)[None, :, :, None])

    def in_units(self, values: np.ndarray) -> np.ndarray:
        """Standardised means (n, k) in the units of the data; a single target has no axis of its own."""
        mean = self.held(self.scaler.backward(values))
        if self.map is not None:
            mean = self.map.mean(mean)
        return mean[:, 0] if self.single else mean


@dataclass(frozen=True)
class MappedTargets:
    """A single target that is learned as its square root or logarithm: a kind of targets.

    Parameters
    ----------
    kind : {"sqrt", "log"}
    """

    kind: str

    def of(self, y: np.ndarray, weights: np.ndarray | None = None, standardize: bool = True) -> NumericTargets:
        """For targets of shape (n,), or (n, 1)."""
        columns = y.reshape(len(y), -1)
        if columns.shape[1] > 1:
            raise ValueError(
                f"target_transform={self.kind!r} is for a single target, and y has {columns.shape[1]}; transform y yourself, "
                "or train a model for each."
            )
        map_of = TargetMap.of(self.kind, columns[:, 0], weights)
        standard = NumericTargets.of(map_of.forward(columns), weights, standardize)
        return replace(standard, single=y.ndim == 1, map=map_of)
