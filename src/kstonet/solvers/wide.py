"""Penalised least squares with more predictors than rows: the Gram matrix of all predictors is never formed.

Quadratic penalties have a closed form in the singular values of the design. The others have at most about as many predictors
with a weight as there are rows: a problem on a few predictors is solved, those that violate the optimality conditions most are
added, and so on until none does. What is returned is certified on all predictors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy.linalg import svd

from kstonet.solvers.penalties import Floats, Penalty

FEWEST = 20  # predictors that are added at once
Descend = Callable[[Floats, Floats, Penalty, Floats, Floats], tuple[Floats, Floats, int]]


def wide_closed_form(F: Floats, T: Floats, ridge: Floats, mean: Floats) -> Floats:
    """(FᵀF + ridge)⁻¹FᵀT with one ridge per output; of minimum norm where that inverse does not exist.

    The Gram squares the condition number; the singular values of the design distinguish small ones from zero.

    Parameters
    ----------
    F : ndarray of shape (n, q)
        Centred predictors.
    T : ndarray of shape (n, k)
        Centred targets.
    ridge : ndarray of shape (k,)
    mean : ndarray of shape (q,)
        What was subtracted from the predictors: it says how large rounding is.
    """
    left, singular, right = svd(F, full_matrices=False, check_finite=False)
    rounding = np.finfo(np.float64).eps * np.hypot(singular[0], np.linalg.norm(mean))  # of the data before centring
    kept = singular > max(F.shape) * rounding
    left, singular, right = left[:, kept], singular[kept][:, None], right[kept]
    return np.asarray(right.T @ (singular / (singular**2 + ridge) * (left.T @ T)))


def wide_descent(
    F: Floats, T: Floats, penalty: Penalty, W: Floats, scale: Floats, tol: float, descend: Descend
) -> tuple[Floats, Floats, int]:
    """Minimise ½|T - FW|² + P(W) from a start; return the weights, their relative KKT violation and the passes.

    Parameters
    ----------
    F : ndarray of shape (n, q)
        Centred and weighted predictors.
    T : ndarray of shape (n, k)
        Centred and weighted targets.
    penalty : Penalty
    W : ndarray of shape (q, k)
        Where to start.
    scale : ndarray of shape (k,)
        What violations are relative to.
    tol : float
        Largest relative violation.
    descend : callable
        Solves the problem on a few predictors: ``descend(gram, linear, penalty, W, scale)``.
    """
    found, passes = [], 0
    for j in range(T.shape[1]):  # outputs have different predictors
        own = penalty if np.ndim(penalty.alpha) == 0 else replace(penalty, alpha=penalty.alpha[j : j + 1])
        column = slice(j, j + 1)
        weights, kkt, more = _one_output(F, T[:, column], own, W[:, column], scale[column], tol, descend)
        found.append((weights, kkt))
        passes = max(passes, more)
    return np.hstack([weights for weights, _ in found]), np.concatenate([kkt for _, kkt in found]), passes


def _one_output(
    F: Floats, T: Floats, penalty: Penalty, W: Floats, scale: Floats, tol: float, descend: Descend
) -> tuple[Floats, Floats, int]:
    chosen = np.flatnonzero(W[:, 0])
    passes, solved = 0, False
    while True:
        violation = penalty.subgradient_distance(W, F.T @ (F @ W - T))[:, 0] / scale
        outside = violation.copy()
        outside[chosen] = 0.0
        if solved and outside.max() <= max(tol, violation[chosen].max(initial=0.0)):
            return W, violation.max(keepdims=True), passes
        added = np.argsort(-outside, kind="stable")[: max(FEWEST, len(chosen))]
        chosen = np.union1d(chosen, added[outside[added] > 0.0])
        few = F[:, chosen]
        part, _, more = descend(few.T @ few, few.T @ T, penalty, W[chosen], scale)
        W = np.zeros_like(W)
        W[chosen] = part
        passes, solved = passes + more, True
