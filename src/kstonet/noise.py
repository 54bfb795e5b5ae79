"""The automatic noise of the layers above the first: it follows the residual, and what the first layer can bear."""

from __future__ import annotations

import numpy as np

from kstonet.network import Network, jacobian_above
from kstonet.threads import in_threads, pieces

MOST_SLOPES = 20_000_000  # rows · units · outputs whose slopes are computed
ROWS = 2048  # whose slopes are computed at once: they stay in the cache


def output_slopes(network: Network, values: tuple[np.ndarray, ...]) -> np.ndarray:
    """Largest |∂ output / ∂ Y₁| of every observation, by the chain rule through the layers above the first."""

    def largest(rows: slice) -> np.ndarray:
        jacobian = jacobian_above(network.uppers, tuple(layer[rows] for layer in values))
        return np.asarray(np.abs(jacobian).max(axis=(1, 2)))

    return np.concatenate(in_threads(largest, pieces(0, len(values[0]), ROWS)))


def automatic_noise(network: Network, values: tuple[np.ndarray, ...], outputs: np.ndarray) -> float:
    """σ² (or the temperature of a classification head) for the current fit."""
    residual = network.head.residual(values[-1], outputs)
    some = max(1, values[0].size * values[-1].shape[1] // MOST_SLOPES)  # a typical slope needs no more rows
    slope = float(np.sqrt(np.mean(output_slopes(network, tuple(layer[::some] for layer in values)) ** 2)))
    return network.first.noise_above(residual, slope)
