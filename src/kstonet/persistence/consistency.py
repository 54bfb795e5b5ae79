"""What a description must satisfy before a model is made of it: types, and lengths that fit each other.

The checksum shows that a file is what was written; it does not show that what was written makes sense. A record is checked
against the annotations of its dataclass and the table ``SHAPES``; what records owe each other is said by the functions below.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from kstonet.gram.kernels import Kernel, Precomputed
from kstonet.layers.dense import DenseLayer
from kstonet.layers.expansion import Expansion, ExpansionPart
from kstonet.layers.heads import CategoricalHead
from kstonet.persistence.errors import ModelFileError
from kstonet.uncertainty.network import LinearUncertainty, MarginUncertainty, NetworkUncertainty

#: Kind and shape of the array fields: one letter, one length, the same within a record; "1" is one, "q+1" one more than q.
#: Fields that may be None are checked where they are not.
SHAPES: dict[str, dict[str, str]] = {
    "Scaler": {"mean": "float p", "scale": "float p"},
    "ExpansionPart": {"used": "int q", "coef": "float t m q", "units": "int m", "basis": "int q | float q p"},
    "Expansion": {"intercept": "float t m"},
    "DenseLayer": {"weights": "float k q", "intercept": "float k"},
    "CategoricalHead": {"weights": "float k q", "intercept": "float k"},
    "RegressionUncertainty": {
        "weights": "float k q",
        "intercept": "float k",
        "covariance": "float k q+1 k q+1",
        "noise": "float k",
    },
    "NoiseModel": {"covariance": "float k k", "scale": "float k", "growth": "float k", "span": "float 2 k"},
    "ConformalFactor": {"scores": "float n | float n k"},
    "SVRProblem": {"targets": "float m n", "box": "float m n", "epsilon": "float m 1"},
    "SVRSolution": {
        **dict.fromkeys(("coef", "fitted", "dual_state", "multiplier_state"), "float m n"),
        **dict.fromkeys(("intercept", "primal", "dual", "gap", "shifts"), "float m"),
        **dict.fromkeys(("n_iter", "n_newton"), "int m"),
        "converged": "bool m",
    },
}
KINDS = {"float": "f", "int": "iu", "bool": "b"}


def expect(condition: bool, what: str) -> None:
    """Refuse a model in which something does not hold."""
    if not condition:
        raise ModelFileError(f"it contradicts itself: {what}.")


def fits(value: Any, hint: Any) -> bool:
    """Whether a value is of an annotated type.

    Examples
    --------
    >>> fits((1, 2), tuple[int, ...]), fits("one", float | None)
    (True, False)
    """
    origin, arguments = get_origin(hint), get_args(hint)
    if hint is Any or getattr(hint, "_is_protocol", False):
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is tuple:
        return isinstance(value, tuple) and all(fits(item, arguments[0]) for item in value)
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if hint in (float, int):
        numbers = (float, int, np.floating, np.integer) if hint is float else (int, np.integer)
        return isinstance(value, numbers) and not isinstance(value, bool)
    return isinstance(value, hint)


@cache
def _annotations(record: type) -> dict[str, Any]:
    return get_type_hints(record)


def check_record(record: Any) -> None:
    """A record against its own annotations and shapes."""
    kind: Any = type(record)
    name = kind.__name__
    for field, hint in _annotations(kind).items():
        value = getattr(record, field)
        expect(fits(value, hint), f"{name}.{field} is {value!r:.60}")
    lengths: dict[str, int] = {}
    for field, shapes in SHAPES.get(name, {}).items():
        array = getattr(record, field)
        if array is None:  # its annotation has been asked
            continue
        options = (option.split() for option in shapes.split("|"))
        ok = isinstance(array, np.ndarray) and any(_has_shape(array, kind, dims, lengths) for kind, *dims in options)
        expect(ok, f"{name}.{field} has not the shape ({shapes}) that goes with the other fields")


def _has_shape(array: np.ndarray, kind: str, dims: list[str], lengths: dict[str, int]) -> bool:
    """Whether an array has a shape in the lengths known so far; learns the new ones."""
    if array.dtype.kind not in KINDS[kind] or array.ndim != len(dims):
        return False
    for dim, length in zip(dims, array.shape, strict=True):
        letter, _, more = dim.partition("+")
        wanted = int(dim) if dim.isdigit() else lengths.setdefault(letter, length - int(more or 0)) + int(more or 0)
        if length != wanted:
            return False
    return True


def within(indices: np.ndarray, below: int) -> bool:
    """Whether whole numbers are indices of something of a length."""
    return bool(indices.dtype.kind in "iu" and ((indices >= 0) & (indices < below)).all())


def check_kernel(kernel: Kernel | None, features: int) -> None:
    """Length scales go with the features."""
    scale = None if kernel is None else kernel.length_scale
    expect(scale is None or len(scale) == features, "the kernel has not one length scale per feature")


def holds_values(part: ExpansionPart) -> bool:
    """Whether a row of X holds the features themselves: the basis is then column numbers."""
    return part.kernel is None or isinstance(part.kernel, Precomputed)


def check_expansion(expansion: Expansion, features: int) -> None:
    """The first layer against the number of features."""
    iterates, units = expansion.intercept.shape
    for part in expansion.parts:
        check_kernel(part.kernel, features)
        expect(part.coef.shape[0] == iterates, "the units of the first layer differ in their iterates")
        expect((part.basis.ndim == 1) == holds_values(part), "basis and kernel of the first layer do not go together")
        if holds_values(part):
            expect(within(part.basis, features), "the first layer uses features that X does not have")
        else:
            expect(part.basis.shape[1] == features, "support vectors have another number of features")
    members = np.concatenate([part.units for part in expansion.parts]) if expansion.parts else np.empty(0)
    expect(iterates >= 1 and np.array_equal(np.sort(members), np.arange(units)), "the first layer lacks units")


def check_chain(layers: Sequence[Any], below: int, above: int) -> None:
    """Regression layers whose widths go from ``below`` to ``above``; two classes need one row of weights only."""
    for layer in layers:
        expect(layer.weights.shape[1] == below, "a layer has another number of inputs than the layer below it has units")
        below = layer.n_classes if isinstance(layer, CategoricalHead) else len(layer.intercept)
        if isinstance(layer, CategoricalHead):
            expect(len(layer.intercept) == (1 if below == 2 else below), "the head has not one row of weights per class")
    expect(below == above, "the outputs of the network are not those of the targets")


def check_uppers(networks: Sequence[Any], expansion: Expansion, outputs: int, head: type) -> int:
    """The layers above the first, for every iterate; the width of the last hidden layer."""
    iterates, units = expansion.intercept.shape
    expect(len(networks) == iterates, "iterates of the first layer and of the others differ in number")
    for network in networks:
        layers = network.layers
        expect(len(layers) >= 2 and layers[0] is None, "a network has no layers above the first")
        hidden = all(isinstance(layer, DenseLayer) for layer in layers[1:-1])
        expect(hidden and isinstance(layers[-1], head), "a network has layers of a wrong kind")
        check_chain(layers[1:], units, outputs)
    return int(networks[-1].layers[-1].weights.shape[1])


def check_uncertainty(uncertainty: NetworkUncertainty, expansion: Expansion, features: int, outputs: int) -> None:
    """The uncertainty of all layers against the layers."""
    iterates, units = expansion.intercept.shape
    first = uncertainty.first
    owners = [uncertainty.expansion] + ([first.expansion] if isinstance(first, MarginUncertainty) else [])
    for own in owners:
        check_expansion(own, features)
        expect(own.intercept.shape == (iterates, units), "intervals and predictions have first layers of different sizes")
    expect(len(uncertainty.uppers) == iterates, "iterates of intervals and predictions differ in number")
    for layers in uncertainty.uppers:
        check_chain(layers, units, outputs)
    if isinstance(first, MarginUncertainty):
        _check_margin(first, units)
    else:
        expect(isinstance(first, LinearUncertainty), "the uncertainty of the first layer is of an unknown kind")
        assert isinstance(first, LinearUncertainty)
        shape = (units, uncertainty.expansion.n_support)
        expect(first.regression.weights.shape == shape, "the uncertainty of the first layer has another size than the layer")


def _check_margin(first: MarginUncertainty, units: int) -> None:
    parts = first.expansion.parts
    expect(len(first.columns) == units and len(first.diagonals) == len(parts), "margin sets and units differ in number")
    for part, diagonal in zip(parts, first.diagonals, strict=True):
        given = isinstance(part.kernel, Precomputed)
        expect(part.kernel is not None and (diagonal is not None) == given, "the kernel's diagonal is not where it belongs")
        for unit in part.units.tolist():
            columns = first.columns[unit]
            expect(columns.ndim == 1 and within(columns, len(part.used)), "a margin set is not made of support vectors")
            expect((unit in first.matrices) == given, "a margin set lacks its kernel matrix")
            if given:
                expect(first.matrices[unit].shape == (len(columns),) * 2, "the kernel matrix of a margin set has a wrong size")
