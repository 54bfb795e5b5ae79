"""Model files of the command line: a model with the encoding of its table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

import kstonet
from kstonet._words import quoted
from kstonet.cli.target import Target
from kstonet.persistence import read_metadata
from kstonet.tables import InputError, TableEncoder


@dataclass(frozen=True)
class StoredModel:
    """A model with the encoding of its table."""

    model: Any
    encoder: TableEncoder
    target: Target

    @classmethod
    def open(cls, path: str) -> StoredModel:
        """Read a file that ``kstonet fit`` wrote."""
        model, metadata = kstonet.load(path), read_metadata(path)
        if metadata is None or not {"table", "target"} <= metadata.keys():
            raise InputError(
                f"{path!r} holds a {type(model).__name__}, but not the encoding of its table: use kstonet.load in Python, or "
                "write the file with 'kstonet fit'."
            )
        return cls(model, TableEncoder.from_dict(metadata["table"]), Target(**metadata["target"]))

    def inputs(self, table: pd.DataFrame) -> pd.DataFrame:
        """The table without the target, if it has one."""
        return table.drop(columns=self.target.name, errors="ignore")

    def truth(self, table: pd.DataFrame) -> np.ndarray:
        """The target of a table."""
        name = self.target.name
        if name not in table.columns:
            raise InputError(f"the table lacks the target {name!r}; it has {quoted(table.columns)}.")
        return self.target.values(table[name], getattr(self.model, "classes_", None))
