"""Gradient steps on a flat parameter vector, each followed by the proximal step of the L1 penalty.

Adding α·sign(w) to the gradient would never give a zero. A proximal step does, and its fixed points are the critical
points of loss + Σ l1·|w| provided that the threshold is l1 times *the step size the gradient was multiplied with*: one
number for SGD and momentum, one per parameter for Adam.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

SOLVERS = ("sgd", "momentum", "adam")


class Optimizer(Protocol):
    """One step on all parameters."""

    def step(self, theta: np.ndarray, gradient: np.ndarray) -> None:
        """Change ``theta`` in place."""


def shrink(theta: np.ndarray, threshold: Any) -> None:
    """Move every value towards zero by its threshold, and no further: the proximal step of the L1 penalty, in place.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.array([3.0, -0.5, -2.0])
    >>> shrink(values, 1.0)
    >>> values
    array([ 2.,  0., -1.])
    """
    size = np.abs(theta)
    size -= threshold
    np.maximum(size, 0.0, out=size)
    np.copysign(size, theta, out=theta)
    theta += 0.0  # -0.0 becomes 0.0


@dataclass
class SGD:
    """θ ← θ - η·g."""

    learning_rate: float
    l1: np.ndarray | None = None  # strength of the penalty on every parameter

    def step(self, theta: np.ndarray, gradient: np.ndarray) -> None:
        """Change ``theta`` in place."""
        theta -= self.learning_rate * gradient
        if self.l1 is not None:
            shrink(theta, self.learning_rate * self.l1)


@dataclass
class Momentum:
    """v ← μ·v - η·g, θ ← θ + v, with v the move really made (the inertial proximal step of Ochs et al., 2014).

    Without a penalty this is the heavy ball as usually written. With one, remembering the move *after* the threshold is
    what makes zeros stay and fixed points correct: a memory of gradients would pull with 1/(1 - μ) times the gradient
    against a penalty that is counted once.
    """

    learning_rate: float
    momentum: float = 0.9
    l1: np.ndarray | None = None
    move: np.ndarray | None = None

    def step(self, theta: np.ndarray, gradient: np.ndarray) -> None:
        """Change ``theta`` in place."""
        move = -self.learning_rate * gradient
        if self.move is not None:
            move += self.momentum * self.move
        if self.l1 is None:
            theta += move
        else:
            before = theta.copy()
            theta += move
            shrink(theta, self.learning_rate * self.l1)
            move = theta - before
        self.move = move


@dataclass
class Adam:
    """Kingma & Ba (2015), Algorithm 1, with their constants; the penalty is met in the metric of the step."""

    learning_rate: float
    l1: np.ndarray | None = None
    mean_decay: float = 0.9
    square_decay: float = 0.999
    epsilon: float = 1e-8
    time: int = 0
    mean: np.ndarray | None = None
    square: np.ndarray | None = None

    def step(self, theta: np.ndarray, gradient: np.ndarray) -> None:
        """Change ``theta`` in place."""
        if self.mean is None or self.square is None:
            self.mean, self.square = np.zeros_like(theta), np.zeros_like(theta)
        self.time += 1
        self.mean += (1.0 - self.mean_decay) * (gradient - self.mean)
        self.square += (1.0 - self.square_decay) * (gradient * gradient - self.square)
        # Dividing by 1 - decay^t undoes the pull of the zeros that both averages start from.
        rate = np.sqrt(self.square / (1.0 - self.square_decay**self.time))
        rate += self.epsilon
        np.divide(self.learning_rate, rate, out=rate)
        theta -= rate * (self.mean / (1.0 - self.mean_decay**self.time))
        if self.l1 is not None:
            shrink(theta, rate * self.l1)


def make_optimizer(
    solver: str, learning_rate: float, momentum: float, l1: np.ndarray | None, previous: Optimizer | None = None
) -> Optimizer:
    """The optimiser of that name; it takes over the memory of ``previous`` if that is of the same kind.

    Examples
    --------
    >>> make_optimizer("sgd", 0.1, 0.9, None)
    SGD(learning_rate=0.1, l1=None)
    """
    if solver == "sgd":
        return SGD(learning_rate, l1)
    if solver == "momentum":
        move = previous.move if isinstance(previous, Momentum) else None
        return Momentum(learning_rate, momentum, l1, move)
    if solver == "adam":
        if isinstance(previous, Adam):
            return Adam(learning_rate, l1, time=previous.time, mean=previous.mean, square=previous.square)
        return Adam(learning_rate, l1)
    raise ValueError(f"solver={solver!r} is unknown; use one of {', '.join(SOLVERS)}.")
