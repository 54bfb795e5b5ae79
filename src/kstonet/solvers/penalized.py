"""Penalised least squares for a regression layer, all outputs at once (eq. optsolver2).

The design has many rows and few columns, so the solver works on the centred q × q Gram matrix of the predictors, which is built
once (:mod:`kstonet.solvers.wide` is for the other case). Quadratic penalties have a closed form. The others alternate two steps
for all outputs together: a coordinate-descent pass, which finds the active set, and a Newton step on that set, which is exact
because the penalties are piecewise quadratic. Rows may be tensors on a device: it makes the products with all rows, and NumPy
everything that is as small as the Gram.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import eigh
from scipy.linalg.lapack import dposv  # scipy's wrappers cost more than these small systems
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import Array, beside, dots, floats, to_numpy
from kstonet.solvers.penalties import Floats, NoPenalty, Penalty, make_penalty
from kstonet.solvers.wide import wide_closed_form, wide_descent

CONSTANT = 1e-26  # variance over mean square below which a predictor is constant: the rounding of its mean
GRAM_IS_SAFE = 1e-6  # ratio of extreme eigenvalues down to which the Gram loses no digits that matter
DAMPING = 1e-12  # of the Newton step, relative to each diagonal entry: collinear predictors stay solvable
WIDE = 300  # predictors from which, where they are more than the rows, their Gram matrix is not formed
POLISHED = 1e-13  # relative KKT violation at which an exact solve has nothing left to do
EXCUSED = 1e-6  # relative KKT violation that rounding may leave without a warning


@dataclass(frozen=True)
class PenalizedFit:
    """The result of :func:`solve_penalized`.

    Attributes
    ----------
    weights : array of shape (k, q)
        Fitted weights.
    intercept : array of shape (k,)
        Fitted intercepts.
    active : bool array of shape (k, q)
        Whether a weight is different from zero.
    kkt : array of shape (k,)
        Largest violation of the first-order conditions, relative to max|Fᵀt|/n of the centred data.
    n_iter : int
        Number of coordinate-descent passes; 0 if the closed form or the Newton step sufficed.
    converged : bool
        Whether every ``kkt`` is within ``tol``, or within the rounding error of the gradient and 1e-6.
    """

    weights: Floats
    intercept: Floats
    active: NDArray[np.bool_]
    kkt: Floats
    n_iter: int
    converged: bool


def solve_penalized(
    features: ArrayLike | Array,
    targets: ArrayLike | Array,
    *,
    penalty: str | Penalty,
    alpha: ArrayLike | None = None,
    sample_weight: ArrayLike | None = None,
    start: ArrayLike | None = None,
    tol: float = 1e-8,
    max_iter: int = 1000,
) -> PenalizedFit:
    """Minimise 1/(2Σw)·Σᵢ wᵢ(tᵢⱼ - bⱼ - fᵢ·wⱼ)² + P(wⱼ) for every output j; the intercept is not penalised.

    The scaling is that of :class:`sklearn.linear_model.Lasso`. The paper's eq. (optsolver2) has 1/n·SSE + λ‖·‖₁, so
    λ = 2·alpha.

    Parameters
    ----------
    features : array or tensor of shape (n, q)
        Predictors of the layer; with a tensor, the products of rows are computed on its device.
    targets : array or tensor of shape (n, k)
        Values to be fitted, one column per output.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"} or Penalty
        Ridge is alpha/2·‖w‖², SCAD has a = 3.7, MCP gamma = 3; pass a :class:`~kstonet.solvers.penalties.Penalty` for
        other shapes. ``"none"`` is least squares, of minimum norm if predictors are collinear. Predictors are never
        rescaled: SCAD and MCP are solved in the units given, also where those make the problem non-convex. With ``alpha=0``
        for every output, each of them is ``"none"``.
    alpha : float or array of shape (k,)
        Strength of the penalty, one value for all outputs or one for each. ``"none"`` ignores it.
    sample_weight : array of shape (n,), optional
        Weights of the rows. If not given, all rows have the same weight.
    start : array of shape (k, q), optional
        Weights near the solution. If not given, SCAD and MCP start from the lasso solution, so that they end in a stationary
        point of the kind that the theory of Loh and Wainwright (2015) covers.
    tol : float
        Largest relative violation of the KKT conditions.
    max_iter : int
        Largest number of coordinate-descent passes.

    Returns
    -------
    PenalizedFit

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` was not enough, or if predictors are so nearly collinear that rounding leaves a violation of more than
        1e-6; the message has the cause and the violation reached.

    Examples
    --------
    >>> import numpy as np
    >>> features = np.random.default_rng(0).normal(size=(200, 4))
    >>> targets = features[:, :1] - 2 * features[:, 1:2] + 5
    >>> fit = solve_penalized(features, targets, penalty="lasso", alpha=0.1)
    >>> fit.active
    array([[ True,  True, False, False]])
    >>> bool(fit.kkt[0] < 1e-8)
    True
    """
    F, w = check_design(features, sample_weight, tol, max_iter)
    T = beside(F, floats(targets))
    if T.ndim != 2 or len(T) != len(F) or T.shape[1] == 0:
        raise ValueError(f"targets has shape {tuple(T.shape)}; it must be ({len(F)}, k), one row per row of features.")
    P = make_penalty(penalty, alpha, T.shape[1])
    if not np.any(P.alpha):
        P = NoPenalty()  # one answer for collinear predictors, where a descent would end anywhere on a line
    F, mean_f = centre("features", F, w)
    T, mean_t = centre("targets", T, w)
    weigh(F, w)
    weigh(T, w)
    T[:, beside(T, is_constant(to_numpy(dots(T, T, axis=0)), mean_t))] = 0.0  # what rounding leaves of them says nothing
    wide = F.shape[1] > max(len(F), WIDE)
    gram = np.zeros((0, 0)) if wide else to_numpy(F.T @ F)
    if wide:
        F, T = to_numpy(F), to_numpy(T)  # few rows
        spread = np.einsum("ij,ij->j", F, F)
        F[:, is_constant(spread, mean_f)] = 0.0
    else:
        spread = np.diag(gram)
        drop_constant(F, gram, mean_f)
    linear = to_numpy(F.T @ T)
    scale = np.abs(linear).max(0)
    scale[scale == 0] = 1.0
    n_iter = 0
    if wide:
        W, kkt, n_iter = _solve_wide(F, T, P, mean_f, start, scale, tol, max_iter)
    elif P.quadratic:
        W = _closed_form(F, T, gram, linear, P.curvature(np.zeros(T.shape[1])), mean_f)
        W[np.diag(gram) == 0] = 0.0  # a constant predictor has no influence, not even by rounding
        kkt = _violation(P, W, gram @ W - linear, scale)
    else:
        W = np.zeros_like(linear)
        if start is not None:
            W = check_start("start", start, (T.shape[1], F.shape[1])).T.copy()
            W[np.diag(gram) == 0] = 0.0
        elif (relaxed := P.relaxation()) is not None:
            W, _, n_iter = descend(gram, linear, relaxed, W, scale, tol, max_iter)
        W, kkt, more = descend(gram, linear, P, W, scale, tol, max_iter)
        n_iter += more
    converged = _say_what_failed(kkt, tol, _rounding(float(spread.sum()), W, scale), max_iter)
    weights = np.ascontiguousarray(W.T)
    return PenalizedFit(weights, mean_t - weights @ mean_f, weights != 0, kkt, n_iter, converged)


def _say_what_failed(kkt: Floats, tol: float, rounding: Floats, max_iter: int) -> bool:
    """Warn of outputs that miss their conditions, with the cause; whether there were none."""
    failed = kkt > np.maximum(tol, np.minimum(rounding, EXCUSED))
    if not failed.any():
        return True
    worst = int(np.argmax(np.where(failed, kkt, -1.0)))
    cause = (
        f"stopped at max_iter={max_iter} with a relative KKT violation up to {kkt[worst]:.2g} (output {worst}); tol={tol:g}. "
        "Raise max_iter or alpha, or loosen tol."
        if kkt[worst] > rounding[worst]
        else f"have weights so large that rounding leaves a relative KKT violation up to {kkt[worst]:.2g} (output {worst}): "
        "predictors are nearly collinear, or far smaller than others. Raise alpha."
    )
    warnings.warn(f"penalised regression: {int(failed.sum())} of {len(kkt)} outputs {cause}", ConvergenceWarning, stacklevel=3)
    return False


def check_design(
    features: ArrayLike | Array, sample_weight: ArrayLike | None, tol: float, max_iter: int
) -> tuple[Array, Floats]:
    """Return the features as float64, and weights that sum to one."""
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be positive; it is a relative KKT violation.")
    if not max_iter >= 1:
        raise ValueError(f"max_iter={max_iter!r} must be at least 1.")
    F = floats(features)
    if F.ndim != 2 or 0 in F.shape:
        raise ValueError(f"features has shape {tuple(F.shape)}; it must be (n, q) with at least one row and one column.")
    if sample_weight is None:
        return F, np.full(len(F), 1.0 / len(F))
    w = np.asarray(sample_weight, dtype=np.float64)
    if w.shape != (len(F),) or not np.isfinite(w).all() or (w < 0).any() or w.sum() == 0:
        raise ValueError(f"sample_weight must hold {len(F)} non-negative finite numbers, at least one of them positive.")
    return F, w / w.sum()


def check_start(name: str, start: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Validate a warm start and return it as float64."""
    values = np.asarray(start, dtype=np.float64)
    if values.shape != shape or not np.isfinite(values).all():
        raise ValueError(f"{name} has shape {values.shape}; a warm start needs finite values of shape {shape}.")
    return values


def centre(name: str, values: Array, w: Floats) -> tuple[Array, Floats]:
    """Subtract the weighted means; return them too."""
    with np.errstate(all="ignore"):
        mean = to_numpy(beside(values, w) @ values)
    if not np.isfinite(mean).all():  # checks q numbers instead of n·q: NaN and infinity survive a sum
        column = int(np.flatnonzero(~np.isfinite(mean))[0])
        raise ValueError(f"{name} contains NaN or infinity (column {column}); drop or impute those rows.")
    return values - beside(values, mean), mean


def weigh(rows: Array, w: Floats) -> None:
    """Multiply by √w in place: the products of weighted rows are weighted means."""
    root = np.sqrt(w)
    rows *= float(root[0]) if (root == root[0]).all() else beside(rows, root)[:, None]  # a scalar is much faster on few columns


def is_constant(spread: Floats, mean: Floats) -> NDArray[np.bool_]:
    """Which columns do not vary, from their mean squares after and before centring."""
    return np.asarray(spread <= CONSTANT * (spread + mean**2))


def drop_constant(F: Array, gram: Floats, mean: Floats) -> None:
    """Make predictors that do not vary exactly zero, in the weighted centred design and in its Gram."""
    constant = is_constant(np.diag(gram), mean)
    if constant.any():
        F[:, beside(F, constant)] = gram[constant] = gram[:, constant] = 0.0


def _solve_wide(
    F: Floats, T: Floats, penalty: Penalty, mean: Floats, start: ArrayLike | None, scale: Floats, tol: float, max_iter: int
) -> tuple[Floats, Floats, int]:
    """Weights, their relative KKT violation and the passes, without the Gram of all predictors."""

    def few(gram: Floats, linear: Floats, own: Penalty, W: Floats, scale: Floats) -> tuple[Floats, Floats, int]:
        return descend(gram, linear, own, W, scale, tol, max_iter)

    shape = (F.shape[1], T.shape[1])
    if penalty.quadratic:
        W = wide_closed_form(F, T, penalty.curvature(np.zeros(T.shape[1])), mean)
        W[~F.any(axis=0)] = 0.0  # a constant predictor has no influence, not even by rounding
        return W, _violation(penalty, W, F.T @ (F @ W - T), scale), 0
    W, passes = np.zeros(shape), 0
    if start is not None:
        W = check_start("start", start, shape[::-1]).T * np.asarray(F.any(axis=0))[:, None]
    elif (relaxed := penalty.relaxation()) is not None:
        W, _, passes = wide_descent(F, T, relaxed, W, scale, tol, few)
    W, kkt, more = wide_descent(F, T, penalty, W, scale, tol, few)
    return W, kkt, passes + more


def _closed_form(F: Array, T: Array, gram: Floats, linear: Floats, ridge: Floats, mean: Floats) -> Floats:
    """(G + ridge)⁻¹FᵀT with one ridge per output; of minimum norm where that inverse does not exist."""
    values, vectors = eigh(gram, check_finite=False)
    if values[0] + ridge.min() > GRAM_IS_SAFE * values[-1]:
        return np.asarray(vectors @ ((vectors.T @ linear) / (values[:, None] + ridge)))
    return wide_closed_form(to_numpy(F), to_numpy(T), ridge, mean)  # collinear predictors are rare


def _violation(penalty: Penalty, W: Floats, gradient: Floats, scale: Floats) -> Floats:
    return np.asarray(penalty.subgradient_distance(W, gradient).max(0) / scale)


def _rounding(trace: float, W: Floats, scale: Floats) -> Floats:
    """The violation that rounding alone explains; it exceeds ``tol`` only where near-collinear weights are huge."""
    return np.asarray(4.0 * np.finfo(np.float64).eps * trace * np.linalg.norm(W, axis=0) / scale)


def descend(
    gram: Floats, linear: Floats, penalty: Penalty, W: Floats, scale: Floats, tol: float, max_iter: int
) -> tuple[Floats, Floats, int]:
    """Minimise ½wᵀGw - cᵀw + P(w) for every column; return the weights, their relative KKT violation and the passes."""
    n_iter, trace = 0, float(np.trace(gram))
    while True:
        for _ in range(len(gram)):  # until no more weights leave the active sets
            before = W != 0
            W, kkt = _newton_on_active_set(gram, linear, penalty, W, scale)
            if not (before & (W == 0)).any():
                break
        if n_iter == max_iter or (kkt <= np.maximum(tol, _rounding(trace, W, scale))).all():
            return W, kkt, n_iter
        coordinate_pass(gram, linear, penalty, W)
        n_iter += 1


def coordinate_pass(gram: Floats, linear: Floats, penalty: Penalty, W: Floats) -> None:
    """Minimise ½wᵀGw - cᵀw + P(w) over one coordinate after the other, each for all columns of ``W``, in place."""
    for j in range(len(gram)):
        curvature = gram[j, j]
        if curvature > 0:
            W[j] = penalty.prox(W[j] + (linear[j] - gram[j] @ W) / curvature, curvature)


def _newton_on_active_set(gram: Floats, linear: Floats, penalty: Penalty, W: Floats, scale: Floats) -> tuple[Floats, Floats]:
    """One Newton step on the non-zero weights of every column, kept where it helps; with it the KKT violation."""
    gradient = gram @ W - linear
    kkt = _violation(penalty, W, gradient, scale)
    W_newton, found = _newton_point(gram, penalty, W, gradient, POLISHED * scale)
    if not found.any():
        return W, kkt
    value = _objective(penalty, W, gradient, linear)
    step = W_newton - W
    crossed = W * W_newton < 0
    # First all the way, weights that change sign ending at zero; failing that, up to the first change of sign only.
    share = np.where(crossed, np.abs(W) / np.where(crossed, np.abs(step), 1.0), 1.0)
    first = share.min(0)
    for trial in (np.where(crossed, 0.0, W_newton), np.where(crossed & (share == first), 0.0, W + first * step)):
        gradient = gram @ trial - linear
        kkt_trial = _violation(penalty, trial, gradient, scale)
        change = _objective(penalty, trial, gradient, linear) - value
        slack = 1e-13 * np.abs(value)  # rounding: near the solution only the KKT violation can tell
        better = found & ((change < -slack) | ((change <= slack) & (kkt_trial < kkt)))
        W, kkt = np.where(better, trial, W), np.where(better, kkt_trial, kkt)
        found = found & ~better
        if not (found & crossed.any(0)).any():
            break
    return W, kkt


def _newton_point(
    gram: Floats, penalty: Penalty, W: Floats, gradient: Floats, settled: Floats
) -> tuple[Floats, NDArray[np.bool_]]:
    """Newton's point of every column, and the columns that have one; columns with the same active set share a factor."""
    active, bend = W != 0, penalty.curvature(W)
    slope = np.where(active, gradient + penalty.derivative(W), 0.0)
    wanted = np.abs(slope).max(0) > settled
    patterns: dict[bytes, list[int]] = {}
    for column in np.flatnonzero(wanted):
        patterns.setdefault(np.where(active[:, column], bend[:, column], np.nan).tobytes(), []).append(int(column))
    point, found = W.copy(), np.zeros(W.shape[1], dtype=bool)
    for columns in patterns.values():
        rows = np.flatnonzero(active[:, columns[0]])
        block = np.ix_(rows, np.array(columns))
        hessian = gram[rows[:, None], rows]
        hessian.flat[:: len(rows) + 1] *= 1.0 + DAMPING
        bent = hessian.copy()
        bent.flat[:: len(rows) + 1] += bend[rows, columns[0]]
        _, step, failure = dposv(bent, slope[block])
        if failure:  # not convex with SCAD or MCP: use the tangent of the penalty instead (Zou and Li 2008)
            _, step, failure = dposv(hessian, slope[block])
        if not failure:
            point[block] -= step
            found[columns] = True
    return point, found


def _objective(penalty: Penalty, W: Floats, gradient: Floats, linear: Floats) -> Floats:
    return np.asarray((0.5 * W * (gradient - linear) + penalty.value(W)).sum(0))
