"""Activation functions with their slopes.

tanh, softplus and sigmoid satisfy the paper's Assumption 1-(ii): analytic, strictly increasing, bounded or of linear growth.
relu, gelu and identity do not (not analytic; not monotone; no nonlinearity): they work, but outside the theory.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr


@dataclass(frozen=True)
class Activation:
    """A scalar function applied to every hidden value, and its first three derivatives."""

    name: str
    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    bend: Callable[[np.ndarray], np.ndarray]
    twist: Callable[[np.ndarray], np.ndarray]
    #: sup |slope|: a sampler's step must be safe wherever a value may travel, not only where it is.
    steepest: float = 1.0
    #: Whether Assumption 1-(ii) of the paper holds.
    within_theory: bool = True
    #: Value and slope at once, where they share their cost; a sampler asks for both at every step.
    shared: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None

    def value_and_slope(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both, with one exponential between them where that is enough."""
        return (self.value(x), self.slope(x)) if self.shared is None else self.shared(x)

    def __reduce__(self) -> tuple[Callable[[str], Activation], tuple[str]]:
        return get_activation, (self.name,)  # stored by name: functions do not pickle


def _tanh_shared(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = np.tanh(x)
    return value, 1.0 - value * value


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))


def _softplus_shared(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    small = np.exp(-np.abs(x))
    return np.maximum(x, 0.0) + np.log1p(small), np.where(x >= 0, 1.0, small) / (1.0 + small)


def _sigmoid_shared(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    value = expit(x)
    return value, value * expit(-x)


def _tanh_bend(x: np.ndarray) -> np.ndarray:
    return np.asarray(-2.0 * np.tanh(x) * (1.0 - np.tanh(x) ** 2))


def _tanh_twist(x: np.ndarray) -> np.ndarray:
    square = np.tanh(x) ** 2
    return np.asarray(-2.0 * (1.0 - square) * (1.0 - 3.0 * square))


def _logistic_slope(x: np.ndarray) -> np.ndarray:
    return np.asarray(expit(x) * expit(-x))


def _logistic_bend(x: np.ndarray) -> np.ndarray:
    return np.asarray(_logistic_slope(x) * (1.0 - 2.0 * expit(x)))


def _logistic_twist(x: np.ndarray) -> np.ndarray:
    return np.asarray(_logistic_slope(x) * (1.0 - 6.0 * _logistic_slope(x)))


def _normal_density(x: np.ndarray) -> np.ndarray:
    return np.asarray(np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi))


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("tanh", np.tanh, lambda x: 1.0 - np.tanh(x) ** 2, _tanh_bend, _tanh_twist, shared=_tanh_shared),
        Activation("softplus", _softplus, expit, _logistic_slope, _logistic_bend, shared=_softplus_shared),
        Activation("sigmoid", expit, _logistic_slope, _logistic_bend, _logistic_twist, steepest=0.25, shared=_sigmoid_shared),
        Activation(
            "relu",
            lambda x: np.maximum(x, 0.0),
            lambda x: (x > 0).astype(x.dtype),
            np.zeros_like,
            np.zeros_like,
            within_theory=False,
        ),
        Activation(
            "gelu",
            lambda x: x * ndtr(x),
            lambda x: ndtr(x) + x * _normal_density(x),
            lambda x: (2.0 - x * x) * _normal_density(x),
            lambda x: (x * x - 4.0) * x * _normal_density(x),
            steepest=1.13,
            within_theory=False,
        ),
        Activation("identity", lambda x: x, np.ones_like, np.zeros_like, np.zeros_like, within_theory=False),
    )
}


def get_activation(name: str) -> Activation:
    """Look an activation up by name.

    Examples
    --------
    >>> import numpy as np
    >>> [round(float(v), 3) for v in get_activation("softplus").value(np.array([0.0, 1000.0]))]
    [0.693, 1000.0]
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"activation={name!r} is unknown; use one of {', '.join(ACTIVATIONS)}.")
    return ACTIVATIONS[name]
