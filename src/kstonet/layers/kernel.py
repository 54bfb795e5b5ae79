"""The first hidden layer: one support vector regression per unit, with the noise density of eq. (SVRdist)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from kstonet._arrays import Array, beside, namespace, positive_part, to_numpy
from kstonet.gram import Gram, StructuredGram
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.expansion import Expansion
from kstonet.layers.svr_uncertainty import MarginUncertainty
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_certificate import kernel_gap
from kstonet.solvers.svr_solution import SVRSolution

NEARLY_ALL = 0.9  # share of the rows that support a unit, beyond which a model keeps all rows whatever the exact support is
CERTIFIED_ROWS = 60_000  # beyond them all kernel values would take longer than a training
DEAD_ZONE = 0.1  # residuals below this fraction of a typical one may stay unseen by the first layer
LATENT_NOISE = 0.1 * float(np.sqrt(2.0))  # standard deviation of the first layer's noise that training may bear


@dataclass(frozen=True)
class UnitGroup:
    """Units that share one Gram."""

    gram: Gram
    units: np.ndarray


def functions_at(gram: Gram, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A function that takes coefficients (m, n) to values (rows, m) at new rows; the kernel values are computed once."""
    if isinstance(gram, StructuredGram):
        return gram.at(X)
    blocks = [block for _, block in gram.cross(X)]
    features = namespace(blocks[0]).concatenate(blocks)  # where the Gram is
    return lambda coef: to_numpy(features @ gram.array(coef).T)


class FittedRows:
    """Fitted values on fixed training rows, whose kernel the Grams of the groups hold: what kernel layers have in common."""

    groups: tuple[UnitGroup, ...]
    fitted: Array | None

    def at(self, rows: slice) -> Self:
        """The layer as seen by some of the rows."""
        return self if self.fitted is None else self._with(self.fitted[rows])

    def mean(self, inputs: Any = None) -> Array:
        """The fitted values of the last refit."""
        if self.fitted is None:
            raise ValueError("the kernel layer has no solution yet: refit it first.")
        return self.fitted

    def place(self, values: np.ndarray) -> Array:
        """Values where the Grams compute: the Gram is what knows the device, so that nothing else has to be told of it."""
        return beside(self.groups[0].gram.array(np.empty(0)), values) if self.groups else values

    def placed(self) -> Self:
        """The layer with its fitted values there."""
        return self._with(self.place(self.mean()))

    def _with(self, fitted: Array) -> Self:
        return replace(self, fitted=fitted)  # type: ignore[type-var]  # the layers themselves are dataclasses


def svr_noise_variance(C: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Variance of the density f(x) ∝ exp(-C max(0, |x| - ε)) of eq. (SVRdist)."""
    Ce = C * epsilon
    return np.asarray(2.0 / C**2 + epsilon**2 * (Ce + 3.0) / (3.0 * (Ce + 1.0)))


@dataclass(frozen=True)
class KernelLayer(FittedRows):
    """Y₁ = b + β φ(x) + e with the ε-insensitive noise of eq. (SVRdist), on fixed training rows.

    The inputs never change during training, so they are not passed around: ``mean`` returns the fitted values of the last
    refit, and :meth:`expansion` gives the functions at other rows.

    Parameters
    ----------
    groups : tuple of UnitGroup
        The Grams, each with the units it serves; one group unless units have kernels of their own.
    C, epsilon : ndarray of shape (units,)
        Weight of the loss and half-width of the tube, for every unit.
    solutions : tuple of SVRSolution
        One per group; empty before the first refit.
    tol : float
        Relative duality gap of the refits.
    fitted : ndarray of shape (n, units)
        Values on the training rows, kept by the refit.
    """

    groups: tuple[UnitGroup, ...]
    C: np.ndarray
    epsilon: np.ndarray
    solutions: tuple[SVRSolution, ...] = ()
    tol: float = 1e-3
    fitted: np.ndarray | None = None

    def _gather(self, part: Callable[[SVRSolution], np.ndarray]) -> np.ndarray:
        """Stack a per-unit array of the solutions, units in their own order; shape (units, ...)."""
        pieces = [part(solution) for solution in self.solutions]
        out = np.empty((len(self.C), *pieces[0].shape[1:]))
        for group, piece in zip(self.groups, pieces, strict=True):
            out[group.units] = piece
        return out

    @property
    def n_outputs(self) -> int:
        return len(self.C)

    @property
    def coef(self) -> np.ndarray:
        """Kernel coefficients, shape (units, n)."""
        return self._gather(lambda solution: solution.coef)

    @property
    def intercept(self) -> np.ndarray:
        """Shape (units,)."""
        return self._gather(lambda solution: solution.intercept)

    @property
    def gap(self) -> np.ndarray:
        """Certified relative gaps of the last refit, shape (units,)."""
        return self._gather(lambda solution: solution.gap)

    @property
    def n_support(self) -> np.ndarray:
        """Nonzero dual variables per unit; of the splitting's last dual vector, which has exact zeros in loose refits too."""
        return self._gather(lambda solution: (solution.dual_state != 0).sum(axis=1).astype(float))

    @property
    def supporting_rows(self) -> np.ndarray:
        """Which rows support a unit, as far as a loose refit knows; shape (n,)."""
        return np.asarray(np.any([(solution.dual_state != 0).any(axis=0) for solution in self.solutions], axis=0))

    def certificate(self) -> dict[str, float]:
        iterations = max(solution.n_iter.max() for solution in self.solutions)
        return {
            "svr_gap": float(self.gap.max()),
            "svr_iterations": float(iterations),
            "n_support": float(self.n_support.mean()),
        }

    def kernel_gap(self) -> float | None:
        """The largest of the units, where the Gram is an approximation of few enough rows for one product with the kernel."""
        pairs = [(group.gram, own) for group, own in zip(self.groups, self.solutions, strict=True)]
        gaps = [
            kernel_gap(gram, own).max() for gram, own in pairs if isinstance(gram, StructuredGram) and gram.n <= CERTIFIED_ROWS
        ]
        return float(max(gaps)) if len(gaps) == len(pairs) else None

    # -- the distribution ----------------------------------------------------------------------------------------------------

    def log_density(self, inputs: Any, outputs: Array) -> Array:
        xp = namespace(outputs)
        outside = positive_part(xp.abs(outputs - self.mean(inputs)) - beside(outputs, self.epsilon))
        constant = float(np.log(self.C / (2.0 * (1.0 + self.C * self.epsilon))).sum())
        return constant - (beside(outputs, self.C) * outside).sum(axis=1)

    def score_output(self, inputs: Any, outputs: Array) -> Array:
        xp, residual = namespace(outputs), outputs - self.mean(inputs)
        return xp.where(xp.abs(residual) > beside(residual, self.epsilon), beside(residual, -self.C) * xp.sign(residual), 0.0)

    def curvature_output(self) -> np.ndarray:
        """The density has kinks; its inverse variance is the stiffness that matters to a sampler."""
        return 1.0 / svr_noise_variance(self.C, self.epsilon)

    # -- what is automatic ---------------------------------------------------------------------------------------------------

    @property
    def _typical_C(self) -> float:
        return float(np.exp(np.log(self.C).mean()))

    def noise_above(self, residual: float, slope: float) -> float:
        """DEAD_ZONE·(typical residual)·(typical slope)/C.

        A latent value of this layer leaves the ε-tube of its SVR only where the pull of the output, residual·slope/σ² with the
        slope ∂out/∂Y₁, exceeds C: residuals below C·σ²/slope are a dead zone that training cannot see. So the variance follows
        C, not the other way round: the dead zone stays a fixed fraction of the residual, and raising C never blinds the
        training.
        Assumption 2-(v) (noise small enough that K-StoNet and KNN share their loss) points the same way.
        """
        return DEAD_ZONE * residual * max(slope, 1e-6) / self._typical_C

    def temperature(self) -> float:
        """One (the model's own noise) unless C is so small that this noise would swamp the layer.

        At temperature T the noise of a unit has standard deviation about √2·T/C, and the latent values have the scale one
        where training starts: a C below √2/LATENT_NOISE = 10 is cooled down to a share of LATENT_NOISE.
        """
        return min(1.0, LATENT_NOISE * self._typical_C / float(np.sqrt(2.0)))

    def with_noise(self, variance: float) -> Self:
        """The noise of an SVR layer is that of its C."""
        return self

    def with_penalty(self, alpha: float | None, residual: float, n: int) -> Self:
        """The penalty of an SVR layer is that of its C."""
        return self

    # -- refits --------------------------------------------------------------------------------------------------------------

    def refit(self, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> Self:
        return self.refit_versions([self], inputs, [outputs], [sample_weight])[0]

    def refit_versions(
        self,
        versions: Sequence[Self],
        inputs: Any,
        outputs: Sequence[np.ndarray],
        sample_weights: Sequence[np.ndarray | None],
        *,
        support: bool = False,
    ) -> list[Self]:
        """One pass over the factor serves the units of all versions together, so this costs little more than one refit.

        With ``support`` the solutions have exact support sets.
        """
        solutions: list[list[SVRSolution]] = [[] for _ in versions]
        for k, group in enumerate(self.groups):
            size, n = len(group.units), group.gram.n
            weights = [np.broadcast_to(np.ones(n) if w is None else w, (size, n)) for w in sample_weights]
            started = all(version.solutions for version in versions)
            start = SVRSolution.stacked([version.solutions[k] for version in versions]) if started else None
            solution = solve_svr(
                group.gram,
                group.gram.array(np.concatenate([values[:, group.units].T for values in outputs])),
                np.concatenate([version.C[group.units] for version in versions]),
                np.concatenate([version.epsilon[group.units] for version in versions]),
                sample_weight=np.concatenate(weights),
                tol=self.tol,
                support=support,
                warm_start=None if start is None else start.converted(group.gram.array),
            ).converted(to_numpy)
            for t, own in enumerate(solutions):
                own.append(solution.rows(slice(t * size, (t + 1) * size)))
        return [version._with_solutions(tuple(own)) for version, own in zip(versions, solutions, strict=True)]

    def _with_solutions(self, solutions: tuple[SVRSolution, ...]) -> Self:
        refitted = replace(self, solutions=solutions)
        return replace(refitted, fitted=np.ascontiguousarray(refitted._gather(lambda solution: solution.fitted).T))

    @property
    def left_out(self) -> bool:
        return False

    def values_above(self, latents: np.ndarray, sample_weight: np.ndarray | None) -> np.ndarray:
        """The latent values themselves."""
        return latents

    def exact(
        self, versions: Sequence[Self], inputs: Any, outputs: Sequence[np.ndarray], sample_weight: np.ndarray | None
    ) -> list[Self]:
        """Solve the versions anew with exact support sets.

        Intervals need that of the last version. The others' would make the model smaller; they are left as they are where
        nearly every row supports a unit of some version, because the model keeps all rows then.
        """
        rows = np.any([version.supporting_rows for version in versions], axis=0)
        first = len(versions) - 1 if rows.mean() > NEARLY_ALL else 0
        weights = [sample_weight] * (len(versions) - first)
        solved = self.refit_versions(versions[first:], inputs, outputs[first:], weights, support=True)
        return [*versions[:first], *solved]

    # -- beyond the training rows --------------------------------------------------------------------------------------------

    def expansion(self, versions: Sequence[Self], inputs: Any) -> Expansion:
        parts = [
            group.gram.expansion(np.stack([version.solutions[k].coef for version in versions]), group.units)
            for k, group in enumerate(self.groups)
        ]
        return Expansion.of(parts, np.stack([version.intercept for version in versions]))

    def values_at(self, X: np.ndarray) -> Callable[[Self], np.ndarray]:
        functions = [functions_at(group.gram, X) for group in self.groups]

        def values(version: Self) -> np.ndarray:
            first = np.empty((len(X), len(version.C)))
            for group, solution, own in zip(version.groups, version.solutions, functions, strict=True):
                first[:, group.units] = own(solution.coef)
            return np.asarray(first + version.intercept)

        return values

    def left_out_shifts(self, spans: np.ndarray, rows: np.ndarray | slice = EVERY_ROW) -> np.ndarray:
        """What leaving a row out of the refit changes at that row, with the margin sets held fixed: -coef·S²."""
        return np.asarray(-self.coef.T[rows] * spans)

    def uncertainty(
        self, expansion: Expansion, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None
    ) -> MarginUncertainty:
        pairs = zip(self.groups, self.solutions, strict=True)
        margins = [(group.gram, group.units, _pinning(group.gram, own.margin)) for group, own in pairs]
        return MarginUncertainty.of(margins, expansion)


def _pinning(gram: Gram, margin: np.ndarray) -> np.ndarray:
    """The rows that pin the functions down: the margin sets, or the landmarks where expansions keep no others."""
    if not isinstance(gram, StructuredGram):
        return margin
    landmarks = np.zeros(margin.shape[1], dtype=bool)
    landmarks[gram.landmarks] = True
    return np.tile(landmarks, (len(margin), 1))
