"""Training: chains of Algorithm 1, the averaged network of their last iterates, its intervals. A problem in, a record out."""

from __future__ import annotations

import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from kstonet.checkpoint import Iterate, Run
from kstonet.gram.kernels import Stationary
from kstonet.initialisation import TrainingRows
from kstonet.iro import IROState, iro
from kstonet.layers.activations import get_activation
from kstonet.network import Network, forward_above
from kstonet.observers import Iteration, Observer, Stop
from kstonet.problem import Problem
from kstonet.settings import TrainingSettings
from kstonet.targets import NumericTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration, TrainingEnd
from kstonet.uncertainty.network import NetworkUncertainty


@dataclass(frozen=True)
class Resumption:
    """Where an earlier training on the same rows stopped: the state of every chain, and the records so far."""

    states: Sequence[IROState]
    history: Sequence[dict[str, Any]] = ()


def train(
    problem: Problem,
    settings: TrainingSettings,
    observers: Sequence[Observer] = (),
    resumption: Resumption | None = None,
    run: Run | None = None,
) -> TrainedNetwork:
    """Run Algorithm 1 and prepare the intervals.

    An interrupt (Ctrl-C) ends the training with what it has: the iterates so far are a model, and intervals that are
    interrupted become those of the training residuals, with a warning.

    Parameters
    ----------
    problem : Problem
        Standardised rows, outputs and Grams.
    settings : TrainingSettings
        What to train, and for how long.
    observers : sequence of Observer
        Hear of every iteration, in this order, and may ask to stop.
    resumption : Resumption, optional
        Go on from there instead of from a random start.
    run : Run, optional
        Keeps where the training stands, and knows what an earlier process has done.

    Returns
    -------
    TrainedNetwork

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.problem import Problem, Rows
    >>> from kstonet.settings import KernelLayerSettings, TrainingSettings
    >>> from kstonet.targets import NumericTargets
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> problem = Problem.of(Rows(X, np.sin(X[:, 0])), NumericTargets)
    >>> network = train(problem, TrainingSettings(KernelLayerSettings(), max_iter=3, n_average=2))
    >>> bool(abs(network.mean(X) - np.sin(X[:, 0])).max() < 0.5)
    True
    """
    return _Training(problem, settings, observers, resumption, run or Run()).train()


class _Training:
    """One training: the chains one after the other, and what predictions will average."""

    def __init__(
        self,
        problem: Problem,
        settings: TrainingSettings,
        observers: Sequence[Observer],
        resumption: Resumption | None,
        run: Run,
    ) -> None:
        self.problem, self.settings, self.observers, self.run = problem, settings, observers, run
        self.plan = settings.plan(problem.grams)
        self.inputs = settings.first.inputs(problem)
        self.history: list[dict[str, Any]] = [] if resumption is None else list(resumption.history)
        self.starts: Sequence[IROState] | None = None if resumption is None else resumption.states
        self.finished: list[IROState] = []  # the iterates that predictions average, of chains that are done
        self.recent: deque[IROState] = deque(maxlen=settings.n_average)  # of the chain that runs
        self._rest_after: int | None = None
        self._watch: Callable[[Network], dict[str, float]] | None = None

    def train(self) -> TrainedNetwork:
        """Train, then prepare the intervals."""
        try:
            self._run_chains()
            kept = self.finished
            if self.settings.residuals is not None:
                kept = self.run.states("exact", kept, lambda: self._exact(self.finished))
        except KeyboardInterrupt:  # what is trained so far is a model
            done = self.finished or _distinct(self.recent)
            if not done:
                raise
            for observer in self.observers:
                observer.interrupted(self._model(done))  # a second interrupt may leave it so
            kept = self._exact(done)
        finally:
            for observer in self.observers:
                observer.close()
        model = self._model(kept)
        if model.plan is not None and model.plan.approximate:
            model = replace(model, plan=replace(model.plan, dual_gap=kept[-1].network.first.kernel_gap()))
        return self._with_means(model, kept) if self.settings.residuals is None else self._with_intervals(model, kept)

    # -- chains --------------------------------------------------------------------------------------------------------------

    def _new(self) -> IROState:
        """What all chains start from: a network before its first refit."""
        settings = self.settings
        network = settings.new_network(self.problem)
        if "hidden_layer_sizes" not in settings.chosen:
            _note_shape(settings.hidden_layer_sizes, network.head.slope(np.zeros((1, network.head.n_inputs))).shape[1])
        return IROState(0, network, (), {})

    def _started(self, new: IROState, chain: int) -> IROState:
        """The first state of a chain."""
        problem, settings = self.problem, self.settings
        rng = np.random.default_rng([settings.seed, chain] if chain else settings.seed)
        rows = TrainingRows(problem.X, self.inputs, problem.outputs, problem.weights)
        activation = get_activation(settings.activation)
        fitted, latents = problem.targets.start(rng, new.network, rows, activation)
        if chain == 0:
            loop, most = settings.loop, settings.max_iter
            self._rest_after = problem.targets.rest_after(new.network, rows, activation, loop, most)
        return IROState(0, fitted, latents, dict(rng.bit_generator.state), rest_after=self._rest_after)

    def _run_chains(self) -> None:
        starts = self.starts or [self._new()] * self.settings.n_chains
        self.like = starts[0]
        earlier = self.run.iterates(self.like)
        if earlier:
            self.history = list(earlier[-1].history)
        for chain, start in enumerate(starts):
            self.recent.clear()
            self._begins("chain")
            own = [iterate for iterate in earlier if iterate.chain == chain]
            stop = self._resumed(own) if own else None
            state = own[-1].state if own else start if self.starts else self._started(start, chain)
            if stop is None:
                stop = self._run_chain(chain, state, start)
            self.finished.extend(_distinct(self.recent))
            if stop is Stop.TRAINING:
                break

    def _resumed(self, iterates: Sequence[Iterate]) -> Stop | None:
        """Take over what an earlier process has done of a chain."""
        last = iterates[-1]
        self.recent.extend(iterate.state for iterate in iterates)
        records = [record for record in last.history if record["chain"] == last.chain]
        for observer in self.observers:
            observer.resumed(records, last.state)
        return None if last.stop is None else Stop[last.stop]

    def _run_chain(self, chain: int, state: IROState, start: IROState) -> Stop:
        """Iterate from a state until a chain ends that began at ``start``."""
        problem, settings = self.problem, self.settings
        states = iro(self.inputs, problem.outputs, state, settings.loop, problem.weights)
        while True:
            self._begins("iteration")
            state = next(states)
            self.recent.append(state)
            record = self._record(state, chain)
            self.history.append(record)
            done = Iteration(state, record, chain, lambda: self._model([*self.finished, *_distinct(self.recent)]))
            wishes = {observer.iteration(done) for observer in self.observers}
            enough = state.iteration - start.iteration >= settings.max_iter
            stop = Stop.TRAINING if Stop.TRAINING in wishes else Stop.CHAIN if Stop.CHAIN in wishes or enough else None
            kept = Iterate(chain, state, self.history, None if stop is None else stop.name)
            self.run.keep(kept, self.like, settings.n_average)  # after the observers: all have heard of what is kept
            if stop is not None:
                return stop

    def _begins(self, task: str) -> None:
        for observer in self.observers:
            observer.begins(task)

    def _record(self, state: IROState, chain: int) -> dict[str, Any]:
        """What the history says of an iteration."""
        assert state.record is not None
        targets, network = self.problem.targets, state.network
        record = asdict(state.record) | {"chain": chain}
        record["score"] = targets.score(network.forward(self.inputs)[-1], self.problem.outputs)
        if self.problem.validation is not None:
            X, outputs = self.problem.validation
            if self._watch is None:  # the chains share their kernels
                values_at = network.first.values_at(X)
                self._watch = lambda network: _validation(network, values_at(network.first), outputs, targets.score)
            record |= self._watch(network)
        return record

    # -- the model of some iterates ------------------------------------------------------------------------------------------

    def _model(self, states: Sequence[IROState]) -> TrainedNetwork:
        """The averaged network, without intervals."""
        firsts = [state.network.first for state in states]
        expansion = firsts[-1].expansion(firsts, self.inputs)
        targets = self.problem.targets
        if isinstance(targets, NumericTargets) and all(isinstance(part.kernel, Stationary) for part in expansion.parts):
            targets = targets.with_limits(self.problem.rows.y)
        return TrainedNetwork(
            scaler=self.problem.scaler,
            targets=targets,  # type: ignore[arg-type]  # a record has targets of one of the two kinds
            expansion=expansion,
            uppers=tuple(state.network.uppers for state in states),
            n_iter=states[-1].iteration,
            history=list(self.history),
            chosen=self.settings.chosen,
            choice=self.settings.choice,
            plan=None if self.plan is None else self.plan.after(self.problem.grams.held.values()),
            sample=self.problem.some_rows(expansion),
        )

    def _exact(self, states: Sequence[IROState]) -> list[IROState]:
        """The iterates with first layers as intervals need them."""
        if self.settings.residuals is None:
            return list(states)
        firsts, latents = [state.network.first for state in states], [state.latents[0] for state in states]
        solved = firsts[-1].exact(firsts, self.inputs, latents, self.problem.weights)
        return [
            replace(state, network=Network((first, *state.network.uppers))) for state, first in zip(states, solved, strict=True)
        ]

    def _with_means(self, model: TrainedNetwork, states: Sequence[IROState]) -> TrainedNetwork:
        """The model without intervals; the mean of a mapped target knows of its errors what the training rows show."""
        problem, targets = self.problem, model.targets
        if not isinstance(targets, NumericTargets) or targets.map is None:
            return model
        fitted = np.mean([state.network.forward(self.inputs)[-1] for state in states], axis=0)
        square = np.average((problem.outputs - fitted) ** 2, axis=0, weights=problem.weights)
        return replace(model, targets=targets.with_error(np.sqrt(square)))

    def _with_intervals(self, model: TrainedNetwork, states: Sequence[IROState]) -> TrainedNetwork:
        """The model with its uncertainty and calibration."""
        problem, residuals = self.problem, self.settings.residuals
        assert residuals is not None
        self._begins("intervals")
        started = time.perf_counter()
        rows = states, problem.X, self.inputs, problem.outputs, problem.weights
        end = TrainingEnd(*rows, self.settings.loop, self.run, self.settings.choice.get("growth"))

        def prepared(residuals: str) -> TrainedNetwork:
            uncertainty = NetworkUncertainty.of(model.expansion, states, self.inputs, problem.outputs, problem.weights)
            known = replace(model, residuals=residuals, uncertainty=uncertainty)
            there = known.on(problem.grams.device).uncertainty
            assert there is not None
            calibration, targets = problem.targets.calibration(end, there, residuals), known.targets
            if isinstance(calibration, IntervalCalibration) and isinstance(targets, NumericTargets):
                assert calibration.error is not None
                targets = targets.with_error(calibration.error)
            return replace(known, calibration=calibration, targets=targets)

        try:
            finished = prepared(residuals)
        except KeyboardInterrupt:
            for observer in self.observers:
                observer.interrupted(model)
            finished = prepared("training")  # little work
            warnings.warn(
                "interrupted while intervals were prepared: they are those of residuals='training' and may be too short.",
                UserWarning,
                stacklevel=4,
            )
        finished.history[-1]["seconds_intervals"] = time.perf_counter() - started
        for observer in self.observers:
            observer.ended("intervals")
        return finished


def _distinct(states: Sequence[IROState]) -> list[IROState]:
    """The iterates of a chain that predictions average; one of them where all rest, for then they are the same network."""
    return list(states)[-1:] if states and states[0].rests else list(states)


def _validation(
    network: Network, first: np.ndarray, outputs: np.ndarray, score: Callable[[np.ndarray, np.ndarray], float]
) -> dict[str, float]:
    prediction = forward_above(network.uppers, first)[-1]
    return {"validation_loss": network.head.loss(prediction, outputs), "validation_score": score(prediction, outputs)}


def _note_shape(sizes: tuple[int, ...], outputs: int) -> None:
    """The theory wants a pyramid: m₁ ≥ m₂ ≥ … ≥ outputs (Lemma 1, condition ii); other shapes work, outside it."""
    shape = (*sizes, outputs)
    if any(above > below for below, above in pairwise(shape)):
        warnings.warn(
            f"the network {'-'.join(map(str, shape))} (hidden units and outputs) is not pyramidal: it widens towards the "
            "output, where the theory has no guarantee against local traps. Give earlier layers at least as many units.",
            UserWarning,
            stacklevel=8,
        )
