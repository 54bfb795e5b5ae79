"""Douglas-Rachford splitting of the SVR dual, for many targets at once.

The dual (see svr_problem) is a smooth quadratic plus ε‖a‖₁ on a box. With v the splitting variable,

    z = prox(v),   (K + shift·I) x + b·1 = y + shift·(2z - v),  Σx = 0,   v ← v + 1.7·(x - z).

At the solution x = z. Long before, x gives a good *function* (primal side) and z a feasible dual vector: the pair is the
certificate.
"""

from __future__ import annotations

import numpy as np

from kstonet._arrays import Array, like, namespace, to_numpy, zeros
from kstonet.gram.base import Gram
from kstonet.solvers.svr_problem import SVRProblem

RELAXATION = 1.7
SHIFT_PER_C = 0.1  # over all sets and C measured, 0.03 to 0.3 are within a factor two of the best iteration count
SMALLEST_SHIFT = 2e-3  # in units of the mean of K's diagonal
REUSE_FACTOR = 4.0  # a held factor serves while its shift is within this factor of the wanted one
REBALANCE_FACTOR = 5.0  # inside a solve, refactor only when the shift is this far from balanced


def wanted_shifts(gram: Gram, problem: SVRProblem) -> np.ndarray:
    """For every target, a shift that balances residuals against dual variables.

    Dual variables live on the scale of C and residuals on a fraction of the targets' spread; the shift converts one into
    the other.
    """
    spread, typical_box = to_numpy(problem.spread()), to_numpy(problem.typical_box())
    scale = float(gram.diagonal().mean()) or 1.0
    return np.asarray(np.maximum(SHIFT_PER_C * spread / typical_box, SMALLEST_SHIFT * scale))


class Splitting:
    """The iteration on the targets that are not finished yet.

    Only *changes* of the right-hand side are solved for, so the rounding error of a low-precision factor shrinks with the
    changes. The remaining error is computed with the true K at every check and corrected in the next iteration.
    """

    def __init__(self, gram: Gram, problem: SVRProblem, wanted_shift: float) -> None:
        self.gram, self.problem = gram, problem
        self.new_factors: list[float] = []
        self.v = zeros(problem.targets, tuple(problem.targets.shape))
        self.take_factor(wanted_shift)

    def take_factor(self, wanted: float, *, exactly: bool = False) -> None:
        """Use the Gram's factor if its shift is near the wanted one, else factor again."""
        held = self.gram.held_shift
        if held is not None and not exactly and 1 / REUSE_FACTOR <= held / wanted <= REUSE_FACTOR:
            wanted = held
        else:
            self.new_factors.append(wanted)
        self.shift = wanted
        self._solver = self.gram.shifted(wanted)
        ones = namespace(self.v).ones_like(self.v[:1])
        self._solved_ones = like(ones, self._solver.solve(ones))
        self._solved_ones_sum = self._solved_ones.sum()
        self.iterations_since_factor = 0
        self.x = self._right = self._correction = self.v * 0.0

    def start_from(self, dual: Array, multiplier: Array) -> None:
        """Warm start from the dual vector and multiplier of an earlier solution."""
        self.v = dual + multiplier / self.shift

    def iterate(self) -> None:
        """One iteration for all targets: one pass over the factor."""
        p = self.problem
        self.z = p.prox(self.v, self.shift)
        self._before = self.v
        right = p.targets + self.shift * (2.0 * self.z - self.v)
        change = like(right, self._solver.solve(right - self._right + self._correction))
        change = change - (change.sum(1) / self._solved_ones_sum)[:, None] * self._solved_ones
        self.x, self._right, self._correction = self.x + change, right, self._correction * 0.0
        self.v = self.v + RELAXATION * (self.x - self.z)
        self.iterations_since_factor += 1

    @property
    def multiplier(self) -> Array:
        """shift·(v - z), a subgradient of ε‖·‖₁ + box at z: at the solution, the residual of the fit."""
        return self.shift * (self._before - self.z)

    def refine(self, image: Array) -> None:
        """Given the true K·x, correct the rounding error of the factor in the next iteration."""
        error = self._right - image - self.shift * self.x
        self._correction = error - error.mean(1)[:, None]

    def keep(self, rows: np.ndarray) -> None:
        """Continue with some of the targets only."""
        self.problem = self.problem.rows(rows)
        for name in ("v", "x", "z", "_before", "_right", "_correction"):
            setattr(self, name, getattr(self, name)[rows])

    def restart(self, rows: np.ndarray) -> None:
        """Start some targets cold."""
        for array in (self.v, self.x, self._right, self._correction):
            array[rows] = 0.0

    def rebalance(self, residual: Array) -> None:
        """Refactor with a better shift if it is far off and the iterations so far have cost as much as a factor."""
        m = self.x.shape[0]
        worth_a_factor = max(24, int(self.gram.n / (50.0 + 10.0 * m)))  # measured: n/100 iterations at m = 5
        squares = float((self.x**2).sum())
        if self.iterations_since_factor < worth_a_factor or len(self.new_factors) >= 4 or squares == 0.0:
            return
        balanced = float((residual**2).sum()) ** 0.5 / squares**0.5  # roots first: the quotient of the squares may overflow
        if balanced > 0 and not 1 / REBALANCE_FACTOR <= balanced / self.shift <= REBALANCE_FACTOR:
            dual, multiplier = self.z, self.multiplier
            self.take_factor(balanced, exactly=True)
            self.start_from(dual, multiplier)
