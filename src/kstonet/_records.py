"""The frozen dataclasses that a model file may hold, each registered where it is defined.

A saved model names classes of this list only; nothing else in a file becomes an object. A class registers itself with the
decorator :func:`storable`, which also states the kind and shape of its array fields, so that a file is checked against them
before it is believed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

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
        where they are not.

    Returns
    -------
    callable
        The decorator.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @storable(weights="float k q", intercept="float k")
    ... @dataclass(frozen=True)
    ... class Affine:
    ...     weights: object
    ...     intercept: object
    >>> RECORDS.pop("Affine") is Affine, sorted(SHAPES.pop("Affine"))
    (True, ['intercept', 'weights'])
    """

    def register(record: Record) -> Record:
        known = RECORDS.setdefault(record.__name__, record)
        if (known.__module__, known.__qualname__) != (record.__module__, record.__qualname__):
            raise ValueError(
                f"a storable class named {record.__name__!r} exists already, in {known.__module__}; choose another."
            )
        RECORDS[record.__name__], SHAPES[record.__name__] = record, shapes
        return record

    return register
