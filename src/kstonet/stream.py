"""Rows that come one batch after the other: a network on landmarks whose sums are updated by every batch, and nothing is kept.

This is online EM (Cappé & Moulines 2009) with the imputation of Algorithm 1 as its E-step. The sums that the layers are fitted
on (:mod:`kstonet.sum_layers`) are means over rows. A batch of b rows after N others moves them by the share
ρ = (b/(N + b))^0.7 towards its own: shares whose sum is infinite, and that of their squares finite, forget the sums of earlier,
worse networks and still average over the noise (Robbins & Monro). All sums move by the same share, so that the layers are at
every time regressions on rows with weights.

Batches are predicted before they are learnt from. These predictions are out of sample, and intervals are learnt from the last
ones of them.
"""

from __future__ import annotations

from collections import deque
from dataclasses import asdict
from typing import Any

import numpy as np

from kstonet import row_sums
from kstonet.iro import IRORecord
from kstonet.layers.activations import get_activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.dense import SMALLEST_RESIDUAL
from kstonet.problem import Problem, Rows
from kstonet.row_sums import FeaturePart, Group, Part
from kstonet.settings import TrainingSettings, first_alpha
from kstonet.sum_layers import Iterate, NormalEquations, expansion_of, refitted_head, start_combination
from kstonet.sum_training import Imputation, Judged, with_intervals
from kstonet.targets import NumericTargets
from kstonet.trained import TrainedNetwork

FORGETTING = 0.7  # exponent of the share of a batch; in (1/2, 1]
KEPT = 2000  # rows whose out-of-sample predictions intervals are learnt from
FEWEST = 40  # such rows


class Stream:
    """The state of a training on a stream.

    Parameters
    ----------
    problem : Problem
        The first batch: it gives the scales, the landmarks and the start, and is trained on as any rows are.
    settings : TrainingSettings
    groups : list of Group
        Kernels, landmarks and ridges of the units.
    """

    def __init__(self, problem: Problem, settings: TrainingSettings, groups: list[Group]) -> None:
        self.scaler, self.targets, self.settings, self.groups = problem.scaler, problem.targets, settings, groups
        self.units = tuple(group.units for group in groups)
        self.m = sum(map(len, self.units))
        self.activation = get_activation(settings.activation)
        self.rng = np.random.default_rng(settings.seed)
        self.n, self.total, self.loss, self.first_rows = 0, 0.0, 1.0, len(problem.X)
        self.normal: Any = None  # mean sums of the normal equations, and of their right-hand sides
        self.sides: Any = None
        self.history: list[dict[str, Any]] = []
        self.recent: deque[Iterate] = deque(maxlen=settings.n_average)
        self.judged: deque[tuple[np.ndarray, ...]] = deque()
        self._start(problem.rows)
        self.sample = problem.some_rows(expansion_of(groups, list(self.recent), np.arange(self.first_rows)))
        self.model = self._model()

    def update(self, rows: Rows) -> None:
        """Learn from a batch, after predicting it."""
        part = self._featured(rows)
        if self.settings.residuals is not None:
            self._judge(rows, part)
        share = float((len(part) / (self.n + len(part))) ** FORGETTING)
        self.loss += share * (self._loss(part) - self.loss)
        self._step(part, share)
        self.model = self._model()

    # -- learning ------------------------------------------------------------------------------------------------------------

    def _featured(self, rows: Rows) -> FeaturePart:
        nothing = np.empty(0, dtype=int)
        return row_sums.featured(Part(rows.X, rows.y, rows.weights), self.scaler, self.targets, self.groups, nothing, nothing)

    def _start(self, rows: Rows) -> None:
        """Train on the first batch."""
        settings, part, own = self.settings, self._featured(rows), Part(rows.X, rows.y, rows.weights)
        k = self.targets.n_outputs
        mixtures = self.rng.normal(size=(k, self.m)), self.rng.normal(size=(rows.X.shape[1], self.m))
        count, total, products = row_sums.start_moments(own, self.scaler, self.targets, mixtures)
        made = start_combination(float(count), total, products, k, self.m)
        latents = row_sums.started(own, self.scaler, self.targets, mixtures, *made)
        alpha = first_alpha(settings.iro.alpha, len(part), self.m)
        head = self.targets.new_head(settings.upper_layer, self.m, self.activation, settings.penalty, alpha)
        self._add(part, latents, 1.0)
        self._refit(head)
        for _ in range(settings.max_iter):
            self.loss = self._loss(part)
            self.n, self.total = 0, 0.0  # the same rows again
            self._step(part, 1.0)

    def _loss(self, part: FeaturePart) -> float:
        now = self.recent[-1]
        return float(row_sums.squared_errors(part, now.first, (now.head,))[0]) / max(len(part), 1)

    def _add(self, part: FeaturePart, latents: np.ndarray, share: float) -> None:
        """Move the mean sums by a share towards those of a batch."""
        weight = float(part.weights.sum())
        self.n, self.total = self.n + len(part), self.total + weight
        normal = row_sums.normal_matrices(part, False)
        sides = row_sums.right_sides(part, latents, self.units, self.activation, False)
        self.normal = _mixed(self.normal, normal, share, 1.0 / weight)
        self.sides = _mixed(self.sides, sides, share, 1.0 / weight)

    def _refit(self, head: UpperLayer) -> None:
        """The layers whose regressions have these sums, for as many rows as there were."""
        normal, (sides, targets, above) = _mixed(None, self.normal, 1.0, self.total), _mixed(None, self.sides, 1.0, self.total)
        first = NormalEquations(normal, self.groups).first_layer(sides, targets)
        self.recent.append(Iterate(first, refitted_head(head, above), above))

    def _step(self, part: FeaturePart, share: float) -> None:
        """One iteration of Algorithm 1 with the rows of one batch."""
        t, unknown = len(self.history), float("nan")
        residual = max(float(np.sqrt(self.loss)), SMALLEST_RESIDUAL)
        step = Imputation.of(self.recent[-1], self.settings.iro, t, residual, self.n + len(part))
        draw = int(self.rng.integers(2**63)), len(part)
        latents = row_sums.imputed(part, step.first, (step.head,), step.chain, step.step_size, draw)
        self._add(part, latents, share)
        self._refit(step.head)
        temperature = step.chain.temperature
        record = IRORecord(t + 1, self.loss, step.noise, temperature, unknown, 0, 1.0, unknown, unknown, unknown, unknown)
        self.history.append(asdict(record) | {"chain": 0, "rows": self.n})

    # -- the model -------------------------------------------------------------------------------------------------------------

    def _judge(self, rows: Rows, part: FeaturePart) -> None:
        """Keep what the model says of rows that it has not learnt from."""
        last = slice(-KEPT, None)
        X = self.scaler.forward(rows.X[last])
        self.judged.append((X, part.outputs[last], self.model.outputs(rows.X[last]).mean(axis=0), part.weights[last]))
        while sum(len(one[0]) for one in list(self.judged)[1:]) >= KEPT:
            self.judged.popleft()

    def _model(self) -> TrainedNetwork:
        iterates, targets = list(self.recent), self.targets
        assert isinstance(targets, NumericTargets)
        expansion = expansion_of(self.groups, iterates, np.arange(self.first_rows))
        model = TrainedNetwork(
            scaler=self.scaler,
            targets=targets.with_error(np.full(targets.n_outputs, np.sqrt(self.loss))),
            expansion=expansion,
            uppers=tuple((now.head,) for now in iterates),
            n_iter=len(self.history),
            history=list(self.history),
            chosen=self.settings.chosen,
            choice=self.settings.choice,
            sample=self.sample,
        )
        residuals = self.settings.residuals
        if residuals is None or sum(len(one[0]) for one in self.judged) < FEWEST:
            return model
        X, outputs, predicted, weights = (np.concatenate(parts)[-KEPT:] for parts in zip(*self.judged, strict=True))
        rows = Judged(X, outputs, predicted, None if (weights == 1.0).all() else weights)
        return with_intervals(model, self.groups, iterates, self.n, rows, residuals)


def _mixed(old: Any, new: Any, share: float, factor: float) -> Any:
    """(1 - share)·old + share·factor·new, for nested tuples of arrays; without an old one, factor·new."""
    if isinstance(new, tuple):
        olds = [None] * len(new) if old is None else old
        return tuple(_mixed(one, other, share, factor) for one, other in zip(olds, new, strict=True))
    return factor * new if old is None else (1.0 - share) * old + share * factor * new
