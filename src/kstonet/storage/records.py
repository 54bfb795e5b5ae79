"""A record against the annotations of its dataclass and the shapes it was registered with.

The checksum shows that a file is what was written; it does not show that what was written makes sense.
"""

from __future__ import annotations

import types
from dataclasses import fields
from functools import cache
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from kstonet._records import SHAPES
from kstonet.storage.errors import ModelFileError

KINDS = {"float": "f", "positive": "f", "nonnegative": "f", "any": "f", "int": "iu", "bool": "b"}


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
    demands = SHAPES.get(name, {})
    for field in _annotations(kind):
        check_numbers(f"{name}.{field}", getattr(record, field), demands.get(field, "float"))
    for field, shapes in demands.items():
        array = getattr(record, field)
        if array is None or " " not in shapes:  # its annotation has been asked; it is no array
            continue
        options = (option.split() for option in shapes.split("|"))
        ok = isinstance(array, np.ndarray) and any(_has_shape(array, kind, dims, lengths) for kind, *dims in options)
        expect(ok, f"{name}.{field} has not the shape ({shapes}) that goes with the other fields")


def check_numbers(where: str, value: Any, demand: str = "float") -> None:
    """Numbers and arrays are finite, and of the sign they must have; "any" may be everything, "extended" is not NaN."""
    if demand.startswith("any"):
        return
    if isinstance(value, tuple | dict):
        for item in value.values() if isinstance(value, dict) else value:
            check_numbers(where, item, demand)
        return
    if not isinstance(value, np.ndarray | np.number | float | int) or np.asarray(value).dtype.kind not in "fiu":
        return
    if demand == "extended":
        expect(not np.isnan(value), f"{where} is not a number")
        return
    expect(bool(np.all(np.isfinite(value))), f"{where} is not finite")
    if demand.startswith("positive"):
        expect(bool(np.all(value > 0)), f"{where} is not positive")
    if demand.startswith("nonnegative"):
        expect(bool(np.all(value >= 0)), f"{where} is negative")


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
