"""The automatic noise of the layers above the first: it follows the residual, and what the first layer can bear."""

from __future__ import annotations

import numpy as np

from kstonet.network import Network


def output_slopes(network: Network, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Largest |∂ output / ∂ Y₁| of every observation, by the chain rule through the layers above the first."""
    jacobian = None  # (n, outputs, units of the current layer)
    for layer, below in zip(reversed(network.uppers), reversed(values[:-1]), strict=True):
        through = layer.slope(below)
        jacobian = through if jacobian is None else jacobian @ through
    assert jacobian is not None
    return np.asarray(np.abs(jacobian).max(axis=(1, 2)))


def automatic_noise(network: Network, values: tuple[np.ndarray, ...], outputs: np.ndarray) -> float:
    """σ² (or the temperature of a classification head) for the current fit."""
    residual = network.head.residual(values[-1], outputs)
    slope = float(np.sqrt(np.mean(output_slopes(network, values) ** 2)))
    return network.first.noise_above(residual, slope)
