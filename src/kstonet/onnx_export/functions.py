"""Activations as graphs; kernels have their graphs in their own classes.

The formulas are those of :mod:`kstonet.layers.activations`, operation by operation, in float64. onnxruntime has no float64 Erf
or Softplus: they are put together from what it has, to the last digits of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kstonet.onnx_export.graph import Value, op


def _softplus(x: Value) -> Value:
    return op("Max", x, 0.0) + op("Log", 1.0 + op("Exp", -op("Abs", x)))


def _sigmoid_slope(x: Value) -> Value:
    return op("Sigmoid", x) * op("Sigmoid", -x)


def _tanh_slope(x: Value) -> Value:
    y = op("Tanh", x)
    return 1.0 - y * y


def _normal_probability(x: Value) -> Value:
    """Φ(x) = 1/2 + x/√(2π)·∫₀¹ exp(-x²u²/2) du by Gauss-Legendre; beyond |x| = 9 it is 0 or 1."""
    nodes, weights = np.polynomial.legendre.leggauss(28)  # exact to 1e-15 there
    u, weights = 0.5 * (nodes + 1.0), 0.5 * weights
    x = op("Max", op("Min", x, 9.0), -9.0)
    integrand = op("Exp", (x * x).with_axis(-2) * (-0.5 * u[:, None] ** 2))
    integral = op("Squeeze", weights[None] @ integrand, [-2])
    return 0.5 + x * integral / math.sqrt(2.0 * math.pi)


def _gelu(x: Value) -> Value:
    """x·Φ(x) = max(x, 0) - |x|·Φ(-|x|): far out, where a last digit of Φ would be multiplied by x, the second term is zero."""
    tail = op("Min", op("Abs", x), 9.0)
    return op("Max", x, 0.0) - tail * _normal_probability(-tail)


def _gelu_slope(x: Value) -> Value:
    return _normal_probability(x) + x * op("Exp", -0.5 * x * x) / math.sqrt(2.0 * math.pi)


#: For every activation: its value and its slope.
ACTIVATIONS: dict[str, tuple[Callable[[Value], Value], Callable[[Value], Value]]] = {
    "tanh": (lambda x: op("Tanh", x), _tanh_slope),
    "softplus": (_softplus, lambda x: op("Sigmoid", x)),
    "sigmoid": (lambda x: op("Sigmoid", x), _sigmoid_slope),
    "relu": (lambda x: op("Max", x, 0.0), lambda x: op("Sign", op("Max", x, 0.0))),
    "gelu": (_gelu, _gelu_slope),
    "identity": (lambda x: x, lambda x: 0.0 * x + 1.0),
}
