"""Where training starts: latent values that already know the targets, and differ between units.

The published code starts from random linear latents; its first regression is then nearly collinear, its weights are large,
and the first imputation explodes for some seeds. Here every unit starts as a mixture of the targets (with a random sign) and
a little of a random direction of the data, scaled to unit variance: the first SVRs are as good as plain ones, the first
regression is well conditioned, and the activations work in their curved range.

Units that all rise with a target are a trap: where every activation is flat at the same end of the target, no weights above
them can tell its values apart there, and training does not turn a unit round. So every target has units of both signs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet.imputation.base import Latents
from kstonet.layers.activations import Activation
from kstonet.network import Network


@dataclass(frozen=True)
class TrainingRows:
    """What a network is first fitted on: rows, the inputs of its first layer, outputs and sample weights."""

    X: np.ndarray
    inputs: Any
    outputs: np.ndarray
    weights: np.ndarray | None

    def refitted(self, network: Network, latents: Latents) -> Network:
        """The network refitted on these rows and latent values."""
        return network.refit(self.inputs, latents, self.outputs, self.weights)


TARGET_SHARE = 0.97  # correlation of an initial latent value with its mixture of targets; 0.7 left five units worse than an SVR


def initial_latents(
    rng: np.random.Generator,
    X: np.ndarray,
    targets: np.ndarray,
    sizes: tuple[int, ...],
    activation: Activation,
    share: float = TARGET_SHARE,
) -> Latents:
    """Initial values of all latent layers.

    Parameters
    ----------
    rng : Generator
    X : ndarray of shape (n, p)
        Standardised inputs (any description of the rows will do).
    targets : ndarray of shape (n, k)
        Standardised targets, or indicator columns of the classes.
    sizes : tuple of int
        Units of each latent layer.
    activation : Activation
    share : float
        Correlation of a value with its mixture of targets.
    """
    latents = []
    below = X
    for layer, size in enumerate(sizes):
        signal = _unit_variance(targets @ rng.normal(size=(targets.shape[1], size)))
        if layer == 0:  # the layers above get both directions from it
            signal = _with_both_signs(signal, targets)
        direction = _unit_variance(below @ rng.normal(size=(below.shape[1], size)))
        values = _unit_variance(share * signal + np.sqrt(1.0 - share**2) * direction)
        latents.append(values)
        below = activation.value(values)
    return tuple(latents)


def _with_both_signs(signal: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """The units' mixtures; where all follow a target in the same direction, the one least related to it is turned round."""
    signal = signal.copy()
    for target in (targets - targets.mean(axis=0)).T:
        along = target @ signal
        if len(along) > 1 and (np.all(along > 0) or np.all(along < 0)):
            signal[:, np.abs(along).argmin()] *= -1.0
    return signal


def _unit_variance(values: np.ndarray) -> np.ndarray:
    centred = values - values.mean(axis=0)
    spread = centred.std(axis=0)
    return np.asarray(centred / np.where(spread > 1e-12, spread, 1.0))
