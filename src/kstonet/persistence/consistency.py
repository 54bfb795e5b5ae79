"""What a description must satisfy before a model is made of it: types, and lengths that fit each other.

The checksum shows that a file is what was written; it does not show that what was written makes sense. A record is checked
against the annotations of its dataclass and the shapes it was registered with; what records owe each other is said by the
functions below.
"""

from __future__ import annotations

import types
from collections.abc import Sequence
from dataclasses import fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from kstonet._records import SHAPES
from kstonet.gram.expansion import Expansion
from kstonet.gram.kernels import Kernel
from kstonet.persistence.errors import ModelFileError
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration
from kstonet.uncertainty.conformal import ConformalFactor

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
    if hint is Any or (getattr(hint, "_is_protocol", False) and not getattr(hint, "_is_runtime_protocol", False)):
        return True
    if origin in (Union, types.UnionType):
        return any(fits(value, option) for option in arguments)
    if origin is tuple:
        if not isinstance(value, tuple):
            return False
        hints = arguments[:1] * len(value) if arguments[-1:] == (...,) else arguments
        return len(value) == len(hints) and all(map(fits, value, hints))
    if origin is dict:
        return isinstance(value, dict) and all(fits(k, arguments[0]) and fits(v, arguments[1]) for k, v in value.items())
    if origin is list:
        return isinstance(value, list) and all(fits(item, arguments[0]) for item in value)
    if hint in (float, int):
        numbers = (float, int, np.floating, np.integer) if hint is float else (int, np.integer)
        return isinstance(value, numbers) and not isinstance(value, bool)
    if origin is Literal:
        return value in arguments
    return isinstance(value, origin or hint)


@cache
def _annotations(record: type[Any]) -> dict[str, Any]:
    hints = get_type_hints(record)
    return {field.name: hints[field.name] for field in fields(record)}


def check_record(record: Any) -> None:
    """A record against its own annotations and shapes."""
    kind: Any = type(record)
    name = kind.__name__
    for field, hint in _annotations(kind).items():
        value = getattr(record, field)
        if not fits(value, hint):  # the text is written where it is needed only: arrays are slow to print
            expect(False, f"{name}.{field} is {value!r:.60}")
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
    """Length scales and spreads go with the features."""
    scale, squash = (None, None) if kernel is None else (kernel.length_scale, kernel.squash)
    expect(scale is None or len(scale) == features, "the kernel has not one length scale per feature")
    expect(squash is None or len(squash) == features, "the kernel has not one spread per feature")
    expect(squash is None or all(spread > 0 for _, spread in squash), "the spread of a feature is not positive")


def check_expansion(expansion: Expansion, features: int) -> None:
    """The first layer against the number of features."""
    iterates, units = expansion.intercept.shape
    for part in expansion.parts:
        check_kernel(part.kernel, features)
        expect(part.coef.shape[0] == iterates, "the units of the first layer differ in their iterates")
        expect((part.basis.ndim == 1) == part.holds_values, "basis and kernel of the first layer do not go together")
        if part.holds_values:
            expect(within(part.basis, features), "the first layer uses features that X does not have")
        else:
            expect(part.basis.shape[1] == features, "support vectors have another number of features")
    members = np.concatenate([part.units for part in expansion.parts]) if expansion.parts else np.empty(0)
    expect(iterates >= 1 and np.array_equal(np.sort(members), np.arange(units)), "the first layer lacks units")


def check_chain(layers: Sequence[Any], below: int, above: int) -> None:
    """Layers whose widths go from ``below`` to ``above``."""
    expect(len(layers) >= 1, "a network has no layers above the first")
    for layer in layers:
        expect(layer.n_inputs == below, "a layer has another number of inputs than the layer below it has units")
        below = layer.n_outputs
    expect(below == above, "the outputs of the network are not those of the targets")


def check_trained(network: TrainedNetwork, features: int) -> None:
    """A trained network against the number of features, and its parts against each other."""
    if isinstance(network.targets, ClassTargets):
        expect(network.targets.classes.ndim == 1 and len(network.targets.classes) >= 2, "there are not two classes or more")
    outputs = network.targets.n_outputs
    expect(len(network.scaler.mean) == features, "X is standardised with another number of features")
    check_expansion(network.expansion, features)
    iterates, units = network.expansion.intercept.shape
    expect(len(network.uppers) == iterates, "iterates of the first layer and of the others differ in number")
    for layers in network.uppers:
        check_chain(layers, units, outputs)
        classes = hasattr(layers[-1], "n_classes")
        expect(classes == isinstance(network.targets, ClassTargets), "a network has layers of a wrong kind")
        expect(not any(hasattr(layer, "n_classes") for layer in layers[:-1]), "a network has layers of a wrong kind")
    uncertainty = network.uncertainty
    if uncertainty is not None:
        check_expansion(uncertainty.expansion, features)
        same = uncertainty.expansion.intercept.shape == (iterates, units)
        expect(same, "intervals and predictions have first layers of different sizes")
        expect(len(uncertainty.uppers) == iterates, "iterates of intervals and predictions differ in number")
        for own in uncertainty.uppers:
            check_chain(own, units, outputs)
        for contradiction in uncertainty.first.contradictions(uncertainty.expansion):
            expect(False, contradiction)
    if isinstance(network.targets, ClassTargets):
        expect(isinstance(network.calibration, ProbabilityCalibration | None), "classes are calibrated as numbers")
        if isinstance(network.calibration, ProbabilityCalibration):
            _check_probabilities(network.calibration, outputs)
    else:
        expect(outputs == 1 or not network.targets.single, "a single target has several columns")
        expect(isinstance(network.calibration, IntervalCalibration | None), "numbers are calibrated as classes")
        expect(uncertainty is None or network.calibration is not None, "intervals lack their calibration")
        if isinstance(network.calibration, IntervalCalibration):
            _check_intervals(network.calibration, outputs)


def _check_intervals(calibration: IntervalCalibration, outputs: int) -> None:
    noise = calibration.noise
    expect(len(noise.scale) == outputs, "the noise and the targets differ in number")
    expect(noise.df > 2.0, "the predictive distribution has no variance")
    expect((noise.growth is None) == (noise.span is None), "the noise grows, but not over which means")
    for factor in (calibration.factor, calibration.out_of_sample):
        if isinstance(factor, ConformalFactor):
            expect(factor.scores.shape[1:] in ((), (outputs,)), "conformal scores and targets differ in number")
            expect(factor.df is None or factor.df > 2.0, "the scores belong to a distribution without a variance")


def _check_probabilities(calibration: ProbabilityCalibration, outputs: int) -> None:
    expect(calibration.temperature > 0 and calibration.variance_scale > 0, "the calibration is not positive")
    if calibration.out_of_sample is not None:
        expect(len(calibration.out_of_sample) in (2, 3), "calibration rows are not labelled")
        logits, codes, *weights = calibration.out_of_sample
        labelled = logits.shape == (len(codes), outputs) and within(codes, outputs)
        expect(labelled, "calibration rows are not labelled")
        expect([w.shape for w in weights] in ([], [codes.shape]), "there is not one weight per calibration row")
