"""Parameters are checked before the work begins; the message says which one, its value, and what is wanted."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def require(name: str, value: Any, valid: Callable[[Any], Any], demand: str) -> None:
    """Raise ``name=value must be demand`` unless ``valid(value)``; a value that ``valid`` cannot compare is not valid.

    Examples
    --------
    >>> require("max_iter", "ten", whole, "a whole number >= 1")
    Traceback (most recent call last):
    ValueError: max_iter='ten' must be a whole number >= 1.
    """
    try:
        accepted = bool(valid(value))
    except (TypeError, ValueError, OverflowError, IndexError):
        accepted = False
    if not accepted:
        raise ValueError(f"{name}={value!r} must be {demand}.")


def both_or_neither(X: Any, y: Any, purpose: str, X_name: str = "X", y_name: str = "y") -> bool:
    """Whether rows are given; raise unless they come with their targets, or neither is given.

    Examples
    --------
    >>> both_or_neither([[1.0]], None, "calibrate")
    Traceback (most recent call last):
    ValueError: y=None: calibrate takes X and y together, or neither.
    """
    if (X is None) != (y is None):
        missing = X_name if X is None else y_name
        raise ValueError(f"{missing}=None: {purpose} takes {X_name} and {y_name} together, or neither.")
    return X is not None


def whole(value: Any) -> bool:
    """Whether a count is at least one.

    Examples
    --------
    >>> whole(3), whole(0), whole(2.5)
    (True, False, False)
    """
    return not isinstance(value, str) and int(value) == value and value >= 1
