"""The frozen dataclasses that a model file may hold, each registered where it is defined.

A saved model names classes of this list only; nothing else in a file becomes an object. A class registers itself with the
decorator :func:`storable` (public as ``kstonet.persistence.storable``), which also states the kind and shape of its array
fields, so that a file is checked against them before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import is_dataclass
from typing import Any, TypeVar

from kstonet._registry import definition

#: Class name to class. A name, once released, stays; fields added later need a default.
RECORDS: dict[str, type[Any]] = {}

#: Class name to the kinds and shapes of its array fields.
SHAPES: dict[str, dict[str, str]] = {}

Record = TypeVar("Record", bound=type[Any])


def storable(**shapes: str) -> Callable[[Record], Record]:
    """Register a dataclass as part of saved models.

    Parameters
    ----------
    **shapes : str
        Kind and shape of every array field, such as ``coef="float t m q"``. One letter stands for one length, the same within
        a record; "1" is one, "q+1" is one more than q; alternatives are separated by "|". Fields that may be None are checked
        where they are not. Numbers must be finite; "positive" and "nonnegative" instead of "float", also for a field that is
        one number, demand a sign, "extended" allows infinity, and "any" everything.

    Returns
    -------
    callable
        The decorator.

    Raises
    ------
    ValueError
        Where the name belongs to another class, or what is decorated is not a dataclass.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> from kstonet.persistence import storable
    >>> @storable(weights="float k q", intercept="float k")
    ... @dataclass(frozen=True)
    ... class Affine:
    ...     weights: object
    ...     intercept: object
    >>> RECORDS.pop("Affine") is Affine, sorted(SHAPES.pop("Affine"))
    (True, ['intercept', 'weights'])
    """

    def register(record: Record) -> Record:
        if not is_dataclass(record):
            raise ValueError(f"{record.__qualname__} is not a dataclass; decorate it with @dataclass(frozen=True) first.")
        known = RECORDS.get(record.__name__, record)
        if definition(known) != definition(record):
            raise ValueError(
                f"a storable class named {record.__name__!r} exists already, in {known.__module__}; choose another."
            )
        RECORDS[record.__name__], SHAPES[record.__name__] = record, shapes
        return record

    return register
