"""Sets of classes that hold the true one with a given probability: adaptive prediction sets from out-of-sample probabilities.

The score of a class is the probability of all classes that are more probable (Romano, Sesia and Candès 2020, without their
randomisation): zero for the most probable class, near one for an unlikely one. A set holds every class whose score is at most
the quantile of the scores that the true classes of other rows have. It is never empty, and large where the probabilities are
spread out. Where the most probable class is right more often than the coverage asks for, sets hold that class alone.
"""

from __future__ import annotations

import numpy as np


def set_scores(probabilities: np.ndarray) -> np.ndarray:
    """The probability of the classes that are more probable, for every row and class (n, k).

    Examples
    --------
    >>> import numpy as np
    >>> set_scores(np.array([[0.2, 0.5, 0.3]])).round(2)
    array([[0.8, 0. , 0.5]])
    """
    order = np.argsort(-probabilities, axis=1, kind="stable")
    ranked = np.take_along_axis(probabilities, order, axis=1)
    scores = np.empty_like(probabilities)
    np.put_along_axis(scores, order, np.maximum(np.cumsum(ranked, axis=1) - ranked, 0.0), axis=1)
    return scores


def set_thresholds(probabilities: np.ndarray, codes: np.ndarray, coverage: np.ndarray, class_conditional: bool) -> np.ndarray:
    """The largest scores that sets hold, shape (classes, levels).

    Parameters
    ----------
    probabilities : ndarray of shape (n, k)
        Those of rows that the model was not fitted on.
    codes : ndarray of int of shape (n,)
        Their classes.
    coverage : ndarray of shape (levels,)
    class_conditional : bool
        Whether every class has a threshold of its own, from its own rows. It is infinite where these are too few, so that the
        class is in every set.

    Examples
    --------
    >>> import numpy as np
    >>> probabilities = np.array([[0.6, 0.4]] * 9)
    >>> codes = np.array([0, 0, 0, 0, 0, 0, 1, 1, 1])
    >>> set_thresholds(probabilities, codes, np.array([0.5, 0.8]), False).round(2)
    array([[0. , 0.6],
           [0. , 0.6]])
    """
    scores = set_scores(probabilities)[np.arange(len(codes)), codes]
    n_classes = probabilities.shape[1]
    own = [scores[codes == c] for c in range(n_classes)] if class_conditional else [scores]
    rows = [_quantiles(np.sort(part), coverage) for part in own]
    return np.stack(rows) if class_conditional else np.repeat(rows[0][None], n_classes, axis=0)


def _quantiles(scores: np.ndarray, coverage: np.ndarray) -> np.ndarray:
    """The ⌈(n + 1)·coverage⌉-th smallest score; infinite where there are too few."""
    rank = np.ceil((len(scores) + 1) * coverage - 1e-9).astype(int)
    return np.asarray(np.append(scores, np.inf)[np.clip(rank, 1, len(scores) + 1) - 1])
