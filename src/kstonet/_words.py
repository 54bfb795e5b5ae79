"""Words of the messages: short lists, counts, sizes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import Any

SHOWN = 5  # items of a list in a message


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


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question that names the nearest of some names, to go on a message; empty where none is near.

    Examples
    --------
    >>> did_you_mean("mgp", ["mpg", "weight"]), did_you_mean("MPG", ["mpg"]), did_you_mean("x", ["mpg"])
    (" Did you mean 'mpg'?", " Did you mean 'mpg'?", '')
    """
    lower = {each.lower(): each for each in map(str, known)}
    near = get_close_matches(name.lower(), lower, n=1)
    return f" Did you mean {lower[near[0]]!r}?" if near else ""


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
    >>> counted(1, "row"), counted(1200, "row"), counted(2, "class"), counted(2, "category", "categories")
    ('1 row', '1,200 rows', '2 classes', '2 categories')
    """
    plural = many or (f"{one}es" if one.endswith("s") else f"{one}s")
    return f"{number:,} {one if number == 1 else plural}"


def readable_bytes(count: float) -> str:
    """A number of bytes in a unit that suits it.

    Examples
    --------
    >>> readable_bytes(2_500_000_000), readable_bytes(512)
    ('2.5 GB', '512 bytes')
    """
    for unit, size in (("TB", 1e12), ("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count:.0f} bytes"
