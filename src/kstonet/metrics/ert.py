"""How far coverage depends on the features: the excess risk of the target coverage (ERT)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from kstonet._checks import Floats, check_choice, check_level, check_numbers, require, whole_number
from kstonet.metrics.intervals import inside

NEVER = 1e-6  # the smallest probability of the logarithmic loss


def _absolute(p: Floats, covered: Floats, level: float) -> Floats:
    """-sign(p - level)·(covered - level): its expectation is smallest, -|P - level|, for p on the side of P."""
    return np.asarray(np.sign(level - p) * (covered - level))


def _squared(p: Floats, covered: Floats, level: float) -> Floats:
    return np.asarray((p - covered) ** 2)


def _logarithmic(p: Floats, covered: Floats, level: float) -> Floats:
    inner = np.clip(p, NEVER, 1.0 - NEVER)
    return np.asarray(-covered * np.log(inner) - (1.0 - covered) * np.log1p(-inner))


LOSSES: dict[str, Callable[[Floats, Floats, float], Floats]] = {
    "absolute": _absolute,
    "squared": _squared,
    "log": _logarithmic,
}


def conditional_coverage_error(
    y_true: ArrayLike,
    interval: ArrayLike,
    X: ArrayLike,
    coverage: float,
    *,
    loss: str = "absolute",
    classifier: Any = None,
    n_splits: int = 5,
    random_state: int | None = 0,
) -> float:
    """How far the coverage at single rows is from the nominal one: excess risk of the target coverage (ERT).

    A classifier learns from the features whether an observation is inside its interval. Where intervals are right everywhere,
    it can do no better on other rows than the constant nominal coverage. What it gains estimates, by cross-validation, a
    distance between the coverage at a row, P(x), and the nominal one, from below: E|P(x) - coverage| for the absolute loss,
    E(P(x) - coverage)² for the squared one, and the mean Kullback-Leibler divergence for the logarithmic one. Without rows to
    spare, and with a classifier that finds nothing, the result is zero or a little less.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed values.
    interval : array of shape (n, 2)
        Lower and upper bounds, as ``predict_interval`` returns them.
    X : array of shape (n, p)
        Features.
    coverage : float
        Nominal coverage of the intervals.
    loss : {"absolute", "squared", "log"}, default="absolute"
        What the classifier gains is measured in.
    classifier : classifier with ``predict_proba``, optional
        If not given, scikit-learn's histogram gradient boosting with 50 small trees.
    n_splits : int, default=5
        Folds of the cross-validation; the result is the mean over the folds.
    random_state : int or None, default=0
        Seed of the folds.

    Returns
    -------
    float

    See Also
    --------
    worst_slab_coverage, coverage_by_quantile, coverage_by_group

    References
    ----------
    Braun, Berta, Jordan and Bach (2025), Conditional coverage diagnostics for conformal prediction; package ``covmetrics``.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(size=(2000, 1))
    >>> y = X[:, 0] * rng.normal(size=2000)
    >>> flat = np.tile([-0.95, 0.95], (2000, 1))  # 90 % on average
    >>> right = 1.645 * X * [-1, 1]
    >>> [round(conditional_coverage_error(y, each, X, 0.9), 1) for each in (flat, right)]
    [0.1, 0.0]
    """
    covered = inside(y_true, interval, single=True)[0].astype(np.float64)
    rows = check_numbers("X", X)
    if rows.ndim != 2 or len(rows) != len(covered):
        raise ValueError(f"X has shape {rows.shape}; it must be ({len(covered)}, p), one row for each of y_true.")
    level = float(check_level("coverage", coverage))
    check_choice("loss", loss, tuple(LOSSES))
    n_splits = whole_number("n_splits", n_splits, 2)
    require("n_splits", n_splits, lambda v: v <= len(rows), f"at most the number of rows, {len(rows)}")
    from sklearn.model_selection import KFold  # these two are expensive to import, and few need them

    if classifier is None:
        from sklearn.ensemble import HistGradientBoostingClassifier

        classifier = HistGradientBoostingClassifier(
            max_iter=50, max_leaf_nodes=8, learning_rate=0.05, l2_regularization=1.0, early_stopping=False, random_state=0
        )
    of = LOSSES[loss]
    gains = []
    for train, test in KFold(n_splits, shuffle=True, random_state=random_state).split(rows):
        if len(np.unique(covered[train])) == 1:  # nothing to tell apart
            p = np.full(len(test), covered[train][0])
        else:
            p = clone(classifier).fit(rows[train], covered[train]).predict_proba(rows[test])[:, 1]
        gains.append(float(np.mean(of(np.full(len(test), level), covered[test], level) - of(p, covered[test], level))))
    return float(np.mean(gains))
