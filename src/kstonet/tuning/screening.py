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
from kstonet.solvers.svr import solve_svr

TOLERANCE = 3e-3  # relative duality gap: enough to rank
MAX_ITER = 300


def svr_errors(
    gram: Gram,
    fit: tuple[np.ndarray, np.ndarray | None],
    validation: tuple[np.ndarray, np.ndarray, np.ndarray | None],
    C: Sequence[float],
    epsilon: float,
) -> np.ndarray:
    """Mean squared error on the validation rows, of the SVRs with every C; shape (len(C),).

    Parameters
    ----------
    gram : Gram
        The Gram of the rows to fit on.
    fit : tuple of (Y, weights or None)
        Standardised targets of these rows; the errors of several targets are averaged.
    validation : tuple of (X, Y, weights or None)
        Standardised rows and targets.
    C : sequence of float
        Weights of the loss to try.
    epsilon : float
        Half-width of the tube.
    """
    Y, weights = fit
    X_validation, Y_validation, validation_weights = validation
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
    predicted = np.concatenate([to_numpy(values) @ coef.T for _, values in gram.cross(X_validation)]) + intercept
    for i in range(len(C)):
        squared = ((predicted[:, i * k : (i + 1) * k] - Y_validation) ** 2).mean(axis=1)
        errors[i] = np.average(squared, weights=validation_weights)
    return errors
