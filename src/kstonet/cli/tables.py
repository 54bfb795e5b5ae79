"""Reading and writing of tables. Columns of text files stay text; the encoder interprets them."""

from __future__ import annotations

import csv
import io
import math
import sys
from collections import Counter
from pathlib import Path

import pandas as pd

from kstonet._files import open_whole
from kstonet._words import counted, quoted, some
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
}
NAMES = tuple(dict.fromkeys(FORMATS.values()))
STDIN = "-"


def format_of(place: str, given: str | None = None) -> str:
    """Format of a file: the given one, or the one of its suffix; standard input is CSV.

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
    if suffix not in FORMATS:
        raise InputError(
            f"the format of {place!r} is not clear from its name; use --format {', '.join(NAMES[:-1])} or {NAMES[-1]}."
        )
    return FORMATS[suffix]


def read_table(place: str, given: str | None = None) -> pd.DataFrame:
    r"""Read a table; its rows are numbered from 1, as messages name them.

    Parameters
    ----------
    place : str
        Path of a file, or "-" for standard input.
    given : {"csv", "tsv", "parquet", "feather"}, optional
        Format of the file, if its name does not determine it.

    Returns
    -------
    DataFrame
        With text columns if it comes from CSV or TSV.

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
    kind = format_of(place, given)
    name = "standard input" if place == STDIN else repr(place)
    if place != STDIN and not Path(place).is_file():
        raise InputError(f"there is no file {place!r}.")
    content = sys.stdin.buffer.read() if place == STDIN else Path(place).read_bytes()
    if not content.strip():
        raise InputError(f"{name} is empty.")
    table = _from_text(content, name, kind) if kind in ("csv", "tsv") else _from_arrow(content, name, kind)
    if table.empty:
        raise InputError(f"{name} has {counted(table.shape[1], 'column')} but no rows.")
    table.index = pd.RangeIndex(1, len(table) + 1)
    return table


def _from_text(content: bytes, name: str, kind: str) -> pd.DataFrame:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 text (byte {error.start:,}); save it as UTF-8, or give its --format.") from error
    text = text.lstrip("\r\n")
    first_line = text.splitlines()[0]
    separator = "\t" if kind == "tsv" else ";" if "," not in first_line and ";" in first_line else ","
    header = [cell.strip() for cell in next(csv.reader(io.StringIO(text), delimiter=separator, skipinitialspace=True))]
    _check_names(header, name)
    if not any(math.isnan(spelled(column)) for column in header):
        raise InputError(f"{name} has numbers in its first line ({some(header, 3)}); put a line of column names above them.")
    try:
        table = pd.read_csv(
            io.StringIO(text), sep=separator, header=0, names=header, dtype=str, skipinitialspace=True, index_col=None
        )
    except pd.errors.ParserError as error:
        reason = str(error).removeprefix("Error tokenizing data. C error: ").strip()
        raise InputError(f"{name} is not a table: {reason}.") from error
    if not isinstance(table.index, pd.RangeIndex):  # pandas takes surplus fields for row labels
        raise InputError(f"{name} has more fields in its rows than the {len(header)} names in its first line.")
    if separator == ";":  # where ; separates, numbers are written 3,14
        table = table.replace(r"^([+-]?\d*),(\d+(?:[eE][+-]?\d+)?)$", r"\1.\2", regex=True)
    return table


def _check_names(names: list[str], name: str) -> None:
    twice = sorted(column for column, times in Counter(names).items() if times > 1 and column)
    if twice:
        raise InputError(f"{name} has more than one column named {quoted(twice)}; give every column a name of its own.")
    if "" in names:
        place = names.index("") + 1
        raise InputError(f"column {place} of {name} has no name; give it one, or leave it out if it only numbers the rows.")


def _from_arrow(content: bytes, name: str, kind: str) -> pd.DataFrame:
    _need_pyarrow(kind)
    read = pd.read_parquet if kind == "parquet" else pd.read_feather
    try:
        table: pd.DataFrame = read(io.BytesIO(content))
    except (ValueError, OSError) as error:
        raise InputError(f"{name} is not a {kind.capitalize()} file ({error}).") from error
    table.columns = pd.Index([str(column) for column in table.columns])
    _check_names(list(table.columns), name)
    return table


def _need_pyarrow(kind: str) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise InputError(f"{kind.capitalize()} files need the package pyarrow: pip install 'kstonet[io]'.") from error


def write_table(table: pd.DataFrame, place: str) -> None:
    """Write a table to a file, in the format of its suffix, or to standard output ("-", CSV)."""
    kind = format_of(place)
    if place == STDIN:
        table.to_csv(sys.stdout, index=False)
        return
    if kind in ("parquet", "feather"):
        _need_pyarrow(kind)
    with open_whole(place) as file:
        if kind == "parquet":
            table.to_parquet(file, index=False)
        elif kind == "feather":
            table.reset_index(drop=True).to_feather(file)
        else:
            table.to_csv(file, index=False, sep="\t" if kind == "tsv" else ",", mode="wb", encoding="utf-8")
