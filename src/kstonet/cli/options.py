"""Arguments and options that several commands share."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer


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
    str, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet or Feather file with column names; - is standard input.")
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="Model file written by 'kstonet fit'.")]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict: name, or number from 1 (-1 is the last).")
]
TaskOption = Annotated[Task, typer.Option(help="Kind of the target; auto decides by its values and prints the reason.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="Format of TABLE, if its name does not determine it.")]
DropOption = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")]
CategoricalOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Treat the numbers of a column as categories; may be repeated.")
]
ImputeOption = Annotated[
    bool, typer.Option("--impute", help="Accept missing values: numbers become the median, categories one of their own.")
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
SeedOption = Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Seed of the random numbers.")]
UnknownOption = Annotated[
    Unknown, typer.Option(help="Treatment of categories that the model does not know: an error, or none of the known ones.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print only results and errors.")]
JsonOption = Annotated[bool, typer.Option("--json", help="Write the result as JSON to standard output.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
