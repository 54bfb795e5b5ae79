"""The two losses: what a row costs, averaged over rows, and the gradient in the network's outputs.

``weights`` have mean one over the training rows. A minibatch divides by its number of rows and not by its weights: its
gradient is then an unbiased estimate of the whole one.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.special import logsumexp, softmax


class Loss(Protocol):
    """What training asks of a loss."""

    def value(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> float:
        """Mean loss of the rows."""

    def gradient(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Gradient of :meth:`value` in ``outputs``."""


def weighted_mean(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Mean of one value per row, in float64; weights have mean one."""
    return float(np.mean(values, dtype=np.float64) if weights is None else np.dot(values, weights) / len(values))


class SquaredError:
    """|y - ŷ|², without a factor ½: learning rates and penalties then mean what they mean in the paper.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredError().value(np.array([[1.0], [3.0]]), np.zeros((2, 1)), None)
    5.0
    """

    def value(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> float:
        """Mean over rows of the squared error, summed over outputs."""
        return weighted_mean(((outputs - targets) ** 2).sum(axis=1), weights)

    def gradient(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Gradient of :meth:`value` in the outputs."""
        result = outputs - targets
        result *= 2.0 / len(outputs)
        return np.asarray(result if weights is None else result * weights[:, None])


class CrossEntropy:
    """-log p(class), with p the softmax of the outputs and targets as rows of class indicators.

    Examples
    --------
    >>> import numpy as np
    >>> round(CrossEntropy().value(np.zeros((1, 2)), np.array([[1.0, 0.0]]), None), 4)
    0.6931
    """

    def value(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> float:
        """Mean over rows of the negative log-probability."""
        return weighted_mean(logsumexp(outputs, axis=1) - (targets * outputs).sum(axis=1), weights)

    def gradient(self, outputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        """Gradient of :meth:`value` in the outputs."""
        result = softmax(outputs, axis=1)
        result -= targets
        result /= len(outputs)
        return np.asarray(result if weights is None else result * weights[:, None])
