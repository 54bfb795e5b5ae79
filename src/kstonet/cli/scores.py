"""Scores of predictions on rows whose target is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.console import Group, RenderableType
from sklearn.metrics import log_loss, matthews_corrcoef

from kstonet import KStoNetClassifier
from kstonet._words import counted
from kstonet.cli.output import titled
from kstonet.metrics import brier_score, coverage, crps_student, expected_calibration_error, mean_width, nll_student

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
    """

    rows: int
    values: dict[str, float | None]
    intervals: list[dict[str, float]]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"rows": self.rows} | self.values | ({"intervals": self.intervals} if self.intervals else {})

    @property
    def said(self) -> str:
        """The main scores in one line."""
        main = [name for name in ("rmse", "r2", "accuracy", "log_loss") if self.values.get(name) is not None]
        text = f"{counted(self.rows, 'row')}: " + ", ".join(f"{TITLES[name][0]} {self.values[name]:.4g}" for name in main)
        widest = self.intervals[-1:]
        return text + "".join(f", {each['level']:.0%} intervals cover {each['coverage']:.1%}" for each in widest)

    def shown(self) -> RenderableType:
        """All scores as tables."""
        table = titled(f"Scores on {counted(self.rows, 'row')}", "score", "value", "what it is", right=("value",))
        for name, value in self.values.items():
            title, meaning = TITLES[name]
            table.add_row(title, "not defined" if value is None else f"{value:.4g}", meaning)
        if not self.intervals:
            return table
        headings = ("nominal", "covered", "mean width")
        second = titled("Prediction intervals", *headings, right=headings)
        for each in self.intervals:
            second.add_row(f"{each['level']:.0%}", f"{each['coverage']:.1%}", f"{each['mean_width']:.4g}")
        return Group(table, second)


def score(model: Any, X: Any, y: np.ndarray) -> Scores:
    """Compute the scores of a fitted model."""
    values, intervals = _of_classes(model, X, y) if isinstance(model, KStoNetClassifier) else _of_numbers(model, X, y)
    return Scores(len(y), {name: None if value is None else float(value) for name, value in values.items()}, intervals)


def _of_numbers(model: Any, X: Any, y: np.ndarray) -> tuple[dict[str, Any], list[dict[str, float]]]:
    has_intervals = model.trained_.has_intervals
    distribution = model.predict_dist(X) if has_intervals else None
    mean = model.predict(X) if distribution is None else distribution.mean
    spread = float(((y - y.mean()) ** 2).mean())
    error = float(((y - mean) ** 2).mean())
    values: dict[str, Any] = {"rmse": np.sqrt(error), "r2": 1.0 - error / spread if spread > 0 else None}
    if distribution is None:
        return values, []
    values["nll"] = nll_student(y, mean, distribution.std, distribution.df) if (distribution.std > 0).all() else None
    values["crps"] = crps_student(y, mean, distribution.std, distribution.df)
    bounds = distribution.interval(LEVELS)
    return values, [
        {"level": level, "coverage": float(coverage(y, bounds[:, :, k])), "mean_width": float(mean_width(bounds[:, :, k]))}
        for k, level in enumerate(LEVELS)
    ]


def _of_classes(model: Any, X: Any, y: np.ndarray) -> tuple[dict[str, Any], list[dict[str, float]]]:
    p = model.predict_proba(X)
    right = model.classes_[p.argmax(axis=1)] == y
    return {
        "accuracy": right.mean(),
        "balanced_accuracy": np.mean([right[y == label].mean() for label in np.unique(y)]),
        "mcc": matthews_corrcoef(y, model.classes_[p.argmax(axis=1)]),
        "log_loss": log_loss(y, p, labels=model.classes_),
        "brier": brier_score(y, p, labels=model.classes_),
        "ece": expected_calibration_error(y, p, labels=model.classes_),
    }, []
