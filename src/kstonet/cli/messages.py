"""Formatting of messages, and the error for invalid input."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

SHOWN = 5  # items of a list in a message


class InputError(ValueError):
    """Invalid input; the message names it, its place and the remedy.

    Examples
    --------
    >>> raise InputError("the file is empty.")
    Traceback (most recent call last):
    kstonet.cli.messages.InputError: the file is empty.
    """


class SearchInterrupted(BaseException):
    """Ctrl-C during a search for parameters; a KeyboardInterrupt would only end the training of one candidate."""


def some(items: Iterable[Any], shown: int = SHOWN) -> str:
    """The first few items, and how many more there are.

    Examples
    --------
    >>> some(range(1, 9))
    '1, 2, 3, 4, 5 and 3 more'
    """
    listed = list(items)
    text = ", ".join(str(item) for item in listed[:shown])
    return text if len(listed) <= shown else f"{text} and {len(listed) - shown:,} more"


def quoted(names: Iterable[str]) -> str:
    """The first few names, in quotation marks.

    Examples
    --------
    >>> quoted(["a", "b"])
    "'a', 'b'"
    """
    return some([repr(name) for name in names])


def rows(numbers: Sequence[Any]) -> str:
    """Rows by number.

    Examples
    --------
    >>> rows([3]), rows([3, 8])
    ('row 3', 'rows 3, 8')
    """
    return f"{'row' if len(numbers) == 1 else 'rows'} {some(numbers)}"


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number of things.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "category", "categories")
    ('1 row', '1,200 rows', '2 categories')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
