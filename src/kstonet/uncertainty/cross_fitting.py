"""Honest predictions of the training rows: the chain goes on a little with some rows hidden from every refit.

Five folds, three iterations each. The first refit without a row takes the pull of its own latent value away; the next ones
what its neighbours' latent values had learnt from it. Kernel matrix, factor and warm starts are those of the training, so this
costs 15 iterations and not five trainings. On simulated data the error of these predictions is that of new rows to within a
few per cent, where leaving rows out of the last refit alone stays up to five per cent below it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kstonet.iro import IROSettings, IROState, iro

FOLDS, ITERATIONS = 5, 3


def cross_fitted(
    state: IROState, inputs: Any, outputs: np.ndarray, settings: IROSettings, sample_weight: np.ndarray | None
) -> np.ndarray:
    """Outputs (n, k) of every training row from networks that did not see it lately.

    Parameters
    ----------
    state : IROState
        Where the training ended.
    inputs, outputs, settings, sample_weight
        Those of the training.

    Returns
    -------
    ndarray of shape (n, k)
        Averaged over the iterations after the first.
    """
    n = len(outputs)
    order = np.random.default_rng(0).permutation(n)
    predictions = np.empty_like(state.network.forward(inputs)[-1])
    for k in range(min(FOLDS, n)):
        fold = order[k::FOLDS]
        weights = np.ones(n) if sample_weight is None else sample_weight.copy()
        weights[fold] = 0.0
        if not weights.any():  # a single row has nobody to learn from
            predictions[fold] = state.network.forward(inputs)[-1][fold]
            continue
        loop = iro(inputs, outputs, state, settings, weights)
        ends = [next(loop).network.forward(inputs)[-1][fold] for _ in range(ITERATIONS)]
        predictions[fold] = np.mean(ends[1:], axis=0)
    return predictions
