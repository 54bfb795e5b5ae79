"""A network is a first layer and the layers above it; training, prediction and imputation are folds over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._arrays import Array, takes_tensors
from kstonet.imputation.base import Latents
from kstonet.layers.base import FirstLayer, UpperLayer


def forward_above(uppers: Sequence[UpperLayer], first: np.ndarray) -> tuple[np.ndarray, ...]:
    """Noise-free value of every layer, given the values of the first hidden layer at any rows: eq. (KDNNeq)."""
    values = [first]
    for layer in uppers:
        values.append(layer.mean(values[-1]))
    return tuple(values)


def jacobian_above(uppers: Sequence[UpperLayer], values: Sequence[np.ndarray]) -> np.ndarray:
    """∂ output / ∂ Y₁ of every row by the chain rule, (n, outputs, units); ``values`` are those of :func:`forward_above`.

    A head for two classes has one output here: its second logit, for the first one is zero.
    """
    jacobian = None
    for layer, below in zip(reversed(uppers), reversed(values[:-1]), strict=True):
        through = layer.slope(below)
        jacobian = through if jacobian is None else jacobian @ through
    assert jacobian is not None
    return jacobian


@dataclass(frozen=True)
class Network:
    """An immutable chain of layers; ``inputs`` and ``outputs`` of the training data are passed to the methods."""

    layers: tuple[FirstLayer, *tuple[UpperLayer, ...]]

    @property
    def first(self) -> FirstLayer:
        """The layer whose inputs are the rows of the data."""
        return self.layers[0]

    @property
    def uppers(self) -> tuple[UpperLayer, ...]:
        """The layers above it."""
        return self.layers[1:]

    @property
    def head(self) -> UpperLayer:
        """The last layer, whose outputs are observed."""
        return self.uppers[-1]

    @property
    def hidden_sizes(self) -> tuple[int, ...]:
        """Units of every hidden layer."""
        return tuple(layer.n_inputs for layer in self.uppers)

    def forward(self, inputs: Any = None) -> tuple[np.ndarray, ...]:
        """Noise-free value of every layer on the training rows: eq. (KDNNeq)."""
        return forward_above(self.uppers, self.first.mean(inputs))

    def conditionals(
        self, inputs: Any, outputs: np.ndarray, rows: slice = slice(None), *, placed: bool = False
    ) -> NetworkConditionals:
        """What a sampler needs to draw the latent values of some observations given the data.

        With ``placed``, it draws them where the first layer's Gram computes, from layers that all take tensors.
        """
        first, observed = self.first.at(rows), outputs[rows]
        network = Network((first.placed() if placed else first, *self.uppers))
        seen = first.place(observed) if placed else observed
        return NetworkConditionals(network, None if inputs is None else inputs[rows], seen)

    def refit(self, inputs: Any, latents: Latents, outputs: np.ndarray, sample_weight: np.ndarray | None) -> Network:
        """Step 2 of Algorithm 1: every layer solves its own convex problem, independently of the others."""
        network = Network((self.first.refit(inputs, latents[0], sample_weight), *self.uppers))
        return Network((network.first, *network.refit_above(latents, outputs, sample_weight)))

    def refit_above(self, latents: Latents, outputs: np.ndarray, sample_weight: np.ndarray | None) -> tuple[UpperLayer, ...]:
        """The layers above the first, refitted; the first one is refitted already."""
        here = self.chain(latents, outputs, sample_weight)
        there = tuple(self.first.place(values) for values in here)  # a regression computes where its inputs are
        chains = (there if takes_tensors(type(layer)) else here for layer in self.uppers)
        each = enumerate(zip(self.uppers, chains, strict=True))
        return tuple(layer.refit(chain[i], chain[i + 1], sample_weight) for i, (layer, chain) in each)

    def chain(self, latents: Latents, outputs: np.ndarray, sample_weight: np.ndarray | None) -> tuple[np.ndarray, ...]:
        """The inputs of the layers above the first, and the outputs: what these layers are fitted on."""
        return (self.first.values_above(latents[0], sample_weight), *latents[1:], outputs)

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Network:
        """The network with penalties of this strength; None is the automatic one of every layer."""
        first, *uppers = (layer.with_penalty(alpha, residual, n) for layer in self.layers)
        return Network((first, *uppers))  # type: ignore[arg-type]  # a layer stays of its kind

    def with_noise(self, variances: Sequence[float]) -> Network:
        """The network with the noise of the layers above the first replaced; the first layer's follows from it."""
        uppers = (layer.with_noise(variance) for layer, variance in zip(self.uppers, variances, strict=True))
        return Network((self.first.with_noise(variances[0]), *uppers))

    def with_layer(self, index: int, **changes: Any) -> Network:
        """A copy with some attributes of one layer changed."""
        layers: list[Any] = list(self.layers)
        layers[index] = replace(layers[index], **changes)
        return Network((layers[0], *layers[1:]))

    def __len__(self) -> int:
        return len(self.layers)


class NetworkConditionals:
    """π(Y_i | Y_{i-1}, Y_{i+1}) ∝ π(Y_i | Y_{i-1}) π(Y_{i+1} | Y_i) for the latent layers of a network."""

    def __init__(self, network: Network, inputs: Any, outputs: Array) -> None:
        self._network, self._inputs, self._outputs = network, inputs, outputs

    def _around(self, layer: int, latents: Latents) -> tuple[Any, Array]:
        below = self._inputs if layer == 0 else latents[layer - 1]
        above = self._outputs if layer + 1 == len(latents) else latents[layer + 1]
        return below, above

    def score(self, layer: int, latents: Latents) -> Array:
        below, above = self._around(layer, latents)
        own, upper = self._network.layers[layer], self._network.uppers[layer]
        return own.score_output(below, latents[layer]) + upper.score_input(latents[layer], above)

    def log_density(self, layer: int, latents: Latents) -> Array:
        below, above = self._around(layer, latents)
        own, upper = self._network.layers[layer], self._network.uppers[layer]
        return own.log_density(below, latents[layer]) + upper.log_density(latents[layer], above)

    def curvature(self, layer: int, latents: Latents) -> Array:
        own, upper = self._network.layers[layer], self._network.uppers[layer]
        return float(np.max(own.curvature_output())) + upper.curvature_input(latents[layer])
