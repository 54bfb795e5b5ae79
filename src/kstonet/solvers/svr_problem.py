"""The ε-SVR problem of eq. (SVRregularization), its dual, and the certificate of a solution.

For every row (hidden unit) j of the targets, with the loss scaled as scikit-learn does (C·Σ, not C/n·Σ):

    primal  P(a, b) = ½ aᵀKa + Σᵢ cᵢ max(0, |yᵢ - (Ka)ᵢ - b| - ε)
    dual    D(a)    = yᵀa - ½ aᵀKa - ε‖a‖₁,   -cᵢ ≤ aᵢ ≤ cᵢ,  Σ a = 0,      cᵢ = C·wᵢ

By weak duality P(a, b) - D(a') bounds the error for *any* a and any feasible a': that is the certificate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet._arrays import Array, argsort_rows, like, namespace, take_along_rows, to_numpy
from kstonet._records import storable

ROUNDING = 1e-9  # of the bound


@storable(targets="float m n", box="float m n", epsilon="float m 1")
@dataclass(frozen=True)
class SVRProblem:
    """m targets on one Gram.

    Parameters
    ----------
    targets : array of shape (m, n)
        Targets of the regressions, one row each.
    box : array of shape (m, n)
        C times the sample weight: the bound of every dual variable.
    epsilon : array of shape (m, 1)
        Half-width of the tube of every target.
    """

    targets: Array
    box: Array
    epsilon: Array

    def rows(self, keep: Array) -> SVRProblem:
        """The sub-problem of some of the targets."""
        return SVRProblem(self.targets[keep], self.box[keep], self.epsilon[keep])

    def free(self, coef: Array) -> Array:
        """Mask of the margin: neither zero nor at the bound."""
        return (coef != 0) & (abs(coef) < self.box)

    def loss(self, residuals: Array) -> Array:
        """Σ c·max(0, |residual| - ε) for every row."""
        xp = namespace(residuals)
        return (self.box * xp.clip(abs(residuals) - self.epsilon, 0.0, None)).sum(1)

    def best_intercept(self, residuals: Array) -> Array:
        """The b that minimises the loss of ``residuals - b``: a weighted median of the 2n kinks {residual ± ε}.

        Where a whole interval is optimal its middle is returned, as LIBSVM does.
        """
        xp = namespace(residuals)
        kinks = xp.concatenate([residuals - self.epsilon, residuals + self.epsilon], -1)
        weights = xp.concatenate([self.box, self.box], -1)
        order = argsort_rows(kinks)
        kinks = take_along_rows(kinks, order)
        below = xp.cumsum(take_along_rows(weights, order), -1)
        half = below[:, -1:] * 0.5
        slack = below[:, -1:] * 1e-12  # the halves of an even count must tie in spite of rounding
        last = kinks.shape[1] - 1
        lower = xp.clip((below < half - slack).sum(1), 0, last)
        upper = xp.clip((below <= half + slack).sum(1), 0, last)
        rows = xp.arange(kinks.shape[0])
        return 0.5 * (kinks[rows, lower] + kinks[rows, upper])

    def primal(self, coef: Array, image: Array) -> tuple[Array, Array]:
        """P at its best intercept, and that intercept; ``image`` is K·coef."""
        residuals = self.targets - image
        intercept = self.best_intercept(residuals)
        return 0.5 * (coef * image).sum(1) + self.loss(residuals - intercept[:, None]), intercept

    def dual(self, coef: Array, image: Array) -> Array:
        """D at a feasible ``coef`` with ``image`` = K·coef."""
        return ((self.targets - 0.5 * image) * coef - self.epsilon * abs(coef)).sum(1)

    def prox(self, values: Array, shift: float) -> Array:
        """Minimise ε‖a‖₁ + shift/2·‖a - values‖² over the box: soft-threshold, then clip. Gives exact zeros and bounds."""
        xp = namespace(values)
        shrunk = xp.clip(abs(values) - self.epsilon / shift, 0.0, None)
        return xp.sign(values) * xp.minimum(shrunk, self.box)

    def balance(self, coef: Array) -> Array:
        """Restore Σ = 0 inside the box by moving free entries in proportion to their distance from the bounds, if they suffice.

        A uniform shift would destroy the exact zeros and bounds that define the support.
        """
        xp = namespace(coef)
        nothing = xp.zeros_like(coef)
        # Entries within rounding of zero or the bound are set to it, so that rounding does not decide which entries are free.
        # Zero is measured by the largest entry: where C is huge, all entries are small parts of their bounds.
        largest = xp.amax(abs(coef), 1)[:, None]
        coef = xp.where(abs(coef) <= ROUNDING * xp.minimum(self.box, largest), nothing, coef)
        coef = xp.where(abs(coef) >= (1.0 - ROUNDING) * self.box, xp.sign(coef) * self.box, coef)
        for _ in range(3):  # the second and third pass remove rounding errors
            excess = coef.sum(1)[:, None]
            direction = -xp.sign(excess)
            shrinking = coef * direction < 0
            room = xp.where(shrinking, abs(coef), self.box - abs(coef))  # without crossing zero or leaving the box
            room = xp.where(self.free(coef), room, nothing)
            enough = room.sum(1)[:, None] > abs(excess)
            negligible = abs(excess) <= 1e-14 * self.box.sum(1)[:, None]
            room = xp.where(enough, room, xp.where(negligible, nothing, self.box - coef * direction))
            total = room.sum(1)[:, None]
            share = abs(excess) / xp.where(total > 0, total, xp.ones_like(total))
            coef = coef + direction * room * share
            coef = xp.minimum(xp.maximum(coef, -self.box), self.box)
        return coef

    def spread(self) -> Array:
        """Weighted standard deviation of every target: the natural unit of its residuals."""
        weight = self.box / self.box.sum(1)[:, None]
        centred = self.targets - (weight * self.targets).sum(1)[:, None]
        return namespace(weight).sqrt((weight * centred**2).sum(1))

    def typical_box(self) -> Array:
        """Weighted mean bound of every target: the natural unit of its dual variables."""
        return (self.box**2).sum(1) / self.box.sum(1)

    def kkt_distance(self, coef: Array, image: Array, intercept: Array) -> Array:
        """The largest of :meth:`kkt_violations`, per target."""
        return namespace(coef).amax(self.kkt_violations(coef, image, intercept), 1)

    def kkt_violations(self, coef: Array, image: Array, intercept: Array) -> Array:
        """Distance of every residual from the interval that its dual variable requires, in units of the target.

        aᵢ = 0 requires |r| ≤ ε, a free aᵢ requires r = ε·sign(aᵢ), and one at the bound requires r·sign(aᵢ) ≥ ε.
        """
        xp = namespace(coef)
        residuals = self.targets - image - intercept[:, None]
        outside = xp.clip(abs(residuals) - self.epsilon, 0.0, None)
        signed = residuals * xp.sign(coef) - self.epsilon  # 0 on the margin, positive beyond it
        at_bound = abs(coef) >= self.box
        violation = xp.where(at_bound, xp.clip(-signed, 0.0, None), abs(signed))
        violation = xp.where(coef == 0, outside, violation)
        return xp.where(self.box == 0, xp.zeros_like(violation), violation)  # rows of weight zero have no condition


def _per_target(name: str, value: Any, m: int, *, positive: bool) -> np.ndarray:
    values = np.asarray(value, dtype=np.float64)
    if values.ndim == 0:
        values = np.full(m, float(values))
    allowed = (values > 0) if positive else (values >= 0)
    if values.shape != (m,) or not (np.isfinite(values) & allowed).all():
        kind = "positive" if positive else "non-negative"
        raise ValueError(f"{name}={value!r} must be one {kind} finite number, or one for each of the {m} targets.")
    return values


def make_problem(targets: Array, C: Any, epsilon: Any, sample_weight: Any = None, *, n: int | None = None) -> SVRProblem:
    """Validate the arguments and return an :class:`SVRProblem`.

    ``targets`` has one row per target; ``C`` and ``epsilon`` are scalars or one value per target, the weights (n,) or (m, n).
    """
    xp = namespace(targets)
    if targets.ndim != 2 or (n is not None and targets.shape[1] != n):
        raise ValueError(f"targets must have shape (m, {n if n is not None else 'n'}); got {tuple(targets.shape)}.")
    if not xp.isfinite(targets).all():
        raise ValueError("targets contains NaN or infinity; drop or impute those rows.")
    m, n = targets.shape
    if m == 0 or n == 0:
        raise ValueError(f"targets has shape {(m, n)}: there is nothing to solve.")
    weights = np.ones(n) if sample_weight is None else to_numpy(sample_weight).astype(np.float64)
    fits = weights.shape in ((n,), (m, n)) and bool(np.isfinite(weights).all())
    if not fits or (weights < 0).any() or (weights.sum(axis=-1) == 0).any():
        raise ValueError(
            f"sample_weight must hold {n} non-negative finite numbers, at least one of them positive (or so for each of the "
            f"{m} targets)."
        )
    box = _per_target("C", C, m, positive=True)[:, None] * weights
    return SVRProblem(targets, like(targets, box), like(targets, _per_target("epsilon", epsilon, m, positive=False)[:, None]))
