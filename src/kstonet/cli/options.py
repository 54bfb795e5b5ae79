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


TableArgument = Annotated[
    str, typer.Argument(metavar="TABLE", help="CSV, TSV, Parquet or Feather file with column names; - is standard input.")
]
ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="File that 'kstonet fit' wrote.")]
TargetOption = Annotated[
    str, typer.Option("--target", "-t", metavar="COLUMN", help="Column to predict: name, or number from 1 (-1 is the last).")
]
TaskOption = Annotated[Task, typer.Option(help="What to do with the target; auto decides by its values and says why.")]
FormatOption = Annotated[Format | None, typer.Option("--format", help="Of TABLE, where its name does not say it.")]
DropOption = Annotated[list[str] | None, typer.Option(metavar="COLUMN", help="Leave a column out; may be repeated.")]
CategoricalOption = Annotated[
    list[str] | None, typer.Option(metavar="COLUMN", help="Take the numbers of a column for categories; may be repeated.")
]
ImputeOption = Annotated[bool, typer.Option("--impute", help="Fill missing values by the median or the most frequent value.")]
UnitsOption = Annotated[str, typer.Option(metavar="NUMBER", help="Hidden units; 10,5 makes two hidden layers; or tune.")]
MaxIterOption = Annotated[int, typer.Option(min=1, metavar="NUMBER", help="Iterations of the training.")]
SeedOption = Annotated[int, typer.Option(min=0, metavar="NUMBER", help="Of the random numbers.")]
UnknownOption = Annotated[
    Unknown, typer.Option(help="Categories the model has not seen: an error, or ignored (none of its own).")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Results and errors only.")]
JsonOption = Annotated[bool, typer.Option("--json", help="The result as JSON on standard output.")]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show where an error comes from.")]
