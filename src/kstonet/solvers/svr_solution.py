"""The result of a solve: solutions, certificates and the start of the next solve."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kstonet._arrays import Array, namespace
from kstonet._records import storable
from kstonet.solvers.svr_problem import SVRProblem

PER_TARGET = (
    "coef", "intercept", "fitted", "primal", "dual", "gap", "converged", "n_iter", "n_newton",
    "dual_state", "multiplier_state", "shifts",
)  # fmt: skip
ON_DEVICE = ("coef", "intercept", "fitted", "dual_state", "multiplier_state")
TIGHT = 1e-6  # tolerances up to here ask for a dual vector that meets them itself


@dataclass(frozen=True)
class SVRProgress:
    """State of a solve at a check, passed to the callback."""

    iteration: int
    gap: np.ndarray  # (m,) relative gaps; finished targets included
    seconds: float


@storable(
    **dict.fromkeys(("coef", "fitted", "dual_state", "multiplier_state"), "float m n"),
    **dict.fromkeys(("intercept", "primal", "dual", "gap", "shifts"), "float m"),
    **dict.fromkeys(("n_iter", "n_newton"), "int m"),
    converged="bool m",
)
@dataclass(frozen=True)
class SVRSolution:
    """m certified SVR solutions; arrays are stacked by target.

    Attributes
    ----------
    coef : array of shape (m, n)
        Coefficients of the kernel expansion. In tight mode a feasible dual vector with exact zeros off the support.
    intercept : array of shape (m,)
        Fitted intercepts.
    fitted : array of shape (m, n)
        K·coef + intercept, the fitted values on the training rows.
    primal, dual, gap : ndarray of shape (m,)
        Certificate: primal value at ``coef``, dual value of a feasible vector, (primal - dual) / primal.
    converged : ndarray of bool, shape (m,)
        Whether the gap is within ``tol`` (and, in tight mode, every sample's KKT violation within √tol target spreads).
    n_iter : ndarray of int, shape (m,)
        Splitting iterations until the target was finished.
    n_newton : ndarray of int, shape (m,)
        Number of Newton steps.
    new_factors : tuple of float
        Shifts of the factorisations this solve had to make; empty when a held one served.
    seconds : float
        Wall time of the solve.
    tight : bool
        Whether ``coef`` is itself the feasible dual vector behind the certificate.
    problem : SVRProblem
        The problem that was solved.
    dual_state, multiplier_state : array of shape (m, n)
        Where the splitting stopped, for a warm start.
    shifts : ndarray of shape (m,)
        The last shift of every target.
    """

    coef: Array
    intercept: Array
    fitted: Array
    primal: np.ndarray
    dual: np.ndarray
    gap: np.ndarray
    converged: np.ndarray
    n_iter: np.ndarray
    n_newton: np.ndarray
    new_factors: tuple[float, ...]
    seconds: float
    tight: bool
    problem: SVRProblem
    dual_state: Array
    multiplier_state: Array
    shifts: np.ndarray

    def rows(self, rows: slice) -> SVRSolution:
        """The solution of some of the targets."""
        return replace(self, problem=self.problem.rows(rows), **{name: getattr(self, name)[rows] for name in PER_TARGET})

    @classmethod
    def stacked(cls, solutions: Sequence[SVRSolution]) -> SVRSolution:
        """The solutions of several calls as one, to start the next call for all their targets together."""
        xp = namespace(solutions[0].coef)
        parts = ("targets", "box", "epsilon")
        problem = SVRProblem(*(xp.concatenate([getattr(s.problem, name) for s in solutions], 0) for name in parts))
        joined = {
            name: (np if isinstance(getattr(solutions[0], name), np.ndarray) else xp).concatenate(
                [getattr(s, name) for s in solutions], 0
            )
            for name in PER_TARGET
        }
        return replace(solutions[0], problem=problem, new_factors=(), tight=all(s.tight for s in solutions), **joined)

    def converted(self, convert: Callable[[Array], Array]) -> SVRSolution:
        """The same solution in another namespace or on another device."""
        problem = SVRProblem(*(convert(getattr(self.problem, name)) for name in ("targets", "box", "epsilon")))
        moved = {name: convert(getattr(self, name)) for name in ON_DEVICE}
        return replace(self, problem=problem, **moved)

    def _require_tight(self, what: str) -> None:
        if not self.tight:
            raise ValueError(f"{what} needs a tight solution: solve with support=True or tol <= {TIGHT:g}.")

    @property
    def support(self) -> Array:
        """Mask (m, n) of the support vectors: nonzero dual variables."""
        self._require_tight("the support set")
        return self.coef != 0

    @property
    def bounded(self) -> Array:
        """Mask (m, n) of the support vectors at the bound C·w."""
        self._require_tight("the bounded set")
        return (self.coef != 0) & (abs(self.coef) >= self.problem.box)

    @property
    def margin(self) -> Array:
        """Mask (m, n) of the free support vectors, which lie on the edge of the tube."""
        self._require_tight("the margin set")
        return self.problem.free(self.coef)

    @property
    def kkt(self) -> Array:
        """Largest violation of the optimality conditions over the samples, per target, in units of the target."""
        self._require_tight("the KKT distance")
        return self.problem.kkt_distance(self.coef, self.fitted - self.intercept[:, None], self.intercept)
