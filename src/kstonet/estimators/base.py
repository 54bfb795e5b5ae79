"""What all four estimators share: parameters are checked and made into a problem and settings; scikit-learn's conventions.

The way of X through ``fit``: validated rows become a :class:`~kstonet.problem.Problem`; the parameters become
:class:`~kstonet.settings.TrainingSettings`, some of them chosen by a search; :func:`~kstonet.training.train` makes the
:class:`~kstonet.trained.TrainedNetwork` that the estimator keeps as ``trained_``. Everything that is asked later is answered by
that record: no parameter of the constructor is read after ``fit``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

import kstonet
from kstonet._arrays import rows_in
from kstonet._checks import check_range, require, within_range
from kstonet._progress import moving, write
from kstonet._words import some
from kstonet.checkpoint import Run, open_run
from kstonet.estimators.callbacks import CallbackSupportMixin, UserCallback
from kstonet.estimators.display import FittedDisplayMixin
from kstonet.estimators.inputs import TableInputMixin
from kstonet.estimators.interpretation import InterpretationMixin
from kstonet.estimators.links import DocumentationLink
from kstonet.estimators.parameters import parameter_rules
from kstonet.estimators.weights import validated_weights
from kstonet.gram.devices import within_memory
from kstonet.gram.memory import release_memory
from kstonet.gram.planning import Plan
from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings, IROState
from kstonet.observers import EarlyStopping, Ends, Observer, Progress
from kstonet.problem import Problem, Rows
from kstonet.settings import FirstLayerSettings, TrainingSettings, layer_sizes
from kstonet.targets import TargetsKind
from kstonet.threads import single_threaded
from kstonet.trained import TrainedNetwork
from kstonet.training import Resumption, train

WITHOUT_EFFECT = ("checkpoint", "callback", "n_jobs", "verbose")  # parameters that do not change the result
RESIDUALS = ("auto", "crossfit", "training", None)


@dataclass(frozen=True)
class Choice:
    """Parameters that were chosen from the training rows: their values, and "reason" and "table" of how."""

    parameters: dict[str, Any]
    how: dict[str, Any]


class BaseStoNet(
    FittedDisplayMixin,
    TableInputMixin,
    InterpretationMixin,
    CallbackSupportMixin,
    DocumentationLink,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Everything the estimators share. Subclasses say what the first layer is, and what is predicted."""

    hidden_layer_sizes: Any
    activation: str
    kernel: Any
    noise_variance: Any
    penalty: str
    upper_layer: str
    residuals: str | None
    alpha: Any
    sampler: str
    n_imputation_steps: int
    step_size: Any
    friction: float
    temperature: float | str
    max_iter: int | None
    n_average: int | None
    n_chains: int
    tol: float | None
    n_iter_no_change: int
    standardize: bool
    warm_start: bool
    max_memory: float | None
    checkpoint: str | os.PathLike[str] | None
    callback: Callable[[Any], Any] | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    trained_: TrainedNetwork
    _X_fit: np.ndarray
    _residuals_known: ClassVar[tuple[str | None, ...]] = RESIDUALS

    # -- what subclasses answer ----------------------------------------------------------------------------------------------

    def _first_layer(self) -> FirstLayerSettings:
        """The first layer that the parameters ask for."""
        raise NotImplementedError

    def _targets(self) -> TargetsKind:
        """What is predicted."""
        raise NotImplementedError

    def _gram_options(self) -> dict[str, Any]:
        """Options of :func:`kstonet.gram.make_gram`."""
        return {"solver": "dense", "max_memory": self.max_memory}

    def _asked(self) -> set[str]:
        """The parameters that are to be chosen from the training rows."""
        return set()

    def _choose(self, asked: set[str], problem: Problem, settings: TrainingSettings, seed: int, run: Run) -> Choice:
        """Values for the parameters asked for, by a search on the training rows; ``run`` keeps its steps."""
        raise NotImplementedError

    # -- parameters ----------------------------------------------------------------------------------------------------------

    def _given(self, name: str) -> Any:
        """The value of a parameter that is not chosen from the training rows."""
        return getattr(self, name)

    def _check_parameters(self) -> None:
        """Refuse parameters before any work is done."""
        asked = self._asked()
        for name, (valid, demand) in parameter_rules(self).items():
            if name not in asked:
                require(name, self._given(name), valid, demand)

    def _settings(self) -> TrainingSettings:
        """The settings that the parameters ask for; those that are to be chosen stand as they are given."""
        loop = IROSettings(
            chain=ChainSettings(self.sampler, self.n_imputation_steps, self.friction),
            temperature=self.temperature,
            step_size=self.step_size,
            noise_variance=self.noise_variance,
            alpha=self.alpha,
            n_jobs=self.n_jobs,
        )
        sizes = self._given("hidden_layer_sizes")
        return TrainingSettings(
            first=self._first_layer(),
            hidden_layer_sizes=(1,) if isinstance(sizes, str) else layer_sizes(sizes),
            activation=self.activation,
            upper_layer=self.upper_layer,
            penalty=self.penalty,
            iro=loop,
            residuals="crossfit" if self.residuals == "auto" else self.residuals,
            max_iter=self._given("max_iter"),
            n_average=self._given("n_average"),
            n_chains=self.n_chains,
        )

    def _seed(self) -> int:
        return int(check_random_state(self.random_state).randint(np.iinfo(np.int32).max))

    # -- training ------------------------------------------------------------------------------------------------------------

    def _rows(self, X: np.ndarray, y: np.ndarray, sample_weight: Any) -> Rows:
        """Rows that take part in training: latent values imputed for those of weight zero would enter noise and penalty.

        A kernel matrix keeps them, because prediction is given its columns as training was.
        """
        names = getattr(self, "feature_names_in_", None)
        check_range("X", X, names if names is not None and len(names) == X.shape[1] else None)
        if y.dtype.kind == "f":
            check_range("y", y)
        weights = validated_weights(sample_weight, X)
        if (
            weights is not None and "C" in self._asked()
        ):  # a C that is chosen goes with weights of mean one, whatever their unit
            weights = weights / weights[weights > 0].mean()
        rows = Rows(X, y, weights, self._pairwise, self._roles(X, weights))
        return rows if self._pairwise else rows.that_count()

    def _problem(self, rows: Rows) -> Problem:
        return Problem.of(rows, self._targets(), standardize=self.standardize, **self._gram_options())

    def _train(self, rows: Rows, validation: Rows | None, observers: Sequence[Observer]) -> None:
        """Choose what is to be chosen, train, and keep the record."""
        self._check_parameters()
        problem, given = self._problem(rows), self._settings()
        resumption = self._resumption(problem, self._asked())
        ends, publisher = Ends(), _Publisher(self)
        device = self._gram_options().get("device")
        with open_run(self.checkpoint, self._plan(rows, validation)) as run, within_range(), within_memory(device):
            trained = run.result()
            if trained is None:
                self._check_room(problem)
                started = time.perf_counter()
                settings = self._with_choice(given, problem, resumption, run)
                spent = time.perf_counter() - started
                problem = problem.mapped(settings.chosen.get("target_transform", "none"))
                release_memory()
                plan = self._expected(problem, settings)
                if self.verbose and plan is not None:
                    said = f"[{type(self).__name__}] {plan}"
                    moving(said) if self.verbose == 1 else write(f"{said}\n")
                if validation is not None:
                    problem = problem.with_validation(validation)
                watching = [ends, publisher, *self._observers(settings, resumption), *observers]
                dense = plan is not None and plan.solver == "dense" and device is None
                with single_threaded(self.n_jobs) if dense else nullcontext():  # whose products our threads share out
                    trained = train(problem, settings, watching, resumption, run)
                if plan is not None and trained.plan is not None:
                    trained = replace(trained, plan=replace(trained.plan, bytes=plan.bytes))
                if settings.chosen:
                    trained.history[0] |= {"tuning": settings.choice["reason"], "seconds_choice": spent}
                if not publisher.published:
                    run.finish(trained)
        self.trained_, self._X_fit = trained, problem.X  # a report tells rows that were seen in training from new ones
        self.__dict__.pop("_resume", None)
        if self.warm_start:  # holds the kernel matrix
            self._resume = (problem.X, list(ends.states.values()))

    def _check_room(self, problem: Problem) -> None:
        """Refuse before any work a fit that there is no memory for."""

    def _expected(self, problem: Problem, settings: TrainingSettings) -> Plan | None:
        """What the fit will hold and cost, now that all is chosen and before the training takes its memory."""
        return settings.plan(problem.grams)

    def _with_choice(
        self, settings: TrainingSettings, problem: Problem, resumption: Resumption | None, run: Run
    ) -> TrainingSettings:
        """The settings with what is chosen from the training rows, and a seed."""
        asked = self._asked()
        seeds = run.value("seeds", lambda: [self._seed() for _ in range(2 if asked else 1)])
        if self.verbose and asked and resumption is None:
            moving(f"[{type(self).__name__}] choosing {some(sorted(asked), 4)} from the training rows")
        if resumption is not None:
            chosen, how = self.trained_.chosen, self.trained_.choice
        elif asked:
            steps = run.within("choice")
            found = run.value("choice", lambda: vars(self._choose(asked, problem, settings, seeds[0], steps)))
            chosen, how = found["parameters"], found["how"]
        else:
            chosen, how = {}, {}
        settings = settings.with_parameters(chosen) if chosen else settings
        return replace(settings, chosen=chosen, choice=how, seed=seeds[-1])

    def _plan(self, *rows: Rows | None) -> dict[str, dict[str, Any]]:
        """What a checkpoint belongs to: all that the result depends on."""
        given = {name: value for name, value in self.get_params(deep=False).items() if name not in WITHOUT_EFFECT}
        data = {"training rows": rows[0], "validation rows": rows[1]}
        return {
            "estimator": {type(self).__name__: kstonet.__version__},
            "parameters": given,
            "data": {name: None if own is None else [own.X, own.y, own.weights] for name, own in data.items()},
        }

    def _observers(self, settings: TrainingSettings, resumption: Resumption | None) -> list[Observer]:
        """Those that the parameters ask for, in the order in which they hear of an iteration."""
        observers: list[Observer] = []
        chains = settings.n_chains if resumption is None else len(resumption.states)
        if self.verbose:
            iterations, intervals = settings.max_iter * chains, settings.residuals is not None
            observers.append(Progress(type(self).__name__, iterations, self.verbose, intervals))
        if self.callback is not None:
            observers.append(UserCallback(self, self.callback))
        if self.tol is not None:
            observers.append(EarlyStopping(self.tol, self.n_iter_no_change))
        return observers

    def _resumption(self, problem: Problem, asked: set[str]) -> Resumption | None:
        """Where training goes on, if it was asked to and the rows are those of the last fit."""
        held: tuple[np.ndarray, list[IROState]] | None = getattr(self, "_resume", None)
        if self.warm_start and held is None and hasattr(self, "trained_"):
            warnings.warn(
                "warm_start=True cannot go on: the model was fitted without warm_start, copied, pickled or loaded: it does not "
                "hold its training. It is trained from the start. checkpoint= keeps a training for another process.",
                UserWarning,
                stacklevel=4,
            )
        if not self.warm_start or held is None or not np.array_equal(held[0], problem.X):
            return None
        if not asked <= self.trained_.chosen.keys():
            return None
        return Resumption(held[1], self.trained_.history)

    # -- prediction ----------------------------------------------------------------------------------------------------------

    def _check_X(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return self._read(X)

    @property
    def _network(self) -> TrainedNetwork:
        """The trained network, with its predictions on ``device``; on the CPU, with a warning, where that is not usable."""
        device = getattr(self, "device", None)
        if device is None:
            return self.trained_
        held: tuple[TrainedNetwork, str, TrainedNetwork] | None = getattr(self, "_placed", None)
        if held is None or held[0] is not self.trained_ or held[1] != device:
            try:
                placed = self.trained_.on(device)
            except (ImportError, ValueError) as error:
                warnings.warn(f"{error} Predictions are made on the CPU.", UserWarning, stacklevel=4)
                placed = self.trained_
            self._placed = held = (self.trained_, device, placed)
        return held[2]

    def _refuse_training_rows(self, X: np.ndarray, user: str = "calibrate") -> None:
        """Refuse rows of the training for a calibration: the model predicts them too well.

        A stored model knows the rows it kept for prediction. Equal rows tell nothing where features take few values.
        """
        trained = self.trained_
        if trained.pairwise:
            return
        bases = [part.basis for part in trained.expansion.parts if not part.holds_values and part.basis.ndim == 2]
        if hasattr(self, "_X_fit"):
            bases = [self._X_fit]
        known = np.unique(np.concatenate(bases), axis=0) if bases else None  # kernels share most of their rows
        if known is None or len(known) < 0.5 * max(map(len, bases)):
            return
        share = float(rows_in(trained.scaler.forward(X), known).mean())
        if share > 0.5:
            raise ValueError(
                f"{user}: {share:.0%} of the rows of X are rows the model was fitted on; its errors there are too small, and"
                " the intervals would be too short. Give rows that were not in fit, or call calibrate() without rows."
            )

    def transform(self, X: Any) -> np.ndarray:
        """The last hidden layer (before its activation) of the last iterate: a sufficient reduction of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, hidden_layer_sizes[-1])
        """
        X = self._check_X(X)
        return self._network.transform(X)

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One record per iteration."""
        return self.trained_.history

    @property
    def n_iter_(self) -> int:
        """Iterations done."""
        return self.trained_.n_iter

    @property
    def _n_features_out(self) -> int:
        """Columns of :meth:`transform`."""
        return self.trained_.hidden_layer_sizes[-1]

    # -- scikit-learn's conventions ------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_resume", "_X_fit", "_placed"):  # a stored model predicts, it does not resume, wherever it is
            state.pop(name, None)
        return state

    @property
    def _pairwise(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    @property
    def _takes_kernel_values(self) -> bool:
        return self._pairwise


class _Publisher(Observer):
    """Makes the estimator a model when the user interrupts its training: a second interrupt may leave it so."""

    def __init__(self, estimator: BaseStoNet) -> None:
        self._estimator = estimator
        self.published = False

    def interrupted(self, model: TrainedNetwork) -> None:
        """Keep what there is."""
        self._estimator.trained_, self.published = model, True
