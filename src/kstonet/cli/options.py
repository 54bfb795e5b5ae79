"""Arguments and options that several commands share."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any, get_type_hints

import typer

from kstonet.cli.tables import Reading


class Task(StrEnum):
    """Values of ``--task``."""

    auto = "auto"
    regression = "regression"
    classification = "classification"


class Format(StrEnum):
    """Values of ``--format``."""

    csv = "csv"
    tsv = "tsv"
    parquet = "parquet"
    feather = "feather"
    excel = "excel"


class Unknown(StrEnum):
    """Values of ``--unknown``."""

    error = "error"
    ignore = "ignore"


class Tuning(StrEnum):
    """Values of ``--tuning``."""

    fast = "fast"
    thorough = "thorough"
    none = "none"


class Loss(StrEnum):
    """Values of ``--loss``."""

    squared = "squared"
    epsilon_insensitive = "epsilon_insensitive"


TableArgument = Annotated[
    str,
    typer.Argument(metavar="TABLE", help="CSV, TSV, Excel, Parquet or Feather file with column names; - is standard input."),
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by 'kstonet fit'.")]
TargetOption = Annotated[
    str | None,
    typer.Option(
        "--target",
        "-t",
        metavar="COLUMN",
        help="Column to predict: name, or number from 1 (-1 is the last); several with commas, as in height,weight.",
    ),
]
KnownTargetOption = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="COLUMN", help="Target of a model that was saved from Python; one of several, for a report."
    ),
]
TaskOption = Annotated[Task, typer.Option(help="Kind of the target; auto decides by its values and prints the reason.")]
DropOption = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")]
CategoricalOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Treat the numbers of a column as categories; may be repeated.")
]
ImputeOption = Annotated[
    bool, typer.Option("--impute", help="Accept missing values: numbers are filled in, missing categories one of their own.")
]
DatesOption = Annotated[
    list[str] | None,
    typer.Option(metavar="COLUMN", help="Turn a column of dates into numbers: days, year, season, weekday; may be repeated."),
]
IdOption = Annotated[
    list[str] | None,
    typer.Option("--id", metavar="COLUMN", help="Column that names the rows: no input, kept in predictions; may be repeated."),
]
UnitsOption = Annotated[
    str | None,
    typer.Option(
        metavar="NUMBER", help="Number of hidden units; 10,5 makes two hidden layers; or tune.", show_default="chosen"
    ),
]
MaxIterOption = Annotated[
    int | None, typer.Option(min=1, metavar="NUMBER", help="Number of training iterations.", show_default="chosen")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="Any parameter of KStoNetRegressor or KStoNetClassifier, such as penalty=mcp or n_chains=3; may be repeated.",
    ),
]
RowsOption = Annotated[
    int | None, typer.Option(min=1, metavar="NUMBER", help="Train on so many rows, drawn at random.", show_default="all")
]
SeedOption = Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Seed of the random numbers.")]
UnknownOption = Annotated[
    Unknown, typer.Option(help="Treatment of categories that the model does not know: an error, or none of the known ones.")
]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Replace the output even if it is an input or a file of another kind.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]

PANEL = "Reading of tables"
READING: dict[str, Any] = {
    "format_": Annotated[
        Format | None,
        typer.Option("--format", help="Format of TABLE, if its name does not determine it.", rich_help_panel=PANEL),
    ],
    "encoding": Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Encoding of text, such as utf-8, utf-16 or cp1252.", rich_help_panel=PANEL),
    ],
    "decimal": Annotated[
        str | None, typer.Option(metavar="MARK", help="Decimal mark of numbers in text: . or ,", rich_help_panel=PANEL)
    ],
    "thousands": Annotated[
        str | None,
        typer.Option(metavar="MARK", help="Mark between thousands: , or . or ' or a space.", rich_help_panel=PANEL),
    ],
    "na_values": Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT", help="Text that marks a missing value, such as ? or -999; may be repeated.", rich_help_panel=PANEL
        ),
    ],
    "sheet": Annotated[
        str | None, typer.Option(metavar="NAME", help="Sheet of an Excel file: name, or number from 1.", rich_help_panel=PANEL)
    ],
}


def reads_tables(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of reading; it takes what they say as ``reading``."""
    hints = get_type_hints(command, include_extras=True)
    signature = inspect.signature(command)
    own = [parameter.replace(annotation=hints[name]) for name, parameter in signature.parameters.items() if name != "reading"]
    more = [
        inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=None, annotation=annotation)
        for name, annotation in READING.items()
    ]

    @functools.wraps(command)
    def with_reading(**arguments: Any) -> None:
        said = {name: arguments.pop(name) for name in READING}
        kind, missing = said.pop("format_"), said.pop("na_values")
        command(**arguments, reading=Reading(kind, na_values=tuple(missing or ()), **said))

    with_reading.__signature__ = signature.replace(parameters=[*own, *more])  # type: ignore[attr-defined]
    with_reading.__annotations__ = {parameter.name: parameter.annotation for parameter in (*own, *more)}
    del with_reading.__wrapped__  # what is asked about the wrapper must not be answered by it
    return with_reading
