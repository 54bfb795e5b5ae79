"""Tight solutions: proximal point on the dual, each step by a semismooth Newton method.

The dual variables a of one target minimise  ½aᵀKa - yᵀa + h(a),  h = ε‖a‖₁ + box + {Σa = 0}. A proximal step

    a⁺ = argmin ½aᵀKa - yᵀa + h(a) + shift/2·‖a - centre‖²

has a smooth convex dual in (u, b), whose gradient vanishes where u = prox(centre + (y - Ku - b)/shift) and Σ = 0. Newton's
system only involves the free (margin) entries F: (K_FF + shift·I), well conditioned even for singular K, so the
iteration is globally convergent by a line search and needs few steps near the solution. (This is the SSNAL scheme of
Li, Sun and Toh, on the SVR dual.) The shift falls from step to step; each step starts with the face of the last one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from kstonet._arrays import Array, indices_where, namespace
from kstonet.gram.base import Gram
from kstonet.solvers.svr_problem import SVRProblem

SHRINK = 0.2  # of the shift after a proximal step that was easy
SHRINK_HARD = 0.5  # and after one that took more than EASY Newton steps
EASY = 5
INNER_ACCURACY = 0.1  # |u - a| / |a - centre| at which a proximal step is accurate enough


@dataclass(frozen=True)
class NewtonResult:
    """A feasible dual vector with its own certificate."""

    coef: Array  # (1, n)
    image: Array  # (1, n), K·coef
    intercept: Array  # (1,)
    primal: Array  # (1,)
    dual: Array  # (1,)
    gap: float
    kkt: float
    steps: int


class _ProximalStep:
    """The smooth function of (u, b) behind one proximal step, for a single target."""

    def __init__(self, gram: Gram, problem: SVRProblem, centre: Array, shift: float) -> None:
        self.gram, self.problem, self.centre, self.shift = gram, problem, centre, shift

    def best_intercept(self, image: Array) -> float:
        """The b with Σ prox(centre + (y - Ku - b)/shift) = 0, by bisection: the sum falls continuously in b.

        Minimising over b exactly in every step keeps Σa = 0 also where no entry is free and Newton's system does not
        determine b.
        """
        p = self.problem
        levels = p.targets - image + self.shift * self.centre
        reach = float(p.epsilon[0, 0]) + self.shift * float(p.box.max())
        low, high = float(levels.min()) - reach, float(levels.max()) + reach

        def total(b: float) -> float:
            return float(p.prox((levels - b) / self.shift, self.shift).sum())

        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if total(middle) > 0.0 else (low, middle)
        at_low, at_high = total(low), total(high)  # now within one linear piece
        return low if at_low == at_high else low + (high - low) * at_low / (at_low - at_high)

    def evaluate(self, u: Array, image: Array, b: float) -> tuple[float, Array]:
        """Its value, and the dual point a = prox(...) that u must equal."""
        p, shift = self.problem, self.shift
        v = self.centre + (p.targets - image - b) / shift
        a = p.prox(v, shift)
        value = 0.5 * (u * image) + shift * (0.5 * v * v - 0.5 * (v - a) ** 2) - p.epsilon * abs(a)
        return float(value.sum()), a

    def _bordered(self, free: Array, right: Array, total: Any) -> tuple[Array, float]:
        """Solve [K_FF + shift·I, 1; 1ᵀ, 0] [x; b] = [right; total]."""
        xp = namespace(right)
        solved = self.gram.solve_on(free, self.shift, xp.concatenate([right, xp.ones_like(right)], 0))
        b = float((solved[0].sum() - total) / solved[1].sum())
        return solved[0] - b * solved[1], b

    def face_solution(self, a: Array) -> tuple[Array, float] | None:
        """The exact solution if the zero, free and bounded entries of ``a`` are the right ones."""
        xp = namespace(a)
        is_free = self.problem.free(a)[0]
        free = indices_where(is_free)
        if free.shape[0] == 0:
            return None
        fixed = xp.where(is_free, xp.zeros_like(a), a)
        p = self.problem
        right = p.targets - p.epsilon * xp.sign(a) + self.shift * self.centre - self.gram.product(fixed)
        x, b = self._bordered(free, right[:, free], -fixed.sum())
        fixed[0, free] = x
        return fixed, b

    def newton_direction(self, u: Array, a: Array) -> tuple[Array, float]:
        """Newton's direction for (u, b), where ``a`` is the dual point of u."""
        xp = namespace(a)
        is_free = self.problem.free(a)[0]
        free = indices_where(is_free)
        direction = a - u
        if free.shape[0] == 0:
            return direction, 0.0
        fixed = xp.where(is_free, xp.zeros_like(a), direction)
        right = self.shift * direction - self.gram.product(fixed)
        total = -a.sum() + a[0, free].sum() - u[0, free].sum()
        x, step = self._bordered(free, right[:, free], total)
        fixed[0, free] = x
        return fixed, step


def polish(
    gram: Gram,
    problem: SVRProblem,
    coef: Array,
    shift: float,
    *,
    tol: float,
    kkt_tol: float,
    max_steps: int,
) -> NewtonResult:
    """Solve one target to a dual vector whose own relative gap is at most ``tol``.

    Parameters
    ----------
    gram : Gram
        Kernel matrix of the training rows.
    problem : SVRProblem
        The problem of a single target.
    coef : array of shape (1, n)
        Start, inside the box.
    shift : float
        Shift of the first proximal step.
    tol : float
        Largest relative gap of the returned vector itself.
    kkt_tol : float
        Largest violation of the optimality conditions, in units of the target.
    max_steps : int
        Largest number of Newton steps.

    Returns
    -------
    NewtonResult
        The best vector found, whether or not it reached ``tol``.
    """
    xp = namespace(coef)
    best: NewtonResult | None = None

    def certify(a: Array, steps: int) -> NewtonResult:
        feasible = problem.balance(a)
        image = gram.product(feasible)
        primal, b = problem.primal(feasible, image)
        dual = problem.dual(feasible, image)
        gap = float((primal - dual)[0] / max(float(primal[0]), 1e-300))
        kkt = float(problem.kkt_distance(feasible, image, b)[0])
        return NewtonResult(feasible, image, b, primal, dual, gap, kkt, steps)

    def error(result: NewtonResult) -> float:
        """At most one if the result meets the tolerances."""
        return max(result.gap / tol, result.kkt / kkt_tol)

    smallest_shift = max(1e-13 * gram.norm_bound, 1e-100)  # of constant rows, the linear kernel is zero
    u = centre = problem.balance(coef)
    face = None  # entries known to be zero, free, bounded from the step before
    steps = 0
    while steps < max_steps:
        step = _ProximalStep(gram, problem, centre, shift)
        image = gram.product(u)
        b = step.best_intercept(image)
        value, a = step.evaluate(u, image, b)
        if face is not None:
            steps += 1
            guess = step.face_solution(face)
            if guess is not None:
                guess_image = gram.product(guess[0])
                guess_value, guess_a = step.evaluate(guess[0], guess_image, guess[1])
                if guess_value <= value:
                    (u, b), image, value, a = guess, guess_image, guess_value, guess_a
        inner = 0
        while True:
            current = certify(a, steps)
            if best is None or error(current) < error(best):
                best = current
            if error(best) <= 1.0 or steps >= max_steps:
                break
            distance, moved = float(((u - a) ** 2).sum()), float(((a - centre) ** 2).sum())
            if inner and distance <= INNER_ACCURACY**2 * moved:
                break
            if distance == 0.0:
                break
            steps, inner = steps + 1, inner + 1
            direction, b_step = step.newton_direction(u, a)
            direction_image = gram.product(direction)
            slope = float((direction_image * (u - a)).sum()) - b_step * float(a.sum())
            length = 1.0
            for _ in range(40):
                trial = step.evaluate(u + length * direction, image + length * direction_image, b + length * b_step)
                if trial[0] <= value + 1e-4 * length * slope + 1e-13 * abs(value):
                    break
                length *= 0.5
            u, image = u + length * direction, image + length * direction_image
            b = step.best_intercept(image)
            value, a = step.evaluate(u, image, b)
        if best.gap <= tol:  # with the right face known, one exact solve takes the rest of the error
            last = _ProximalStep(gram, problem, best.coef, smallest_shift).face_solution(best.coef)
            steps += 1
            if last is not None:
                exact = certify(xp.minimum(xp.maximum(last[0], -problem.box), problem.box), steps)
                best = exact if error(exact) < error(best) else best
            if error(best) <= 1.0:
                break
        u = centre = face = a
        shift = max(shift * (SHRINK if inner <= EASY else SHRINK_HARD), smallest_shift)
    assert best is not None
    return replace(best, steps=steps)
