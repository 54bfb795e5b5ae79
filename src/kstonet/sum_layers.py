"""Layers from sums over the rows: what a network on landmarks needs of its rows, wherever they are and whenever they came.

On the features φ of shared landmarks the kernel ridge regressions of the first layer are ridge regressions, whose normal
equations are sums over the rows, and so are those of a regression head. Who has the sums (:mod:`kstonet.row_sums`) needs no
rows: a cluster adds them over its partitions (:mod:`kstonet.dask`), a stream over time (:mod:`kstonet.stream`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from kstonet.gram import Kernel, LowRank
from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.gram.landmarks import Landmarks
from kstonet.gram.low_rank_options import RANK
from kstonet.initialisation import TARGET_SHARE
from kstonet.layers.activations import get_activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.dense import DenseLayer
from kstonet.layers.margin import thinned
from kstonet.layers.regression import RegressionUncertainty
from kstonet.layers.svr_uncertainty import MarginUncertainty
from kstonet.problem import Problem
from kstonet.row_sums import FirstLayer, Group
from kstonet.settings import TrainingSettings, per_unit


@dataclass(frozen=True)
class Iterate:
    """The network after an iteration: the first layer, the head, and for a regression the sums its head was fitted on."""

    first: FirstLayer
    head: UpperLayer
    above: tuple[np.ndarray, ...]


class NormalEquations:
    """The factored normal equations of the first layer.

    Parameters
    ----------
    sums : tuple
        What :func:`kstonet.row_sums.normal_matrices` gives: Σwφφᵀ and Σwφ of every group, and Σw.
    groups : sequence of Group
    """

    def __init__(self, sums: tuple[Any, ...], groups: Sequence[Group]) -> None:
        matrices, total = sums
        self.total, self._units = float(total), tuple(group.units for group in groups)
        self.factors, self.means = [], []
        for (matrix, ones), group in zip(matrices, groups, strict=True):
            mean = ones / self.total
            centred = matrix - np.outer(ones, mean)
            centred.flat[:: len(centred) + 1] += group.ridge
            self.factors.append(cho_factor(0.5 * (centred + centred.T), lower=True))
            self.means.append(mean)

    def first_layer(self, sides: Sequence[np.ndarray], targets: np.ndarray) -> FirstLayer:
        """The layer whose right-hand sides are Σwφy of every group, with Σwy."""
        centre = targets / self.total
        weights, intercept = [], centre.copy()
        for side, factor, mean, own in zip(sides, self.factors, self.means, self._units, strict=True):
            solved = cho_solve(factor, side - self.total * np.outer(mean, centre[own]))
            weights.append(solved.T)
            intercept[own] -= mean @ solved
        return FirstLayer(self._units, tuple(weights), intercept)

    def inverses(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Of every group: the inverse, and the mean of the features."""
        return [(cho_solve(factor, np.eye(len(mean))), mean) for factor, mean in zip(self.factors, self.means, strict=True)]


def refitted_head(head: UpperLayer, above: tuple[np.ndarray, ...]) -> DenseLayer:
    """A regression head, fitted from the sums and products of its activated inputs and the outputs."""
    assert isinstance(head, DenseLayer)
    plain = replace(head, activation=get_activation("identity")).refit(*_pseudo_rows(above, head.n_inputs))
    return replace(plain, activation=head.activation)


def head_uncertainty(head: UpperLayer, above: tuple[np.ndarray, ...], n: int) -> RegressionUncertainty:
    """The uncertainty of a head fitted on n rows, from the same sums: of a few rows that stand for them, counted as n."""
    assert isinstance(head, DenseLayer)
    psi, outputs, weights = _pseudo_rows(above, head.n_inputs)
    found = replace(head, activation=get_activation("identity")).uncertainty(psi, outputs, weights)
    used = 1 + (head.weights != 0).sum(axis=1)
    factor = (len(psi) - used) / np.maximum(n - used, 1.0)
    covariance = found.covariance * np.sqrt(factor[:, None, None, None] * factor[:, None])
    return replace(found, covariance=covariance, noise=found.noise * factor, activation=head.activation)


def _pseudo_rows(above: tuple[np.ndarray, ...], m: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A few weighted rows (features, targets) with given sums and products: least squares cannot tell them from all rows."""
    total, sums, products = above
    mean = sums / total
    covariance = products / total - np.outer(mean, mean)
    values, vectors = eigh(0.5 * (covariance + covariance.T))
    size = len(values)
    steps = np.sqrt(size * np.maximum(values, 0.0))[:, None] * vectors.T
    rows = np.vstack([mean + steps, mean - steps])
    return rows[:, :m], rows[:, m:], np.full(2 * size, float(total) / (2 * size))


def start_combination(count: float, total: np.ndarray, products: np.ndarray, k: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    """Latent values that know the targets, as :func:`kstonet.initialisation.initial_latents` makes them.

    From the sums of :func:`kstonet.row_sums.start_moments` over k targets, m mixtures of them and m directions of the features:
    the combination of these columns, and the constant.
    """
    mean = total / count
    covariance = products / count - np.outer(mean, mean)
    spread = np.sqrt(np.maximum(np.diagonal(covariance), 0.0))
    scale = 1.0 / np.where(spread > 1e-12, spread, 1.0)
    signal, direction = np.arange(k, k + m), np.arange(k + m, k + 2 * m)
    signs = np.ones(m)
    for target in range(k):  # every target has units of both signs
        along = covariance[target, signal] * scale[signal] * signs
        if m > 1 and (np.all(along > 0) or np.all(along < 0)):
            signs[np.abs(along).argmin()] *= -1.0
    combination = np.zeros((k + 2 * m, m))
    combination[signal, np.arange(m)] = TARGET_SHARE * signs * scale[signal]
    combination[direction, np.arange(m)] = np.sqrt(1.0 - TARGET_SHARE**2) * scale[direction]
    size = np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", combination, covariance, combination), 0.0))
    combination /= np.where(size > 1e-12, size, 1.0)
    return combination, -mean @ combination


def unit_groups(problem: Problem, settings: TrainingSettings, solver: Any) -> list[Group]:
    """Landmarks for every distinct kernel, chosen on the rows of a problem."""
    (units,) = settings.hidden_layer_sizes
    given = solver if isinstance(solver, LowRank) else LowRank(leaf_rows=0)
    rank = RANK if given.rank is None else given.rank
    first: Any = settings.first
    if first.loss != "squared":
        raise ValueError(f"loss={first.loss!r}: sums over rows are those of a squared loss; use loss='squared'.")
    if callable(first.C):
        raise ValueError("C is a function of the iteration, which loss='squared' does not take; give numbers.")
    members: dict[tuple[Kernel, float], list[int]] = {}
    for unit, pair in enumerate(zip(first.kernels(problem, units), per_unit("C", first.C, units).tolist(), strict=True)):
        members.setdefault(pair, []).append(unit)
    chosen: dict[Kernel, Landmarks] = {}
    for kernel, _ in members:
        if kernel.precomputed:
            raise ValueError("kernel='precomputed' has no landmarks at other rows; use a kernel of features.")
        if kernel not in chosen:
            chosen[kernel] = Landmarks.choose(problem.X, kernel, rank, given.tolerance, given.seed)
    return [Group(kernel, chosen[kernel], 1.0 / C, np.array(own)) for (kernel, C), own in members.items()]


def expansion_of(groups: Sequence[Group], iterates: Sequence[Iterate], rows: np.ndarray) -> Expansion:
    """The first layers at new rows; ``rows`` are the numbers of the rows that landmarks were chosen from."""
    parts = []
    for k, group in enumerate(groups):
        coef = np.stack([now.first.weights[k] @ group.landmarks.whitening.T for now in iterates])
        parts.append(ExpansionPart(group.kernel, group.landmarks.basis, rows[group.landmarks.indices], coef, group.units))
    return Expansion.of(parts, np.stack([now.first.intercept for now in iterates]))


def first_uncertainty(groups: Sequence[Group], expansion: Expansion) -> MarginUncertainty:
    """The variance of the first layer: landmarks pin the functions down, up to the ridge."""
    columns, ridges = {}, {}
    for group in groups:
        members = thinned(np.arange(group.landmarks.rank))
        for unit in group.units.tolist():
            columns[unit], ridges[unit] = members, np.full(len(members), group.ridge)
    in_order = [tuple(values[unit] for unit in range(len(columns))) for values in (columns, ridges)]
    return MarginUncertainty(expansion, in_order[0], {}, (None,) * len(groups), in_order[1])
