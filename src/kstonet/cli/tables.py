"""Reading and writing of tables. Columns of text files stay text; the encoder interprets them."""

from __future__ import annotations

import csv
import io
import math
import sys
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from kstonet._files import open_whole
from kstonet._words import counted, quoted, some
from kstonet.cli.decoding import decoded, separator_of
from kstonet.cli.marks import with_points
from kstonet.tables import InputError
from kstonet.tables.columns import spelled

FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".arrow": "feather",
    ".xlsx": "excel",
    ".xlsm": "excel",
}
NAMES = tuple(dict.fromkeys(FORMATS.values()))
PACKAGES = {"parquet": "pyarrow", "feather": "pyarrow", "excel": "openpyxl"}
STDIN = "-"


@dataclass(frozen=True)
class Reading:
    """How a table is to be read, as far as the user says; the rest is found out from its name and content.

    Parameters
    ----------
    format : {"csv", "tsv", "parquet", "feather", "excel"}, optional
    encoding : str, optional
        Encoding of a text file.
    decimal, thousands : str, optional
        Marks in the numbers of a text file.
    na_values : tuple of str
        Cells that count as missing, besides the usual ones.
    sheet : str, optional
        Sheet of an Excel file: its name, or its number from 1; otherwise the first.
    """

    format: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    thousands: str | None = None
    na_values: tuple[str, ...] = ()
    sheet: str | None = None


def format_of(place: str, given: str | None = None, *, written: bool = False) -> str:
    """Format of a file that is read or written: the given one, or the one of its suffix.

    Standard input and output are CSV, and so is what is written to a device or a pipe.

    Examples
    --------
    >>> format_of("cars.parquet"), format_of("-"), format_of("cars.txt", "tsv")
    ('parquet', 'csv', 'tsv')
    """
    if given is not None:
        if given not in NAMES:
            raise InputError(f"--format {given!r} is not known; the formats are {', '.join(NAMES)}.")
        return given
    if place == STDIN:
        return "csv"
    suffix = Path(place).suffix.lower()
    if suffix == ".xls":
        raise InputError(f"{place!r} is an Excel file of before 2007; save it as .xlsx or .csv.")
    if suffix not in FORMATS and written and Path(place).exists() and not (Path(place).is_file() or Path(place).is_dir()):
        return "csv"
    if suffix not in FORMATS:
        option = "" if written else f", or use --format {', '.join(NAMES[:-1])} or {NAMES[-1]}"
        raise InputError(f"the format of {place!r} is not clear from its name; let it end in {', '.join(FORMATS)}{option}.")
    return FORMATS[suffix]


def read_table(place: str, reading: Reading | str | None = None) -> pd.DataFrame:
    r"""Read a table; its rows are numbered from 1, as messages name them.

    Parameters
    ----------
    place : str
        Path of a file, or "-" for standard input.
    reading : Reading or str, optional
        What is known about the file, or its format alone.

    Returns
    -------
    DataFrame
        With text columns if it comes from CSV or TSV; numbers in them have a decimal point.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "cars.csv"
    ...     _ = path.write_text("speed,colour\n90,red\n80,blue\n")
    ...     read_table(str(path))
      speed colour
    1    90    red
    2    80   blue
    """
    reading = reading if isinstance(reading, Reading) else Reading(reading)
    kind = format_of(place, reading.format)
    name = "standard input" if place == STDIN else repr(place)
    if place != STDIN and not Path(place).is_file():
        raise InputError(f"there is no file {place!r}.")
    content = sys.stdin.buffer.read() if place == STDIN else Path(place).read_bytes()
    if not content.strip():
        raise InputError(f"{name} is empty.")
    if kind in ("csv", "tsv"):
        _refuse_binary(content, name, reading)
        table = _from_text(content, name, kind, reading)
    else:
        table = _from_library(content, name, kind, reading)
    if table.empty:
        raise InputError(f"{name} has {counted(table.shape[1], 'column')} but no rows.")
    return table


def column_names(place: str) -> list[str]:
    """Names of the columns of a file."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return list(read_table(place).columns)


def _refuse_binary(content: bytes, name: str, reading: Reading) -> None:
    """Say what a file is that is named like text and is none."""
    known = {b"PAR1": "a Parquet file", b"ARROW1": "a Feather file", b"PK\x03\x04": "an Excel file or another archive"}
    for mark, what in known.items():
        if content.startswith(mark):
            raise InputError(f"{name} is {what}, not text; use --format parquet, feather or excel.")
    if b'"__metadata__"' in content[:200]:
        raise InputError(f"{name} is a model file, not a table.")


def _from_text(content: bytes, name: str, kind: str, reading: Reading) -> pd.DataFrame:
    text = decoded(content, name, reading.encoding).lstrip("\r\n")
    separator = "\t" if kind == "tsv" else separator_of(text)
    header = [cell.strip() for cell in next(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))]
    _check_names(header, name)
    if not any(math.isnan(spelled(column)) for column in header):
        raise InputError(f"{name} has numbers in its first line ({some(header, 3)}); put a line of column names above them.")
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=separator,
            header=0,
            names=header,
            dtype=str,
            skipinitialspace=True,
            index_col=None,
            na_values=list(reading.na_values),
        )
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputError(f"{name} is not a table: {reason}.") from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus fields for row labels
        raise InputError(f"{name} has more fields in its rows than the {len(header)} names in its first line.")
    table = _stripped(table)
    return with_points(table, name, separator, reading.decimal, reading.thousands)


def _stripped(table: pd.DataFrame) -> pd.DataFrame:
    """Without blanks around the texts; a cell of blanks is a missing one. By rows: a column takes pandas a millisecond."""
    cells = table.to_numpy(dtype=object, copy=True)
    for row in cells:
        row[:] = [(cell.strip() or None) if isinstance(cell, str) else None for cell in row.tolist()]
    return pd.DataFrame(cells, pd.RangeIndex(1, len(table) + 1), table.columns, dtype=object)


def _check_names(names: list[str], name: str) -> None:
    twice = sorted(column for column, times in Counter(names).items() if times > 1 and column)
    if twice:
        raise InputError(f"{name} has more than one column named {quoted(twice)}; give every column a name of its own.")
    if "" in names:
        place = names.index("") + 1
        raise InputError(f"column {place} of {name} has no name; give it one, or leave it out if it only numbers the rows.")


def _from_library(content: bytes, name: str, kind: str, reading: Reading) -> pd.DataFrame:
    """Formats that pandas reads by way of another package: their columns have types."""
    require_package(kind)
    said = f"{'an' if kind == 'excel' else 'a'} {kind.capitalize()} file"
    try:
        table: pd.DataFrame = _sheet(content, name, reading) if kind == "excel" else READ[kind](io.BytesIO(content))
    except InputError:
        raise
    except Exception as error:  # what the packages raise for a damaged file is theirs to choose
        raise InputError(f"{name} is not {said} ({error}).") from error
    table.columns = pd.Index(["" if str(column).startswith("Unnamed: ") else str(column).strip() for column in table.columns])
    _check_names(list(table.columns), name)
    table.index = pd.RangeIndex(1, len(table) + 1)
    if reading.na_values:
        table = table.apply(lambda column: column.mask(column.astype(str).isin(_spellings(reading.na_values)), None))
    return table


READ: dict[str, Any] = {"parquet": pd.read_parquet, "feather": pd.read_feather}


def _spellings(values: tuple[str, ...]) -> list[str]:
    """-999 may be a whole number or a float."""
    return [*values, *(str(spelled(value)) for value in values if not math.isnan(spelled(value)))]


def _sheet(content: bytes, name: str, reading: Reading) -> pd.DataFrame:
    with pd.ExcelFile(io.BytesIO(content), engine="openpyxl") as book:
        names = [str(sheet) for sheet in book.sheet_names]
        wanted = names[0]
        if reading.sheet is not None:
            number = int(reading.sheet) if reading.sheet.isdecimal() and reading.sheet not in names else None
            wanted = names[number - 1] if number is not None and 0 < number <= len(names) else reading.sheet
        if wanted not in names:
            raise InputError(f"{name} has no sheet {wanted!r}; it has {quoted(names)}.")
        if len(names) > 1 and reading.sheet is None:
            warnings.warn(
                f"{name} has {len(names)} sheets ({quoted(names)}); the first is read. Use --sheet for another.",
                UserWarning,
                stacklevel=2,
            )
        table: pd.DataFrame = pd.read_excel(book, sheet_name=wanted)
    return table.dropna(axis=0, how="all")


def require_package(kind: str) -> None:
    """Say what has to be installed for a format, if it is not there."""
    package = PACKAGES.get(kind)
    if package is None:
        return
    try:
        __import__(package)
    except ImportError as error:
        raise InputError(f"{kind.capitalize()} files need the package {package}: pip install 'kstonet[io]'.") from error


def write_table(table: pd.DataFrame, place: str, kind: str | None = None) -> None:
    """Write a table to a file, in a given format or that of its suffix, or to standard output ("-", CSV)."""
    kind = format_of(place, kind, written=True)
    if place == STDIN:
        table.to_csv(sys.stdout, index=False)
        return
    require_package(kind)
    with open_whole(place) as file:
        if kind == "parquet":
            table.to_parquet(file, index=False)
        elif kind == "feather":
            table.reset_index(drop=True).to_feather(file)
        elif kind == "excel":
            table.to_excel(file, index=False, engine="openpyxl")
        else:
            table.to_csv(file, index=False, sep="\t" if kind == "tsv" else ",", mode="wb", encoding="utf-8")
