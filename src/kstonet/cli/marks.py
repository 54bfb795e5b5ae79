"""Decimal and thousands marks of a text file, decided from all its cells.

``1,947`` is 1947 in one country and 1.947 in another. A cell such as ``3,14`` or ``1.234,5`` can be read in one way only; such
cells decide for the whole file. Where they contradict each other, or where a file with semicolons has none, the user decides.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass
from functools import cached_property

import pandas as pd

from kstonet.tables import InputError

POINT, COMMA = ".", ","
APOSTROPHES, SPACES = "'’", " \u00a0\u202f\u2009"
THOUSANDS = (COMMA, POINT, "'", " ")
NUMERIC = 0.5  # share of the cells that look like numbers, from which a column is one of numbers
WHOLE = re.compile(r"[+-]?\d+(?:[eE][+-]?\d+)?")
NUMBER_LIKE = re.compile(rf"[+-]?[\d.,{APOSTROPHES}{SPACES}]*\d[.,]?(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Marks:
    """How numbers are written: the decimal mark, and the mark between thousands, which may be none."""

    decimal: str = POINT
    thousands: str | None = None

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Numbers that are written so; groups of thousands have three digits and begin with another digit than zero."""
        whole = r"\d+"
        if self.thousands is not None:
            marks = {"'": APOSTROPHES, " ": SPACES}.get(self.thousands, self.thousands)
            whole = rf"(?:[1-9]\d{{0,2}}(?:[{marks}]\d{{3}})+|\d+)"
        return re.compile(rf"[+-]?(?:{whole}(?:[{self.decimal}]\d*)?|[{self.decimal}]\d+)(?:[eE][+-]?\d+)?")

    def plain(self, text: str) -> str:
        """A number as Python spells it.

        Examples
        --------
        >>> Marks(",", ".").plain("1.234,5"), Marks(".", " ").plain("1 234.5")
        ('1234.5', '1234.5')
        """
        if self.thousands is not None:
            for mark in {"'": APOSTROPHES, " ": SPACES}.get(self.thousands, self.thousands):
                text = text.replace(mark, "")
        return text.replace(self.decimal, POINT)


def with_points(
    table: pd.DataFrame, name: str, separator: str, decimal: str | None = None, thousands: str | None = None
) -> pd.DataFrame:
    """The table with its numbers written as Python writes them; other cells as they are.

    Parameters
    ----------
    table : DataFrame
        Columns of text; rows are numbered as messages name them.
    name : str
        Name of the file, for messages.
    separator : str
        The character between columns: a file with commas does not mean decimal commas, unless its cells say so.
    decimal, thousands : str, optional
        As the user says.

    Returns
    -------
    DataFrame

    Examples
    --------
    >>> import pandas as pd
    >>> with_points(pd.DataFrame({"a": ["1.947,5", "882"]}), "a.csv", ";")["a"].tolist()
    ['1947.5', '882']
    """
    _check_said(decimal, thousands)
    cells = _marked(table)
    if not cells:
        return table
    marks = _decided(cells, name, separator, decimal, thousands)
    if marks.decimal == POINT and marks.thousands is None:
        return table
    pattern, done = marks.pattern, table.copy()
    for column in dict.fromkeys(cell.column for cell in cells):
        texts = done[column]
        done[column] = [marks.plain(text) if isinstance(text, str) and pattern.fullmatch(text) else text for text in texts]
    _say(cells, marks, name, told=decimal is not None or thousands is not None)
    return done


@dataclass(frozen=True)
class _Cell:
    """A cell that looks like a number and has a mark in it."""

    text: str
    column: str
    row: int

    def __str__(self) -> str:
        return f"{self.text!r} (column {self.column!r}, row {self.row})"

    def fits(self, marks: Marks) -> bool:
        return marks.pattern.fullmatch(self.text) is not None


def _marked(table: pd.DataFrame) -> list[_Cell]:
    """Cells with a mark, of the columns that hold numbers in the main."""
    cells = []
    for column, texts in zip(table.columns, table.to_numpy(dtype=object).T, strict=True):
        given = [(row, text) for row, text in zip(table.index, texts.tolist(), strict=True) if isinstance(text, str)]
        looks = [(row, text) for row, text in given if NUMBER_LIKE.fullmatch(text)]
        if looks and len(looks) >= NUMERIC * len(given):
            marked = [_Cell(text, str(column), int(row)) for row, text in looks if not WHOLE.fullmatch(text)]
            cells += [cell for cell in marked if any(written.fullmatch(cell.text) for written in WITH.values())]
    return cells


WAYS = [
    Marks(decimal, mark) for decimal in (POINT, COMMA) for mark in (None, *THOUSANDS) if mark != decimal
]  # all ways to write a number
WITH = {mark: re.compile("|".join(way.pattern.pattern for way in WAYS if way.decimal == mark)) for mark in (POINT, COMMA)}


def _decided(cells: list[_Cell], name: str, separator: str, decimal: str | None, thousands: str | None) -> Marks:
    fits = {mark: [written.fullmatch(cell.text) is not None for cell in cells] for mark, written in WITH.items()}
    needs = {
        mark: [cell for cell, own, other in zip(cells, fits[mark], fits[rival], strict=True) if own and not other]
        for mark, rival in ((POINT, COMMA), (COMMA, POINT))
    }
    if decimal is None and thousands is not None:
        decimal = COMMA if thousands == POINT else POINT
    if decimal is None:
        if needs[POINT] and needs[COMMA]:
            raise InputError(
                f"{name} writes numbers in two ways: {needs[POINT][0]} needs a decimal point, {needs[COMMA][0]} a comma."
                " Correct one of them, or say which it is with --decimal . or --decimal , and the other is text."
            )
        unclear = [cell for cell in cells if COMMA in cell.text]
        if unclear and not needs[POINT] and not needs[COMMA] and separator != COMMA:
            cell = unclear[0]
            both = cell.text.replace(COMMA, ""), cell.text.replace(COMMA, POINT)
            raise InputError(
                f"{name}: {cell} is {both[0]} or {both[1]}, and no other cell tells. Say --thousands , for the first or "
                "--decimal , for the second."
            )
        decimal = COMMA if needs[COMMA] else POINT
    if thousands is None:
        first = {way.thousands: _first_with_thousands(cells, way) for way in WAYS if way.decimal == decimal and way.thousands}
        used = [mark for mark in THOUSANDS if first.get(mark) is not None]
        if len(used) > 1:
            ways = f"{first[used[0]]} and {first[used[1]]}"
            raise InputError(f"{name} separates thousands in two ways: {ways}; say which with --thousands.")
        thousands = used[0] if used else None
    return Marks(decimal, thousands)


def _first_with_thousands(cells: list[_Cell], marks: Marks) -> _Cell | None:
    """The first cell that is a number with these marks, and none without the one between thousands."""
    alone = Marks(marks.decimal).pattern
    return next((cell for cell in cells if not alone.fullmatch(cell.text) and cell.fits(marks)), None)


def _check_said(decimal: str | None, thousands: str | None) -> None:
    if decimal is not None and decimal not in (POINT, COMMA):
        raise InputError(f"--decimal {decimal!r} must be . or ,")
    if thousands is not None and thousands not in THOUSANDS:
        raise InputError(f"--thousands {thousands!r} must be , or . or ' or a space.")
    if decimal is not None and decimal == thousands:
        raise InputError(f"--decimal and --thousands are both {decimal!r}; they must differ.")


def _say(cells: list[_Cell], marks: Marks, name: str, told: bool) -> None:
    """Say how numbers were read, with an example, unless the user has said it."""
    if told:
        return
    read = _first_with_thousands(cells, marks) if marks.thousands else None
    read = read or next((cell for cell in cells if marks.decimal in cell.text), cells[0])
    names = {POINT: "a point", COMMA: "a comma", "'": "an apostrophe", " ": "a space", None: ""}
    between = f" and {names[marks.thousands]} between thousands" if marks.thousands else ""
    warnings.warn(
        f"{name} was read with {names[marks.decimal]} as the decimal mark{between}: {read} is {marks.plain(read.text)}. "
        "If that is wrong, use --decimal and --thousands.",
        UserWarning,
        stacklevel=4,
    )
