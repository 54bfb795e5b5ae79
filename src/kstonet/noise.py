"""The automatic noise of the layers above the first: it follows the residual, and what the first layer can bear."""

from __future__ import annotations

import numpy as np

from kstonet.network import Network, jacobian_above

MOST_SLOPES = 20_000_000  # rows · units · outputs whose slopes are computed


def output_slopes(network: Network, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Largest |∂ output / ∂ Y₁| of every observation, by the chain rule through the layers above the first."""
    return np.asarray(np.abs(jacobian_above(network.uppers, values)).max(axis=(1, 2)))


def automatic_noise(network: Network, values: tuple[np.ndarray, ...], outputs: np.ndarray) -> float:
    """σ² (or the temperature of a classification head) for the current fit."""
    residual = network.head.residual(values[-1], outputs)
    some = max(1, values[0].size * values[-1].shape[1] // MOST_SLOPES)  # a typical slope needs no more rows
    slope = float(np.sqrt(np.mean(output_slopes(network, tuple(layer[::some] for layer in values)) ** 2)))
    return network.first.noise_above(residual, slope)
