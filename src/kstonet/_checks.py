"""Input is checked before the work begins; a message names the argument, its value, and what is wanted."""

from __future__ import annotations

import contextlib
import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
LARGEST = 1e140  # numbers whose square, summed over many rows, is in the floating-point range

# -- parameters --------------------------------------------------------------------------------------------------------------


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


def whole(value: Any) -> bool:
    """Whether a count is at least one.

    Examples
    --------
    >>> whole(3), whole(0), whole(2.5)
    (True, False, False)
    """
    return not isinstance(value, str) and int(value) == value and value >= 1


def whole_number(name: str, value: Any, at_least: int = 1) -> int:
    """Return a count as an int.

    Examples
    --------
    >>> whole_number("n_bins", 0)
    Traceback (most recent call last):
    ValueError: n_bins=0 must be a whole number of at least 1.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = at_least - 1
    if number < at_least:
        raise ValueError(f"{name}={value!r} must be a whole number of at least {at_least}.")
    return number


def position(value: Any, count: int) -> int | None:
    """Return the index of one of ``count`` things, also counted from the end, as 0 to count - 1; None where it is none.

    Examples
    --------
    >>> position(-1, 3), position(3, 3), position("a", 3)
    (2, None, None)
    """
    try:
        index = operator.index(value)
    except TypeError:
        return None
    return index % count if -count <= index < count else None


def check_choice(name: str, value: object, choices: tuple[str | None, ...]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def both_or_neither(first: Any, second: Any, names: tuple[str, str] = ("X", "y"), user: str = "calibrate") -> bool:
    """Whether rows are given; raise unless they come with their targets, or neither is given.

    Examples
    --------
    >>> both_or_neither([[1.0]], None)
    Traceback (most recent call last):
    ValueError: y=None: calibrate takes X and y together, or neither.
    """
    if (first is None) != (second is None):
        missing = names[0] if first is None else names[1]
        raise ValueError(f"{missing}=None: {user} takes {names[0]} and {names[1]} together, or neither.")
    return first is not None


# -- arrays ------------------------------------------------------------------------------------------------------------------


def check_numbers(name: str, values: ArrayLike, *, infinite: bool = False) -> Floats:
    """Return ``values`` as float64 without NaN, and without infinities unless these are allowed."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from error
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} holds {first_of(array, bad)}; remove such rows or impute them first.")
    return array


def check_range(name: str, values: Floats, columns: Any = None) -> None:
    """Raise where the largest number of a column is so large, or so small, that its square leaves the floating-point range.

    Parameters
    ----------
    name : str
    values : ndarray of shape (n,) or (n, p)
        Finite.
    columns : sequence of str, optional
        Names of the columns.

    Examples
    --------
    >>> import numpy as np
    >>> check_range("X", np.array([[1.0, 2e200], [3.0, 0.0]]), ["width", "height"])
    Traceback (most recent call last):
    ValueError: X holds numbers of the size 2e+200 in column 'height'; use a unit in which they lie between 1e-140 and 1e+140.
    """
    if not values.size:
        return
    largest = np.maximum(values.max(axis=0), -values.min(axis=0)).reshape(-1)
    extreme = np.flatnonzero((largest > LARGEST) | ((largest > 0) & (largest < 1.0 / LARGEST)))
    if extreme.size:
        place = int(extreme[0])
        where = "" if values.ndim == 1 else f" in column {place if columns is None else columns[place]!r}"
        raise ValueError(
            f"{name} holds numbers of the size {largest[place]:.3g}{where}; use a unit in which they lie between "
            f"{1.0 / LARGEST:g} and {LARGEST:g}."
        )


@contextlib.contextmanager
def within_range() -> Iterator[None]:
    """Errors of arithmetic in the block become a ValueError with a remedy.

    Examples
    --------
    >>> with within_range():  # doctest: +ELLIPSIS
    ...     raise FloatingPointError("overflow")
    Traceback (most recent call last):
    ValueError: the computation left the range of floating-point numbers (overflow). Use parameters nearer to the defaults, ...
    """
    try:
        yield
    except (FloatingPointError, OverflowError, np.linalg.LinAlgError) as error:
        what = f" ({error})" if str(error) else ""
        raise ValueError(
            f"the computation left the range of floating-point numbers{what}. Use parameters nearer to the defaults, "
            "weights of fewer orders of magnitude, or standardised data."
        ) from error


def first_of(array: NDArray[Any], chosen: NDArray[np.bool_]) -> str:
    """Words for the first chosen entry: its value, its place and how many there are."""
    place = ", ".join(str(i) for i in np.argwhere(chosen)[0])
    return f"{array[chosen][0]} at [{place}] ({int(chosen.sum())} of {array.size} entries are like this)"


def check_targets(values: ArrayLike, name: str = "y_true") -> Floats:
    """Return numbers of one or several targets, (n,) or (n, k)."""
    array = check_numbers(name, values)
    if array.ndim not in (1, 2) or array.size == 0:
        raise ValueError(f"{name} has shape {array.shape}; it must be (n,) or (n, k) with at least one row and one column.")
    return array


def check_not_negative(name: str, values: Floats, reason: str) -> None:
    """Raise ``reason`` where a number is negative.

    Examples
    --------
    >>> import numpy as np
    >>> check_not_negative("std", np.array([1.0, -2.0]), "a standard deviation cannot be negative")
    Traceback (most recent call last):
    ValueError: std holds -2.0 at [1] (1 of 2 entries are like this); a standard deviation cannot be negative.
    """
    if (values < 0).any():
        raise ValueError(f"{name} holds {first_of(values, values < 0)}; {reason}.")


def check_like(name: str, values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return ``values`` in exactly this shape; numbers spread, but (n, 1) against (n,) never becomes (n, n)."""
    if values.ndim and values.shape != shape:
        raise ValueError(f"{name} has shape {values.shape}, y_true asks for {shape}; reshape {name}, or give a single number.")
    return np.broadcast_to(values, shape)


def check_level(name: str, level: ArrayLike) -> Floats:
    """Return probabilities strictly between 0 and 1."""
    levels = check_numbers(name, level)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"{name}={level!r} must lie strictly between 0 and 1; 95 % is 0.95.")
    return levels
