"""Model files of the command line: a model with the encoding of its table."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import kstonet
from kstonet._words import quoted
from kstonet.cli.dates import DateColumn, with_dates
from kstonet.cli.survey import unknown_categories
from kstonet.cli.tables import FORMATS
from kstonet.cli.target import Target
from kstonet.persistence import read_metadata
from kstonet.tables import InputError, TableEncoder


@dataclass(frozen=True)
class StoredModel:
    """A model with the encoding of its table; the target of a model that was saved from Python is not known."""

    path: str
    model: Any
    encoder: TableEncoder
    target: Target | None
    dates: tuple[DateColumn, ...] = ()
    ids: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: str) -> StoredModel:
        """Read a file that ``kstonet fit`` wrote, or a model that was fitted on a data frame and saved from Python."""
        _refuse_table(path)
        model, metadata = kstonet.load(path), read_metadata(path) or {}
        names, target = getattr(model, "feature_names_in_", None), metadata.get("target")
        if "table" in metadata:
            encoder = TableEncoder.from_dict(metadata["table"])
        elif names is not None and hasattr(model, "encoding_") and hasattr(model, "trained_"):
            encoder = TableEncoder.of(model.encoding_, list(names))
        else:
            raise InputError(
                f"{path!r} holds a {type(model).__name__}, but not the names of its columns: use kstonet.load in Python, fit "
                "it on a data frame, or write the file with 'kstonet fit'."
            )
        dates = tuple(DateColumn(**date) for date in metadata.get("dates", ()))
        ids = tuple(metadata.get("ids", ()))
        return cls(path, model, encoder, None if target is None else Target(**target), dates, ids)

    def conformed(self, table: pd.DataFrame, unknown: str, kept: Sequence[str] = ()) -> pd.DataFrame:
        """The columns that the model uses, typed; of the others, those that are kept beside predictions are not mentioned."""
        needed = {column.name for column in self.encoder.columns_} | {date.name for date in self.dates}
        aside = {
            *([] if self.target is None else [self.target.name]),
            *self.ids,
            *(name for name in kept if name not in needed),
        }
        table = with_dates(table.drop(columns=list(aside), errors="ignore"), list(self.dates))
        if unknown == "ignore":
            for said in unknown_categories(self.encoder, table):
                warnings.warn(said, UserWarning, stacklevel=2)
        return self.encoder.conform(table, unknown)

    def truth(self, table: pd.DataFrame) -> np.ndarray:
        """The target of a table."""
        name = self.known_target.name
        if name not in table.columns:
            raise InputError(f"the table lacks the target {name!r}; it has {quoted(table.columns)}.")
        return self.known_target.values(table[name], getattr(self.model, "classes_", None))

    @property
    def known_target(self) -> Target:
        """The target, if the file names it."""
        if self.target is None:
            raise InputError(
                f"{self.path!r} was saved from Python and does not name its target; score it there, or write the file with "
                "'kstonet fit'."
            )
        return self.target


def _refuse_table(path: str) -> None:
    """Say so where a table is given in place of a model."""
    if Path(path).suffix.lower() in FORMATS and Path(path).is_file():
        raise InputError(
            f"{path!r} is a table, but a model file comes first: kstonet COMMAND MODEL TABLE. Train one with "
            f"'kstonet fit {path} --target COLUMN'."
        )
