"""Kernels and activations as graphs.

The formulas are those of :mod:`kstonet.gram.kernels` and :mod:`kstonet.layers.activations`, operation by operation, in float64.
onnxruntime has no float64 Erf, Acos or Softplus: they are put together from what it has, to the last digits of float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kstonet.gram.kernels import RBF, ArcCosine, Kernel, Laplacian, Linear, Matern, Polynomial, Precomputed, UserKernel
from kstonet.onnx_export.graph import Value, import_onnx, op, product

# -- kernels ---------------------------------------------------------------------------------------------------------------


def kernel_values(kernel: Kernel, x: Value, basis: np.ndarray) -> Value:
    """k(y, x) for the rows of ``basis`` (q, p) and the columns of x (p, n); shape (q, n)."""
    formula, _ = _formulas(kernel)
    return formula(kernel, _scaled(kernel, x), basis if kernel.length_scale is None else basis / kernel.length_scale)


def kernel_diagonal(kernel: Kernel, x: Value) -> Value | float:
    """k(x, x) for the columns of x, shape (1, n); a number where it is the same for all."""
    _, formula = _formulas(kernel)
    return formula(kernel, _scaled(kernel, x))


def _scaled(kernel: Kernel, x: Value) -> Value:
    return x if kernel.length_scale is None else x / np.array(kernel.length_scale)[:, None]


def _formulas(kernel: Kernel) -> tuple[Callable[..., Value], Callable[..., Value | float]]:
    if type(kernel) in KERNELS:
        return KERNELS[type(kernel)]
    if isinstance(kernel, Precomputed):
        reason = "kernel='precomputed' takes kernel values in the place of X, and a graph has to start from X"
    else:
        code = kernel.function if isinstance(kernel, UserKernel) else kernel
        reason = f"kernel={code!r} is Python code, and an ONNX graph holds none"
    raise TypeError(f"{reason}. Fit with one of the named kernels, such as kernel='rbf', to export the model.")


def _minus_squared_distances(x: Value, basis: np.ndarray, factor: float) -> Value:
    """-factor·|x - y|², never positive; centred first, as in the library."""
    centre = basis.mean(axis=0)
    x, basis = x - centre[:, None], basis - centre
    products = product(2.0 * factor * basis, x, -factor * (basis**2).sum(axis=1, keepdims=True))
    return op("Min", products - factor * x.sum_of_squares(), 0.0)


def _rbf(kernel: RBF, x: Value, basis: np.ndarray) -> Value:
    return op("Exp", _minus_squared_distances(x, basis, kernel.gamma))


def _laplacian(kernel: Laplacian, x: Value, basis: np.ndarray) -> Value:
    """One feature after the other: all at once would take p times the memory of the kernel values."""
    features = basis.shape[1]
    rows = x.graph.node("Split", [x], {"axis": 0}, outputs=features) if features > 1 else (x,)
    total = op("Abs", rows[0] - basis[:, :1])
    for row, values in zip(rows[1:], basis.T[1:, :, None], strict=True):
        total = total + op("Abs", row - values)
    return op("Exp", -kernel.gamma * total)


def _matern(kernel: Matern, x: Value, basis: np.ndarray) -> Value:
    r = op("Sqrt", -_minus_squared_distances(x, basis, 2.0 * kernel.nu * 2.0 * kernel.gamma))
    decay = op("Exp", -r)
    if kernel.nu == 0.5:
        return decay
    return (1.0 + r if kernel.nu == 1.5 else 1.0 + r + r * r / 3.0) * decay


def _polynomial(kernel: Polynomial, products: Value) -> Value:
    return op("Pow", kernel.gamma * products + kernel.coef0, float(kernel.degree))


def _arc_cosine(kernel: ArcCosine, x: Value, basis: np.ndarray) -> Value:
    norm_x, norm_y = op("Sqrt", x.sum_of_squares()), np.sqrt((basis**2).sum(axis=1, keepdims=True))
    norms: Value = norm_x * norm_y
    cosine = product(basis, x) / op("Max", norms, 1e-300)
    if not norm_y.all():  # the origin has no direction: it is orthogonal to everything but itself
        cosine = cosine + (1.0 - op("Sign", norm_x)) * (norm_y == 0)
    cosine = op("Max", op("Min", cosine, 1.0), -1.0)
    sine = op("Sqrt", (1.0 - cosine) * (1.0 + cosine))
    rest = math.pi - _angle(sine, cosine)
    if kernel.degree == 0:
        return rest / math.pi
    if kernel.degree == 1:
        return norms * (sine + rest * cosine) / math.pi
    return norms * norms * (3.0 * sine * cosine + rest * (1.0 + 2.0 * cosine * cosine)) / math.pi


def _angle(sine: Value, cosine: Value) -> Value:
    """The angle in [0, π]: θ = θ₀ + arcsin(sin(θ - θ₀)) with θ₀ of float32; the arcsine of so small a number is the number."""
    types = import_onnx().TensorProto
    start = op("Cast", op("Acos", op("Cast", cosine, to=types.FLOAT)), to=types.DOUBLE)
    return start + sine * op("Sin", 0.5 * math.pi - start) - cosine * op("Sin", start)


def _one(kernel: Kernel, x: Value) -> float:
    return 1.0


def _arc_cosine_diagonal(kernel: ArcCosine, x: Value) -> Value | float:
    squares = x.sum_of_squares()
    return (1.0, squares, 3.0 * squares * squares)[kernel.degree]


#: For every kernel: k(x, y) and k(x, x).
KERNELS: dict[type[Kernel], tuple[Callable[..., Value], Callable[..., Value | float]]] = {
    RBF: (_rbf, _one),
    Laplacian: (_laplacian, _one),
    Matern: (_matern, _one),
    Linear: (lambda kernel, x, basis: product(basis, x), lambda kernel, x: x.sum_of_squares()),
    Polynomial: (
        lambda kernel, x, basis: _polynomial(kernel, product(basis, x)),
        lambda kernel, x: _polynomial(kernel, x.sum_of_squares()),
    ),
    ArcCosine: (_arc_cosine, _arc_cosine_diagonal),
}

# -- activations -----------------------------------------------------------------------------------------------------------


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
