"""What training asks of the targets, whatever they are."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from kstonet.imputation.base import Latents
from kstonet.initialisation import TrainingRows
from kstonet.iro import IROSettings
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer
from kstonet.network import Network
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration, TrainingEnd
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.tempering import Tempering

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
