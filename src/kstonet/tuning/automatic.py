"""The automatic choice: kernel, width, relevance of the features and ridge, from the training rows, at a bounded price.

Every candidate is judged by the leave-one-out error of its kernel ridge regression (:mod:`~kstonet.tuning.screening_ridge`):

1. one family, in the middle between rough and smooth, with one width for all features and then with a scale per feature, by the
   evidence, on few rows; where features have heavy tails, also with these drawn in, and then with features bent as the
   evidence prefers (:mod:`~kstonet.tuning.opening`): the best of these ways is kept;
2. every other family from there: its own width, then a few steps of the evidence, for what is relevant to one family is nearly
   what is relevant to another;
3. the best of them by the evidence on more rows; where these are few for the features, also with the relevance that the
   gradients of a regression show, if it holds on rows it was not learned from (:mod:`~kstonet.tuning.sparse`);
4. the best of these by the leave-one-out error itself, on rows that the evidence has not seen, where there are enough of them,
   and half way between both;
5. what is left on all rows (up to a bound, which is higher for classes), with more and with less ridge; for classes, one width
   for all features also narrower, for it comes from few rows, and more of them show finer structure;
6. for a regression, the best of them along directions instead of features (:mod:`~kstonet.tuning.directions`), and of all that
   was judged on these rows those that are best together (:mod:`~kstonet.tuning.verdict`).

Where no candidate is better than the mean of the targets, by more than luck, the answer is a kernel with so much ridge that
it nearly predicts the mean.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kstonet.tuning.choice import Choice
from kstonet.tuning.contest import Contest
from kstonet.tuning.judging import Rows, best_of_families
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.stationary import FAMILIES
from kstonet.tuning.verdict import choice_of, stacked_choice


def automatic_choice(
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None = None,
    *,
    groups: np.ndarray | None = None,
    loss: LeftOutLogLoss | None = None,
    kernels: Sequence[str] = tuple(FAMILIES),
    thorough: bool = False,
    together: int = 1,
    worth: float = 0.0,
    directions: bool = False,
    n_jobs: int | None = None,
) -> Choice:
    """Kernel and ridge for standardised rows.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Standardised features.
    Y : ndarray of shape (n, k)
        Standardised targets; indicators of classes, standardised.
    weights : ndarray of shape (n,), optional
        Weights of the rows; rows of weight zero do not take part.
    groups : ndarray of int of shape (p,), optional
        Features of the same number share a length scale: the columns of a category.
    loss : LeftOutLogLoss, optional
        Judges the candidates by the log loss of left-out classes, where the columns are indicators of classes.
    kernels : sequence of str
        Names of the families to choose from.
    thorough : bool
        Whether the leave-one-out error guides the scales of all families, for more steps and on up to ``THOROUGH_ROWS`` rows,
        and more candidates along directions are tried: several times the price.
    together : int, default=1
        Up to how many kernels may be chosen that are better together than the best alone.
    worth : float, default=0.0
        Share of the squared error by which they have to be better. Where it is not zero, the best is alone otherwise, and does
        not take turns with the second best.
    directions : bool, default=False
        Whether kernels along directions instead of features are tried where one kernel is chosen; with several they always are.
    n_jobs : int, optional
        Number of threads, as in joblib; the result does not depend on it.

    Returns
    -------
    Choice

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).normal(size=(120, 3))
    >>> choice = automatic_choice(X, np.sin(2 * X[:, :1]) / 0.7)
    >>> choice.signal, choice.kernel.length_scale[1] > 3 * choice.kernel.length_scale[0]
    (True, True)
    """
    every = Rows(np.asarray(X, dtype=np.float64), np.asarray(Y, dtype=np.float64), weights, loss, groups=groups)
    if weights is not None:
        every = every.take(np.flatnonzero(weights > 0))
    contest = Contest(every, kernels, thorough=thorough, several=together > 1, n_jobs=n_jobs)
    turned = together > 1 or directions
    plain, axes = contest.on_few_rows()
    learned = contest.on_more_rows(axes)
    finalists = best_of_families([*learned, *plain, *contest.sparse(plain)])
    promising = finalists[0].score < 1.0  # that of the mean of the targets
    machines, aside = contest.otherwise([*learned, *axes]) if turned and promising else ([], [])
    finalists, polish = contest.to_polish(finalists, plain, learned)
    by_machines, polished, seen_otherwise = contest.done(machines, polish, aside)  # what takes longest goes first
    if polish:
        finalists = contest.blended(finalists, polished)
    best = contest.settled(finalists, plain)
    chosen = choice_of(best, contest.final, contest.opening.seen, contest.table)
    if not turned or not chosen.signal:
        return chosen
    rivals = [*best, *contest.on_most_rows(finalists), *by_machines, *seen_otherwise]
    return stacked_choice(chosen, rivals, contest.most, together, worth)
