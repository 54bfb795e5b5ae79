"""What is predicted: numbers or classes. The one place that knows how training, prediction and calibration differ by it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, Self

import numpy as np
from scipy.special import softmax

from kstonet._records import storable
from kstonet.class_start import class_start
from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows, initial_latents
from kstonet.layers import UPPER_LAYERS
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.ridge import RidgeLayer
from kstonet.network import Network
from kstonet.scaling import Scaler
from kstonet.solvers.softmax import log_proba
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration, TrainingEnd
from kstonet.uncertainty.network import NetworkUncertainty

Calibration = IntervalCalibration | ProbabilityCalibration


class Targets(Protocol):
    """What training asks of the targets."""

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray | None, standardize: bool) -> Self:
        """Learn the scale or the classes from the targets of the training rows."""
        ...

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

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """The output layer before its first refit."""
        ...

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """Where training starts: the network after its first refit, and the latent values it was fitted on."""
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


@storable()
@dataclass(frozen=True)
class NumericTargets:
    """One or several numbers per row, standardised for training.

    Parameters
    ----------
    scaler : Scaler
        Between the units of the data and those of training.
    single : bool
        Whether there is one target, given without an axis of its own.
    """

    scaler: Scaler
    single: bool

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

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Standardised columns (n, k)."""
        return self.scaler.forward(y.reshape(len(y), -1))

    def columns(self, outputs: np.ndarray) -> np.ndarray:
        """The outputs are columns already."""
        return outputs

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """The output layer is of the kind of the hidden layers above the first."""
        return UPPER_LAYERS[kind](inputs, self.n_outputs, activation, penalty, alpha)

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """Latent values that know the targets."""
        latents = initial_latents(rng, rows.X, rows.outputs, network.hidden_sizes, activation)
        return rows.refitted(network, latents), latents

    def score(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """R², averaged over the targets."""
        spread = ((outputs - outputs.mean(axis=0)) ** 2).sum(axis=0)
        left = ((outputs - prediction) ** 2).sum(axis=0)
        return float(np.mean(1.0 - left / np.where(spread > 0, spread, 1.0)))

    def losses(self, predictions: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Squared error of the mean over the iterates."""
        return np.asarray(((predictions.mean(axis=0) - outputs) ** 2).mean(axis=1))

    def calibration(self, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> IntervalCalibration:
        """Noise and half-widths of intervals."""
        return IntervalCalibration.learn(end, uncertainty, residuals)

    def in_units(self, values: np.ndarray) -> np.ndarray:
        """Standardised means (n, k) in the units of the data; a single target has no axis of its own."""
        mean = self.scaler.backward(values)
        return mean[:, 0] if self.single else mean


@storable()
@dataclass(frozen=True)
class ClassTargets:
    """One of two or more classes per row, trained as codes.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The labels, sorted.
    """

    classes: np.ndarray

    @classmethod
    def of(cls, y: np.ndarray, weights: np.ndarray | None = None, standardize: bool = True) -> ClassTargets:
        """For labels of shape (n,); they have no scale."""
        return cls(np.unique(y))

    @property
    def n_outputs(self) -> int:
        """Number of classes."""
        return len(self.classes)

    def unknown(self, y: np.ndarray) -> np.ndarray:
        """The labels that are none of the classes."""
        codes = np.minimum(np.searchsorted(self.classes, y), len(self.classes) - 1)
        return np.asarray(y[self.classes[codes] != y])

    def outputs(self, y: np.ndarray) -> np.ndarray:
        """Class codes (n,)."""
        return np.searchsorted(self.classes, y)

    def columns(self, outputs: np.ndarray) -> np.ndarray:
        """Indicators of the classes (n, k)."""
        return np.asarray(np.eye(len(self.classes))[outputs])

    def new_head(self, kind: str, inputs: int, activation: Activation, penalty: str, alpha: float) -> UpperLayer:
        """A multinomial logit, whatever the hidden layers are."""
        return CategoricalHead.new(inputs, len(self.classes), activation, penalty, alpha)

    def start(
        self, rng: np.random.Generator, network: Network, rows: TrainingRows, activation: Activation
    ) -> tuple[Network, Latents]:
        """The one-vs-rest machine of the first layer, where that estimates means; else latent values that know the classes."""
        if isinstance(network.first, RidgeLayer) and len(network.uppers) == 1:
            return class_start(rng, network, rows, self.columns(rows.outputs), activation)
        latents = initial_latents(rng, rows.X, self.columns(rows.outputs), network.hidden_sizes, activation)
        return rows.refitted(network, latents), latents

    def score(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """Accuracy."""
        return float(np.mean(prediction.argmax(axis=1) == outputs))

    def losses(self, predictions: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Negative log-likelihood of the mean probabilities."""
        p = self.probabilities(predictions)[np.arange(len(outputs)), outputs]
        return np.asarray(-np.log(np.maximum(p, 1e-12)))

    def probabilities(self, predictions: np.ndarray, temperature: float = 1.0) -> np.ndarray:
        """Class probabilities (n, k), averaged over the iterates (iterates, n, k) and then tempered: p^(1/T), renormalised."""
        averaged = np.mean([np.exp(log_proba(logits)) for logits in predictions], axis=0)
        averaged = np.asarray(averaged / averaged.sum(axis=1, keepdims=True))
        if temperature == 1.0:
            return averaged
        return np.asarray(softmax(np.log(np.maximum(averaged, 1e-300)) / temperature, axis=1))

    def calibration(self, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> ProbabilityCalibration:
        """Temperature of the logits and scale of their variance."""
        return ProbabilityCalibration.learn(end, uncertainty, residuals)
