"""Dates and times as numbers: a column of them becomes several columns, where the user asks for it (``--dates``)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet._words import quoted, rows
from kstonet.tables.errors import InputError

YEAR_FIRST = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?:[T ].*)?")
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2\d{4}(?:[T ].*)?")
DAY = 86_400.0  # seconds
PARTS = ("days", "year", "season_sin", "season_cos", "weekday")  # and the hour, where there are times


def is_dates(column: Any) -> bool:
    """Whether all values of a column are dates.

    Examples
    --------
    >>> import pandas as pd
    >>> from kstonet.tables.dates import is_dates
    >>> is_dates(pd.Series(["2024-01-31", None])), is_dates(pd.Series(["31.1.2024"])), is_dates(pd.Series(["12"]))
    (True, True, False)
    """
    if _is_typed(column):
        return True
    given = column.dropna().astype(str).str.strip()
    return len(given) > 0 and all(YEAR_FIRST.fullmatch(text) or YEAR_LAST.fullmatch(text) for text in given)


def _is_typed(column: Any) -> bool:
    from pandas.api.types import is_datetime64_any_dtype

    return bool(is_datetime64_any_dtype(column.dtype))


@storable()
@dataclass(frozen=True)
class DateColumn:
    """How one column of dates becomes numbers.

    Parameters
    ----------
    name : str
    day_first : bool
        Whether 3/4/2024 is the third of April.
    has_time : bool
        Whether there are hours.
    """

    name: str
    day_first: bool
    has_time: bool

    @classmethod
    def of(cls, column: Any) -> DateColumn:
        """Learn from the training table.

        Examples
        --------
        >>> import pandas as pd
        >>> DateColumn.of(pd.Series(["31.1.2024", "3.4.2024"], name="sold"))
        DateColumn(name='sold', day_first=True, has_time=False)
        """
        name = str(column.name)
        if not is_dates(column):
            raise InputError(f"--dates names {name!r}, whose values are not all dates such as 2024-01-31 or 31.1.2024.")
        if _is_typed(column):
            return cls(name, False, bool((column.dropna() != column.dropna().dt.normalize()).any()))
        given = column.dropna().astype(str).str.strip()
        last = [match for text in given if (match := YEAR_LAST.fullmatch(text)) is not None]
        firsts, seconds = ([int(match[place]) for match in last] for place in (1, 3))
        if max(firsts, default=0) > 12 and max(seconds, default=0) > 12:
            raise InputError(f"column {name!r} has dates with the day first and with the month first; write all as 2024-01-31.")
        dotted = any(match[2] == "." for match in last)
        if last and max(firsts) <= 12 and max(seconds) <= 12 and not dotted:
            raise InputError(f"column {name!r}: {last[0][0]!r} may have the day or the month first; write dates as 2024-01-31.")
        day_first = max(firsts, default=0) > 12 or (dotted and max(seconds, default=0) <= 12)
        return cls(name, day_first, bool(given.str.contains(r"[T ]\d{1,2}:").any()))

    @property
    def outputs(self) -> list[str]:
        """Names of the columns it becomes."""
        return [f"{self.name}_{part}" for part in (*PARTS, *(["hour"] if self.has_time else []))]

    def columns(self, column: Any) -> dict[str, np.ndarray]:
        """Days since 1970, year, place in the year as a point on a circle, day of the week from 0 (Monday), and the hour."""
        import pandas as pd

        try:
            moments = column if _is_typed(column) else self._parsed(column.astype("string").str.strip())
        except (ValueError, TypeError) as error:
            reason = str(error).partition(",")[0]
            raise InputError(f"column {self.name!r} must hold dates such as 2024-01-31 ({reason}).") from error
        gone = list(column.index[moments.isna()])
        if gone:
            raise InputError(f"column {self.name!r} misses dates in {rows(gone)}; fill them in, or leave these rows out.")
        seconds = (moments - pd.Timestamp(0, tz=moments.dt.tz)).dt.total_seconds().to_numpy(dtype=np.float64)
        angle = 2.0 * np.pi * (moments.dt.day_of_year.to_numpy(dtype=np.float64) - 1.0) / 365.25
        year, weekday = (part.to_numpy(dtype=np.float64) for part in (moments.dt.year, moments.dt.day_of_week))
        values = [seconds / DAY, year, np.sin(angle), np.cos(angle), weekday, (seconds % DAY) / 3600.0]
        return dict(zip(self.outputs, values, strict=False))

    def _parsed(self, texts: Any) -> Any:
        """Moments of texts; only where the year is last can the day be first."""
        import pandas as pd

        labels, texts = texts.index, texts.reset_index(drop=True)  # labels need not be unique
        day_first = texts.str.fullmatch(YEAR_LAST.pattern).fillna(False).astype(bool) & self.day_first
        parts = {True: texts[day_first], False: texts[~day_first]}
        moments = [pd.to_datetime(part, dayfirst=first, format="mixed") for first, part in parts.items() if len(part)]
        return pd.concat(moments).sort_index().set_axis(labels)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def with_dates(table: Any, dates: Sequence[DateColumn]) -> Any:
    """The data frame of pandas with every column of dates replaced by numbers, behind the other columns.

    A column that is missing stays so, for others to say.

    Examples
    --------
    >>> import pandas as pd
    >>> from kstonet.tables.dates import DateColumn, with_dates
    >>> with_dates(pd.DataFrame({"sold": ["1970-01-03"], "price": [7]}), [DateColumn("sold", False, False)]).columns.tolist()
    ['price', 'sold_days', 'sold_year', 'sold_season_sin', 'sold_season_cos', 'sold_weekday']
    """
    import pandas as pd

    for date in dates:
        if date.name not in table.columns:
            continue
        taken = [name for name in date.outputs if name in table.columns]
        if taken:
            raise InputError(
                f"the dates of column {date.name!r} become columns such as {quoted(date.outputs[:2])}, but the table has "
                f"{quoted(taken)} already; rename or leave out one of them."
            )
        new = pd.DataFrame(date.columns(table[date.name]), index=table.index)
        table = pd.concat([table.drop(columns=date.name), new], axis=1)
    return table
