"""The sections of a classifier."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.metrics import confusion_matrix, f1_score, precision_recall_fscore_support

from kstonet.metrics import brier_score, classwise_ece, expected_calibration_error
from kstonet.plotting.reliability import share_interval
from kstonet.report.cautions import RARE, Caution
from kstonet.report.charts import axis, grid
from kstonet.report.comparison import CLEARLY, Comparison, difference, ranking
from kstonet.report.hardest import Column, hardest_section
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup, element, fixed, number, paragraph, percent, scrolling, table
from kstonet.report.probability_charts import confidence_figure, interval_figure, reliability_figure, width_figure
from kstonet.report.sources import sources_section

FEW_OF_A_CLASS = 10
WIDE = 0.5  # for an interval of a probability
SIMULATIONS = 400
MOST_CLASSES = 12  # in the confusion matrix: a larger one cannot be read


@dataclass(frozen=True)
class ClassificationView:
    """A classifier at the rows it is evaluated on."""

    subject: Subject

    # -- predictions ---------------------------------------------------------------------------------------------------------

    @cached_property
    def proba(self) -> np.ndarray:
        """Probabilities (n, classes)."""
        return np.asarray(self.subject.model.predict_proba(self.subject.rows.encoded()))

    @cached_property
    def intervals(self) -> np.ndarray | None:
        """95 % confidence intervals of the probabilities, (n, classes, 2)."""
        if not self.subject.has_intervals:
            return None
        return np.asarray(self.subject.model.predict_proba_interval(self.subject.rows.encoded(), 0.95))

    @property
    def classes(self) -> list[str]:
        """Names of the classes."""
        return [str(label) for label in self.subject.model.classes_]

    @cached_property
    def codes(self) -> np.ndarray:
        """The observed classes as numbers."""
        return self._codes(self.subject.y)

    @property
    def winners(self) -> np.ndarray:
        """The predicted classes as numbers."""
        return np.asarray(self.proba.argmax(axis=1))

    @property
    def right(self) -> np.ndarray:
        """Whether the predicted class of a row is correct."""
        return np.asarray(self.winners == self.codes)

    def _codes(self, labels: np.ndarray) -> np.ndarray:
        return np.searchsorted(self.subject.model.classes_, labels)

    def _of_winner(self, values: np.ndarray) -> np.ndarray:
        """The entry of the predicted class of (n, classes, ...) values."""
        return np.asarray(values[np.arange(len(values)), self.winners])

    def log_odds_variances(self) -> dict[str, np.ndarray]:
        """Variance of the log-odds of the predicted class, by source."""
        model = self.subject.model
        variances = model.trained_.log_odds_variances(model._check_X(self.subject.rows.encoded()))
        return {name: self._of_winner(part) for name, part in variances.items()}

    # -- inputs of the effects -----------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> np.ndarray:
        """What is predicted, (n, classes)."""
        return self.proba

    def loss(self, encoded: Any, y: np.ndarray) -> float:
        """Mean negative log-likelihood."""
        return float(_surprise(np.asarray(self.subject.model.predict_proba(encoded)), self._codes(y)).mean())

    def curves(self, encoded: Any) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """The probability of every class with its interval; of two classes the second tells all."""
        model = self.subject.model
        proba = model.predict_proba(encoded)
        bounds = model.predict_proba_interval(encoded) if self.subject.has_intervals else np.stack([proba, proba], axis=2)
        shown = range(1, 2) if len(self.classes) == 2 else range(len(self.classes))
        return {f"probability of {self.classes[k]}": (proba[:, k], bounds[:, k, 0], bounds[:, k, 1]) for k in shown}

    @property
    def effect_words(self) -> dict[str, str]:
        """Words for the section on feature effects."""
        band = "The band is the mean of the 95 % intervals of the probability: it is wide where the model does not know."
        return {"loss": "log loss", "band": band if self.subject.has_intervals else "", "style": "percent"}

    # -- sections ------------------------------------------------------------------------------------------------------------

    def headline(self) -> list[tuple[str, str, str]]:
        """The numbers at the top: value, name, explanation."""
        found = [
            (percent(self.right.mean()), "accuracy", "of the rows are predicted correctly"),
            (number(_surprise(self.proba, self.codes).mean()), "log loss", "lower is better; 0 is perfect"),
            (percent(self._ece), "calibration error", "between confidence and accuracy (ECE)"),
        ]
        if self.intervals is not None:
            width = np.diff(self._of_winner(self.intervals), axis=1)[:, 0].mean()
            found.append((percent(width), "mean width", "of the 95 % intervals of the winning probability"))
        return found

    def scores(self, comparison: Comparison) -> list[Markup]:
        """Scores beside the simpler models', the confusion matrix, and the classes one by one."""
        y = self.subject.y
        answers = {self.subject.name: self.subject.model.classes_[self.winners], **comparison.answers}
        right = {name: answer == y for name, answer in answers.items()}
        f1 = {name: f1_score(y, answer, average="macro", zero_division=0) for name, answer in answers.items()}
        rows = [[name, percent(hits.mean()), fixed(f1[name], 3)] for name, hits in right.items()]
        return [
            paragraph(self._verdict(comparison)) if comparison.answers else Markup(),
            grid(
                _accuracy_chart(right),
                table(["model", "accuracy", "mean F1"], rows, caption="Scores on the rows of this report"),
            ),
            paragraph(comparison.how, class_="note"),
            grid(self._confusion(), self._per_class()),
        ]

    def interval_section(self) -> list[Markup]:
        """Reliability of the probabilities, and their intervals."""
        lead = (
            "Of the rows that are predicted with a probability of 80 %, 80 % should be correct. The calibration error (ECE) "
            f"is the mean distance between the two. It is {percent(self._ece)} here; a perfectly calibrated model would have "
            f"up to {percent(self._chance_ece)} by chance."
        )
        p = self._of_winner(self.proba)
        charts = [reliability_figure(self.right, p), confidence_figure(self.right, p)]
        if self.intervals is not None:
            bounds = self._of_winner(self.intervals)
            charts += [interval_figure(self.right, p, bounds, self.subject.rows), width_figure(self.right, bounds)]
        brier = brier_score(self.subject.y, self.proba, labels=self.subject.model.classes_)
        note = paragraph(f"Brier score of the probabilities: {number(brier)}; lower is better.", class_="note")
        return [paragraph(lead), grid(*charts), note]

    def uncertainty_section(self) -> list[Markup]:
        """Variance of the log-odds of the predicted class, by source."""
        if not self.subject.has_intervals:
            return [paragraph("The model was fitted with residuals=None: it has no variances.")]
        return sources_section(self.log_odds_variances(), "variance of the log-odds of the predicted class")

    def hardest(self, shown: np.ndarray) -> list[Markup]:
        """The rows with the least probable classes."""
        rows, names = np.arange(self.subject.n), np.array(self.classes, dtype=object)
        truth = self.proba[rows, self.codes]
        columns = [
            Column("observed", names[self.codes]),
            Column("predicted", names[self.winners]),
            Column("p(observed)", truth, places=4),
        ]
        if self.intervals is not None:
            low, high = self.intervals[rows, self.codes].T
            columns += [Column("95 % from", low, places=4), Column("to", high, places=4)]
        # The residual of Pearson: (1 - p)/√(p(1 - p)).
        residual = np.sqrt((1.0 - truth) / np.maximum(truth, 1e-12))
        columns.append(Column("std. residual", residual, places=1))
        flagged = ("only wrong predictions", ~self.right)
        return hardest_section(self.subject, residual, columns, shown, what="standardised residual", flagged=flagged)

    def cautions(self, comparison: Comparison) -> list[Caution]:
        """Warnings about these predictions."""
        found = [
            self._rival_caution(comparison),
            self._calibration_caution(),
            self._width_caution(),
            self._class_caution(),
        ]
        return [caution for caution in found if caution is not None]

    # -- pieces --------------------------------------------------------------------------------------------------------------

    @property
    def _ece(self) -> float:
        return expected_calibration_error(self.subject.y, self.proba, labels=self.subject.model.classes_)

    @cached_property
    def _chance_ece(self) -> float:
        """The 99 % quantile of the calibration error of these probabilities, if they are correct."""
        rng, labels = np.random.default_rng(0), np.arange(self.proba.shape[1])
        edges = np.cumsum(self.proba, axis=1)
        found = []
        for _ in range(SIMULATIONS):
            drawn = np.minimum((rng.random((self.subject.n, 1)) > edges).sum(axis=1), labels[-1])
            found.append(expected_calibration_error(drawn, self.proba, labels=labels))
        return float(np.quantile(found, 1.0 - RARE))

    def _best_rival(self, comparison: Comparison) -> tuple[str, float, float]:
        """The best simpler model, and the difference of the accuracies with its standard error."""
        right = {name: answer == self.subject.y for name, answer in comparison.answers.items()}
        best = max(right, key=lambda name: float(right[name].mean()))
        return best, *difference(self.right.astype(float), right[best].astype(float))

    def _verdict(self, comparison: Comparison) -> str:
        best, gap, spread = self._best_rival(comparison)
        if gap == 0:
            return f"The accuracy equals that of the best simpler model ({best})."
        size = f"{100 * abs(gap):.1f} points {'above' if gap > 0 else 'below'} that of the best simpler model ({best})"
        sure = "a significant difference" if abs(gap) > CLEARLY * spread else "not a significant difference"
        return f"The accuracy is {size}, {sure} on {self.subject.n:,} rows."

    def _rival_caution(self, comparison: Comparison) -> Caution | None:
        if not comparison.answers or self.subject.on_training_rows:
            return None
        best, gap, spread = self._best_rival(comparison)
        if gap >= -CLEARLY * spread:
            return None
        return Caution(
            "A simpler model predicts better",
            f"The simpler model “{best}” has a significantly higher accuracy here.",
        )

    def _calibration_caution(self) -> Caution | None:
        if self._ece <= self._chance_ece or self.subject.on_training_rows:
            return None
        way = "high" if self.proba.max(axis=1).mean() > self.right.mean() else "low"
        return Caution(
            f"Probabilities are too {way}",
            f"The calibration error is {percent(self._ece)}; with correct probabilities it would be at most "
            f"{percent(self._chance_ece)} with probability 99 %. model.calibrate(X, y) corrects them with rows set aside.",
        )

    def _width_caution(self) -> Caution | None:
        if self.intervals is None:
            return None
        share = float((np.diff(self._of_winner(self.intervals), axis=1) > WIDE).mean())
        if share < 0.5:
            return None
        return Caution(
            "Intervals of the probabilities are wide",
            f"{percent(share, 0)} of them are wider than {percent(WIDE, 0)}; the section on the sources of uncertainty "
            "shows why.",
            serious=False,
        )

    def _class_caution(self) -> Caution | None:
        sizes = np.bincount(self.codes, minlength=len(self.classes))
        few = [f"{name} ({size})" for name, size in zip(self.classes, sizes, strict=True) if size < FEW_OF_A_CLASS]
        if not few:
            return None
        return Caution("Few rows of a class", f"Scores of these classes are imprecise: {', '.join(few[:8])}.", serious=False)

    def _confusion(self) -> Markup:
        """Rows are the observed classes, columns the predicted ones; shades are shares of the row."""
        counts = confusion_matrix(self.codes, self.winners, labels=np.arange(len(self.classes)))
        shares = counts / np.maximum(counts.sum(axis=1, keepdims=True), 1)
        kept = np.sort(np.argsort(-counts.sum(axis=1), kind="stable")[:MOST_CLASSES])
        counts, shares, names = counts[np.ix_(kept, kept)], shares[np.ix_(kept, kept)], [self.classes[k] for k in kept]
        head = element("tr", element("td"), *(element("th", name, scope="col", class_="number") for name in names))
        body = []
        for name, row, own in zip(names, counts, shares, strict=True):
            cells = [
                element("td", f"{cell:,}", class_=f"number heat-{round(10 * share)}", title=f"{percent(share)} of {name}")
                for cell, share in zip(row, own, strict=True)
            ]
            body.append(element("tr", element("th", name, scope="row"), *cells))
        rest = (
            "" if len(kept) == len(self.classes) else f" The {MOST_CLASSES} largest of {len(self.classes)} classes are shown."
        )
        caption = element("caption", "Confusion matrix")
        inner = element("table", caption, element("thead", head), element("tbody", *body), class_="confusion")
        note = paragraph(f"Rows are the observed classes, columns the predicted ones.{rest}", class_="note")
        return element("div", scrolling(inner, "Confusion matrix"), note)

    def _per_class(self) -> Markup:
        labels = np.arange(len(self.classes))
        precision, recall, f1, sizes = precision_recall_fscore_support(self.codes, self.winners, labels=labels, zero_division=0)
        errors = np.atleast_1d(classwise_ece(self.codes, self.proba, labels=labels, average=None))
        rows = [
            [name, percent(precision[k]), percent(recall[k]), fixed(f1[k], 3), percent(errors[k]), f"{sizes[k]:,}"]
            for k, name in enumerate(self.classes)
        ]
        head = ["class", "precision", "recall", "F1", "ECE", "rows"]
        return table(head, rows, caption="The classes one by one")


def _surprise(proba: np.ndarray, codes: np.ndarray) -> np.ndarray:
    return np.asarray(-np.log(np.maximum(proba[np.arange(len(codes)), codes], 1e-15)))


def _accuracy_chart(right: dict[str, np.ndarray]) -> Markup:
    share = np.array([hits.mean() for hits in right.values()])
    low, high = share_interval(share, np.array([float(len(hits)) for hits in right.values()]))
    listed = ", ".join(f"{name} {percent(value)}" for name, value in zip(right, share, strict=True))
    x = axis("accuracy", style="percent")
    return ranking("Accuracy of the model and of simpler ones", f"Accuracy: {listed}.", list(right), (share, low, high), x)
