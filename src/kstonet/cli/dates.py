"""Dates and times as numbers: the columns that ``--dates`` names become several columns each."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from kstonet._words import rows
from kstonet.tables import InputError

YEAR_FIRST = re.compile(r"\d{4}([-/.])\d{1,2}\1\d{1,2}(?:[T ].*)?")
YEAR_LAST = re.compile(r"(\d{1,2})([-/.])(\d{1,2})\2\d{4}(?:[T ].*)?")
DAY = 86_400.0  # seconds


def is_dates(column: pd.Series) -> bool:
    """Whether all values of a column are dates.

    Examples
    --------
    >>> import pandas as pd
    >>> is_dates(pd.Series(["2024-01-31", None])), is_dates(pd.Series(["31.1.2024"])), is_dates(pd.Series(["12"]))
    (True, True, False)
    """
    if pd.api.types.is_datetime64_any_dtype(column.dtype):
        return True
    given = column.dropna().astype(str).str.strip()
    return len(given) > 0 and all(YEAR_FIRST.fullmatch(text) or YEAR_LAST.fullmatch(text) for text in given)


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
    def of(cls, column: pd.Series) -> DateColumn:
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
        if pd.api.types.is_datetime64_any_dtype(column.dtype):
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

    def columns(self, column: pd.Series) -> dict[str, np.ndarray]:
        """Days since 1970, year, place in the year as a point on a circle, day of the week from 0 (Monday), and the hour."""
        try:
            moments = pd.to_datetime(column.astype("string"), dayfirst=self.day_first, format="mixed")
        except (ValueError, TypeError) as error:
            reason = str(error).partition(",")[0]
            raise InputError(f"column {self.name!r} must hold dates such as 2024-01-31 ({reason}).") from error
        gone = list(column.index[moments.isna()])
        if gone:
            raise InputError(f"column {self.name!r} misses dates in {rows(gone)}; fill them in, or leave these rows out.")
        seconds = (moments - pd.Timestamp(0, tz=moments.dt.tz)).dt.total_seconds().to_numpy(dtype=np.float64)
        angle = 2.0 * np.pi * (moments.dt.day_of_year.to_numpy(dtype=np.float64) - 1.0) / 365.25
        parts = {
            "days": seconds / DAY,
            "year": moments.dt.year.to_numpy(dtype=np.float64),
            "season_sin": np.sin(angle),
            "season_cos": np.cos(angle),
            "weekday": moments.dt.day_of_week.to_numpy(dtype=np.float64),
        }
        if self.has_time:
            parts["hour"] = (seconds % DAY) / 3600.0
        return {f"{self.name}_{part}": values for part, values in parts.items()}

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def with_dates(table: pd.DataFrame, dates: list[DateColumn]) -> pd.DataFrame:
    """The table with every column of dates replaced by numbers; a column that is missing stays so, for the encoder to say."""
    for date in dates:
        if date.name in table.columns:
            new = pd.DataFrame(date.columns(table[date.name]), index=table.index)
            table = pd.concat([table.drop(columns=date.name), new], axis=1)
    return table
