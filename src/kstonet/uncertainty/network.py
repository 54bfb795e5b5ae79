"""The whole recursion: moments at new rows, averaged over iterates, and out-of-sample residuals of the training rows.

The upper layers differ between iterates and each has its own uncertainty; the first layer's variance is that of the last
iterate for all of them: margin sets hardly differ between late iterations, and factoring them is what costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import Expansion
from kstonet.iro import IROState
from kstonet.layers.base import FirstLayerUncertainty, LayerUncertainty
from kstonet.layers.log_odds import contrast_variance
from kstonet.layers.moments import FIRST_LAYER, REGRESSION, Moments
from kstonet.network import forward_above
from kstonet.uncertainty.distribution import BETWEEN

COVARIANCES = 20  # blocks of rows are so small that this many arrays of their covariances would fit into one; about five exist


@dataclass(frozen=True)
class LogOdds:
    """Tempered logits of a classifier (n, k), and the variance of the log-odds of every class by source, (n, k) each."""

    logits: np.ndarray
    parts: dict[str, np.ndarray]

    @property
    def variance(self) -> np.ndarray:
        """Of all sources together."""
        return np.asarray(sum(self.parts.values()))


@storable()
@dataclass(frozen=True)
class NetworkUncertainty:
    """The averaged iterates with the uncertainty of their layers.

    Parameters
    ----------
    expansion : Expansion
        The first layers of all iterates.
    first : FirstLayerUncertainty
        The variance of the first layer.
    uppers : tuple of tuple of LayerUncertainty
        The layers above the first, for every iterate.
    """

    expansion: Expansion
    first: FirstLayerUncertainty
    uppers: tuple[tuple[LayerUncertainty, ...], ...]

    @classmethod
    def of(
        cls,
        expansion: Expansion,
        states: Sequence[IROState],
        inputs: Any,
        outputs: np.ndarray,
        sample_weight: np.ndarray | None,
    ) -> NetworkUncertainty:
        """From the iterates and the latent values they were fitted on."""
        last = states[-1]
        first = last.network.first.uncertainty(expansion, inputs, last.latents[0], sample_weight)
        uppers = []
        for state in states:
            chain = state.network.chain(state.latents, outputs, sample_weight)
            layers = enumerate(state.network.uppers)
            uppers.append(tuple(layer.uncertainty(chain[i], chain[i + 1], sample_weight) for i, layer in layers))
        return cls(expansion, first, tuple(uppers))

    def moments(self, X: np.ndarray, order: int = 1) -> Moments:
        """Mean and covariance of the outputs at new rows: means of the iterates' moments, plus the variance between them."""
        blocks = [
            self.averaged(values, self.first.covariance(X[rows], features), order)
            for rows, values, features in self.expansion.blocks(X)
        ]
        return _concatenated(blocks)

    def log_odds(self, X: np.ndarray, temperature: float) -> LogOdds:
        """Of a classifier: the tempered mean logits at new rows, and the variance of their log-odds.

        The same as the delta method with the covariance of :meth:`moments`, without an array of (n, classes, classes).
        """
        return _joined(
            [
                self.log_odds_of(values, self.first.covariance(X[rows], features), temperature)
                for rows, values, features in self.expansion.blocks(X)
            ]
        )

    def log_odds_of(self, values: np.ndarray, covariance: np.ndarray, temperature: float) -> LogOdds:
        """From the first layer's values (iterates, n, m) and its covariance (n, m, m)."""
        below, logits = [], []
        for first, layers in zip(values, self.uppers, strict=True):
            moments = Moments(first, {FIRST_LAYER: covariance})
            for layer in layers[:-1]:
                moments = layer.propagate(moments)
            below.append(moments)
            head: Any = layers[-1]
            logits.append(head.activation.value(moments.mean) @ head.weights.T + head.intercept)
        means = np.stack(logits)
        centre = means.mean(axis=0)
        tempered = centre / temperature
        heads = [layers[-1] for layers in self.uppers]
        ends = [head.log_odds_variances(own, tempered) for head, own in zip(heads, below, strict=True)]  # type: ignore[attr-defined]
        parts = {source: np.mean([end[source] for end in ends], axis=0) for source in (FIRST_LAYER, REGRESSION)}
        apart = means - centre
        degrees = max(len(means) - 1, 1)

        def product(v: np.ndarray) -> np.ndarray:
            return np.asarray(np.einsum("tnk,tn->nk", apart, np.einsum("tnk,nk->tn", apart, v)) / degrees)

        parts[BETWEEN] = contrast_variance(tempered, (apart**2).sum(axis=0) / degrees, product)
        return LogOdds(tempered, {source: part / temperature**2 for source, part in parts.items()})

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


def left_out_moments(
    uncertainty: NetworkUncertainty, states: Sequence[IROState], inputs: Any, rows: np.ndarray | slice = EVERY_ROW
) -> Moments:
    """Moments of the outputs at every training row, or some of them, with that row left out of the first layer.

    The latent values of the other rows and the upper layers stay as they are: a row's own latent value is what ties the
    network to its own target. The mean is the last chain's, whose margin sets are known; one chain alone errs a little more
    than the mean of several. The covariances are those that new rows would have: of all chains.
    """
    firsts, chain = [state.network.first for state in states], last_chain(states)
    fitted = np.stack([layer.mean(inputs)[rows] for layer in firsts])
    last = firsts[-len(chain) :]
    shifts, variance = uncertainty.first.left_out(last, uncertainty.expansion, inputs, states[-1].latents[0], rows)
    blocks = row_blocks(len(variance), COVARIANCES * variance.shape[1] ** 2)
    moments = _concatenated([uncertainty.averaged(fitted[:, own], uncertainty.first.joint(variance[own])) for own in blocks])
    values = fitted[-len(chain) :] + np.stack(shifts)
    ends = [forward_above(state.network.uppers, own)[-1] for state, own in zip(chain, values, strict=True)]
    return replace(moments, mean=np.mean(ends, axis=0))


def left_out_variance(uncertainty: NetworkUncertainty, state: IROState, inputs: Any) -> np.ndarray:
    """Variance of the first layer's values (n, units) at every training row where it is left out."""
    _, variance = uncertainty.first.left_out([state.network.first], uncertainty.expansion, inputs, state.latents[0])
    return variance


def left_out_log_odds(
    uncertainty: NetworkUncertainty,
    states: Sequence[IROState],
    inputs: Any,
    variance: np.ndarray,
    temperature: float,
    *correlations: np.ndarray,
) -> list[LogOdds]:
    """Tempered log-odds of a classifier at every training row, with the variances that they have where it is left out.

    From the ``variance`` of :func:`left_out_variance`, for each of some ``correlations`` (units, units) that the errors of the
    first layer's values may have.
    """
    fitted = np.stack([state.network.first.mean(inputs) for state in states])
    root = np.sqrt(variance)

    def with_errors(correlation: np.ndarray) -> LogOdds:
        return _joined(
            [
                uncertainty.log_odds_of(fitted[:, rows], root[rows, :, None] * correlation * root[rows, None, :], temperature)
                for rows in row_blocks(len(variance), COVARIANCES * variance.shape[1] ** 2)
            ]
        )

    return [with_errors(correlation) for correlation in correlations]


def _joined(blocks: Sequence[LogOdds]) -> LogOdds:
    return LogOdds(np.concatenate([block.logits for block in blocks]), _joined_parts([block.parts for block in blocks]))


def _concatenated(blocks: Sequence[Moments]) -> Moments:
    return Moments(np.concatenate([block.mean for block in blocks]), _joined_parts([block.parts for block in blocks]))


def _joined_parts(blocks: Sequence[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {source: np.concatenate([parts[source] for parts in blocks]) for source in blocks[0]}


def last_chain(states: Sequence[IROState]) -> Sequence[IROState]:
    """The states of the last chain, where states of one chain follow those of another: its iterations begin anew."""
    begins = [i for i in range(1, len(states)) if states[i].iteration <= states[i - 1].iteration]
    return states[begins[-1] if begins else 0 :]
