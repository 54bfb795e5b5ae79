"""All first-layer SVRs at once, on one Gram matrix that never changes (eq. optsolver1).

One iteration of the splitting costs one pass over one factor for *all* targets together, and the factor is reused during the
whole training. Every solution is certified by a primal-dual pair. If a support set is needed, the dual vector itself is
solved to the tolerance, by more iterations or by Newton steps, whichever is cheaper.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from kstonet._arrays import Array, copy, namespace, to_numpy, zeros
from kstonet.gram.base import Gram
from kstonet.solvers.svr_newton import polish
from kstonet.solvers.svr_problem import SVRProblem, make_problem
from kstonet.solvers.svr_solution import TIGHT, SVRProgress, SVRSolution
from kstonet.solvers.svr_splitting import REUSE_FACTOR, Splitting, wanted_shifts

LOOSE = 1e-3  # pair gap at which tight mode turns to the dual vector
NEWTON_START = 30.0  # first proximal shift of the Newton phase, in units of the splitting's shift
NEWTON_STEPS_EXPECTED = 15  # for the choice between more iterations and Newton
MAX_NEWTON_STEPS = 100
FEW_NEWTON_STEPS = 25  # where a solve that was started from did not converge


def solve_svr(
    gram: Gram,
    targets: Array,
    C: Any,
    epsilon: Any,
    *,
    sample_weight: Any = None,
    tol: float = 1e-3,
    support: bool = False,
    max_iter: int = 2000,
    warm_start: SVRSolution | None = None,
    callback: Callable[[SVRProgress], None] | None = None,
) -> SVRSolution:
    """Solve one ε-SVR per row of ``targets``, all on the same Gram.

    Parameters
    ----------
    gram : Gram
        Kernel matrix of the training rows.
    targets : array of shape (m, n), float64
        Targets of the regressions, one row each.
    C, epsilon : float or array of shape (m,)
        Weight of the loss and half-width of the tube, in scikit-learn's scaling; one value for all targets or one for each.
    sample_weight : array of shape (n,) or (m, n), optional
        Weights of the rows. The dual variable of row i is bounded by C·wᵢ.
    tol : float
        Largest relative duality gap. A value of 1e-6 or less implies ``support=True``.
    support : bool
        Whether to compute a dual vector that is itself feasible, sparse and within ``tol``.
    max_iter : int
        Largest number of splitting iterations.
    warm_start : SVRSolution, optional
        Solution on the same Gram for other targets or parameters, used as the start.
    callback : callable, optional
        Called with an :class:`SVRProgress` at every check.

    Returns
    -------
    SVRSolution

    Warns
    -----
    ConvergenceWarning
        If ``max_iter`` was not enough; the message has the gap reached.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import DenseGram, make_kernel
    >>> X = np.linspace(-3, 3, 50)[:, None]
    >>> gram = DenseGram(X, make_kernel("rbf", X, gamma=1.0))
    >>> solution = solve_svr(gram, np.stack([np.sin(X[:, 0]), np.cos(X[:, 0])]), C=10.0, epsilon=0.05)
    >>> bool((solution.gap < 1e-3).all())
    True
    """
    if not tol > 0:
        raise ValueError(f"tol={tol!r} must be positive; it is a relative duality gap.")
    if not max_iter >= 1:
        raise ValueError(f"max_iter={max_iter!r} must be at least 1.")
    problem = make_problem(targets, C, epsilon, sample_weight, n=gram.n)
    if warm_start is not None and tuple(warm_start.coef.shape) != tuple(targets.shape):
        raise ValueError(
            f"warm_start holds {tuple(warm_start.coef.shape)} values, targets {tuple(targets.shape)}: a warm start needs the "
            "same Gram and the same number of targets."
        )
    run = _Run(gram, problem, tol=tol, tight=support or tol <= TIGHT, max_iter=max_iter, callback=callback)
    solution = run.solve(warm_start)
    if not solution.converged.all():
        worst = int(np.argmax(solution.gap))
        warnings.warn(
            f"SVR: {int((~solution.converged).sum())} of {len(solution.gap)} targets stopped at max_iter={max_iter} with a "
            f"relative duality gap up to {solution.gap[worst]:.2g} (target {worst}); tol={tol:g}. Raise max_iter, loosen "
            "tol, or use a smaller C.",
            ConvergenceWarning,
            stacklevel=2,
        )
    return solution


class _Run:
    """One call of :func:`solve_svr`: the results so far, and the order of the phases."""

    def __init__(
        self,
        gram: Gram,
        problem: SVRProblem,
        *,
        tol: float,
        tight: bool,
        max_iter: int,
        callback: Callable[[SVRProgress], None] | None,
    ) -> None:
        self.gram, self.problem, self.tol, self.tight, self.max_iter = gram, problem, tol, tight, max_iter
        self.callback = callback
        self.started = time.perf_counter()
        self.new_factors: list[float] = []
        m, n = problem.targets.shape
        self.coef, self.fitted, self.dual_state, self.multipliers = (zeros(problem.targets, (m, n)) for _ in range(4))
        self.intercept = zeros(problem.targets, (m,))
        self.primal, self.dual, self.gap = np.zeros(m), np.zeros(m), np.full(m, np.inf)
        self.n_iter, self.n_newton = np.zeros(m, dtype=int), np.zeros(m, dtype=int)
        self.kkt = np.zeros(m)  # used in tight mode only
        self.kkt_tol = np.sqrt(tol) * np.maximum(to_numpy(problem.spread()), 1e-300)
        self.shifts = wanted_shifts(gram, problem)
        # Value of the constant prediction: the scale below which a primal value is rounding.
        self.constant_value = to_numpy(problem.primal(self.coef, self.fitted)[0])

    def solve(self, warm: SVRSolution | None) -> SVRSolution:
        trivial = np.flatnonzero(self.constant_value <= 0.0)  # a constant fits inside the tube
        if trivial.size:
            nothing = self.coef[trivial]
            primal, intercept = self.problem.rows(trivial).primal(nothing, nothing)
            self.record(trivial, nothing, nothing, intercept, primal, primal)
        if warm is not None:  # the shift that balanced the last solve, moved along with C and the targets
            self.shifts *= warm.shifts / wanted_shifts(self.gram, warm.problem)
        for rows in self.groups(np.flatnonzero(self.constant_value > 0.0)):
            with np.errstate(over="ignore", invalid="ignore"):  # a gap that is not finite is an error with words
                left = self.split(rows, warm)
            failed = np.zeros(len(left), dtype=bool) if warm is None else ~warm.converged[left]
            if not self.tight:  # where the last solve did not get there, this one would not either
                left, failed = left[~failed], failed[~failed]
            if left.size and (self.tight or self.newton_price(left) <= self.max_iter):
                self.newton(left, np.where(failed, FEW_NEWTON_STEPS, MAX_NEWTON_STEPS))
        return SVRSolution(
            coef=self.coef,
            intercept=self.intercept,
            fitted=self.fitted,
            primal=self.primal,
            dual=self.dual,
            gap=self.gap,
            converged=self.done(np.arange(len(self.gap))),
            n_iter=self.n_iter,
            n_newton=self.n_newton,
            new_factors=tuple(self.new_factors),
            seconds=time.perf_counter() - self.started,
            tight=self.tight,
            problem=self.problem,
            dual_state=self.dual_state,
            multiplier_state=self.multipliers,
            shifts=self.shifts,
        )

    def groups(self, rows: np.ndarray) -> list[np.ndarray]:
        """Groups of targets that can share a factor; usually one group."""
        groups: list[list[int]] = []
        for row in rows[np.argsort(self.shifts[rows], kind="stable")]:
            if groups and self.shifts[row] <= REUSE_FACTOR**2 * self.shifts[groups[-1][0]]:
                groups[-1].append(int(row))
            else:
                groups.append([int(row)])
        return [np.sort(np.array(group)) for group in groups]

    def relative_gap(self, rows: np.ndarray, primal: Array, dual: Array) -> np.ndarray:
        """(primal - dual) / primal, safe where the optimal value is zero."""
        values = to_numpy(primal)
        floor = np.maximum(values, np.maximum(1e-12 * self.constant_value[rows], 1e-300))
        gap = np.maximum(values - to_numpy(dual), 0.0) / floor
        if not np.isfinite(gap).all():
            raise FloatingPointError(
                "the SVR iteration left the floating-point range: the targets or the Gram matrix are scaled too extremely. "
                "Standardise the targets."
            )
        return np.asarray(gap)

    def record(self, rows: np.ndarray, coef: Array, image: Array, intercept: Array, primal: Array, dual: Array) -> None:
        """Keep a solution with its certificate; ``image`` is K·coef."""
        self.coef[rows], self.intercept[rows] = coef, intercept
        self.fitted[rows] = image + intercept[:, None]
        self.primal[rows], self.dual[rows] = to_numpy(primal), to_numpy(dual)
        self.gap[rows] = self.relative_gap(rows, primal, dual)
        if self.tight:
            self.kkt[rows] = to_numpy(self.problem.rows(rows).kkt_distance(coef, image, intercept))

    def done(self, rows: np.ndarray) -> np.ndarray:
        """Whether the recorded solutions meet the tolerance."""
        return np.asarray((self.gap[rows] <= self.tol) & (self.kkt[rows] <= self.kkt_tol[rows]))

    def report(self, iteration: int) -> None:
        if self.callback is not None:
            self.callback(SVRProgress(iteration, self.gap.copy(), time.perf_counter() - self.started))

    def split(self, rows: np.ndarray, warm: SVRSolution | None) -> np.ndarray:
        """Iterate until every target in ``rows`` is certified; return those that are not."""
        state = Splitting(self.gram, self.problem.rows(rows), float(np.exp(np.log(self.shifts[rows]).mean())))
        next_check = 4
        if warm is not None:
            state.start_from(warm.dual_state[rows], warm.multiplier_state[rows])
            if not self.tight:  # a check costs two or three iterations: the first one is due when the last solve ended
                next_check = max(4, 3 * int(warm.n_iter[rows].min()) // 4)
        budget = self.max_iter
        for iteration in range(1, self.max_iter + 1):
            state.iterate()
            if iteration < min(next_check, budget):
                continue
            next_check = iteration + max(4, iteration // 8)
            image, pair_gap = self.check(rows, state, iteration)
            going = np.flatnonzero(~self.done(rows))
            if going.size and self.tight and budget == self.max_iter and (pair_gap[going] <= LOOSE).all():
                # The function has converged, the dual vector has not: iterate until that has cost as much as Newton's steps.
                budget = min(self.max_iter, iteration + self.newton_price(rows[going]))
            if going.size == 0 or iteration >= budget:
                break
            state.refine(image)
            residual = state.problem.targets - image - self.intercept[rows][:, None]
            if warm is not None:  # the warm start failed: start cold
                state.restart(np.flatnonzero(self.primal[rows] > self.constant_value[rows]))
                warm = None
            if going.size < len(rows):
                state.keep(going)
                rows, residual = rows[going], residual[going]
            state.rebalance(residual)
            self.shifts[rows] = state.shift
        self.shifts[rows] = state.shift
        self.new_factors += state.new_factors
        return rows[going]

    def check(self, rows: np.ndarray, state: Splitting, iteration: int) -> tuple[Array, np.ndarray]:
        """Certify with the true K; return K·x and the relative gap of the pair (x, feasible z)."""
        problem, m = state.problem, len(rows)
        feasible = problem.balance(state.z)
        images = self.gram.product(namespace(feasible).concatenate([state.x, feasible], 0))
        image, feasible_image = images[:m], images[m:]
        primal, intercept = problem.primal(state.x, image)
        dual = problem.dual(feasible, feasible_image)
        pair_gap = self.relative_gap(rows, primal, dual)
        if self.tight:
            primal, intercept = problem.primal(feasible, feasible_image)
            self.record(rows, feasible, feasible_image, intercept, primal, dual)
        else:
            self.record(rows, state.x, image, intercept, primal, dual)
        self.n_iter[rows] = iteration
        self.dual_state[rows], self.multipliers[rows] = state.z, state.multiplier
        self.report(iteration)
        return image, pair_gap

    def newton_price(self, rows: np.ndarray) -> int:
        """The expected cost of the Newton phase, in splitting iterations."""
        n = self.gram.n
        free = to_numpy(self.problem.rows(rows).free(self.dual_state[rows]).sum(1)).astype(np.float64)
        flops = NEWTON_STEPS_EXPECTED * (free**3 / 3.0 + 6.0 * n**2).sum()
        per_iteration = 4.0 * n**2 * (4.0 + len(rows))  # few rows do not reach the peak arithmetic rate
        return int(flops / per_iteration) + 1

    def newton(self, rows: np.ndarray, max_steps: np.ndarray) -> None:
        """Finish targets one by one."""
        for row, most in zip(rows, max_steps, strict=True):
            here = slice(row, row + 1)
            problem = self.problem.rows(here)
            result = polish(
                self.gram,
                problem,
                copy(self.dual_state[here]),
                NEWTON_START * float(self.shifts[row]),
                tol=self.tol,
                kkt_tol=float(self.kkt_tol[row]),
                max_steps=int(most),
            )
            self.n_newton[row] = result.steps
            if result.gap < max(self.gap[row], self.tol):
                self.record(np.array([row]), result.coef, result.image, result.intercept, result.primal, result.dual)
                self.dual_state[here], self.multipliers[here] = result.coef, problem.targets - self.fitted[here]
            self.report(int(self.n_iter[row]))
