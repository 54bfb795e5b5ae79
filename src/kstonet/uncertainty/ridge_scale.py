"""The variance of the logits of a one-vs-rest machine: that of a Gaussian process whose noise the labels show.

The first layer of such a network is a Gaussian process regression of the indicators of the classes. Its ridge is the variance
of the noise over that of the process, and the noise is known: p(1 - p), at the probabilities of rows that were left out. So
the posterior variance is the squared error on average over the rows, bias included (Wahba 1983, Nychka 1988). A bootstrap does
not show the bias: the truth that it draws its labels from is as smooth as the network. On simulated logits (four kinds, 500
rows) squared errors are 1.0 times this variance in the median over the sets, and 1.5 times what the bootstrap says.

Large log-odds come out too small, by a quarter on these data: a regression on indicators hardly goes beyond zero and one, be a
class ever so certain. That share of the log-odds (:data:`SHRINKAGE`) counts as a standard deviation.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kstonet.iro import IROState
from kstonet.uncertainty.network import NetworkUncertainty

SHRINKAGE = 0.25
LARGEST = 1e4  # scale of the variance, either way


def ridge_scale(
    state: IROState,
    inputs: Any,
    uncertainty: NetworkUncertainty,
    p: np.ndarray,
    codes: np.ndarray,
    sample_weight: np.ndarray | None,
) -> float:
    """What the variance of a first layer of ridge regressions on indicators of classes lacks.

    It is that of regressions whose noise has the variance of the ridge. The noise of an indicator is p(1 - p), in units of its
    own variance. Margin sets are thinned; exact variances of left-out rows say by how much that widens them.

    Parameters
    ----------
    state : IROState
        Where the training ended; its first layer leaves rows out.
    inputs : any
        Those of the training.
    uncertainty : NetworkUncertainty
        The moments of the outputs.
    p : ndarray of shape (n, k)
        Out-of-sample probabilities of the training rows.
    codes : ndarray of int of shape (n,)
        Their classes.
    sample_weight : ndarray of shape (n,), optional
    """
    first: Any = state.network.first
    frequency = np.average(np.eye(p.shape[1])[codes], axis=0, weights=sample_weight)
    spread = np.maximum(frequency * (1.0 - frequency), 1e-12)
    noise = float(np.mean(np.average(p * (1.0 - p), axis=0, weights=sample_weight) / spread))
    counted = slice(None) if sample_weight is None else sample_weight > 0
    _, thinned = uncertainty.first.left_out([first], uncertainty.expansion, inputs, state.latents[0])
    wider = float(thinned[counted].mean() / first.left_out_variance(sample_weight)[counted].mean())
    return float(np.clip(noise / max(wider, 1e-300), 1.0 / LARGEST, LARGEST))  # zero where a head has no weights at all
