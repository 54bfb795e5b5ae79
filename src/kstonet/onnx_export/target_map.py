"""The mean and deviation of a target that was learned as its square root or logarithm, in a graph."""

from __future__ import annotations

import numpy as np

from kstonet.onnx_export.graph import Value
from kstonet.target_map import ROOT, SCORES, SHARES, TargetMap
from kstonet.uncertainty.mapped import standard_quantiles


def mean_of(own: TargetMap, z: Value) -> Value:
    """As :meth:`TargetMap.mean`, for a matrix of one row."""
    return _average(_backward(own, z + own.error * SCORES[:, None]))


def deviation_of(own: TargetMap, z: Value, std: Value, df: float) -> Value:
    """As the deviations of :class:`~kstonet.uncertainty.mapped.MappedDistribution`."""
    away = _backward(own, z + std * standard_quantiles(df)[:, None]) - _backward(own, z)
    first = _average(away)
    return (_average(away * away) - first * first).maximum(0.0).sqrt()


def _average(values: Value) -> Value:
    return values.left_product(SHARES[None])


def _backward(own: TargetMap, z: Value) -> Value:
    end, slope = own.tangent
    inside = z.minimum(end)
    y = inside.maximum(0.0) ** 2 if own.kind == ROOT else (inside.exp() - own.offset).maximum(0.0)
    return y + (z - end).maximum(0.0) * np.asarray(slope)
