"""Model files of the command line: a model with the encoding of its table."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import kstonet
from kstonet._words import quoted
from kstonet.cli.dates import DateColumn, with_dates
from kstonet.cli.tables import FORMATS
from kstonet.cli.target import Target
from kstonet.persistence import read_metadata
from kstonet.tables import InputError, TableEncoder


@dataclass(frozen=True)
class StoredModel:
    """A model with the encoding of its table."""

    model: Any
    encoder: TableEncoder
    target: Target
    dates: tuple[DateColumn, ...] = ()
    ids: tuple[str, ...] = ()

    @classmethod
    def open(cls, path: str) -> StoredModel:
        """Read a file that ``kstonet fit`` wrote."""
        _refuse_table(path)
        model, metadata = kstonet.load(path), read_metadata(path)
        if metadata is None or not {"table", "target"} <= metadata.keys():
            raise InputError(
                f"{path!r} holds a {type(model).__name__}, but not the encoding of its table: use kstonet.load in Python, or "
                "write the file with 'kstonet fit'."
            )
        dates = tuple(DateColumn(**date) for date in metadata.get("dates", ()))
        ids = tuple(metadata.get("ids", ()))
        return cls(model, TableEncoder.from_dict(metadata["table"]), Target(**metadata["target"]), dates, ids)

    def inputs(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table without the target and the names of rows, if it has them, and with dates as numbers."""
        return with_dates(table.drop(columns=[self.target.name, *self.ids], errors="ignore"), list(self.dates))

    def truth(self, table: pd.DataFrame) -> np.ndarray:
        """The target of a table."""
        name = self.target.name
        if name not in table.columns:
            raise InputError(f"the table lacks the target {name!r}; it has {quoted(table.columns)}.")
        return self.target.values(table[name], getattr(self.model, "classes_", None))


def _refuse_table(path: str) -> None:
    """Say so where a table is given in place of a model."""
    if Path(path).suffix.lower() in FORMATS and Path(path).is_file():
        raise InputError(
            f"{path!r} is a table, but a model file comes first: kstonet COMMAND MODEL TABLE. Train one with "
            f"'kstonet fit {path} --target COLUMN'."
        )
