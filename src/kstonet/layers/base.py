"""The layer protocols: a layer is a conditional distribution π(output | input) that answers the questions of the algorithms.

Hidden values are arrays of shape (n, units), one row per observation. The inputs of a layer are the *raw* hidden values of
the layer below; the layer applies the activation itself, as in eq. (Kstoneteq). Layers are immutable: a refit
returns a new one.

A layer above the first whose class says ``takes_tensors = True`` is refitted, and asked for densities, scores and curvatures,
with arrays of the kind that the first layer's Gram computes with: NumPy's, or tensors on a device. It answers in the same
kind. Other layers are given NumPy arrays only.

A network is one :class:`FirstLayer`, whose inputs are data, and one or more :class:`UpperLayer`, whose inputs are latent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from kstonet._arrays import Array
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.expansion import Expansion
from kstonet.layers.moments import Moments


class Layer(Protocol):
    """What every layer of a K-StoNet or StoNet answers."""

    @property
    def n_outputs(self) -> int:
        """The number of units, or of outputs of the last layer."""
        ...

    def mean(self, inputs: Any) -> Array:
        """The noise-free forward value, eq. (KDNNeq)."""
        ...

    def log_density(self, inputs: Any, outputs: Array) -> Array:
        """Log π(output | input) of every observation, shape (n,)."""
        ...

    def score_output(self, inputs: Any, outputs: Array) -> Array:
        """∂ log π / ∂ outputs: the first gradient term of eq. (imputationeq)."""
        ...

    def curvature_output(self) -> np.ndarray:
        """Inverse variance of every output: the stiffness of the first term, shape (units,)."""
        ...

    def refit(self, inputs: Any, outputs: Array, sample_weight: np.ndarray | None = None) -> Self:
        """Solve the convex problem of this layer, eqs. (optsolver1), (optsolver2)."""
        ...

    def with_noise(self, variance: float) -> Self:
        """The layer with the noise that a network with this variance above its first layer gives it."""
        ...

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Self:
        """The layer with a penalty of this strength; None is the automatic one for a typical residual and n rows."""
        ...


@runtime_checkable
class LayerUncertainty(Protocol):
    """A fitted upper layer that propagates moments: eq. (varest)."""

    @property
    def n_inputs(self) -> int:
        """The number of inputs of the layer."""
        ...

    @property
    def n_outputs(self) -> int:
        """The number of outputs of the layer."""
        ...

    def propagate(self, moments: Moments, order: int = 1) -> Moments:
        """Moments of the layer's output from those of its input."""
        ...


@runtime_checkable
class UpperLayer(Layer, Protocol):
    """A layer above the first, hidden or last: its inputs are latent values."""

    @property
    def n_inputs(self) -> int:
        """The number of units of the layer below."""
        ...

    def score_input(self, inputs: Array, outputs: Array) -> Array:
        """∂ log π / ∂ inputs: the second gradient term of eq. (imputationeq)."""
        ...

    def curvature_input(self, inputs: Array) -> Array:
        """A bound of the largest eigenvalue of -∂² log π / ∂ inputs², shape (n,)."""
        ...

    def slope(self, inputs: np.ndarray) -> np.ndarray:
        """∂ mean / ∂ inputs, shape (n, outputs, inputs)."""
        ...

    def loss(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """What training reports of the last layer: the mean squared error, or the mean negative log-likelihood."""
        ...

    def residual(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """A typical residual of the last layer, on the scale of its outputs or probabilities."""
        ...

    def uncertainty(self, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None) -> LayerUncertainty:
        """The uncertainty of the layer, from the values it was fitted on."""
        ...


@runtime_checkable
class FirstLayerUncertainty(Protocol):
    """The variance of the first layer's values."""

    def covariance(self, X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
        """Covariance at new rows, given the features of every part of the expansion; shape (n, m, m)."""
        ...

    def joint(self, variance: np.ndarray) -> np.ndarray:
        """Covariance (n, m, m) of left-out values with these variances (n, m)."""
        ...

    def left_out(
        self,
        layers: Sequence[Any],
        expansion: Expansion,
        inputs: Any,
        outputs: np.ndarray,
        rows: np.ndarray | slice = EVERY_ROW,
    ) -> tuple[Sequence[np.ndarray], np.ndarray]:
        """What leaving a training row out of the refit does to the values at that row, for some ``rows`` or all.

        Returns the change of the values (n, m) for each of the ``layers``, and the variance (n, m) without the row.
        ``outputs`` are those the last of the layers was fitted on.
        """
        ...

    def contradictions(self, expansion: Expansion) -> Iterator[str]:
        """What does not fit the first layer, in words: a model file is not believed before it is asked."""
        ...


class FirstLayer(Layer, Protocol):
    """The first layer: its inputs are the rows of the data, which never change during training."""

    @property
    def left_out(self) -> bool:
        """Whether the layer above is fitted on values with the row itself left out, which :meth:`values_above` gives."""
        ...

    def at(self, rows: slice) -> Self:
        """The layer as seen by some of the observations it was trained on."""
        ...

    def place(self, values: np.ndarray) -> Array:
        """Values where the Gram of the layer computes: as they are, or as a tensor on its device."""
        ...

    def placed(self) -> Self:
        """The layer with its values on the training rows there, for a sampler; it is neither refitted nor kept."""
        ...

    def refit_versions(
        self,
        versions: Sequence[Any],
        inputs: Any,
        outputs: Sequence[np.ndarray],
        sample_weights: Sequence[np.ndarray | None],
    ) -> list[Self]:
        """Refit several versions of the layer, each on its own outputs with its own weights."""
        ...

    def certificate(self) -> dict[str, float]:
        """How good the last refit was, for the history."""
        ...

    def kernel_gap(self) -> float | None:
        """On an approximate Gram, a bound of the last refit's relative distance from the optimum with the kernel itself.

        None where the Gram is no approximation, where the bound would be too expensive, and for layers that have none.
        """
        ...

    def noise_above(self, residual: float, slope: float) -> float:
        """The automatic variance of the layers above, from a typical residual and a typical slope ∂ output / ∂ Y₁."""
        ...

    def temperature(self) -> float:
        """The automatic temperature of the imputation."""
        ...

    def values_above(self, latents: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        """What the layer above is fitted on, after a refit on these latent values: them, unless they know too much."""
        ...

    def exact(
        self, versions: Sequence[Any], inputs: Any, outputs: Sequence[np.ndarray], sample_weight: np.ndarray | None
    ) -> list[Self]:
        """The versions as prediction and intervals need them: at least the last one solved to its exact support."""
        ...

    def expansion(self, versions: Sequence[Any], inputs: Any) -> Expansion:
        """The versions as functions of new rows."""
        ...

    def values_at(self, X: np.ndarray) -> Callable[[Any], np.ndarray]:
        """A function that gives the values of any version of the layer at new rows; the features are computed once."""
        ...

    def uncertainty(
        self, expansion: Expansion, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None
    ) -> FirstLayerUncertainty:
        """The variance of the values, from the outputs the layer was fitted on; ``expansion`` keeps its rows."""
        ...
