"""Training of a model on a table."""

from __future__ import annotations

import json
import time
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._words import counted, did_you_mean, quoted, some
from kstonet.cli.output import Output
from kstonet.cli.progress import TUNE, undisturbed, watched
from kstonet.cli.scores import Scores, score
from kstonet.cli.survey import survey
from kstonet.cli.target import CLASSIFICATION, Target, find_columns
from kstonet.gram import kernel_names
from kstonet.tables import InputError, TableEncoder
from kstonet.tables.columns import BOOLEAN, CATEGORY, NUMBER
from kstonet.tables.dates import DateColumn, with_dates

FEWEST_ROWS = 10


@dataclass(frozen=True)
class Split:
    """Inputs and target of a table, split into training rows and held-out rows.

    ``held_out`` and ``held_out_y`` are empty if no rows are held out.
    """

    target: Target
    encoder: TableEncoder
    X: pd.DataFrame
    y: np.ndarray
    held_out: pd.DataFrame
    held_out_y: np.ndarray
    dates: tuple[DateColumn, ...] = ()
    ids: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """Description of the table."""
        kinds = [column.kind for column in self.encoder.columns_]
        groups = [counted(kinds.count(kind), kind) for kind in (NUMBER, BOOLEAN) if kind in kinds]
        categories = [column for column in self.encoder.columns_ if column.kind == CATEGORY]
        groups += [some(f"{c.name!r} ({counted(len(c.categories), 'category', 'categories')})" for c in categories)]
        return f"{counted(len(self.X), 'row')}, {counted(len(kinds), 'column')}: {', '.join(filter(None, groups))}"


def split_table(
    table: pd.DataFrame,
    wanted: str | None,
    *,
    task: str = "auto",
    drop: list[str] | None = None,
    categorical: list[str] | None = None,
    impute: bool = False,
    holdout: float = 0.0,
    seed: int = 0,
    dates: list[str] | None = None,
    ids: list[str] | None = None,
    command: str = "kstonet fit",
) -> Split:
    """Find the target, encode the rest, hold rows out; ``command`` is what the user typed, for a suggestion."""
    target_names = find_columns(table, wanted)
    for option, names in (("drop", drop), ("categorical", categorical), ("dates", dates), ("id", ids)):
        for name in names or ():
            if name not in table.columns:
                raise InputError(
                    f"--{option} names {name!r}, not a column; the table has {quoted(table.columns)}."
                    f"{did_you_mean(name, table.columns)}"
                )
    features = table.drop(columns=list(dict.fromkeys([*target_names, *(drop or ()), *(ids or ())])))
    known = tuple(DateColumn.of(features[name]) for name in dates or () if name in features.columns)
    features = with_dates(features, list(known))
    if features.columns.empty:
        raise InputError(f"the table has no column besides the target {quoted(target_names)}; add columns to predict it from.")
    target = Target.of_table(table, target_names, task)
    y = target.of_rows(table)
    found = survey(features, impute=impute, categorical=categorical or [])
    found.refuse(command)
    if len(table) < FEWEST_ROWS:
        raise InputError(
            f"the table has {counted(len(table), 'row')}; a model that can be relied on needs at least {FEWEST_ROWS}, and "
            "intervals need some dozens."
        )
    for remark in found.remarks:
        warnings.warn(remark, UserWarning, stacklevel=2)
    held = _held_out(y if target.task == CLASSIFICATION else np.zeros(len(y)), holdout, seed)
    encoder = TableEncoder(impute=impute, categorical=categorical or ()).fit(features[~held])
    X, held_out = (encoder.conform(features[rows], unknown="ignore") for rows in (~held, held))
    return Split(target, encoder, X, y[~held], held_out, y[held], known, tuple(ids or ()))


def sampled(table: pd.DataFrame, rows: int | None, seed: int) -> pd.DataFrame:
    """Some rows of a table, drawn at random; they keep their order and numbers.

    Examples
    --------
    >>> len(sampled(pd.DataFrame({"a": range(9)}), 4, seed=0)), len(sampled(pd.DataFrame({"a": range(9)}), None, seed=0))
    (4, 9)
    """
    if rows is None or rows >= len(table):
        return table
    chosen = np.random.default_rng(seed).permutation(len(table))[:rows]
    return table.iloc[np.sort(chosen)]


def _held_out(groups: np.ndarray, share: float, seed: int) -> np.ndarray:
    """Rows to hold out: the same share of every class, drawn at random."""
    if not 0.0 <= share < 1.0:
        raise InputError(f"--holdout {share:g} must be a share of the rows, at least 0 and below 1.")
    order = np.random.default_rng(seed).permutation(len(groups))
    held = np.zeros(len(groups), dtype=bool)
    for group in np.unique(groups):
        members = order[groups[order] == group]
        held[members[: round(share * len(members))]] = len(members) > 1
    if share > 0 and not 0 < held.sum() < len(held):
        raise InputError(
            f"--holdout {share:g} of {counted(len(groups), 'row')} leaves no rows for training or no rows for testing."
        )
    return held


def parse_units(text: str | None) -> Any:
    """Units of the hidden layers; None where they are not given.

    Examples
    --------
    >>> parse_units("5"), parse_units("10,5"), parse_units("tune")
    ((5,), (10, 5), 'tune')
    """
    if text is None or text == TUNE:
        return text
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise InputError(
            f"--units {text!r} must be a whole number such as 5, or several such as 10,5 for several layers."
        ) from None


def parse_number(name: str, text: str | None, *words: str) -> Any:
    """A number, or one of some words; None where it is not given.

    Examples
    --------
    >>> parse_number("gamma", "0.5", "scale"), parse_number("gamma", "scale", "scale")
    (0.5, 'scale')
    """
    if text is None or text in words:
        return text
    try:
        return float(text)
    except ValueError:
        raise InputError(f"--{name} {text!r} must be a number or {', '.join(words)}.") from None


def parse_kernel(text: str | None) -> str | None:
    """The name of a kernel of features; None where it is not given.

    Examples
    --------
    >>> parse_kernel("matern32"), parse_kernel("tune"), parse_kernel(None)
    ('matern32', 'tune', None)
    """
    known = [name for name in kernel_names() if name != "precomputed"]
    if text is None or text == TUNE or text in known:
        return text
    raise InputError(f"--kernel {text!r} must be one of {', '.join(known)}, or {TUNE}.")


def parse_settings(given: list[str] | None) -> dict[str, Any]:
    """Parameters of the estimators by name; values are written as in JSON, other text is text.

    Examples
    --------
    >>> parse_settings(["penalty=mcp", "n_chains=3", "hidden_layer_sizes=[10, 5]"])
    {'penalty': 'mcp', 'n_chains': 3, 'hidden_layer_sizes': (10, 5)}
    """
    known = sorted(set(KStoNetRegressor().get_params()) - {"callback", "verbose"})
    found: dict[str, Any] = {}
    for text in given or ():
        name, sign, value = (part.strip() for part in text.partition("="))
        if not sign or name not in known:
            raise InputError(f"--set {text!r} must be NAME=VALUE; names are {', '.join(known)}.{did_you_mean(name, known)}")
        try:
            parsed = json.loads(value)
        except ValueError:
            parsed = {"True": True, "False": False, "None": None}.get(value, value)
        found[name] = tuple(parsed) if isinstance(parsed, list) else parsed
    return found


def new_model(target: Target, **parameters: Any) -> Any:
    """The estimator of a task, before it is fitted."""
    return (KStoNetClassifier if target.task == CLASSIFICATION else KStoNetRegressor)(**parameters)


@dataclass(frozen=True)
class Training:
    """A finished or interrupted training."""

    model: Any
    seconds: float
    interrupted: bool
    held_out: Scores | None


def train(output: Output, model: Any, split: Split) -> Training:
    """Fit with a progress bar; Ctrl-C ends the training and keeps the iterations so far."""
    watch = {"X_val": split.held_out, "y_val": split.held_out_y} if len(split.held_out) else {}
    started = time.perf_counter()
    with watched(output, model) as interrupted:
        try:
            model.fit(split.X, split.y, **watch)
        except KeyboardInterrupt:
            if not hasattr(model, "n_iter_"):
                raise
        stopped = interrupted()
        seconds = time.perf_counter() - started
        with undisturbed():
            if stopped:
                _settle(output, model)
            scores = score(model, split.held_out, split.held_out_y, split.target.names) if watch else None
    # In Python, the model reads tables like this one: by the names of their columns, with dates.
    model.encoding_ = replace(model.encoding_, by_name=True, dates=split.dates)
    return Training(model, seconds, stopped, scores)


def _settle(output: Output, model: Any) -> None:
    """Say so where an interruption came before the intervals were computed: the model then predicts means only."""
    if model.residuals is not None and not model.trained_.has_intervals:
        output.note("the training was interrupted before the intervals were prepared: the model predicts without them.")


def save_model(training: Training, split: Split, path: str) -> None:
    """Write the model with the encoding of its table."""
    model, known = training.model, split.encoder
    metadata = {
        "table": TableEncoder.of(model.encoding_, known.names_, impute=known.impute).to_dict(),
        "target": split.target.to_dict(),
        "ids": list(split.ids),
        "training": {"rows": len(split.X), "seconds": training.seconds, "interrupted": training.interrupted},
        "held_out": training.held_out.to_dict() if training.held_out else None,
    }
    with undisturbed():
        kstonet.save(model, path, metadata=metadata)


@dataclass(frozen=True)
class ChosenValues:
    """What ``fit`` chose from the training rows, and why; empty where it chose nothing."""

    values: dict[str, Any]
    reason: str | None


def choice_of(model: Any) -> ChosenValues:
    """The values that a fitted model has chosen; a stored one may lack the reason."""
    return ChosenValues(getattr(model, "tuned_", {}), getattr(model, "tuning_", {}).get("reason"))


def plain(value: Any) -> Any:
    """A value for JSON: arrays become lists, other objects their names."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple | np.ndarray):
        return [plain(item) for item in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else repr(value)
