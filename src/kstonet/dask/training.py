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
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh

from kstonet._progress import write
from kstonet.class_start import LATENT_NOISE, LEAST_RESIDUAL, class_latents, residual_share
from kstonet.dask import partition
from kstonet.dask.partition import FirstLayer, Group
from kstonet.gram.expansion import Expansion, ExpansionPart
from kstonet.gram.planning import Plan
from kstonet.initialisation import TARGET_SHARE
from kstonet.iro import IRORecord, scheduled
from kstonet.layers.activations import get_activation
from kstonet.layers.base import LayerUncertainty, UpperLayer
from kstonet.layers.dense import SMALLEST_RESIDUAL, DenseLayer
from kstonet.layers.linear import NOISE_RATIO, NOISE_SHARE
from kstonet.layers.margin import thinned
from kstonet.layers.svr_uncertainty import MarginUncertainty
from kstonet.network import forward_above
from kstonet.problem import Problem
from kstonet.settings import TrainingSettings, first_alpha
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration, ProbabilityCalibration
from kstonet.uncertainty.logits import out_of_sample_temperature
from kstonet.uncertainty.network import NetworkUncertainty

SAMPLE = 20_000  # rows that come to the client, of however many
HIDDEN_SHARE = 5  # one in so many rows at most is hidden for the calibration
CALIBRATION_ITERATIONS = 3  # the first forgets the hidden rows, the others predict them
PADDING = 4096  # rows without weight, beside which no class is too rare to have a spread


@dataclass(frozen=True)
class Iterate:
    """The network after an iteration: the first layer, the head, and for a regression the sums its head was fitted on."""

    first: FirstLayer
    head: UpperLayer
    above: tuple[np.ndarray, ...]


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
        self.ratio = NOISE_RATIO
        self.latent_noise: float | None = None
        self.history: list[dict[str, Any]] = []
        self._solvers: dict[bool, tuple[list[Any], list[np.ndarray], float]] = {}

    # -- passes --------------------------------------------------------------------------------------------------------------

    def _pass(self, name: str, function: Callable[..., Any], *arguments: Any, beside: Sequence[Any] = ()) -> list[Any]:
        """A function of every partition's features, of what lies beside them, and of arguments that all share."""
        shared = self.rows.shared(arguments)
        columns = (self.features, *beside, [shared] * len(self.features))
        return list(self.rows.each(name, _unpacked, [function] * len(self.features), *columns))

    def _solver(self, hide: bool) -> tuple[list[Any], list[np.ndarray], float]:
        """Factors of the normal equations of every group, means of the features, and the sum of the weights."""
        if hide not in self._solvers:
            sums, total = self.rows.combined(self._pass("normal", partition.normal_matrices, hide))
            factors, means = [], []
            for (matrix, ones), group in zip(sums, self.groups, strict=True):
                mean = ones / float(total)
                centred = matrix - np.outer(ones, mean)
                centred.flat[:: len(centred) + 1] += group.ridge
                factors.append(cho_factor(0.5 * (centred + centred.T), lower=True))
                means.append(mean)
            self._solvers[hide] = factors, means, float(total)
        return self._solvers[hide]

    def _refitted(self, latents: Sequence[Any], head: UpperLayer, hide: bool) -> Iterate:
        """Step 2 of Algorithm 1: the layers' regressions, from sums over the rows."""
        activation = None if self.classes else self.activation
        passed = self._pass("sides", partition.right_sides, self.units, activation, hide, beside=(latents,))
        sides, targets, above = self.rows.combined(passed)
        factors, means, total = self._solver(hide)
        centre = targets / total
        weights, intercept = [], centre.copy()
        for side, factor, mean, own in zip(sides, factors, means, self.units, strict=True):
            solved = cho_solve(factor, side - total * np.outer(mean, centre[own]))
            weights.append(solved.T)
            intercept[own] -= mean @ solved
        first = FirstLayer(self.units, tuple(weights), intercept)
        if self.classes:
            _, _, left_out = self._sampled(latents, first, hide)
            counted = self._sample_weights(hide)
            return Iterate(first, head.refit(left_out, self.problem.outputs, counted), ())
        assert isinstance(head, DenseLayer)
        pseudo = _pseudo_rows(above, self.m)
        plain = replace(head, activation=get_activation("identity")).refit(*pseudo)
        return Iterate(first, replace(plain, activation=self.activation), above)

    def _sample_weights(self, hide: bool) -> np.ndarray | None:
        weights = self.problem.weights
        if not hide:
            return weights
        counted = np.ones(len(self.sample)) if weights is None else weights.copy()
        counted[self.hidden] = 0.0
        return counted

    def _sampled(self, latents: Sequence[Any], first: FirstLayer, hide: bool) -> tuple[np.ndarray, ...]:
        """Latent, fitted and left-out values of the rows of the sample."""
        factors, means, total = self._solver(hide)
        solved = [(cho_solve(factor, np.eye(len(mean))), mean) for factor, mean in zip(factors, means, strict=True)]
        passed = self._pass("sample", partition.sample_values, first, solved, total, hide, beside=(latents,))
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
        arguments = self.rows.shared((problem.scaler, problem.targets, mixtures, combination, -mean @ combination))
        return list(self.rows.each("start", _started_latents, self.parts, [arguments] * len(self.parts)))

    def _started_classes(self, head: Any) -> Iterate:
        """The one-vs-rest machine of the first layer, as in :mod:`kstonet.class_start`."""
        targets: Any = self.problem.targets
        passed = self.rows.each("classes", partition.class_weights, self.parts, [targets] * len(self.parts))
        (share,) = self.rows.combined(passed)
        codes = np.append(np.arange(len(share)), np.zeros(PADDING, dtype=int))
        weights = np.append(share, np.zeros(PADDING))
        table = class_latents(self.rng, targets.contrasts(codes), weights, self.m, self.activation)[: len(share)]
        latents = self._pass("start", partition.looked_up, table)
        head = replace(head, least_residual=LEAST_RESIDUAL, residual_share=residual_share(head.n_outputs))
        start = self._refitted(latents, head, False)
        own, values, _ = self._sampled(latents, start.first, False)
        counted = self.problem.weights
        pull = start.head.with_noise(1.0).score_input(values, self.problem.outputs)
        self.ratio = max(_size(own - values, counted) / max(_size(pull, counted), 1e-6), 1e-3)
        apart = values - np.average(values, axis=0, weights=counted)
        self.latent_noise = LATENT_NOISE * max(float(np.sqrt(np.average(apart**2, axis=0, weights=counted)).mean()), 1e-6)
        return start

    # -- the loop ------------------------------------------------------------------------------------------------------------

    def _loss(self, now: Iterate) -> tuple[float, float]:
        """Loss of the head, and a typical residual."""
        (total,) = self.rows.combined(self._pass("loss", partition.squared_errors, now.first, (now.head,)))
        loss = float(total) / self.n
        if not self.classes:
            return loss, max(float(np.sqrt(loss)), SMALLEST_RESIDUAL)
        return loss, now.head.residual(now.head.mean(self._fitted(now)), self.problem.outputs)

    def _fitted(self, now: Iterate) -> np.ndarray:
        """Values of the first layer at the sample."""
        values = np.empty((len(self.sample), self.m))
        for group, weights in zip(self.groups, now.first.weights, strict=True):
            values[:, group.units] = group.landmarks.features(group.kernel, self.problem.X) @ weights.T
        return np.asarray(values + now.first.intercept)

    def _iterated(self, now: Iterate, residual: float, iteration: int, hide: bool) -> tuple[Iterate, float, list[Any]]:
        """One iteration of Algorithm 1; also the noise, and the latent values on their workers."""
        loop = self.settings.iro
        alpha = scheduled(loop.alpha, iteration)
        head = now.head.with_penalty(None if alpha == "auto" else float(alpha), residual, self.n)
        noise = scheduled(loop.noise_variance, iteration)
        if noise == "auto":
            noise = NOISE_SHARE * residual**2 if self.latent_noise is None else self.latent_noise**2 / self.ratio
        noise = float(noise[0] if isinstance(noise, tuple) else noise)
        head, first = head.with_noise(noise), replace(now.first, variance=self.ratio * noise)
        temperature = 1.0 if loop.temperature == "auto" else float(loop.temperature)
        chain = replace(loop.chain, temperature=temperature)
        draw = int(self.rng.integers(2**63)), self.n
        arguments = first, (head,), chain, scheduled(loop.step_size, iteration), draw
        latents = self._pass("impute", partition.imputed, *arguments)
        return self._refitted(latents, head, hide), noise, latents

    def train(self, verbose: int = 0) -> TrainedNetwork:
        """Train, then calibrate."""
        settings = self.settings
        recent: deque[Iterate] = deque(maxlen=settings.n_average)
        now = self._started()
        loss, residual = self._loss(now)
        latents: list[Any] = []
        for iteration in range(settings.max_iter):
            begin = time.perf_counter()
            now, noise, latents = self._iterated(now, residual, iteration, False)
            loss, residual = self._loss(now)
            recent.append(now)
            self._record(iteration + 1, loss, noise, time.perf_counter() - begin, verbose)
        model = self._model(list(recent))
        return model if settings.residuals is None else self._calibrated(model, list(recent), residual, latents)

    def _record(self, iteration: int, loss: float, noise: float, seconds: float, verbose: int) -> None:
        unknown = float("nan")
        record = IRORecord(iteration, loss, noise, unknown, unknown, 0, 1.0, unknown, unknown, seconds, unknown)
        self.history.append(asdict(record) | {"chain": 0})
        if verbose:
            write(f"[kstonet.dask] iteration {iteration:3d}  loss {loss:.4g}  {seconds:.1f} s\n")

    def _model(self, iterates: Sequence[Iterate]) -> TrainedNetwork:
        parts = []
        for k, group in enumerate(self.groups):
            coef = np.stack([now.first.weights[k] @ group.landmarks.whitening.T for now in iterates])
            used = self.sample[group.landmarks.indices]
            parts.append(ExpansionPart(group.kernel, group.landmarks.basis, used, coef, group.units))
        expansion = Expansion.of(parts, np.stack([now.first.intercept for now in iterates]))
        settings = self.settings
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
        )

    # -- calibration ---------------------------------------------------------------------------------------------------------

    def _calibrated(
        self, model: TrainedNetwork, iterates: Sequence[Iterate], residual: float, latents: Sequence[Any]
    ) -> TrainedNetwork:
        """The model with its uncertainty, and with a calibration on rows that the network has not seen."""
        columns, ridges = {}, {}
        for group in self.groups:
            members = thinned(np.arange(group.landmarks.rank))
            for unit in group.units.tolist():
                columns[unit], ridges[unit] = members, np.full(len(members), group.ridge)
        in_order = [tuple(values[unit] for unit in range(self.m)) for values in (columns, ridges)]
        first = MarginUncertainty(model.expansion, in_order[0], {}, (None,) * len(self.groups), in_order[1])
        residuals = self.settings.residuals
        if self.classes:
            _, _, left_out = self._sampled(latents, iterates[-1].first, False)
            rows = left_out, self.problem.outputs, self.problem.weights
            uppers: tuple[tuple[LayerUncertainty, ...], ...] = tuple((now.head.uncertainty(*rows),) for now in iterates)
            found = NetworkUncertainty(model.expansion, first, uppers)
            logits = forward_above((iterates[-1].head,), left_out)[-1]
            known: tuple[Any, ...] = (logits, self.problem.outputs)
            known += () if self.problem.weights is None else (self.problem.weights,)
            calibration: Any = ProbabilityCalibration(out_of_sample_temperature(*known), 1.0, known)
            return replace(model, residuals=residuals, uncertainty=found, calibration=calibration)
        uppers = tuple((self._head_uncertainty(now),) for now in iterates)
        found = NetworkUncertainty(model.expansion, first, uppers)
        now, predicted = iterates[-1], []
        for iteration in range(CALIBRATION_ITERATIONS):
            now, _, _ = self._iterated(now, residual, self.settings.max_iter + iteration, True)
            residual = self._loss(now)[1]
            if iteration:
                passed = self._pass("predict", partition.hidden_outputs, now.first, (now.head,))
                predicted.append(self.rows.combined(passed, _joined)[0])
        X, outputs = self.problem.X[self.hidden], self.problem.outputs[self.hidden]
        weights = None if self.problem.weights is None else self.problem.weights[self.hidden]
        moments = replace(found.moments(X), mean=np.mean(predicted, axis=0))
        place = (self.groups[0].kernel, X) if residuals == "local" else None
        calibration = IntervalCalibration.of_residuals(outputs, moments, weights, place)
        return replace(model, residuals=residuals, uncertainty=found, calibration=calibration)

    def _head_uncertainty(self, now: Iterate) -> Any:
        """The head's, from the sums it was fitted on: of rows that stand for all, with the degrees of freedom of all."""
        assert isinstance(now.head, DenseLayer)
        psi, outputs, weights = _pseudo_rows(now.above, self.m)
        found = replace(now.head, activation=get_activation("identity")).uncertainty(psi, outputs, weights)
        used = 1 + (now.head.weights != 0).sum(axis=1)
        factor = (len(psi) - used) / np.maximum(self.n - used, 1.0)
        covariance = found.covariance * np.sqrt(factor[:, None, None, None] * factor[:, None])
        return replace(found, covariance=covariance, noise=found.noise * factor, activation=self.activation)


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


def _size(values: np.ndarray, weights: np.ndarray | None) -> float:
    """Root mean square."""
    return float(np.sqrt(np.average((values**2).mean(axis=1), weights=weights)))


def _unpacked(function: Callable[..., Any], part: Any, *rest: Any) -> Any:
    """Call a pass: what lies beside the features comes before the arguments that all share."""
    *beside, shared = rest
    return function(part, *beside, *shared)


def _featured(part: Any, shared: tuple[Any, ...]) -> Any:
    return partition.featured(part, *shared)


def _start_moments(part: Any, shared: tuple[Any, ...]) -> Any:
    return partition.start_moments(part, *shared)


def _started_latents(part: Any, shared: tuple[Any, ...]) -> Any:
    return partition.started(part, *shared)


def _joined(results: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Arrays one below the other."""
    return tuple(np.concatenate(parts) for parts in zip(*results, strict=True))
