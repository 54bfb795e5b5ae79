"""What is predicted: numbers or classes. The one place that knows how training, prediction and calibration differ by it."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

import numpy as np
from scipy.special import logsumexp

from kstonet._checks import require
from kstonet._records import storable
from kstonet.class_start import FEWEST_HIDDEN, class_start, class_units, hidden_rows, some_of_many
from kstonet.imputation.base import Latents
from kstonet.initialisation import TARGET_SHARE, TrainingRows, initial_latents
from kstonet.iro import IROSettings, IROState, iro
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.heads import CategoricalHead, OrdinalHead
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network, forward_above
from kstonet.resting import helpful_iterations
from kstonet.scaling import Scaler
from kstonet.solvers.ordinal import class_scores
from kstonet.solvers.softmax import log_proba
from kstonet.stacked_start import STACKED_SHARE, has_several_kernels, is_stacked, keeps_means, stacked_start
from kstonet.target_map import TargetMap
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration, TrainingEnd
from kstonet.uncertainty.cross_fitting import part_of_many
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.tempering import Tempering

MOST_JUDGED = 64  # columns by which kernels are judged
FEW_ROWS, CLEARLY = 1000, 3.0  # rows up to which iterations have to help by so many standard errors
BEYOND = 0.25  # of the range of the training targets, by which predictions may leave it
DEMAND = "False, True, or a sequence of all labels from the lowest to the highest, each once"
PLAIN = Tempering()
Calibration = IntervalCalibration | ProbabilityCalibration


class TargetsKind(Protocol):
    """What knows the targets of a problem before it has seen them: a class of targets, or one of them with its options."""

    def of(self, y: np.ndarray, weights: np.ndarray | None, standardize: bool) -> Targets:
        """Learn the scale or the classes from the targets of the training rows."""
        ...


class Targets(Protocol):
    """What training asks of the targets."""

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the network."""
        ...

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Targets as training sees them: standardised columns (n, k), or class codes (n,)."""
        ...

    def columns(self, outputs: np.ndarray) -> np.ndarray:
        """The same as numeric columns: those, or indicators of the classes."""
        ...

    def judged(self, outputs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Columns by whose squared errors kernels are judged, with a variance of one in the mean."""
        ...

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """The output layer before its first refit."""
        ...

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """Where training starts: the network after its first refit, and the latent values it was fitted on."""
        ...

    def rest_after(
        self, network: Network, rows: TrainingRows, activation: Activation, loop: IROSettings, max_iter: int
    ) -> int | None:
        """After how many iterations a chain rests, whatever the seed; None for never."""
        ...

    def score(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """R² or accuracy of a network's outputs."""
        ...

    def losses(self, predictions: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Squared error or negative log-likelihood of every row, from the outputs of all iterates (iterates, n, k)."""
        ...

    def calibration(self, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> Calibration:
        """What the intervals or probabilities need beside the moments."""
        ...


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


@storable()
@dataclass(frozen=True)
class ClassTargets:
    """One of two or more classes per row, trained as codes.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    ranks : ndarray of int of shape (n_classes,), optional
        The place of every class in the order of ordinal classes; None where they have no order.
    """

    classes: np.ndarray
    ranks: np.ndarray | None = None

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray | None = None, standardize: bool = True) -> ClassTargets:
        """For labels of shape (n,); they have no scale."""
        return cls(np.unique(y))

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    @property
    def ordinal(self) -> bool:
        """Whether the classes are ordered; two always are, and nothing follows from it."""
        return self.ranks is not None and len(self.classes) > 2

    @property
    def n_units(self) -> int:
        """Units of a hidden layer that makes one regression for each of :meth:`contrasts`, if they are not very many."""
        return class_units(len(self.classes), self.ordinal)

    def unknown(self, y: np.ndarray) -> np.ndarray:
        """The labels that are none of the classes."""
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        return np.asarray(y[self.classes[codes] != y])

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Class codes (n,)."""
        return np.searchsorted(self.classes, y)

    def columns(self, outputs: np.ndarray) -> np.ndarray:
        """Indicators of the classes (n, k); of ordinal classes, whether a row is above each step of their order (n, k - 1)."""
        if self.ordinal:
            assert self.ranks is not None
            return np.asarray(self.ranks[outputs][:, None] > np.arange(len(self.classes) - 1), dtype=np.float64)
        return np.asarray(np.eye(len(self.classes))[outputs])

    def judged(self, outputs: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Indicators on one scale, so that their squared error is Brier's score and rare classes have the say of their rows.

        Very many classes are mixed at random: the squared errors of the mixtures are on average those of the classes.
        """
        columns = self.contrasts(outputs)
        centred = columns - np.average(columns, axis=0, weights=weights)
        if columns.shape[1] > MOST_JUDGED:
            mixtures, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(columns.shape[1], MOST_JUDGED)))
            centred = centred @ mixtures
        return np.asarray(centred / np.sqrt(np.average((centred**2).mean(axis=1), weights=weights)))

    def contrasts(self, outputs: np.ndarray) -> np.ndarray:
        """The columns without what the others tell: one for two classes."""
        columns = self.columns(outputs)
        return columns[:, 1:] if len(self.classes) == 2 else columns

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """A multinomial logit, whatever the hidden layers are; its weights share a direction where classes are ordered."""
        head = CategoricalHead.new(inputs, len(self.classes), activation, penalty, alpha)
        if not self.ordinal or self.ranks is None:
            return head
        given = {field.name: getattr(head, field.name) for field in fields(head)}
        return OrdinalHead(**given, scores=class_scores(self.ranks))

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """The one-vs-rest machine of the first layer, where that estimates means; else latent values that know the classes."""
        if self._starts_where_it_ends(network):
            return class_start(rng, network, rows, self.contrasts(rows.outputs), activation)
        latents = initial_latents(rng, rows.X, self.columns(rows.outputs), network.hidden_sizes, activation)
        return rows.refitted(network, latents), latents

    def rest_after(
        self, network: Network, rows: TrainingRows, activation: Activation, loop: IROSettings, max_iter: int
    ) -> int | None:
        """As soon as iterations no longer make a network better at rows that were hidden from it.

        Where training does not start as the one-vs-rest machine of its kernel, it has a way to go, and goes on.
        """
        if not self._starts_where_it_ends(network):
            return None
        rng = np.random.default_rng(1)
        network, rows = some_of_many(rng, network, rows)
        hidden = hidden_rows(rng, rows.outputs, rows.weights)
        if hidden.sum() < FEWEST_HIDDEN:
            return 0
        weights = np.where(hidden, 0.0, 1.0 if rows.weights is None else rows.weights)
        start = IROState(
            0, *self.start(rng, network, replace(rows, weights=weights), activation), dict(rng.bit_generator.state)
        )
        chain, labels = iro(rows.inputs, rows.outputs, start, loop, weights), rows.outputs[hidden]

        def losses(state: IROState) -> np.ndarray:
            log_p = log_proba(state.network.forward(rows.inputs)[-1][hidden])
            return np.asarray(-log_p[np.arange(len(labels)), labels])

        return helpful_iterations(chain, start, losses, max_iter)

    @staticmethod
    def _starts_where_it_ends(network: Network) -> bool:
        return isinstance(network.first, RidgeLayer) and len(network.uppers) == 1

    def score(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """Accuracy."""
        return float(np.mean(prediction.argmax(axis=1) == outputs))

    def losses(self, predictions: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Negative log-likelihood of the mean probabilities."""
        p = self.probabilities(predictions)[np.arange(len(outputs)), outputs]
        return np.asarray(-np.log(np.maximum(p, 1e-12)))

    def probabilities(self, predictions: np.ndarray, tempering: Tempering = PLAIN) -> np.ndarray:
        """Class probabilities (n, k), averaged over the iterates (iterates, n, k) and then tempered: p^(1/T), renormalised."""
        averaged = np.mean([np.exp(log_proba(logits)) for logits in predictions], axis=0)
        averaged = np.asarray(averaged / averaged.sum(axis=1, keepdims=True))
        if tempering.temperature == 1.0:
            return tempering.above_floor(averaged)
        return tempering.probabilities(np.log(np.maximum(averaged, 1e-300)))

    def log_probabilities(self, predictions: np.ndarray, tempering: Tempering = PLAIN) -> np.ndarray:
        """Their logarithms, finite where a probability is not a positive number."""
        averaged = logsumexp(np.stack([log_proba(logits) for logits in predictions]), axis=0) - np.log(len(predictions))
        return tempering.log_probabilities(averaged)

    def derivatives(self, predictions: np.ndarray, tempering: Tempering = PLAIN) -> np.ndarray:
        """Of :meth:`probabilities` with respect to the logits (iterates, n, k) of every iterate: (iterates, n, k, k).

        With s the softmax of an iterate, its share r = s/Σs in the sum over iterates and the tempered probabilities q,
        ∂ log q_j/∂z_l = (v_jl - Σᵢ qᵢ v_il)/T, where v_jl = r_j (δ_jl - s_l). A floor leaves a share of these slopes.
        """
        logs = np.stack([log_proba(logits) for logits in predictions])
        softmaxes, shares = np.exp(logs), np.exp(logs - logsumexp(logs, axis=0))
        q = self.probabilities(predictions, Tempering(tempering.temperature))
        eye = np.eye(predictions.shape[2])
        moves = shares[..., None] * (eye - softmaxes[:, :, None, :])
        moves -= (q[:, :, None] * moves).sum(axis=2, keepdims=True)
        return np.asarray(q[:, :, None] * moves * (tempering.share / tempering.temperature))

    def calibration(self, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> ProbabilityCalibration:
        """Temperature of the logits and scale of their variance."""
        network = end.states[-1].network
        if not network.first.left_out:
            return ProbabilityCalibration.learn(end, uncertainty, residuals)

        def restarted(labels: np.ndarray, rng: np.random.Generator) -> np.ndarray:
            rows = TrainingRows(end.X, end.inputs, labels, end.weights)
            new, (latents,) = self.start(rng, network, rows, network.head.activation)  # type: ignore[attr-defined]
            return forward_above(new.uppers, new.first.values_above(latents, end.weights))[-1]

        return ProbabilityCalibration.learn(replace(end, restarted=restarted), uncertainty, residuals)


@dataclass(frozen=True)
class OrderedClasses:
    """Classes whose order is known before their labels are: a kind of targets.

    Parameters
    ----------
    order : tuple, optional
        All labels from the lowest to the highest; None is the order of numbers.
    """

    order: tuple[Any, ...] | None = None

    @classmethod
    def given(cls, ordinal: Any) -> OrderedClasses:
        """From the parameter ``ordinal``: True, or the labels in their order."""
        if isinstance(ordinal, bool | np.bool_):
            return cls()
        require("ordinal", ordinal, lambda v: not isinstance(v, str) and len(set(v)) == len(v) >= 2, DEMAND)
        return cls(tuple(np.asarray(ordinal).tolist()))

    def of(self, y: np.ndarray, weights: np.ndarray | None = None, standardize: bool = True) -> ClassTargets:
        """For labels of shape (n,); labels of the order that y lacks are left out."""
        classes = np.unique(y)
        labels = classes.tolist()
        if self.order is None:
            if classes.dtype.kind not in "biuf":
                raise ValueError(
                    f"ordinal=True needs numbers as labels; y holds {labels[0]!r}. Give the labels in their order."
                )
            return ClassTargets(classes, np.arange(len(classes)))
        place = {label: i for i, label in enumerate(self.order)}
        unknown = [label for label in labels if label not in place]
        if unknown:
            raise ValueError(f"ordinal={list(self.order)!r} lacks the label {unknown[0]!r} of y; it must hold all of them.")
        return ClassTargets(classes, np.argsort(np.argsort([place[label] for label in labels])))
