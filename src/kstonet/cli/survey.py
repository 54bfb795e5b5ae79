"""All that is wrong or remarkable with the columns of a training table, at once, and the options that put it right."""

from __future__ import annotations

import re
import shlex
import warnings
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from kstonet._words import counted, quoted, rows
from kstonet.tables import InputError, TableEncoder
from kstonet.tables.columns import CATEGORY, texts
from kstonet.tables.dates import is_dates
from kstonet.tables.frames import columns_of

DISTINCT = 0.95  # share of different whole numbers from which a column named like a key is one
WHOLE = re.compile(r"\d+(\.0)?")
KEYS = ("id", "key", "index", "no", "nr", "number", "uuid", "code", "row")


@dataclass
class Survey:
    """What was found in the columns.

    Parameters
    ----------
    problems : list of str
        What forbids a training, one sentence each.
    options : list of str
        Words of the command line that would put it right.
    remarks : list of str
        What the user should know.
    """

    problems: list[str] = field(default_factory=list)
    options: list[str] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)

    def refuse(self, command: str) -> None:
        """Raise an error with all problems and the command line that would work, if there are problems."""
        if not self.problems:
            return
        found = self.problems[0] if len(self.problems) == 1 else "".join(f"\n  {line}" for line in self.problems)
        wanted = f"\nThis would work: {command} {shlex.join(self.options)}" if self.options else ""
        head = "" if len(self.problems) == 1 else f"{counted(len(self.problems), 'column')} cannot be used as they are:"
        raise InputError(f"{head}{found}{wanted}")


def survey(features: pd.DataFrame, *, impute: bool, categorical: list[str]) -> Survey:
    """Examine every column of a table without its target.

    Parameters
    ----------
    features : DataFrame
    impute : bool
        Whether missing values are filled.
    categorical : list of str
        Columns whose numbers are categories.

    Returns
    -------
    Survey

    Examples
    --------
    >>> import pandas as pd
    >>> found = survey(pd.DataFrame({"a": ["1", None, "2"], "b": ["x"] * 3}), impute=False, categorical=[])
    >>> found.problems
    ["column 'a' misses values in row 1; --impute fills them in, and puts missing categories aside."]
    >>> found.options, found.remarks
    (['--impute'], ["column 'b' has the same value, 'x', in all rows and tells nothing."])
    """
    found = Survey()
    for read in columns_of(features):
        name, gone = read.name, read.where(read.missing)
        if 0 < len(gone) < len(features) and not impute:
            found.problems.append(
                f"column {name!r} misses values in {rows(gone)}; --impute fills them in, and puts missing categories aside."
            )
            found.options += [] if "--impute" in found.options else ["--impute"]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)  # the encoder of all columns says them again
                wanted = [name] if name in categorical else []
                TableEncoder(impute=True, categorical=wanted).fit_columns([read])
        except InputError as error:
            found.problems.append(str(error).partition("; ")[0].rstrip(".") + ".")
            found.options += ["--dates", name] if is_dates(features[name]) else ["--drop", name]
            continue
        _remark(found, features[name])
    return found


def unknown_categories(encoder: TableEncoder, table: pd.DataFrame) -> list[str]:
    """What a table holds that the model does not know, one sentence per column.

    Examples
    --------
    >>> import pandas as pd
    >>> encoder = TableEncoder().fit(pd.DataFrame({"city": ["Bern", "Basel"]}))
    >>> unknown_categories(encoder, pd.DataFrame({"city": ["Bern", "Rome"]}, index=[1, 2]))
    ["column 'city': 'Rome' in row 2 is no category of the training table and is ignored."]
    """
    said = []
    for column in encoder.columns_:
        if column.kind != CATEGORY or column.name not in table.columns:
            continue
        known = set(column.categories)
        odd = {
            row: text for row, text in zip(table.index, texts(table[column.name]), strict=True) if text not in known and text
        }
        if odd:
            verb = "is no category" if len(set(odd.values())) == 1 else "are no categories"
            what = f"{quoted(dict.fromkeys(odd.values()))} in {rows(list(odd))} {verb} of the training table"
            said.append(f"column {column.name!r}: {what} and {'is' if len(set(odd.values())) == 1 else 'are'} ignored.")
    return said


def _remark(found: Survey, column: pd.Series) -> None:
    given, name = column.dropna().tolist(), str(column.name)
    if given and len(set(given)) == 1:
        found.remarks.append(f"column {name!r} has the same value, {given[0]!r}, in all rows and tells nothing.")
    elif _is_key(given, name):
        found.remarks.append(
            f"column {name!r} looks like a number of the row ({quoted(map(str, given[:2]))}, …); if so, use --id {name!r}."
        )


def _is_key(given: list[Any], name: str) -> bool:
    """Whole numbers that differ from row to row, in a column named like a key."""
    if len(given) < 2 or set(name.lower().replace("-", "_").replace(" ", "_").split("_")).isdisjoint(KEYS):
        return False
    texts = [str(value) for value in given]
    return all(WHOLE.fullmatch(text) for text in texts) and len(set(texts)) >= DISTINCT * len(texts)
