"""Many kernels and values of C at little cost: the first layer alone, a support vector regression of the targets.

Its solution for all values of C comes from one kernel matrix in one solve, a fraction of one iteration of training. What suits
the SVR suits the network that is built on it; the few best go on to be trained.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import to_numpy
from kstonet.gram import Gram
from kstonet.gram.dense import cross_blocks
from kstonet.solvers.svr import solve_svr

TOLERANCE = 3e-3  # relative duality gap: enough to rank
MAX_ITER = 300


def svr_errors(
    gram: Gram,
    fit: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    look: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    C: Sequence[float],
    epsilon: float,
) -> np.ndarray:
    """Mean squared error at the rows looked at, of the SVRs with every C; shape (len(C),).

    Parameters
    ----------
    gram : Gram
        Of the rows to fit on, on the device that solves.
    fit, look : tuple of (X, Y, weights or None)
        Standardised rows; the errors of several targets are averaged.
    C : sequence of float
    epsilon : float
    """
    X, Y, weights = fit
    X_look, Y_look, look_weights = look
    k = Y.shape[1]
    errors = np.empty(len(C))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a C that is hard to solve for is ranked as far as it came
        solution = solve_svr(
            gram,
            gram.array(np.tile(Y.T, (len(C), 1))),
            np.repeat(C, k),
            epsilon,
            sample_weight=weights,
            tol=TOLERANCE,
            max_iter=MAX_ITER,
        )
    coef, intercept = to_numpy(solution.coef), to_numpy(solution.intercept)
    predicted = np.concatenate([values @ coef.T for _, values in cross_blocks(gram.kernel, X_look, X)]) + intercept
    for i in range(len(C)):
        squared = ((predicted[:, i * k : (i + 1) * k] - Y_look) ** 2).mean(axis=1)
        errors[i] = np.average(squared, weights=look_weights)
    return errors
