"""Algorithm 1 on rows that lie on a cluster: a first layer on shared landmarks, whose regressions are sums over the rows.

With the features φ(x) of r landmarks (:mod:`kstonet.gram.landmarks`) the kernel ridge regressions of the first layer are ridge
regressions on φ. Their normal equations are sums over the rows: an r×r matrix once, an r×m one in every iteration. The
imputation is independent from row to row, and a regression head has its normal equations, too. So every iteration is two
passes over the partitions, which stay where they are, and what moves is the network (m×r) and these sums.

What has no such sums uses a sample of at most ``SAMPLE`` rows, on the client: the choice of parameters, the landmarks, the head
of a classifier and the calibration. Fewer rows than that are all in the sample, and nothing is approximated by it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from kstonet import row_sums
from kstonet._progress import write
from kstonet.class_start import LEAST_RESIDUAL, RELAXED, class_latents, residual_share
from kstonet.gram.planning import Plan
from kstonet.iro import IRORecord
from kstonet.layers.activations import get_activation
from kstonet.layers.base import UpperLayer
from kstonet.layers.dense import SMALLEST_RESIDUAL
from kstonet.layers.regression import automatic_alpha
from kstonet.network import forward_above
from kstonet.problem import Problem
from kstonet.row_sums import FirstLayer, Group
from kstonet.settings import TrainingSettings, first_alpha
from kstonet.sum_layers import (
    Iterate,
    NormalEquations,
    expansion_of,
    first_uncertainty,
    refitted_head,
    start_combination,
)  # fmt: skip
from kstonet.sum_training import Imputation, Judged, with_intervals
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import ProbabilityCalibration
from kstonet.uncertainty.network import NetworkUncertainty
from kstonet.uncertainty.tempering import best_temperature

SAMPLE = 20_000  # rows that come to the client, of however many
HIDDEN_SHARE = 5  # one in so many rows at most is hidden for the calibration
CALIBRATION_ITERATIONS = 3  # the first forgets the hidden rows, the others predict them
PADDING = 4096  # rows without weight, beside which no class is too rare to have a spread


class ClusterTraining:
    """One training.

    Parameters
    ----------
    rows : ClusterRows
        Submits passes over the partitions.
    parts : sequence of Future
        The encoded partitions.
    n : int
        Rows that count, of all partitions.
    problem : Problem
        The sample, with scaler and targets of all rows.
    sample : ndarray of int
        Numbers of its rows among all rows, ascending.
    settings : TrainingSettings
    groups : sequence of Group
        Kernels, landmarks and ridges of the units.
    plan : Plan
    """

    def __init__(
        self, rows: Any, parts: Sequence[Any], n: int, problem: Problem, sample: np.ndarray, settings: TrainingSettings,
        groups: Sequence[Group], plan: Plan,
    ) -> None:  # fmt: skip
        self.rows, self.parts, self.n, self.problem, self.sample = rows, parts, n, problem, sample
        self.settings, self.groups, self.plan = settings, tuple(groups), plan
        self.units = tuple(group.units for group in groups)
        self.m = sum(map(len, self.units))
        self.activation = get_activation(settings.activation)
        self.classes = isinstance(problem.targets, ClassTargets)
        self.rng = np.random.default_rng(settings.seed)
        order = np.random.default_rng(0).permutation(len(sample))
        self.hidden = np.sort(order[: min(n // HIDDEN_SHARE, len(sample))])  # places in the sample
        common = rows.shared((problem.scaler, problem.targets, self.groups, sample, sample[self.hidden]))
        self.features = rows.each("features", _featured, parts, [common] * len(parts))
        self.latents: Sequence[Any] = ()  # those a classifier starts from
        self.history: list[dict[str, Any]] = []
        self._solvers: dict[bool, NormalEquations] = {}

    # -- passes --------------------------------------------------------------------------------------------------------------

    def _pass(self, name: str, function: Callable[..., Any], *arguments: Any, beside: Sequence[Any] = ()) -> list[Any]:
        """A function of every partition's features, of what lies beside them, and of arguments that all share."""
        shared = self.rows.shared(arguments)
        columns = (self.features, *beside, [shared] * len(self.features))
        return list(self.rows.each(name, _unpacked, [function] * len(self.features), *columns))

    def _solver(self, hide: bool) -> NormalEquations:
        """The normal equations of the first layer."""
        if hide not in self._solvers:
            sums = self.rows.combined(self._pass("normal", row_sums.normal_matrices, hide))
            self._solvers[hide] = NormalEquations(sums, self.groups)
        return self._solvers[hide]

    def _refitted(self, latents: Sequence[Any], head: UpperLayer, hide: bool) -> Iterate:
        """Step 2 of Algorithm 1: the layers' regressions, from sums over the rows."""
        passed = self._pass("sides", row_sums.right_sides, *self._what(hide), beside=(latents,))
        return self._layers(self.rows.combined(passed), latents, head, hide)

    def _what(self, hide: bool) -> tuple[Any, ...]:
        """Of which sums are asked for: those of a regression above the first layer, too, where there is one."""
        return self.units, None if self.classes else self.activation, hide

    def _layers(self, sums: tuple[Any, ...], latents: Sequence[Any], head: UpperLayer, hide: bool) -> Iterate:
        """The layers whose regressions have these sums."""
        sides, targets, above = sums
        first = self._solver(hide).first_layer(sides, targets)
        if not self.classes:
            return Iterate(first, refitted_head(head, above), above)
        _, _, left_out = self._sampled(latents, first, hide)
        return Iterate(first, head.refit(left_out, self.problem.outputs, self._sample_weights(hide)), ())

    def _sample_weights(self, hide: bool) -> np.ndarray | None:
        weights = self.problem.weights
        if not hide:
            return weights
        counted = np.ones(len(self.sample)) if weights is None else weights.copy()
        counted[self.hidden] = 0.0
        return counted

    def _sampled(self, latents: Sequence[Any], first: FirstLayer, hide: bool) -> tuple[np.ndarray, ...]:
        """Latent, fitted and left-out values of the rows of the sample."""
        solver = self._solver(hide)
        arguments = first, solver.inverses(), solver.total, hide
        passed = self._pass("sample", row_sums.sample_values, *arguments, beside=(latents,))
        found: tuple[np.ndarray, ...] = self.rows.combined(passed, _joined)
        return found

    # -- start ---------------------------------------------------------------------------------------------------------------

    def _started(self) -> Iterate:
        alpha = first_alpha(self.settings.iro.alpha, self.n, self.m)
        settings = self.settings
        head = self.problem.targets.new_head(settings.upper_layer, self.m, self.activation, settings.penalty, alpha)
        return self._started_classes(head) if self.classes else self._refitted(self._initial(), head, False)

    def _initial(self) -> list[Any]:
        """Latent values that know the targets, as :func:`kstonet.initialisation.initial_latents` makes them."""
        problem, m, k = self.problem, self.m, self.problem.columns.shape[1]
        mixtures = self.rng.normal(size=(k, m)), self.rng.normal(size=(problem.X.shape[1], m))
        shared = self.rows.shared((problem.scaler, problem.targets, mixtures))
        passed = self.rows.each("start", _start_moments, self.parts, [shared] * len(self.parts))
        count, total, products = self.rows.combined(passed)
        combination, constant = start_combination(float(count), total, products, k, m)
        arguments = self.rows.shared((problem.scaler, problem.targets, mixtures, combination, constant))
        return list(self.rows.each("start", _started_latents, self.parts, [arguments] * len(self.parts)))

    def _started_classes(self, head: Any) -> Iterate:
        """The one-vs-rest machine of the first layer, as in :mod:`kstonet.class_start`."""
        targets: Any = self.problem.targets
        passed = self.rows.each("classes", row_sums.class_weights, self.parts, [targets] * len(self.parts))
        (share,) = self.rows.combined(passed)
        codes = np.append(np.arange(len(share)), np.zeros(PADDING, dtype=int))
        weights = np.append(share, np.zeros(PADDING))
        table = class_latents(self.rng, targets.contrasts(codes), weights, self.m, self.activation)[: len(share)]
        latents = self._pass("start", row_sums.looked_up, table)
        part = residual_share(head.n_outputs)
        alpha = head.alpha * (part if head.alpha == automatic_alpha(1.0, self.n, self.m) else 1.0)  # unless it was given
        head = replace(head, least_residual=LEAST_RESIDUAL, residual_share=part, alpha=alpha)
        start = self._refitted(latents, head, False)
        _, _, left_out = self._sampled(latents, start.first, False)
        fitted: Any = start.head
        wanted = best_temperature(fitted.mean(left_out), self.problem.outputs, self.problem.weights)
        factor = min(1.0, wanted) ** -RELAXED
        self.latents = latents
        return replace(start, head=replace(fitted, weights=factor * fitted.weights, intercept=factor * fitted.intercept))

    # -- the loop ------------------------------------------------------------------------------------------------------------

    def _loss(self, now: Iterate) -> tuple[float, float]:
        """Loss of the head, and a typical residual."""
        (total,) = self.rows.combined(self._pass("loss", row_sums.squared_errors, now.first, (now.head,)))
        loss = float(total) / self.n
        return loss, max(float(np.sqrt(loss)), SMALLEST_RESIDUAL)

    def _iterated(self, now: Iterate, residual: float, iteration: int, hide: bool) -> tuple[Iterate, float]:
        """One iteration of Algorithm 1, and the noise; the latent values are forgotten where they are drawn."""
        step = Imputation.of(now, self.settings.iro, iteration, residual, self.n)
        draw = int(self.rng.integers(2**63)), self.n
        arguments = step.first, (step.head,), step.chain, step.step_size, draw
        passed = self._pass("impute", row_sums.imputed_sides, arguments, self._what(hide))
        return self._layers(self.rows.combined(passed), (), step.head, hide), step.noise

    def train(self, verbose: int = 0) -> TrainedNetwork:
        """Train, then calibrate."""
        settings = self.settings
        recent: deque[Iterate] = deque(maxlen=settings.n_average)
        now = self._started()
        loss, residual = self._loss(now)
        if self.classes:  # rests where it starts: further iterations seldom help a one-vs-rest machine
            recent.append(now)
            self._record(1, loss, float("nan"), 0.0, verbose)
        for iteration in range(0 if self.classes else settings.max_iter):
            begin = time.perf_counter()
            now, noise = self._iterated(now, residual, iteration, False)
            loss, residual = self._loss(now)
            recent.append(now)
            self._record(iteration + 1, loss, noise, time.perf_counter() - begin, verbose)
        model = self._model(list(recent))
        if settings.residuals is None:
            return model
        if self.classes:
            return self._calibrated_classes(model, list(recent), settings.residuals)
        rows = self._judged(recent[-1], residual)
        return with_intervals(model, self.groups, list(recent), self.n, rows, settings.residuals)

    def _record(self, iteration: int, loss: float, noise: float, seconds: float, verbose: int) -> None:
        unknown = float("nan")
        record = IRORecord(iteration, loss, noise, unknown, unknown, 0, 1.0, unknown, unknown, seconds, unknown)
        self.history.append(asdict(record) | {"chain": 0})
        if verbose:
            write(f"[kstonet.dask] iteration {iteration:3d}  loss {loss:.4g}  {seconds:.1f} s\n")

    def _model(self, iterates: Sequence[Iterate]) -> TrainedNetwork:
        settings, expansion = self.settings, expansion_of(self.groups, iterates, self.sample)
        return TrainedNetwork(
            scaler=self.problem.scaler,
            targets=self.problem.targets,  # type: ignore[arg-type]  # of one of the two kinds
            expansion=expansion,
            uppers=tuple((now.head,) for now in iterates),
            n_iter=settings.max_iter,
            history=self.history,
            chosen=settings.chosen,
            choice=settings.choice,
            plan=self.plan,
            sample=self.problem.some_rows(expansion),
        )

    # -- calibration ---------------------------------------------------------------------------------------------------------

    def _calibrated_classes(self, model: TrainedNetwork, iterates: Sequence[Iterate], residuals: str) -> TrainedNetwork:
        """The model with its uncertainty, and with a temperature of left-out logits of the sample."""
        first = first_uncertainty(self.groups, model.expansion)
        _, _, left_out = self._sampled(self.latents, iterates[-1].first, False)
        rows = left_out, self.problem.outputs, self.problem.weights
        found = NetworkUncertainty(model.expansion, first, tuple((now.head.uncertainty(*rows),) for now in iterates))
        logits = forward_above((iterates[-1].head,), left_out)[-1]
        known: tuple[Any, ...] = (logits, self.problem.outputs)
        known += () if self.problem.weights is None else (self.problem.weights,)
        calibration = ProbabilityCalibration.of_fit(known)
        return replace(model, residuals=residuals, uncertainty=found, calibration=calibration)

    def _judged(self, now: Iterate, residual: float) -> Judged:
        """Hidden rows of the sample, predicted by a network that goes on without them."""
        predicted = []
        for iteration in range(CALIBRATION_ITERATIONS):
            now, _ = self._iterated(now, residual, self.settings.max_iter + iteration, True)
            residual = self._loss(now)[1]
            if iteration:
                passed = self._pass("predict", row_sums.hidden_outputs, now.first, (now.head,))
                predicted.append(self.rows.combined(passed, _joined)[0])
        X, outputs = self.problem.X[self.hidden], self.problem.outputs[self.hidden]
        weights = None if self.problem.weights is None else self.problem.weights[self.hidden]
        return Judged(X, outputs, np.mean(predicted, axis=0), weights)


def _unpacked(function: Callable[..., Any], part: Any, *rest: Any) -> Any:
    """Call a pass: what lies beside the features comes before the arguments that all share."""
    *beside, shared = rest
    return function(part, *beside, *shared)


def _featured(part: Any, shared: tuple[Any, ...]) -> Any:
    return row_sums.featured(part, *shared)


def _start_moments(part: Any, shared: tuple[Any, ...]) -> Any:
    return row_sums.start_moments(part, *shared)


def _started_latents(part: Any, shared: tuple[Any, ...]) -> Any:
    return row_sums.started(part, *shared)


def _joined(results: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Arrays one below the other."""
    return tuple(np.concatenate(parts) for parts in zip(*results, strict=True))
