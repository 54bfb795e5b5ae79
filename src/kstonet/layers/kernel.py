"""The first hidden layer: one support vector regression per unit, with the noise density of eq. (SVRdist)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._arrays import to_numpy
from kstonet.gram.dense import DenseGram
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_solution import SVRSolution


@dataclass(frozen=True)
class UnitGroup:
    """Units that share one Gram."""

    gram: DenseGram  # or one of its kind: with the kernel it was made from
    units: np.ndarray


def svr_noise_variance(C: np.ndarray, epsilon: np.ndarray) -> np.ndarray:
    """Variance of the density f(x) ∝ exp(-C max(0, |x| - ε)) of eq. (SVRdist)."""
    Ce = C * epsilon
    return np.asarray(2.0 / C**2 + epsilon**2 * (Ce + 3.0) / (3.0 * (Ce + 1.0)))


@dataclass(frozen=True)
class KernelLayer:
    """Y₁ = b + β φ(x) + e with the ε-insensitive noise of eq. (SVRdist), on fixed training rows.

    The inputs never change during training, so they are not passed around: ``mean`` returns the fitted values of the
    last refit. Rows that were not trained on are predicted from :attr:`coef` by the network.

    Parameters
    ----------
    groups : tuple of UnitGroup
        The Grams, each with the units it serves; one group unless units have kernels of their own.
    C, epsilon : ndarray of shape (units,)
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

    def at(self, rows: slice) -> KernelLayer:
        return self if self.fitted is None else replace(self, fitted=self.fitted[rows])

    def certificate(self) -> dict[str, float]:
        iterations = max(solution.n_iter.max() for solution in self.solutions)
        return {
            "svr_gap": float(self.gap.max()),
            "svr_iterations": float(iterations),
            "n_support": float(self.n_support.mean()),
        }

    def mean(self, inputs: Any = None) -> np.ndarray:
        if self.fitted is None:
            raise ValueError("the kernel layer has no solution yet: refit it first.")
        return self.fitted

    def log_density(self, inputs: Any, outputs: np.ndarray) -> np.ndarray:
        outside = np.maximum(np.abs(outputs - self.mean(inputs)) - self.epsilon, 0.0)
        constant = np.log(self.C / (2.0 * (1.0 + self.C * self.epsilon))).sum()
        return np.asarray(constant - (self.C * outside).sum(axis=1))

    def score_output(self, inputs: Any, outputs: np.ndarray) -> np.ndarray:
        residual = outputs - self.mean(inputs)
        return np.where(np.abs(residual) > self.epsilon, -self.C * np.sign(residual), 0.0)

    def curvature_output(self) -> np.ndarray:
        """The density has kinks; its inverse variance is the stiffness that matters to a sampler."""
        return 1.0 / svr_noise_variance(self.C, self.epsilon)

    def refit(self, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> KernelLayer:
        solutions = []
        for k, group in enumerate(self.groups):
            solutions.append(
                _solved(
                    group.gram,
                    np.ascontiguousarray(outputs[:, group.units].T),
                    self.C[group.units],
                    self.epsilon[group.units],
                    sample_weight=sample_weight,
                    tol=self.tol,
                    warm_start=self.solutions[k] if self.solutions else None,
                )
            )
        return self._with_solutions(tuple(solutions))

    def _with_solutions(self, solutions: tuple[SVRSolution, ...]) -> KernelLayer:
        refitted = replace(self, solutions=solutions)
        return replace(refitted, fitted=np.ascontiguousarray(refitted._gather(lambda solution: solution.fitted).T))


def _solved(
    gram: DenseGram, targets: np.ndarray, *parameters: Any, warm_start: SVRSolution | None, **options: Any
) -> SVRSolution:
    """Solved where the Gram lives; what comes back is NumPy."""
    start = None if warm_start is None else warm_start.converted(gram.array)
    return solve_svr(gram, gram.array(targets), *parameters, warm_start=start, **options).converted(to_numpy)


def joint_refits(
    layers: Sequence[KernelLayer],
    outputs: Sequence[np.ndarray],
    sample_weights: Sequence[np.ndarray | None],
    *,
    support: bool = False,
) -> list[KernelLayer]:
    """Refit several versions of one layer, each on its own outputs with its own weights, all at once.

    One pass over the factor serves the units of all versions together, so this costs little more than one refit. With
    ``support`` the solutions have exact support sets.
    """
    solutions: list[list[SVRSolution]] = [[] for _ in layers]
    for k, group in enumerate(layers[0].groups):
        size, n = len(group.units), group.gram.n
        weights = [np.broadcast_to(np.ones(n) if w is None else w, (size, n)) for w in sample_weights]
        solution = _solved(
            group.gram,
            np.concatenate([values[:, group.units].T for values in outputs]),
            np.concatenate([layer.C[group.units] for layer in layers]),
            np.concatenate([layer.epsilon[group.units] for layer in layers]),
            sample_weight=np.concatenate(weights),
            tol=layers[0].tol,
            support=support,
            warm_start=SVRSolution.stacked([layer.solutions[k] for layer in layers]),
        )
        for t, own in enumerate(solutions):
            own.append(solution.rows(slice(t * size, (t + 1) * size)))
    return [layer._with_solutions(tuple(own)) for layer, own in zip(layers, solutions, strict=True)]
