"""The sections of a regressor."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import norm

from kstonet.metrics import coverage, mean_width, winkler_score
from kstonet.metrics.gaussian import LEVELS
from kstonet.plotting.inputs import Predicted
from kstonet.plotting.width_error import binned_means
from kstonet.report.cautions import RARE, Caution, chance_range, wrong_coverage
from kstonet.report.charts import axis, chart, figure, grid, mark, sample_note, sampled
from kstonet.report.comparison import CLEARLY, Comparison, difference, ranking
from kstonet.report.conditional import LEVEL, conditional_table
from kstonet.report.hardest import Column, hardest_section
from kstonet.report.inputs import Subject
from kstonet.report.markup import Markup, element, fixed, number, paragraph, percent, places_for, table
from kstonet.report.sources import sources_section

ASKED = (0.8, 0.9, 0.95)
Z95 = float(norm.ppf(0.975))


@dataclass(frozen=True)
class RegressionView:
    """A regressor at the rows it is evaluated on."""

    subject: Subject

    # -- predictions ---------------------------------------------------------------------------------------------------------

    @cached_property
    def predicted(self) -> Predicted | None:
        """The predictive distribution, where the model has intervals."""
        if not self.subject.has_intervals:
            return None
        return Predicted(self.subject.model.predict_dist(self.subject.rows.encoded()), self.subject.column)

    @cached_property
    def mean(self) -> np.ndarray:
        """Predicted means."""
        return self._means(self.subject.rows.encoded()) if self.predicted is None else self.predicted.mean

    @cached_property
    def intervals(self) -> dict[float, np.ndarray]:
        """Intervals (n, 2) by coverage."""
        if self.predicted is None:
            return {}
        bounds = self.predicted.interval(np.array(ASKED))
        return {level: bounds[:, :, k] for k, level in enumerate(ASKED)}

    def _means(self, encoded: Any) -> np.ndarray:
        values = np.asarray(self.subject.model.predict(encoded))
        return values.reshape(len(values), -1)[:, self.subject.column]

    @property
    def errors(self) -> np.ndarray:
        """Observed minus predicted."""
        return np.asarray(self.subject.y - self.mean)

    @property
    def standardised(self) -> np.ndarray | None:
        """Errors in predicted standard deviations."""
        return None if self.predicted is None else self.errors / np.maximum(self.predicted.std, 1e-300)

    # -- inputs of the effects -----------------------------------------------------------------------------------------------

    @property
    def outputs(self) -> np.ndarray:
        """What is predicted, (n, 1)."""
        return self.mean[:, None]

    def loss(self, encoded: Any, y: np.ndarray) -> float:
        """Root mean squared error."""
        return _rmse(y - self._means(encoded))

    def curves(self, encoded: Any) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Means with the confidence interval of the mean."""
        name = f"predicted {self.subject.target}"
        if not self.subject.has_intervals:
            mean = self._means(encoded)
            return {name: (mean, mean, mean)}
        known = Predicted(self.subject.model.predict_dist(encoded).of_mean, self.subject.column)
        return {name: (known.mean, known.mean - Z95 * known.std, known.mean + Z95 * known.std)}

    @property
    def effect_words(self) -> dict[str, str]:
        """Words for the section on feature effects."""
        band = (
            "The band is the mean of the 95 % confidence intervals of the model's mean, without the noise of the data: it is "
            "wide where the model does not know."
        )
        return {"loss": f"RMSE of {self.subject.target}", "band": band if self.subject.has_intervals else "", "style": ""}

    # -- sections ------------------------------------------------------------------------------------------------------------

    def headline(self) -> list[tuple[str, str, str]]:
        """The numbers at the top: value, name, explanation."""
        y, error = self.subject.y, self.errors
        found = [
            (number(_r2(y, error)), "R²", "share of the variance explained"),
            (number(_rmse(error)), "RMSE", f"typical error, in units of {self.subject.target}"),
        ]
        if self.intervals:
            bounds = self.intervals[0.95]
            found += [
                (percent(coverage(y, bounds)), "covered", "of the rows lie in their 95 % interval"),
                (number(mean_width(bounds)), "mean width", "of the 95 % intervals"),
            ]
        return found

    def scores(self, comparison: Comparison) -> list[Markup]:
        """Scores beside the simpler models', and observed against predicted values."""
        y = self.subject.y
        errors = {self.subject.name: self.errors} | {name: y - answer for name, answer in comparison.answers.items()}
        rmse = {name: _rmse(error) for name, error in errors.items()}
        mae = {name: float(np.abs(error).mean()) for name, error in errors.items()}
        places = places_for(np.array([*rmse.values(), *mae.values()]))
        rows = [[name, fixed(_r2(y, e), 3), fixed(rmse[name], places), fixed(mae[name], places)] for name, e in errors.items()]
        return [
            paragraph(self._verdict(comparison)),
            grid(
                element(
                    "div",
                    table(["model", "R²", "RMSE", "mean abs. error"], rows, caption="Scores on the rows of this report"),
                    _rmse_chart(errors, self.subject.target),
                ),
                self._agreement_chart(),
            ),
            paragraph(comparison.how, class_="note"),
        ]

    def interval_section(self) -> list[Markup]:
        """Coverage, calibration and sharpness."""
        if self.predicted is None:
            return [paragraph("The model was fitted with residuals=None, without intervals.")]
        y, n = self.subject.y, self.subject.n
        rows = []
        for level, bounds in self.intervals.items():
            low, high = chance_range(n, level)
            width, score = mean_width(bounds), winkler_score(y, bounds, level)
            share = f"{percent(low)} to {percent(high)}"
            rows.append([percent(level, 0), percent(coverage(y, bounds)), share, number(width), number(score)])
        head = ["nominal", "covered", "by chance", "mean width", "interval score"]
        crps = self.predicted.crps(y)
        return [
            paragraph(
                "A 95 % interval should contain 95 of 100 new observations. “By chance” is the range in which the coverage "
                f"of correct intervals on {n:,} independent rows lies with probability 99 %. The interval score is the width "
                "plus a penalty for every observation outside: lower is better."
            ),
            table(head, rows, caption="Prediction intervals"),
            grid(self._calibration_chart(self.predicted), self._width_chart()),
            conditional_table(self.subject, self.mean, self.intervals[LEVEL]),
            paragraph(
                f"Continuous ranked probability score: {number(crps)}, in units of {self.subject.target}.", class_="note"
            ),
        ]

    def uncertainty_section(self) -> list[Markup]:
        """Variance by source."""
        if self.predicted is None:
            return [paragraph("The model was fitted with residuals=None: it has no variances.")]
        return sources_section(self.predicted.variance_by_source, f"variance of a new {self.subject.target}")

    def hardest(self, shown: np.ndarray) -> list[Markup]:
        """The rows with the largest errors."""
        y, mean, z = self.subject.y, self.mean, self.standardised
        columns = [Column("observed", y), Column("predicted", mean)]
        if z is None:
            columns.append(Column("error", self.errors))
            return hardest_section(self.subject, np.abs(self.errors), columns, shown, what="error", flagged=None)
        bounds = self.intervals[0.95]
        columns += [Column("95 % from", bounds[:, 0]), Column("to", bounds[:, 1]), Column("std. residual", z, places=2)]
        outside = (y < bounds[:, 0]) | (y > bounds[:, 1])
        flagged = ("only outside the 95 % interval", outside)
        return hardest_section(self.subject, np.abs(z), columns, shown, what="standardised residual", flagged=flagged)

    def cautions(self, comparison: Comparison) -> list[Caution]:
        """Warnings about these predictions."""
        found: list[Caution | None] = [self._rival_caution(comparison)]
        if self.intervals and not self.subject.on_training_rows:
            observed = {level: float(coverage(self.subject.y, bounds)) for level, bounds in self.intervals.items()}
            found.append(wrong_coverage(self.subject.n, observed))
        if self.intervals and not np.isfinite(self.intervals[0.95]).all():
            found.append(Caution("Unbounded intervals", "The model was calibrated on too few rows; 95 % needs at least 19."))
        z = self.standardised
        if z is not None:
            found += [_bias(z, self.errors, self.subject.target), _tails(z)]
        return [caution for caution in found if caution is not None]

    # -- pieces --------------------------------------------------------------------------------------------------------------

    def _best_rival(self, comparison: Comparison) -> tuple[str, float, float, float]:
        """The best simpler model, its mean squared error, and the difference of the errors with its standard error."""
        squared = {name: (self.subject.y - answer) ** 2 for name, answer in comparison.answers.items()}
        best = min(squared, key=lambda name: float(squared[name].mean()))
        return best, float(squared[best].mean()), *difference(self.errors**2, squared[best])

    def _verdict(self, comparison: Comparison) -> str:
        best, theirs, gap, spread = self._best_rival(comparison)
        change = np.sqrt(max(0.0, theirs + gap) / theirs) - 1.0 if theirs > 0 else 0.0
        size = f"{percent(abs(change))} {'below' if change < 0 else 'above'} that of the best simpler model ({best})"
        sure = "a significant difference" if abs(gap) > CLEARLY * spread else "not a significant difference"
        return f"The RMSE is {size}, {sure} on {self.subject.n:,} rows."

    def _rival_caution(self, comparison: Comparison) -> Caution | None:
        best, _, gap, spread = self._best_rival(comparison)
        if gap <= CLEARLY * spread or self.subject.on_training_rows:
            return None
        return Caution(
            "A simpler model predicts better",
            f"The simpler model “{best}” has a significantly smaller error here.",
        )

    def _agreement_chart(self) -> Markup:
        drawn = sampled(self.subject.n)
        y, mean = self.subject.y[drawn], self.mean[drawn]
        ends = [float(min(y.min(), mean.min())), float(max(y.max(), mean.max()))]
        labels = [f"row {label}" for label in self.subject.rows.labels(drawn)]
        marks = [mark("line", "muted", x=ends, y=ends, dash=True, name="equal", silent=True)]
        if not self.intervals:
            marks.append(mark("points", x=mean, y=y, tips=labels))
        else:
            low, high = self.intervals[0.95][drawn].T
            inside = (low <= y) & (y <= high)
            for chosen, role, name in ((inside, "muted", "inside the 95 % interval"), (~inside, "accent", "outside")):
                tips = [label for label, wanted in zip(labels, chosen, strict=True) if wanted]
                bounds = {"low": low[chosen], "high": high[chosen], "range": "95 % interval"}
                marks.append(mark("points", role, x=mean[chosen], y=y[chosen], name=name, tips=tips, **bounds))
        target = self.subject.target
        alt = f"Observed against predicted {target}; correlation {number(_correlation(y, mean))}."
        spec = chart(alt, x=axis(f"predicted {target}"), y=axis(f"observed {target}"), marks=marks, shape="square")
        return figure("Observed and predicted", spec, note=sample_note(len(drawn), self.subject.n))

    def _calibration_chart(self, predicted: Predicted) -> Markup:
        n, y = self.subject.n, self.subject.y
        bounds = predicted.interval(LEVELS)
        observed = [float(coverage(y, bounds[:, :, k])) for k in range(len(LEVELS))]
        ranges = np.array([chance_range(n, level) for level in LEVELS])
        gap = float(np.abs(np.array(observed) - LEVELS).mean())
        marks = [
            mark("band", "faint", x=LEVELS, low=ranges[:, 0], high=ranges[:, 1], name="by chance"),
            mark("line", "muted", x=[0.0, 1.0], y=[0.0, 1.0], dash=True, silent=True),
            mark("line", x=LEVELS, y=observed, dots=True),
        ]
        spec = chart(
            f"Observed against nominal coverage from 5 % to 95 %; the mean distance from the diagonal is {percent(gap)}.",
            x=axis("nominal", style="percent", domain=(0.0, 1.0)),
            y=axis("covered", style="percent", domain=(0.0, 1.0)),
            marks=marks,
            shape="square",
        )
        note = f"Below the diagonal the model is overconfident. Mean distance {percent(gap)}."
        return figure("Calibration", spec, note=note)

    def _width_chart(self) -> Markup | None:
        low, high = self.intervals[0.95].T
        half, error = 0.5 * (high - low), np.abs(self.errors)
        if not np.isfinite(half).all():
            return None
        drawn = sampled(self.subject.n)
        centre, mean, reach = binned_means(half, error, 10)
        edge = [float(half.min()), float(half.max())]
        labels = [f"row {label}" for label in self.subject.rows.labels(drawn)]
        marks = [
            mark("points", "muted", x=half[drawn], y=error[drawn], tips=labels, name="a row"),
            mark("line", "muted", x=edge, y=edge, dash=True, silent=True, name="edge of the interval"),
            mark("segments", x=centre, low=np.maximum(mean - reach, 0.0), high=mean + reach),
            mark("points", x=centre, y=mean, name="mean of a tenth of the rows", big=True),
        ]
        related = _correlation(half, error)
        spec = chart(
            f"Absolute error against half the width of the 95 % interval; correlation {number(related, 2)}.",
            x=axis("half the width of the 95 % interval"),
            y=axis("absolute error", zero=True),
            marks=marks,
            shape="square",
        )
        note = " ".join(
            filter(None, ["Where intervals are wide, errors should be large.", sample_note(len(drawn), self.subject.n)])
        )
        return figure("Width against error", spec, note=note)


def _rmse(error: np.ndarray) -> float:
    return float(np.sqrt((error**2).mean()))


def _r2(y: np.ndarray, error: np.ndarray) -> float:
    spread = float(y.var())
    return float(1.0 - (error**2).mean() / spread) if spread > 0 else float("nan")


def _correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.corrcoef(a, b)[0, 1]) if a.std() > 0 and b.std() > 0 else float("nan")


def _rmse_chart(errors: dict[str, np.ndarray], target: str) -> Markup:
    """Points with the 95 % confidence interval of every RMSE, by the delta method."""
    rmse = np.array([_rmse(error) for error in errors.values()])
    spread = np.array([(error**2).std(ddof=1) / np.sqrt(len(error)) for error in errors.values()])
    reach = Z95 * spread / (2.0 * np.maximum(rmse, 1e-300))
    listed = ", ".join(f"{name} {number(value)}" for name, value in zip(errors, rmse, strict=True))
    x, scores = axis(f"RMSE of {target}", zero=True), (rmse, np.maximum(rmse - reach, 0.0), rmse + reach)
    return ranking("Error of the model and of simpler ones", f"Root mean squared error: {listed}.", list(errors), scores, x)


def _bias(z: np.ndarray, errors: np.ndarray, target: str) -> Caution | None:
    """Warn if the mean error differs significantly from zero."""
    limit = float(norm.ppf(1.0 - RARE / 2))
    if abs(errors.mean()) <= limit * errors.std(ddof=1) / np.sqrt(len(errors)) or abs(z.mean()) < 0.1:
        return None
    way = "low" if errors.mean() > 0 else "high"
    return Caution(f"Predictions are too {way} on average", f"By {number(abs(errors.mean()))}, in units of {target}.")


def _tails(z: np.ndarray) -> Caution | None:
    """Warn if more errors exceed three standard deviations than under a normal distribution."""
    share, expected = float((np.abs(z) > 3.0).mean()), 2.0 * float(norm.sf(3.0))
    if share <= max(0.01, chance_range(len(z), expected)[1]):
        return None
    return Caution(
        "Errors have long tails",
        f"{percent(share)} of the errors are larger than three standard deviations; under a normal distribution it would be "
        f"{percent(expected)}. model.calibrate() adapts the intervals to the errors.",
        serious=False,
    )
