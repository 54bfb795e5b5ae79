"""Activation functions with their slopes.

tanh, softplus and sigmoid satisfy the paper's Assumption 1-(ii): analytic, strictly increasing, bounded or of linear growth.
relu, gelu and identity do not (not analytic; not monotone; no nonlinearity): they work, but outside the theory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from kstonet._arrays import Array, astype, namespace, positive_part, special


@dataclass(frozen=True)
class Activation:
    """A scalar function applied to every hidden value, and its first three derivatives.

    A sampler asks for values and slopes of arrays of any kind, NumPy's or tensors. The other derivatives serve moments, which
    are NumPy's.
    """

    name: str
    value: Callable[[Array], Array]
    slope: Callable[[Array], Array]
    bend: Callable[[np.ndarray], np.ndarray]
    twist: Callable[[np.ndarray], np.ndarray]
    #: sup |slope|: a sampler's step must be safe wherever a value may travel, not only where it is.
    steepest: float = 1.0
    #: Whether Assumption 1-(ii) of the paper holds.
    within_theory: bool = True
    #: Value and slope at once, where they share their cost; a sampler asks for both at every step.
    shared: Callable[[Array], tuple[Array, Array]] | None = None

    def value_and_slope(self, x: Array) -> tuple[Array, Array]:
        """Both, with one exponential between them where that is enough."""
        return (self.value(x), self.slope(x)) if self.shared is None else self.shared(x)

    def __reduce__(self) -> tuple[Callable[[str], Activation], tuple[str]]:
        return get_activation, (self.name,)  # stored by name: functions do not pickle


def _tanh(x: Array) -> Array:
    return namespace(x).tanh(x)


def _tanh_shared(x: Array) -> tuple[Array, Array]:
    value = _tanh(x)
    return value, 1.0 - value * value


def _softplus(x: Array) -> Array:
    return _softplus_shared(x)[0]


def _softplus_shared(x: Array) -> tuple[Array, Array]:
    xp = namespace(x)
    small = xp.exp(-xp.abs(x))
    whole = 1.0 + small  # log1p, with more digits of values near zero, takes more than twice as long
    return positive_part(x) + xp.log(whole), xp.where(x >= 0, 1.0, small) / whole


def _logistic(x: Array) -> Array:
    return special(x).expit(x)


def _sigmoid_shared(x: Array) -> tuple[Array, Array]:
    value = _logistic(x)
    return value, value * _logistic(-x)


def _tanh_bend(x: np.ndarray) -> np.ndarray:
    return np.asarray(-2.0 * np.tanh(x) * (1.0 - np.tanh(x) ** 2))


def _tanh_twist(x: np.ndarray) -> np.ndarray:
    square = np.tanh(x) ** 2
    return np.asarray(-2.0 * (1.0 - square) * (1.0 - 3.0 * square))


def _logistic_slope(x: Array) -> Array:
    return _logistic(x) * _logistic(-x)


def _logistic_bend(x: np.ndarray) -> np.ndarray:
    return np.asarray(_logistic_slope(x) * (1.0 - 2.0 * expit(x)))


def _logistic_twist(x: np.ndarray) -> np.ndarray:
    return np.asarray(_logistic_slope(x) * (1.0 - 6.0 * _logistic_slope(x)))


def _normal_density(x: Array) -> Array:
    return namespace(x).exp(-0.5 * x * x) / math.sqrt(2.0 * math.pi)


ACTIVATIONS = {
    activation.name: activation
    for activation in (
        Activation("tanh", _tanh, lambda x: 1.0 - _tanh(x) ** 2, _tanh_bend, _tanh_twist, shared=_tanh_shared),
        Activation("softplus", _softplus, _logistic, _logistic_slope, _logistic_bend, shared=_softplus_shared),
        Activation(
            "sigmoid", _logistic, _logistic_slope, _logistic_bend, _logistic_twist, steepest=0.25, shared=_sigmoid_shared
        ),
        Activation(
            "relu",
            positive_part,
            lambda x: astype(x > 0, x.dtype),
            np.zeros_like,
            np.zeros_like,
            within_theory=False,
        ),
        Activation(
            "gelu",
            lambda x: x * special(x).ndtr(x),
            lambda x: special(x).ndtr(x) + x * _normal_density(x),
            lambda x: (2.0 - x * x) * _normal_density(x),
            lambda x: (x * x - 4.0) * x * _normal_density(x),
            steepest=1.13,
            within_theory=False,
        ),
        Activation(
            "identity", lambda x: x, lambda x: namespace(x).ones_like(x), np.zeros_like, np.zeros_like, within_theory=False
        ),
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
