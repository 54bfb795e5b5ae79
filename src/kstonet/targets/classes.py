"""One of two or more classes per row: how they are trained, predicted and calibrated."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from scipy.special import logsumexp

from kstonet._checks import require
from kstonet._records import storable
from kstonet.class_start import FEWEST_HIDDEN, class_start, class_units, hidden_rows, some_of_many
from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows, initial_latents
from kstonet.iro import IROSettings, IROState, iro
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.heads import CategoricalHead, OrdinalHead
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network, forward_above
from kstonet.resting import helpful_iterations
from kstonet.solvers.ordinal import class_scores
from kstonet.solvers.softmax import log_proba
from kstonet.targets.base import PLAIN
from kstonet.uncertainty.calibration import ProbabilityCalibration, TrainingEnd
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.tempering import Tempering

MOST_JUDGED = 64  # columns by which kernels are judged
DEMAND = "False, True, or a sequence of all labels from the lowest to the highest, each once"


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
