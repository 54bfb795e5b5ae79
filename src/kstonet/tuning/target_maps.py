"""Whether a skewed target is learned as its square root or logarithm.

Prices, counts and concentrations often have effects and errors that grow with their size. The family of kernels that opens a
choice is fitted to the target as it is, to its root and to its logarithm, and its left-out predictions are judged in the units
of the target. The judge is the continuous ranked probability score of left-out predictions with the distribution of their
residuals: squared errors of such targets are those of a few rows, and tell hardly anything. Of 250 real tables with up to 1,500
training rows 67 are transformed: root mean squared errors on their new rows are 0.971 of those without, 95 % interval scores
0.937 (45 tables of 300 rows: 0.944 and 0.889; ``benchmarks/many_tables.py``). Of 124 tables with a skewed target the squared
error as a judge brought half as much, and whole choices instead of their opening were no better judges.
"""

from __future__ import annotations

import numpy as np

from kstonet.problem import Problem
from kstonet.scaling import Scaler
from kstonet.target_map import MAPS, NAMES
from kstonet.targets import NumericTargets
from kstonet.threads import single_threaded
from kstonet.tuning.contest import FEWEST_PER_SCALE, MOST_ROWS
from kstonet.tuning.judging import Rows
from kstonet.tuning.opening import LEAD, opened
from kstonet.tuning.spread import spread_order
from kstonet.tuning.stationary import FAMILIES
from kstonet.tuning.views import View

SKEWED = 0.5  # skewness from which maps are tried
BETTER = 0.97  # score with a map over that without, below which it is taken,
SURELY = 2.0  # if the difference is so many standard errors,
WORSE, SURELY_WORSE = 1.1, 1.0  # and the squared error neither so many times as large nor by so many standard errors larger
QUANTILES = (np.arange(50) + 0.5) / 50  # of the residuals, of which a left-out prediction is made a distribution


def chosen_map(problem: Problem) -> tuple[str, str]:
    """The map under which the target is learned best.

    Parameters
    ----------
    problem : Problem
        Training rows of positive weight, with their target as it is.

    Returns
    -------
    kind : {"none", "sqrt", "log"}
        "none" also for several targets, targets that may be negative, and those that are not skewed.
    why : str
        In words, to go on after the reason of a choice; empty where no map was tried.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.problem import Problem, Rows
    >>> from kstonet.targets import NumericTargets
    >>> from kstonet.tuning.target_maps import chosen_map
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 2))
    >>> y = np.exp(X[:, 0] + 0.3 * rng.normal(size=200))
    >>> chosen_map(Problem.of(Rows(X, y), NumericTargets))[0]
    'log'
    """
    targets, y = problem.targets, problem.rows.y
    if not isinstance(targets, NumericTargets) or targets.n_outputs > 1 or problem.rows.pairwise or y.min() < 0.0:
        return "none", ""
    if not _skewness(y.ravel(), problem.weights) > SKEWED:
        return "none", ""
    order = spread_order(problem.targets.judged(problem.outputs, problem.weights))[:MOST_ROWS]
    with single_threaded():
        plain, *mapped = (_left_out(problem.mapped(kind), order) for kind in ("none", *MAPS))
    weights = None if problem.weights is None else problem.weights[order[: len(plain[0])]]
    found = {kind: _compared(own, plain, weights) for kind, own in zip(MAPS, mapped, strict=True)}
    known = {kind: ratio for kind, (ratio, better) in found.items() if better}
    if known:
        kind = min(known, key=known.__getitem__)
        score = f"left-out predictions have {known[kind]:.2g} of the score (CRPS) that they have otherwise"
        return kind, f"; the target is learned as its {NAMES[kind]}: {score}"
    return "none", "; the target is learned as it is: neither its square root nor its logarithm is clearly easier to predict"


def _left_out(problem: Problem, order: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ranked probability scores and squared errors of left-out predictions, in units of the target, for the first rows."""
    targets = problem.targets
    assert isinstance(targets, NumericTargets)
    judged = Scaler.fit(problem.outputs, problem.weights)
    rows = Rows(problem.X, judged.forward(problem.outputs), problem.weights, groups=problem.rows.groups).take(order)
    many = len(rows) / rows.n_scales >= FEWEST_PER_SCALE
    guide = opened(rows, View(), np.arange(len(rows)), FAMILIES[LEAD], many).guide
    errors = guide.fit.errors
    truth = rows.Y[: len(errors)]
    values = truth - errors + np.quantile(errors, QUANTILES)  # a row for every prediction, a column for every residual
    drawn = targets.unsmeared(judged.backward(values))
    away = targets.unsmeared(judged.backward(truth)) - drawn
    scores = 2.0 * np.maximum(QUANTILES * away, (QUANTILES - 1.0) * away).mean(axis=1)
    return scores, away.mean(axis=1) ** 2


def _compared(
    own: tuple[np.ndarray, np.ndarray], plain: tuple[np.ndarray, np.ndarray], weights: np.ndarray | None
) -> tuple[float, bool]:
    """The score with a map over that without, and whether the map is better."""
    (score, further), (squared, worse) = (_ratio(a, b, weights) for a, b in zip(own, plain, strict=True))
    return score, score < BETTER and further < -SURELY and squared < WORSE and worse < SURELY_WORSE


def _ratio(own: np.ndarray, plain: np.ndarray, weights: np.ndarray | None) -> tuple[float, float]:
    """The ratio of two mean losses of the same rows, and their difference in standard errors."""
    more = own - plain
    mean, before = (float(np.average(values, weights=weights)) for values in (more, plain))
    share = 1.0 / len(more) if weights is None else weights / weights.sum()
    error = float(np.sqrt(np.sum((share * (more - mean)) ** 2)))
    return 1.0 + mean / (before or 1.0), mean / (error or 1.0)


def _skewness(y: np.ndarray, weights: np.ndarray | None) -> float:
    away = y - np.average(y, weights=weights)
    size = np.sqrt(np.average(away**2, weights=weights))
    return float(np.average(away**3, weights=weights) / size**3) if size > 0.0 else 0.0
