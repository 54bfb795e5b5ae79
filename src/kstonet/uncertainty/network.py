"""The whole recursion: moments at new rows, averaged over iterates, and honest residuals of the training rows.

The upper layers differ between iterates and each has its own uncertainty; the first layer's variance is that of the last
iterate for all of them: margin sets hardly differ between late iterations, and factoring them is what costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from kstonet._arrays import to_numpy
from kstonet.gram.kernels import Precomputed
from kstonet.iro import IROState
from kstonet.layers.dense import DenseLayer
from kstonet.layers.expansion import Expansion
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.kernel import KernelLayer
from kstonet.uncertainty.distribution import BETWEEN
from kstonet.uncertainty.margin import MarginFactor, thinned
from kstonet.uncertainty.moments import FIRST_LAYER, REGRESSION, Moments
from kstonet.uncertainty.regression import RegressionUncertainty


class FirstLayerUncertainty(Protocol):
    """Variance of the first layer's values."""

    def covariance(self, X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
        """At new rows with the features of every part of the expansion; shape (n, m, m)."""
        ...


@dataclass(frozen=True)
class MarginUncertainty:
    """A layer of support vector regressions: independent units, each with its own margin set.

    The factors are made when they are first needed, and not stored with a model: the support vectors it keeps give them back.

    Parameters
    ----------
    expansion : Expansion
    columns : tuple of ndarray of int
        The margin set of every unit, as columns of the expansion part the unit belongs to.
    matrices : dict
        For units with a precomputed kernel, whose support vectors are not at hand: the kernel matrix of the margin set.
    diagonals : tuple
        For precomputed kernels, whose k(z, z) is not handed in: the value all training rows share. None elsewhere.
    """

    expansion: Expansion
    columns: tuple[np.ndarray, ...]
    matrices: dict[int, np.ndarray]
    diagonals: tuple[float | None, ...]

    @classmethod
    def of(cls, layer: KernelLayer, expansion: Expansion) -> MarginUncertainty:
        """From a tight solution; ``expansion`` keeps all of its support vectors."""
        columns: dict[int, np.ndarray] = {}
        matrices: dict[int, np.ndarray] = {}
        diagonals = []
        for group, solution, part in zip(layer.groups, layer.solutions, expansion.parts, strict=True):
            given = isinstance(part.kernel, Precomputed)
            diagonals.append(_shared_diagonal(group.gram) if given else None)
            for unit, margin in zip(group.units.tolist(), solution.margin, strict=True):
                members = thinned(np.flatnonzero(margin))
                columns[unit] = np.searchsorted(part.used, members)
                if given:
                    matrices[unit] = group.gram.columns(members)[members]
        return cls(expansion, tuple(columns[unit] for unit in sorted(columns)), matrices, tuple(diagonals))

    @cached_property
    def factors(self) -> dict[int, MarginFactor]:
        """The factored margin set of every unit."""
        factors = {}
        for part in self.expansion.parts:
            for unit in part.units.tolist():
                columns = self.columns[unit]
                matrix = self.matrices.get(unit)
                if matrix is None:
                    assert part.kernel is not None
                    rows = part.basis[columns]
                    matrix = np.asarray(part.kernel(rows, rows)) if len(rows) else np.empty((0, 0))
                factors[unit] = MarginFactor.of(matrix, columns)
        return factors

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "factors"}

    def covariance(self, X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
        """Diagonal: units are independent given the data."""
        variance = np.empty((len(X), len(self.columns)))
        for part, values, shared in zip(self.expansion.parts, features, self.diagonals, strict=True):
            assert part.kernel is not None
            diagonal = np.full(len(X), shared) if shared is not None else np.asarray(part.kernel.diagonal(X))
            for unit in part.units.tolist():
                variance[:, unit] = self.factors[unit].variance(values, diagonal)
        return np.asarray(variance[:, :, None] * np.eye(variance.shape[1]))

    def left_out(self, layer: KernelLayer) -> np.ndarray:
        """S² of every training row and unit, shape (n, m)."""
        spans = np.empty((len(layer.mean()), len(self.columns)))
        for group, part in zip(layer.groups, self.expansion.parts, strict=True):
            diagonal = to_numpy(group.gram.diagonal())
            for unit in part.units.tolist():
                members = part.used[self.factors[unit].columns]
                factor = replace(self.factors[unit], columns=np.arange(len(members)))  # of these kernel values alone
                spans[:, unit] = factor.left_out(group.gram.columns(members), diagonal, members)
        return spans


def _shared_diagonal(gram: Any) -> float:
    diagonal = to_numpy(gram.diagonal())
    value = float(diagonal.mean())
    if np.abs(diagonal - value).max() > 1e-6 * abs(value):
        raise ValueError(
            "prediction intervals with kernel='precomputed' need k(x, x) to be the same for all rows: it is not known for "
            f"new ones; here it lies between {diagonal.min():.3g} and {diagonal.max():.3g}. Normalise the kernel to "
            "k(x, y)/sqrt(k(x, x) k(y, y)), or use residuals=None for means only."
        )
    return value


@dataclass(frozen=True)
class LinearUncertainty:
    """A first layer that is a regression on the features."""

    regression: RegressionUncertainty

    def covariance(self, X: np.ndarray, features: list[np.ndarray]) -> np.ndarray:
        """Of the estimated coefficients at the features."""
        (inputs,) = features
        none = {FIRST_LAYER: np.zeros((len(X), inputs.shape[1], inputs.shape[1]))}
        return self.regression.propagate(Moments(inputs, none)).parts[REGRESSION]

    def left_out(self, inputs: np.ndarray, outputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values of every training row without that row, and their variances, shape (n, m): the leverage formulas."""
        fitted = inputs @ self.regression.weights.T + self.regression.intercept
        variance = np.diagonal(self.covariance(inputs, [inputs]), axis1=1, axis2=2)
        leverage = np.clip(variance / np.maximum(self.regression.noise, 1e-300), 0.0, 1.0 - 1e-6)
        return fitted - leverage / (1.0 - leverage) * (outputs - fitted), variance / (1.0 - leverage)


@dataclass(frozen=True)
class NetworkUncertainty:
    """The averaged iterates with the uncertainty of their layers.

    Parameters
    ----------
    expansion : Expansion
    first : FirstLayerUncertainty
    uppers : tuple of tuple of RegressionUncertainty
        The layers above the first, for every iterate.
    """

    expansion: Expansion
    first: FirstLayerUncertainty
    uppers: tuple[tuple[RegressionUncertainty, ...], ...]

    @classmethod
    def of(
        cls,
        expansion: Expansion,
        first: FirstLayerUncertainty,
        states: Sequence[IROState],
        outputs: np.ndarray,
        sample_weight: np.ndarray | None,
    ) -> NetworkUncertainty:
        """From the iterates and the latent values they were fitted on."""
        uppers = []
        for state in states:
            chain = (*state.latents, outputs)
            layers = state.network.layers[1:]
            uppers.append(tuple(_upper(layer, chain[i], chain[i + 1], sample_weight) for i, layer in enumerate(layers)))
        return cls(expansion, first, tuple(uppers))

    def moments(self, X: np.ndarray, order: int = 1) -> Moments:
        """Mean and covariance of the outputs at new rows: means of the iterates' moments, plus the variance between them."""
        blocks = [
            self.averaged(values, self.first.covariance(X[rows], features), order)
            for rows, values, features in self.expansion.blocks(X)
        ]
        parts = {source: np.concatenate([block.parts[source] for block in blocks]) for source in blocks[0].parts}
        return Moments(np.concatenate([block.mean for block in blocks]), parts)

    def averaged(self, values: np.ndarray, covariance: np.ndarray, order: int = 1) -> Moments:
        """From the first layer's values (iterates, n, m) and its covariance (n, m, m); Theorem 3's averaging."""
        ends = []
        for first, layers in zip(values, self.uppers, strict=True):
            moments = Moments(first, {FIRST_LAYER: covariance})
            for layer in layers:
                moments = layer.propagate(moments, order)
            ends.append(moments)
        means = np.stack([end.mean for end in ends])
        parts = {source: np.mean([end.parts[source] for end in ends], axis=0) for source in (FIRST_LAYER, REGRESSION)}
        centred = means - means.mean(axis=0)
        parts[BETWEEN] = np.einsum("tnj,tnl->njl", centred, centred) / max(len(ends) - 1, 1)
        return Moments(means.mean(axis=0), parts)


def _upper(layer: Any, inputs: np.ndarray, outputs: np.ndarray, sample_weight: np.ndarray | None) -> RegressionUncertainty:
    if isinstance(layer, CategoricalHead):
        return RegressionUncertainty.of_categorical(layer, inputs, sample_weight)
    assert isinstance(layer, DenseLayer)
    return RegressionUncertainty.of_dense(layer, inputs, outputs, sample_weight)


def left_out_moments(uncertainty: NetworkUncertainty, states: Sequence[IROState], inputs: Any) -> Moments:
    """Moments of the outputs at every training row with that row left out of the first layer.

    The latent values of the other rows and the upper layers stay as they are: a row's own latent value is what ties the
    network to its own target. The mean is the last chain's, whose margin sets are known; one chain alone errs a little more
    than the mean of several. The covariances are those that new rows would have: of all chains.
    """
    layers, first, chain = [state.network.layers[0] for state in states], uncertainty.first, last_chain(states)
    fitted = np.stack([layer.mean(inputs) for layer in layers])
    if isinstance(first, MarginUncertainty):
        variance = first.left_out(layers[-1])
        shifts = [-layer.coef.T * variance for layer in layers[-len(chain) :]]
    else:
        assert isinstance(first, LinearUncertainty)
        last, variance = first.left_out(inputs[:, uncertainty.expansion.parts[0].used], states[-1].latents[0])
        shifts = [last - fitted[-1]] * len(chain)
    moments = uncertainty.averaged(fitted, variance[:, :, None] * np.eye(variance.shape[1]))
    values = fitted[-len(chain) :] + shifts
    ends = [state.network.forward_from(own)[-1] for state, own in zip(chain, values, strict=True)]
    return replace(moments, mean=np.mean(ends, axis=0))


def last_chain(states: Sequence[IROState]) -> Sequence[IROState]:
    """Of the states of one chain after the other those of the last, whose iterations begin anew."""
    begins = [i for i in range(1, len(states)) if states[i].iteration <= states[i - 1].iteration]
    return states[begins[-1] if begins else 0 :]
