"""Scores of predictions on rows whose target is known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from sklearn.metrics import log_loss, matthews_corrcoef

from kstonet import KStoNetClassifier
from kstonet._words import counted
from kstonet.cli.output import titled
from kstonet.metrics import brier_score, coverage, expected_calibration_error, mean_width
from kstonet.plotting.inputs import Predicted

LEVELS = (0.8, 0.9, 0.95)

#: Names and descriptions of the scores.
TITLES = {
    "rmse": ("RMSE", "root mean squared error"),
    "r2": ("R²", "share of the variance explained"),
    "nll": ("NLL", "negative log-likelihood per row, lower is better"),
    "crps": ("CRPS", "error of the predicted distribution, in units of the target"),
    "accuracy": ("accuracy", "share of rows with the right class"),
    "balanced_accuracy": ("balanced accuracy", "the same, averaged over the classes"),
    "mcc": ("MCC", "Matthews correlation, 1 is perfect and 0 chance"),
    "log_loss": ("log loss", "negative log-likelihood per row, lower is better"),
    "brier": ("Brier score", "squared error of the probabilities, lower is better"),
    "ece": ("ECE", "calibration error: distance between confidence and accuracy"),
}


@dataclass(frozen=True)
class Scores:
    """Scores on some rows; undefined scores (R² of one row) are None.

    Parameters
    ----------
    rows : int
        Number of rows.
    values : dict
        Value of every score.
    intervals : list of dict
        Level, coverage and mean width of prediction intervals.
    targets : dict of Scores
        Those of every target, if there are several; then ``values`` are means over the targets.
    """

    rows: int
    values: dict[str, float | None]
    intervals: list[dict[str, float]]
    targets: dict[str, Scores] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        own = {"rows": self.rows} | self.values | ({"intervals": self.intervals} if self.intervals else {})
        return own | ({"targets": {name: each.to_dict() for name, each in self.targets.items()}} if self.targets else {})

    @property
    def said(self) -> str:
        """The main scores in one line."""
        parts = [each._line(f"{name!r} ") for name, each in self.targets.items()] or [self._line("")]
        return f"{counted(self.rows, 'row')}: {'; '.join(parts)}"

    def _line(self, name: str) -> str:
        main = [each for each in ("rmse", "r2", "accuracy", "log_loss") if self.values.get(each) is not None]
        text = name + ", ".join(f"{TITLES[each][0]} {self.values[each]:.4g}" for each in main)
        widest = self.intervals[-1:]
        return text + "".join(f", {each['level']:.0%} intervals cover {each['coverage']:.1%}" for each in widest)

    def shown(self) -> RenderableType:
        """All scores as tables."""
        shown = self.targets or {"value": self}
        table = titled(f"Scores on {counted(self.rows, 'row')}", "score", *shown, "what it is", right=tuple(shown))
        for name in next(iter(shown.values())).values:
            title, meaning = TITLES[name]
            found = (each.values[name] for each in shown.values())
            table.add_row(title, *("not defined" if value is None else f"{value:.4g}" for value in found), meaning)
        if not self.intervals:
            return table
        endings = [f", {name}" for name in self.targets] or [""]
        headings = ("nominal", *(f"{word}{end}" for end in endings for word in ("covered", "mean width")))
        second = titled("Prediction intervals", *headings, right=headings)
        for k, level in enumerate(LEVELS):
            of_level = [each.intervals[k] for each in shown.values()]
            cells = [text for own in of_level for text in (f"{own['coverage']:.1%}", f"{own['mean_width']:.4g}")]
            second.add_row(f"{level:.0%}", *cells)
        return Group(table, second)


def score(model: Any, X: Any, y: np.ndarray, targets: Sequence[str] = ()) -> Scores:
    """Compute the scores of a fitted model; ``targets`` are the names of several."""
    if isinstance(model, KStoNetClassifier):
        return _scores(len(y), _of_classes(model, X, y), [])
    distribution = model.predict_dist(X) if model.trained_.has_intervals else None
    means = model.predict(X) if distribution is None else distribution.mean
    means = means.reshape(len(means), -1)
    parts = [
        _scores(len(y), *_of_numbers(own, means[:, j], None if distribution is None else Predicted(distribution, j)))
        for j, own in enumerate(y.reshape(len(y), -1).T)
    ]
    if not targets:
        return parts[0]
    r2 = [part.values["r2"] for part in parts]
    values = {"r2": None if None in r2 else float(np.mean(r2))}  # type: ignore[arg-type]  # the others have the units of a target
    intervals = [
        {"level": level, "coverage": float(np.mean([part.intervals[k]["coverage"] for part in parts]))}
        for k, level in enumerate(LEVELS if distribution is not None else ())
    ]
    return Scores(len(y), values, intervals, dict(zip(targets, parts, strict=True)))


def _scores(rows: int, values: dict[str, Any], intervals: list[dict[str, float]]) -> Scores:
    return Scores(rows, {name: None if value is None else float(value) for name, value in values.items()}, intervals)


def _of_numbers(y: np.ndarray, mean: np.ndarray, predicted: Predicted | None) -> tuple[dict[str, Any], list[dict[str, float]]]:
    spread = float(((y - y.mean()) ** 2).mean())
    error = float(((y - mean) ** 2).mean())
    values: dict[str, Any] = {"rmse": np.sqrt(error), "r2": 1.0 - error / spread if spread > 0 else None}
    if predicted is None:
        return values, []
    nll = predicted.nll(y)
    values["nll"] = nll if nll is not None and np.isfinite(nll) else None
    values["crps"] = predicted.crps(y)
    bounds = predicted.interval(np.array(LEVELS))
    return values, [
        {"level": level, "coverage": float(coverage(y, bounds[:, :, k])), "mean_width": float(mean_width(bounds[:, :, k]))}
        for k, level in enumerate(LEVELS)
    ]


def _of_classes(model: Any, X: Any, y: np.ndarray) -> dict[str, Any]:
    p = model.predict_proba(X)
    right = model.classes_[p.argmax(axis=1)] == y
    return {
        "accuracy": right.mean(),
        "balanced_accuracy": np.mean([right[y == label].mean() for label in np.unique(y)]),
        "mcc": matthews_corrcoef(y, model.classes_[p.argmax(axis=1)]),
        "log_loss": log_loss(y, p, labels=model.classes_),
        "brier": brier_score(y, p, labels=model.classes_),
        "ece": expected_calibration_error(y, p, labels=model.classes_),
    }
