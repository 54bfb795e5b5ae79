"""A network is a tuple of layers; training, prediction and imputation are folds over it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet.imputation.base import Latents


@dataclass(frozen=True)
class Network:
    """An immutable chain of layers; ``inputs`` and ``outputs`` of the training data are passed to the methods."""

    layers: tuple[Any, ...]

    def forward(self, inputs: Any = None) -> tuple[np.ndarray, ...]:
        """Noise-free value of every layer on the training rows: eq. (KDNNeq)."""
        return self.forward_from(self.layers[0].mean(inputs))

    def forward_from(self, first: np.ndarray) -> tuple[np.ndarray, ...]:
        """The same, given the values of the first hidden layer at any rows."""
        values = [first]
        for layer in self.layers[1:]:
            values.append(layer.mean(values[-1]))
        return tuple(values)

    def conditionals(self, inputs: Any, outputs: np.ndarray, rows: slice = slice(None)) -> NetworkConditionals:
        """What a sampler needs to draw the latent values of some observations given the data."""
        network = Network((self.layers[0].at(rows), *self.layers[1:]))
        return NetworkConditionals(network, None if inputs is None else inputs[rows], outputs[rows])

    def refit(self, inputs: Any, latents: Latents, outputs: np.ndarray, sample_weight: np.ndarray | None) -> Network:
        """Step 2 of Algorithm 1: every layer solves its own convex problem, independently of the others."""
        first = self.layers[0].refit(inputs, latents[0], sample_weight)
        return Network((first, *self.refit_above(latents, outputs, sample_weight)))

    def refit_above(self, latents: Latents, outputs: np.ndarray, sample_weight: np.ndarray | None) -> tuple[Any, ...]:
        """The layers above the first, refitted."""
        chain = (*latents, outputs)
        return tuple(layer.refit(chain[i], chain[i + 1], sample_weight) for i, layer in enumerate(self.layers[1:]))

    def with_layer(self, index: int, **changes: Any) -> Network:
        """A copy with some attributes of one layer changed."""
        layers = list(self.layers)
        layers[index] = replace(layers[index], **changes)
        return Network(tuple(layers))

    def __len__(self) -> int:
        return len(self.layers)


class NetworkConditionals:
    """π(Y_i | Y_{i-1}, Y_{i+1}) ∝ π(Y_i | Y_{i-1}) π(Y_{i+1} | Y_i) for the latent layers of a network."""

    def __init__(self, network: Network, inputs: Any, outputs: np.ndarray) -> None:
        self._network, self._inputs, self._outputs = network, inputs, outputs

    def _around(self, layer: int, latents: Latents) -> tuple[Any, np.ndarray]:
        below = self._inputs if layer == 0 else latents[layer - 1]
        above = self._outputs if layer + 1 == len(latents) else latents[layer + 1]
        return below, above

    def score(self, layer: int, latents: Latents) -> np.ndarray:
        below, above = self._around(layer, latents)
        own, upper = self._network.layers[layer], self._network.layers[layer + 1]
        return np.asarray(own.score_output(below, latents[layer]) + upper.score_input(latents[layer], above))

    def log_density(self, layer: int, latents: Latents) -> np.ndarray:
        below, above = self._around(layer, latents)
        own, upper = self._network.layers[layer], self._network.layers[layer + 1]
        return np.asarray(own.log_density(below, latents[layer]) + upper.log_density(latents[layer], above))

    def curvature(self, layer: int, latents: Latents) -> np.ndarray:
        own, upper = self._network.layers[layer], self._network.layers[layer + 1]
        return np.asarray(float(np.max(own.curvature_output())) + upper.curvature_input(latents[layer]))
