"""The layers of a network, each a conditional distribution that answers for itself.

:func:`register_layer` makes a layer written elsewhere available to the estimators, as ``upper_layer="name"``.
"""

from __future__ import annotations

from kstonet.layers.base import FirstLayer, UpperLayer
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.kernel import KernelLayer
from kstonet.layers.linear import LinearFirstLayer
from kstonet.layers.registry import UPPER_LAYERS, register_layer
from kstonet.layers.regression import RegressionLayer, RegressionUncertainty
from kstonet.layers.ridge import RidgeLayer

FIRST_LAYERS: tuple[type[FirstLayer], ...] = (KernelLayer, RidgeLayer, LinearFirstLayer)
LAST_LAYERS: tuple[type[UpperLayer], ...] = (DenseLayer, CategoricalHead)

register_layer("dense", DenseLayer.new)

__all__ = [
    "FIRST_LAYERS",
    "LAST_LAYERS",
    "UPPER_LAYERS",
    "FirstLayer",
    "RegressionLayer",
    "RegressionUncertainty",
    "UpperLayer",
    "register_layer",
]
