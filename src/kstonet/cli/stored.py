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
from kstonet.cli.survey import unknown_categories
from kstonet.cli.tables import FORMATS
from kstonet.cli.target import Target
from kstonet.persistence import ModelFileError, read_metadata
from kstonet.storage.records import check_record, fits
from kstonet.tables import InputError, TableEncoder
from kstonet.tables.dates import DateColumn, with_dates


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
    def open(cls, path: str, target: str | None = None) -> StoredModel:
        """Read a file that ``kstonet fit`` wrote, or a model that was fitted on a data frame and saved from Python.

        ``target`` names the target of the latter, which the file does not know.
        """
        refuse_table(path)
        model, metadata = kstonet.load(path), read_metadata(path) or {}
        names, known = getattr(model, "feature_names_in_", None), _target_in(metadata)
        if "table" in metadata:
            encoder = TableEncoder.from_dict(metadata["table"])
            if not hasattr(model, "encoding_") or encoder.encoding_.n_outputs != model.encoding_.n_outputs:
                raise ModelFileError(
                    f"{path!r} contradicts itself: the encoding of its table has other columns than the model."
                )
        elif names is not None and hasattr(model, "encoding_") and hasattr(model, "trained_"):
            encoder = TableEncoder.of(model.encoding_, list(names))
        else:
            raise InputError(
                f"{path!r} holds a {type(model).__name__}, but not the names of its columns: use kstonet.load in Python, fit "
                "it on a data frame, or write the file with 'kstonet fit'."
            )
        if known is None and target is not None:
            known = Target.known_to(model, [part.strip() for part in target.split(",")])
        return cls(path, model, encoder, known, model.encoding_.dates, _ids_in(metadata))

    def conformed(self, table: pd.DataFrame, unknown: str, kept: Sequence[str] = ()) -> pd.DataFrame:
        """The columns that the model uses, typed; of the others, those that are kept beside predictions are not mentioned."""
        needed = {column.name for column in self.encoder.columns_} | {date.name for date in self.dates}
        aside = {
            *([] if self.target is None else self.target.columns),
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
        return self.known_target.of_rows(table, getattr(self.model, "classes_", None))

    @property
    def target_names(self) -> tuple[str, ...]:
        """Names of the targets, if there are several and the file names them."""
        return () if self.target is None else self.target.names

    def shown_target(self, wanted: str | None) -> int | None:
        """The place of the one target that is asked for among several; None where there is one only."""
        names = self.known_target.columns
        if wanted == ",".join(names) and len(names) > 1:  # a model of Python, whose targets had to be named
            warnings.warn(f"the report is about {names[0]!r}, the first of {len(names)} targets.", UserWarning, stacklevel=2)
            return 0
        if len(names) > 1 and (wanted is None or wanted not in names):
            raise InputError(f"the model has {len(names)} targets; choose one with --target: {quoted(names)}.")
        if wanted not in (None, *names):
            raise InputError(f"--target {wanted!r} is not the target of the model, {names[0]!r}.")
        return None if len(names) == 1 or wanted is None else names.index(wanted)

    @property
    def known_target(self) -> Target:
        """The target, if the file names it."""
        if self.target is None:
            raise InputError(
                f"{self.path!r} was saved from Python and does not name its target; say which column it is: --target COLUMN."
            )
        return self.target


def _target_in(metadata: dict[str, Any]) -> Target | None:
    """The target that a file of ``kstonet fit`` names."""
    target = metadata.get("target")
    if target is None:
        return None
    try:
        found = Target(**target | {"names": tuple(target.get("names", ()))})
    except (AttributeError, TypeError) as error:
        raise ModelFileError(f"the target in its metadata is {target!r:.80}.") from error
    check_record(found)
    return found


def _ids_in(metadata: dict[str, Any]) -> tuple[str, ...]:
    """The columns that a file of ``kstonet fit`` names as labels of the rows."""
    ids = metadata.get("ids", [])
    if not fits(ids, list[str]):
        raise ModelFileError(f"the columns of labels in its metadata are {ids!r:.80}.")
    return tuple(ids)


def refuse_table(path: str) -> None:
    """Say so where a table is given in place of a model."""
    if Path(path).suffix.lower() in FORMATS and Path(path).is_file():
        raise InputError(
            f"{path!r} is a table, but a model file comes first: kstonet COMMAND MODEL. Train one with "
            f"'kstonet fit {path} --target COLUMN'."
        )
