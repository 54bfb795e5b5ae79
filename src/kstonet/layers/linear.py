"""The first layer of a StoNet: penalised regressions that are linear in the features, or in the rows of a kernel matrix."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kstonet._records import storable
from kstonet.gram import Gram
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.layers.dense import DenseLayer
from kstonet.layers.exact_refits import NOISE_RATIO, NOISE_SHARE, ExactRefits
from kstonet.layers.regression import RegressionUncertainty
from kstonet.layers.wide import WideRegression

LARGEST_COVARIANCE = 2**22  # numbers of a covariance of all coefficients that is formed


@storable()
@dataclass(frozen=True)
class LinearUncertainty:
    """The uncertainty of a first layer that is a regression on the features."""

    regression: RegressionUncertainty | WideRegression

    def covariance(self, X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
        """Covariance of the values that comes from the estimated coefficients."""
        (inputs,) = features
        blocks = row_blocks(len(inputs), (inputs.shape[1] + 1) ** 2)
        return np.concatenate([self.regression.own_covariance(inputs[rows]) for rows in blocks])

    def joint(self, variance: np.ndarray) -> np.ndarray:
        """Left-out values of different regressions are taken for independent."""
        return np.asarray(variance[:, :, None] * np.eye(variance.shape[1]))

    def left_out(
        self,
        layers: Sequence[Any],
        expansion: Expansion,
        inputs: np.ndarray,
        outputs: np.ndarray,
        rows: np.ndarray | slice = EVERY_ROW,
    ) -> tuple[list[np.ndarray], np.ndarray]:
        """The leverage formulas, with those of the last layer for all of them."""
        inputs, outputs = inputs[rows], outputs[rows]
        used = inputs[:, expansion.parts[0].used]
        fitted = used @ self.regression.weights.T + self.regression.intercept
        variance = np.diagonal(self.covariance(used, [used]), axis1=1, axis2=2)
        leverage = np.clip(variance / np.maximum(self.regression.noise, 1e-300), 0.0, 1.0 - 1e-6)
        without = fitted - leverage / (1.0 - leverage) * (outputs - fitted)
        return [without - layers[-1].mean(inputs)] * len(layers), variance / (1.0 - leverage)

    def contradictions(self, expansion: Expansion) -> Iterator[str]:
        """What does not fit the first layer."""
        if self.regression.weights.shape != (expansion.intercept.shape[1], expansion.n_support):
            yield "the uncertainty of the first layer has another size than the layer"


@dataclass(frozen=True)
class LinearFirstLayer(ExactRefits, DenseLayer):
    """Y₁ = b + w x + e with Gaussian noise; x are the features, or the rows of the kernel matrix of ``gram``."""

    gram: Gram | None = None

    def at(self, rows: slice) -> Self:
        return self

    def place(self, values: np.ndarray) -> np.ndarray:
        """As they are: there are no devices for regressions on features."""
        return values

    def placed(self) -> Self:
        return self

    def certificate(self) -> dict[str, float]:
        return {}

    def noise_above(self, residual: float, slope: float) -> float:
        """A fraction of the mean squared residual."""
        return NOISE_SHARE * residual**2

    def kernel_gap(self) -> None:
        """Nothing is approximated."""

    def with_noise(self, variance: float) -> Self:
        return replace(self, variance=NOISE_RATIO * variance)

    @property
    def left_out(self) -> bool:
        return False

    def values_above(self, latents: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        """The latent values themselves."""
        return latents

    def expansion(self, versions: Sequence[Self], inputs: Any) -> Expansion:
        coef, units = np.stack([version.weights for version in versions]), np.arange(self.n_outputs)
        part = ExpansionPart.of(None, inputs, coef, units) if self.gram is None else self.gram.expansion(coef, units)
        return Expansion((part,), np.stack([version.intercept for version in versions]))

    def values_at(self, X: np.ndarray) -> Callable[[Self], np.ndarray]:
        features = X if self.gram is None else np.concatenate([block for _, block in self.gram.cross(X)])
        return lambda version: np.asarray(features @ version.weights.T + version.intercept)

    def uncertainty(  # type: ignore[override]  # the rows of the data are the inputs, and not all features are kept
        self, expansion: Expansion, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None
    ) -> LinearUncertainty:
        used = expansion.parts[0].used
        kept = DenseLayer(
            self.weights[:, used], self.intercept, self.variance, self.activation, self.penalty, self.alpha, self.kkt
        )
        if self.n_outputs**2 * (len(used) + 1) ** 2 > LARGEST_COVARIANCE:
            own = kept.coefficients(), inputs[:, used], outputs, sample_weight
            return LinearUncertainty(WideRegression.of(*own, self.penalty, self.alpha))
        return LinearUncertainty(kept.uncertainty(inputs[:, used], outputs, sample_weight))
