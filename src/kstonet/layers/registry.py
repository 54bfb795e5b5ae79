"""The kinds of layers that may stand above the first, by name."""

from __future__ import annotations

from collections.abc import Callable

from kstonet._registry import require_free
from kstonet.layers.activations import Activation
from kstonet.layers.base import UpperLayer

#: Makes a layer before its first refit from (inputs, outputs, activation, penalty, alpha).
LayerFactory = Callable[[int, int, Activation, str, float], UpperLayer]

UPPER_LAYERS: dict[str, LayerFactory] = {}


def register_layer(name: str, new: LayerFactory) -> None:
    """Make a kind of layer available as ``upper_layer="name"``.

    A layer that is to be saved is a frozen dataclass decorated with :func:`kstonet.persistence.storable`.

    Parameters
    ----------
    name : str
        The name that estimators are given.
    new : callable
        Makes a layer before its first refit: ``new(inputs, outputs, activation, penalty, alpha)`` returns an
        :class:`UpperLayer`. Hidden layers above the first are of this kind, and so is the last layer of a regression.

    Raises
    ------
    ValueError
        Where the name belongs to another layer.

    Examples
    --------
    >>> from kstonet.layers import UPPER_LAYERS, register_layer
    >>> from kstonet.layers.dense import DenseLayer
    >>> register_layer("gaussian", DenseLayer.new)
    >>> UPPER_LAYERS.pop("gaussian") is not None
    True
    """
    require_free("upper_layer", name, UPPER_LAYERS.get(name), new)
    UPPER_LAYERS[name] = new
