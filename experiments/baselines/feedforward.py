"""A fully connected network: forward pass, backward pass, dropout. All parameters live in one flat vector.

One vector makes an optimiser's step one array operation whatever the architecture is, and a snapshot one copy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from kstonet.layers.activations import Activation

BLOCK_VALUES = 2**22  # values of one layer held at once in a pass over many rows


def split(sizes: tuple[int, ...], flat: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (inputs, outputs) and biases of every layer, as views into ``flat``."""
    layers, start = [], 0
    for below, above in pairwise(sizes):
        middle, end = start + below * above, start + (below + 1) * above
        layers.append((flat[start:middle].reshape(below, above), flat[middle:end]))
        start = end
    return layers


def count_parameters(sizes: tuple[int, ...]) -> int:
    """How many weights and biases a network of these layer sizes has."""
    return sum((below + 1) * above for below, above in pairwise(sizes))


def dropout_masks(
    sizes: tuple[int, ...], rate: float, rng: np.random.Generator, rows: int, dtype: np.dtype
) -> list[np.ndarray]:
    """Random factors for the inputs of every layer: 0 with probability ``rate``, else 1/(1 - rate), so that means are kept."""
    keep = 1.0 - rate
    factors = np.array([0.0, 1.0 / keep], dtype=dtype)
    return [factors[(rng.random((rows, width), dtype=np.float32) < keep).view(np.int8)] for width in sizes[:-1]]


@dataclass(frozen=True)
class Trace:
    """What the backward pass needs of a forward pass."""

    inputs: list[np.ndarray]  # of every layer, after dropout
    before: list[np.ndarray]  # of every hidden layer, before its activation
    outputs: np.ndarray
    masks: Sequence[np.ndarray] | None


@dataclass(frozen=True)
class FeedForward:
    """A network of dense layers with one activation between them and none after the last.

    Parameters
    ----------
    sizes : tuple of int
        Inputs, hidden units layer by layer, outputs.
    activation : Activation
    theta : array of shape (count_parameters(sizes),)
        All parameters; training changes it in place.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.layers.activations import get_activation
    >>> network = FeedForward((2, 1), get_activation("tanh"), np.array([1.0, 10.0, 0.5]))
    >>> network.outputs(np.array([[1.0, 2.0]]))
    array([[21.5]])
    """

    sizes: tuple[int, ...]
    activation: Activation
    theta: np.ndarray

    @classmethod
    def random(
        cls, sizes: tuple[int, ...], activation: Activation, rng: np.random.Generator, dtype: np.dtype | type = np.float64
    ) -> FeedForward:
        """Draw weights and biases uniformly within ±1/√inputs of their layer, where the authors' code starts, too."""
        theta = rng.uniform(-1.0, 1.0, count_parameters(sizes)).astype(dtype)
        for weights, biases in split(sizes, theta):
            weights /= np.sqrt(len(weights))
            biases /= np.sqrt(len(weights))
        return cls(sizes, activation, theta)

    @property
    def layers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Weights (inputs, outputs) and biases of every layer: views, so that they follow ``theta``."""
        return split(self.sizes, self.theta)

    def is_weight(self) -> np.ndarray:
        """Which parameters are weights, the ones a penalty acts on; the others are biases."""
        mask = np.zeros(len(self.theta), dtype=bool)
        for weights, _ in split(self.sizes, mask):
            weights[...] = True
        return mask

    def copy(self) -> FeedForward:
        """A network of its own, for the record."""
        return replace(self, theta=self.theta.copy())

    def trace(self, X: np.ndarray, masks: Sequence[np.ndarray] | None = None) -> Trace:
        """Forward pass that remembers what :meth:`gradient` needs; ``masks`` are those of :func:`dropout_masks`."""
        inputs, before, value = [], [], X
        for index, (weights, biases) in enumerate(self.layers):
            if index:
                before.append(value)
                value = self.activation.value(value)
            if masks is not None:
                value = value * masks[index]
            inputs.append(value)
            value = value @ weights
            value += biases
        return Trace(inputs, before, value, masks)

    def gradient(self, trace: Trace, output_gradient: np.ndarray) -> np.ndarray:
        """Gradient of the loss in all parameters, by backpropagation from its gradient in the outputs."""
        flat = np.empty_like(self.theta)
        delta = output_gradient
        layers, slots = self.layers, split(self.sizes, flat)
        for index in reversed(range(len(layers))):
            np.matmul(trace.inputs[index].T, delta, out=slots[index][0])
            np.sum(delta, axis=0, out=slots[index][1])
            if index:
                delta = delta @ layers[index][0].T
                if trace.masks is not None:
                    delta *= trace.masks[index]
                delta *= self.activation.slope(trace.before[index - 1])
        return flat

    def outputs(self, X: np.ndarray) -> np.ndarray:
        """Forward pass in blocks of bounded memory, shape (n, outputs)."""
        out = np.empty((len(X), self.sizes[-1]), dtype=self.theta.dtype)
        step = max(1, BLOCK_VALUES // max(self.sizes[1:]))
        for start in range(0, len(X), step):
            out[start : start + step] = self.trace(X[start : start + step]).outputs
        return out

    def thinned(self, masks: Sequence[np.ndarray]) -> FeedForward:
        """The network that remains when dropout removes the same inputs for all rows: one draw of MC dropout.

        ``masks`` are those of :func:`dropout_masks` for one row. They scale rows of the weight matrices, so that a draw is
        a network, a function of x: what it predicts for a row does not depend on the other rows.
        """
        network = self.copy()
        for (weights, _), mask in zip(network.layers, masks, strict=True):
            weights *= mask[0][:, None]
        return network
