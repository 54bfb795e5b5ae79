"""The training loop: minibatch gradient descent, a generator that yields one state per epoch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from experiments.baselines.feedforward import FeedForward, dropout_masks
from experiments.baselines.losses import Loss
from experiments.baselines.optimizers import Optimizer

#: A loss this many times that of the start, or of predicting zero where that is larger, will not come back.
HOPELESS = 1e6


@dataclass(frozen=True)
class Rows:
    """Inputs, targets and weights (mean one, or None) of some rows, in the units the network sees."""

    inputs: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None = None


@dataclass(frozen=True)
class EpochState:
    """What a callback is handed at the end of every epoch; nothing in it changes later.

    Attributes
    ----------
    epoch : int
        From 1.
    network : FeedForward
    loss, penalty : float
        Of all training rows, without dropout, at the end of the epoch.
    outputs : array of shape (n, outputs)
        Of all training rows, in the units the network sees.
    seconds : float
        Spent on gradient steps in this epoch.
    val_loss, val_outputs : float, array; None without validation rows
    """

    epoch: int
    network: FeedForward
    loss: float
    penalty: float
    outputs: np.ndarray
    seconds: float
    val_loss: float | None = None
    val_outputs: np.ndarray | None = None

    @property
    def objective(self) -> float:
        """What training minimises."""
        return self.loss + self.penalty


class DivergedError(ArithmeticError):
    """The loss stopped being a number, or left all bounds."""

    def __init__(self, epoch: int, start: float) -> None:
        super().__init__(epoch, start)
        self.epoch = epoch
        self.start = start  # objective before the first epoch


def _one_epoch(
    network: FeedForward,
    optimizer: Optimizer,
    loss: Loss,
    rows: Rows,
    batch_size: int,
    dropout: float,
    rng: np.random.Generator,
) -> None:
    n = len(rows.inputs)
    order = rng.permutation(n) if batch_size < n else None
    for start in range(0, n, batch_size):
        X, targets, weights = rows.inputs, rows.targets, rows.weights
        if order is not None:
            batch = order[start : start + batch_size]
            X, targets, weights = X[batch], targets[batch], None if weights is None else weights[batch]
        masks = dropout_masks(network.sizes, dropout, rng, len(X), network.theta.dtype) if dropout else None
        trace = network.trace(X, masks)
        optimizer.step(network.theta, network.gradient(trace, loss.gradient(trace.outputs, targets, weights)))


def train(
    network: FeedForward,
    optimizer: Optimizer,
    loss: Loss,
    rows: Rows,
    validation: Rows | None,
    *,
    l1: np.ndarray | None,
    batch_size: int,
    dropout: float,
    epochs: range,
    rng: np.random.Generator,
) -> Iterator[EpochState]:
    """Train ``network`` in place; yield the state after every epoch, with the loss of all rows and not of the last batches.

    Raises
    ------
    DivergedError
        When the parameters or the loss are not finite, or the loss exceeds every sensible value.
    """

    def evaluate(data: Rows) -> tuple[np.ndarray, float]:
        outputs = network.outputs(data.inputs)
        return outputs, loss.value(outputs, data.targets, data.weights)

    def penalty() -> float:
        return 0.0 if l1 is None else float(l1 @ np.abs(network.theta))

    begin = evaluate(rows)[1] + penalty()
    ceiling = HOPELESS * max(begin, loss.value(np.zeros_like(rows.targets), rows.targets, rows.weights))
    for epoch in epochs:
        with np.errstate(over="ignore", invalid="ignore"):  # looked at below; never around a yield, where it would leak
            started = perf_counter()
            _one_epoch(network, optimizer, loss, rows, batch_size, dropout, rng)
            seconds = perf_counter() - started
            outputs, value = evaluate(rows)
            if not (np.isfinite(network.theta).all() and value + penalty() <= ceiling):
                raise DivergedError(epoch, begin)
            val_outputs, val_loss = (None, None) if validation is None else evaluate(validation)
        yield EpochState(epoch, network.copy(), value, penalty(), outputs, seconds, val_loss, val_outputs)
