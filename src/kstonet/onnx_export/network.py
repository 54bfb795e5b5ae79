"""The layers above the first as a graph, for all averaged iterates at once, and the recursion of their moments.

The recursion is that of :mod:`kstonet.uncertainty`, eq. (varest), to first order. Two things make it small here: the values of
the first layer are mostly independent of each other, so that variances stand for their covariance; and of the outputs only
variances are asked. A network with one hidden layer then has no covariance matrix at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kstonet.layers.base import UpperLayer
from kstonet.layers.regression import RegressionUncertainty
from kstonet.onnx_export.functions import ACTIVATIONS
from kstonet.onnx_export.graph import Value, op


def forward(first: Value, uppers: Sequence[Sequence[UpperLayer]]) -> list[Value]:
    """Values (iterates, units, n) of all layers, given those of the first; logits of all classes at the end of a classifier."""
    values = [first]
    for depth, layers in enumerate(zip(*uppers, strict=True)):
        with first.graph.scope(f"layer_{depth + 1}"):
            weights, intercept = (np.stack(arrays) for arrays in zip(*map(_coefficients, layers), strict=True))
            value, _ = ACTIVATIONS[layers[0].activation.name]
            values.append(weights @ value(values[-1]) + intercept[:, :, None])
    return values


def _coefficients(layer: Any) -> tuple[np.ndarray, np.ndarray]:
    if not hasattr(layer, "coefficients"):
        raise TypeError(f"a layer of type {type(layer).__name__} has no ONNX form; kstonet.to_onnx exports regression layers.")
    return layer.coefficients()  # type: ignore[no-any-return]


def variances(
    values: Sequence[Value], first: Value, uppers: Sequence[Sequence[Any]], common: np.ndarray | None = None
) -> tuple[Value, Value]:
    """Variance of the outputs from the first layer and from the regression layers, shape (iterates, outputs, n) each.

    Parameters
    ----------
    values : sequence of Value
        From :func:`forward`.
    first : Value
        Variance of the first layer's values, (units, n) or (1, units, n).
    uppers : sequence of sequence of RegressionUncertainty
        The layers above the first, for every iterate.
    common : ndarray of shape (units,), optional
        Correlations of the first layer's errors with one that all units have.
    """
    depth = len(uppers[0])
    if common is not None:
        first = _with_common_error(first, common)
    parts = [first]  # from the first layer; from the regression layers, once there is one
    for k, layers in enumerate(zip(*uppers, strict=True)):
        with first.graph.scope(f"moments_{k + 1}"):
            parts = _propagated(values[k], parts, layers, diagonal=k == 0 and common is None, last=k == depth - 1)
    return parts[0], parts[1]


def _with_common_error(variance: Value, common: np.ndarray) -> Value:
    """Covariance (1, units, units, n) from variances (units, n), of which a share is that of an error of all units."""
    units = len(common)
    variance = variance.reshaped(units, -1)
    shared = op("Sqrt", op("Max", variance, 0.0)) * common[:, None]
    own = variance * (1.0 - common**2)[:, None]
    whole = shared.with_axis(1) * shared.with_axis(0) + own.with_axis(1) * np.eye(units)[:, :, None]
    return whole.with_axis(0)


def _propagated(
    inputs: Value, parts: list[Value], layers: Sequence[RegressionUncertainty], *, diagonal: bool, last: bool
) -> list[Value]:
    """One layer: w D Σ D wᵀ of every part, and tr(Cov·(E ψ̃ E ψ̃ᵀ + Var ψ̃)) of the layer's own coefficients.

    Covariances have the shape (iterates, m, m, n). Variances, (iterates, m, n), stand for them where the layer is the first
    one above the kernels (``diagonal``), and are all that is made of them where it is the ``last``.
    """
    weights = np.stack([layer.weights for layer in layers])
    covariance = np.stack([np.einsum("jajb->jab", layer.covariance) for layer in layers])  # units are fitted one by one
    iterates, units, size = weights.shape
    value, slope = (function(inputs) for function in ACTIVATIONS[layers[0].activation.name])
    inner = covariance[:, :, 1:, 1:]
    if diagonal:
        parts = [slope * slope * part for part in parts]
        mixing = weights**2 if last else np.einsum("tja,tla->tjla", weights, weights).reshape(iterates, units**2, size)
        through = [mixing @ part for part in parts]
        spread = np.einsum("tjaa->tja", inner) @ op("Sum", *parts)
    else:
        parts = [slope.with_axis(2) * part * slope.with_axis(1) for part in parts]
        left = [(weights @ part.reshaped(iterates, size, -1)).reshaped(iterates, units, size, -1) for part in parts]
        through = [(weights[:, :, None] if last else weights[:, None]) @ part for part in left]
        spread = inner.reshape(iterates, units, size**2) @ op("Sum", *parts).reshaped(iterates, size**2, -1)
    own = quadratic_forms(value, covariance) + spread
    if not last:
        own = own.with_axis(2) * np.eye(units)[:, :, None]
    shape = (iterates, units, -1) if last else (iterates, units, units, -1)
    through = [part.reshaped(*shape) for part in through]
    return [through[0], op("Sum", *through[1:], own)]


def quadratic_forms(values: Value, matrices: np.ndarray) -> Value:
    """ψ̃ᵀ C ψ̃ with ψ̃ = (1, ψ), for values (t, q, n) and matrices (t, k, q + 1, q + 1); shape (t, k, n)."""
    extended = op("Pad", values, [0, 1, 0, 0, 0, 0], 1.0).with_axis(1)
    halves: Value = matrices @ extended
    return (halves * extended).sum(2)
