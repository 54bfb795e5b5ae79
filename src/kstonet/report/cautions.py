"""Warnings of the report. Every rule is a function of a few numbers and states its threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binom
from sklearn.neighbors import NearestNeighbors

from kstonet._words import counted
from kstonet.report.charts import sampled
from kstonet.report.fitted import has_squared_loss, support_share
from kstonet.report.inputs import Subject
from kstonet.report.markup import percent

RARE = 0.01  # probability that a rule warns by chance alone
FEW_ROWS, FEW_TRAINING_ROWS = 100, 50
NEARLY_ALL = 0.95
FALL, RISE = 0.02, 0.05  # of the loss from one stretch of the training to another
FAR = 0.99  # quantile of the training rows' own distances
MOST_NEIGHBOURS = 2000


@dataclass(frozen=True)
class Caution:
    """One warning or remark.

    Parameters
    ----------
    title, text : str
        Heading and text of the warning.
    serious : bool
        Whether the results on the page may be misleading. If False, the text is a remark.
    """

    title: str
    text: str
    serious: bool = True


def general_cautions(subject: Subject) -> list[Caution]:
    """Return the warnings that apply to every kind of model."""
    found = [
        _training_rows(subject),
        _few_training_rows(subject.n_train),
        _few_rows(subject.n),
        still_falling(np.array([record["loss"] for record in subject.model.history_])),
        risen(_validation(subject.model), len(subject.model.trained_.uppers)),
        _unsolved(subject.model),
        _far_rows(subject),
        _support(subject),
        _residuals(subject.model),
    ]
    return [caution for caution in found if caution is not None]


def chance_range(n: int, level: float) -> tuple[float, float]:
    """Range of the observed share in n rows with probability 99 %, if the true share is ``level``.

    Examples
    --------
    >>> low, high = chance_range(400, 0.95)
    >>> round(low, 3), round(high, 3)
    (0.92, 0.975)
    """
    low, high = binom.ppf([RARE / 2, 1.0 - RARE / 2], n, level) / n
    return float(low), float(high)


def wrong_coverage(n: int, observed: dict[float, float]) -> Caution | None:
    """Warn if intervals cover significantly too few or too many rows."""
    low = [level for level, share in observed.items() if share < chance_range(n, level)[0]]
    high = [level for level, share in observed.items() if share > chance_range(n, level)[1]]
    if not low and not high:
        return None
    level = (low or high)[-1]
    if low:
        title, meaning = "The intervals are too narrow", "The model is overconfident here; model.calibrate() widens them."
    else:
        title, meaning = "The intervals are too wide", "The model is underconfident here; model.calibrate() narrows them."
    low_end, high_end = chance_range(n, level)
    return Caution(
        title,
        f"The {percent(level, 0)} intervals contain {percent(observed[level])} of the rows. With the nominal coverage this "
        f"share would lie between {percent(low_end)} and {percent(high_end)} with probability 99 %. {meaning}",
    )


def still_falling(loss: np.ndarray) -> Caution | None:
    """Warn if training has not converged: the mean loss of the last quarter is significantly below that of the one before."""
    quarter = len(loss) // 4
    if quarter < 2:
        return None
    before, after = loss[-2 * quarter : -quarter], loss[-quarter:]
    fall = float(before.mean() - after.mean())
    scatter = float(np.sqrt((before.var(ddof=1) + after.var(ddof=1)) / quarter))
    if fall <= FALL * before.mean() or fall <= 3.0 * scatter:
        return None
    return Caution(
        "The loss is still falling",
        f"It fell by {percent(fall / before.mean())} from the third to the last quarter of the training. More iterations "
        f"(max_iter={2 * len(loss)}) may improve the model.",
    )


def _training_rows(subject: Subject) -> Caution | None:
    if subject.seen is None:
        return Caution(
            "The training rows are not known",
            "The model does not store them and X_train is not given, so the report cannot tell whether the model was "
            "trained on these rows.",
            serious=False,
        )
    if subject.on_training_rows:
        return Caution(
            "These are the training rows",
            "The model was trained on all of them, so the scores are too good, and the coverage is higher than on new rows. "
            "Use test rows instead.",
        )
    share = float(subject.seen.mean())
    if share < 0.05:
        return None
    return Caution(
        "Some rows are training rows",
        f"{counted(int(subject.seen.sum()), 'row')} of {subject.n:,} ({percent(share, 0)}) have exactly the features of a "
        "training row. If they are the same rows, the scores are too good.",
    )


def _few_training_rows(n: int | None) -> Caution | None:
    if n is None or n >= FEW_TRAINING_ROWS:
        return None
    return Caution("Few training rows", f"The model was trained on {counted(n, 'row')} only.")


def _few_rows(n: int) -> Caution | None:
    if n >= FEW_ROWS:
        return None
    low, high = chance_range(n, 0.95)
    return Caution(
        "Few rows to evaluate on",
        f"With {counted(n, 'row')}, shares are imprecise: correct 95 % intervals contain between {percent(low, 0)} and "
        f"{percent(high, 0)} of them by chance.",
    )


def risen(path: np.ndarray, window: int) -> Caution | None:
    """Warn if the validation loss was significantly lower in an earlier window of iterations."""
    if len(path) < 2 * window or window < 2 or not np.isfinite(path).all():
        return None
    windows = np.lib.stride_tricks.sliding_window_view(path, window)[: len(path) - 2 * window + 1]  # those before the last one
    best = windows[windows.mean(axis=1).argmin()]
    last = path[-window:]
    rise = float(last.mean() - best.mean())
    scatter = float(np.sqrt((last.var(ddof=1) + best.var(ddof=1)) / window))
    if rise <= RISE * best.mean() or rise <= 3.0 * scatter:
        return None
    return Caution(
        "The loss of the validation rows has risen",
        f"It is {percent(rise / best.mean(), 0)} higher at the end of the training than before: the model has begun to "
        "overfit. Stop earlier with tol, or lower C.",
    )


def _validation(model: Any) -> np.ndarray:
    return np.array([float(record.get("validation_loss", np.nan)) for record in model.history_])


def _unsolved(model: Any) -> Caution | None:
    gap, wanted = model.history_[-1].get("svr_gap", np.nan), getattr(model, "svr_tol", np.inf)
    if not gap > 1.5 * wanted:  # nan for models without support vectors
        return None
    return Caution(
        "The first layer is not solved to its tolerance",
        f"The last duality gap is {gap:.1e}, larger than svr_tol={wanted:g}.",
    )


def far_share(rows: np.ndarray, reference: np.ndarray) -> float:
    """Share of rows that are farther from the training rows than 99 % of the training rows are from each other.

    The distance is that to the nearest training row.

    Examples
    --------
    >>> import numpy as np
    >>> grid = np.arange(200.0)[:, None]
    >>> far_share(grid[:100] + 0.5, grid), far_share(grid[:100] - 500.0, grid)
    (0.0, 1.0)
    """
    reference = reference[sampled(len(reference), MOST_NEIGHBOURS)]
    index = NearestNeighbors(n_neighbors=1).fit(reference)
    usual = np.quantile(index.kneighbors()[0], FAR)  # without arguments, a row is not its own neighbour
    return float((index.kneighbors(rows)[0] > usual).mean())


def _far_rows(subject: Subject) -> Caution | None:
    if subject.reference is None or len(subject.reference) < 2 or subject.on_training_rows:
        return None
    share = far_share(subject.model.trained_.scaler.forward(subject.rows.matrix()), subject.reference)
    if share <= max(0.05, chance_range(subject.n, 1.0 - FAR)[1]):
        return None
    return Caution(
        "Rows far from the training data",
        f"{percent(share, 0)} of the rows lie farther from their nearest training row than 99 % of the training rows do. "
        "Predictions there are extrapolations, and their intervals stop growing at some distance.",
    )


def _support(subject: Subject) -> Caution | None:
    share = support_share(subject)
    if share is None or share[-1] < NEARLY_ALL or has_squared_loss(subject.model):
        return None
    return Caution(
        "Nearly all training rows are support vectors",
        f"{percent(share[-1], 0)} per unit: epsilon={subject.model.epsilon!r} is small compared with the variation of the "
        "hidden values. This does not affect the predictions; a larger epsilon makes a smaller and faster model.",
        serious=False,
    )


def _residuals(model: Any) -> Caution | None:
    texts = {
        None: (
            "No intervals",
            "The model was fitted with residuals=None. Fit with residuals='crossfit' to get intervals.",
            False,
        ),
        "training": (
            "Intervals from training residuals",
            "residuals='training' takes the noise from training residuals, and intervals are too narrow where the model nearly "
            "interpolates. Fit with residuals='crossfit'.",
            True,
        ),
    }
    residuals = model.trained_.residuals
    if residuals not in texts or (residuals == "training" and hasattr(model, "classes_")):
        return None
    return Caution(*texts[residuals])
