"""The K-StoNet estimators: the first layer is a set of support vector regressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from joblib import cpu_count
from sklearn.base import is_classifier

from kstonet._checks import require
from kstonet._words import did_you_mean
from kstonet.checkpoint import Run
from kstonet.class_start import class_units
from kstonet.estimators.base import BaseStoNet, Choice
from kstonet.estimators.classification import ClassificationTask
from kstonet.estimators.documentation import KSTONET_PARAMETERS, classifier
from kstonet.estimators.regression import RegressionTask
from kstonet.estimators.streaming import StreamMixin
from kstonet.gram import Iterative, Kernel, LowRank, Plan
from kstonet.gram.footprint import Workload, searched_bytes
from kstonet.gram.memory import require_room
from kstonet.problem import Grams, Problem
from kstonet.settings import FIXED, LARGEST, KernelLayerSettings, TrainingSettings, units_given
from kstonet.target_map import MAPS
from kstonet.targets import ClassTargets, MappedTargets, TargetsKind
from kstonet.threads import available_threads
from kstonet.tuning.candidates import TUNABLE, default_grids, is_tune
from kstonet.tuning.fast import fast_choice, joining, kernels_together, network_shape
from kstonet.tuning.joined import FEWEST_ROWS
from kstonet.tuning.parts import larger_part, search_sizes, validation_parts
from kstonet.tuning.search import search
from kstonet.tuning.target_maps import chosen_map

TUNINGS = ("fast", "thorough", "none")
GAMMAS = ("scale", "auto", "median", "tune")
LOSSES = ("squared", "epsilon_insensitive")


def _are_scales(values: Any) -> bool:
    try:
        scales = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):  # no numbers, or lists of different lengths
        return False
    return bool(((scales >= 1.0 / LARGEST) & (scales <= LARGEST)).all())


class BaseKStoNet(BaseStoNet):
    """The first layer of both K-StoNets."""

    _chosen_besides: tuple[str, ...] = ()  # parameters that are chosen, too, and have no fixed default

    def __init__(
        self,
        hidden_layer_sizes: Any = None,
        activation: str = "softplus",
        *,
        tuning: str = "fast",
        target_transform: str | None = None,
        kernel: Any = None,
        gamma: Any = None,
        length_scale: Any = None,
        C: Any = None,
        loss: str | None = None,
        epsilon: Any = None,
        svr_tol: float = 1e-3,
        noise_variance: Any = "auto",
        penalty: str = "lasso",
        upper_layer: str = "dense",
        alpha: Any = "auto",
        residuals: str | None = "auto",
        sampler: str = "sghmc",
        n_imputation_steps: int = 25,
        step_size: Any = "auto",
        friction: float = 0.1,
        temperature: float | str = "auto",
        max_iter: int | None = None,
        n_average: int | None = None,
        n_chains: int = 1,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        warm_start: bool = False,
        max_memory: float | None = None,
        solver: str = "auto",
        device: str | None = None,
        checkpoint: Any = None,
        callback: Callable[[Any], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.tuning = tuning
        self.target_transform = target_transform
        self.kernel = kernel
        self.gamma = gamma
        self.length_scale = length_scale
        self.C = C
        self.loss = loss
        self.epsilon = epsilon
        self.svr_tol = svr_tol
        self.noise_variance = noise_variance
        self.penalty = penalty
        self.upper_layer = upper_layer
        self.alpha = alpha
        self.residuals = residuals
        self.sampler = sampler
        self.n_imputation_steps = n_imputation_steps
        self.step_size = step_size
        self.friction = friction
        self.temperature = temperature
        self.max_iter = max_iter
        self.n_average = n_average
        self.n_chains = n_chains
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.standardize = standardize
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.solver = solver
        self.device = device
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _given(self, name: str) -> Any:
        """The value of a parameter that is not chosen: what the user gave, or the fixed default."""
        value = getattr(self, name)
        if value is None and name == "hidden_layer_sizes":
            units = units_given({each: getattr(self, each) for each in ("kernel", "gamma", "length_scale", "C", "epsilon")})
            return FIXED[name] if units is None else (units,)
        return FIXED.get(name) if value is None else value

    def _first_layer(self) -> KernelLayerSettings:
        names = ("kernel", "gamma", "length_scale", "C", "epsilon", "loss")
        return KernelLayerSettings(**{name: self._given(name) for name in names}, tol=self.svr_tol)

    def _gram_options(self) -> dict[str, Any]:
        return {"solver": self.solver, "device": self.device, "max_memory": self.max_memory}

    def _asked(self) -> set[str]:
        tuned = {name for name in TUNABLE if is_tune(getattr(self, name))}
        if tuned or self.tuning == "none":
            return tuned
        noise = {"residuals"} if self.residuals == "auto" and "local" in self._residuals_known else set()
        return {name for name in (*FIXED, *self._chosen_besides) if getattr(self, name) is None} | noise

    def _check_parameters(self) -> None:
        require("tuning", self.tuning, lambda v: v in TUNINGS, f"one of {', '.join(map(repr, TUNINGS))}")
        require("loss", self.loss, lambda v: v in (None, *LOSSES), f"one of {', '.join(map(repr, LOSSES))}, or None")
        named = "the name of a PyTorch device, such as 'cuda', or None for the CPU"
        require("device", self.device, lambda v: v is None or isinstance(v, str), named)
        if isinstance(self.gamma, str) and self.gamma not in GAMMAS:
            names = ", ".join(map(repr, GAMMAS))
            raise ValueError(
                f"gamma={self.gamma!r} is unknown; use a positive number, {names}.{did_you_mean(self.gamma, GAMMAS)}"
            )
        for name in ("hidden_layer_sizes", "length_scale", "C"):
            value = getattr(self, name)
            if isinstance(value, str) and not is_tune(value):
                raise ValueError(f"{name}={value!r} is unknown; give numbers, or 'tune' to have them chosen by validation.")
        super()._check_parameters()
        if self.length_scale is not None and not is_tune(self.length_scale):
            wanted = f"positive, and within 1/{LARGEST:g} and {LARGEST:g}"
            require("length_scale", self.length_scale, _are_scales, wanted)

    def _choose(self, asked: set[str], problem: Problem, settings: TrainingSettings, seed: int, run: Run) -> Choice:
        counted = problem.rows.that_count()
        problem = problem if counted is problem.rows else self._problem(counted)
        if any(is_tune(getattr(self, name)) for name in TUNABLE):
            return self._searched(asked, problem, settings, seed, run)
        if len(problem.X) < FEWEST_ROWS:
            reason = f"fewer than {FEWEST_ROWS} rows say too little: all values are the fixed defaults"
            fixed = FIXED | {"residuals": "crossfit", "target_transform": "none"}
            return Choice({name: fixed[name] for name in asked}, {"reason": reason, "table": []})
        given = {name: getattr(self, name) for name in FIXED}
        thorough = self.tuning == "thorough"
        transform, why = chosen_map(problem) if "target_transform" in asked else ("none", "")
        options: dict[str, Any] = {"thorough": thorough, "intervals": settings.residuals is not None, "n_jobs": self.n_jobs}
        found = fast_choice(problem.mapped(transform), given, **options)
        others = {"target_transform": transform, "residuals": "local"}
        parameters = found.parameters | {name: value for name, value in others.items() if name in asked}
        how = {"reason": found.reason + why, "table": found.table}
        return Choice(parameters, how if found.growth is None else how | {"growth": found.growth})

    def _searched(self, asked: set[str], problem: Problem, settings: TrainingSettings, seed: int, run: Run) -> Choice:
        """Values for the parameters that are "tune", by training networks on validation parts."""
        n = len(problem.X)
        problem.grams.check_memory(pairwise=problem.rows.pairwise)
        codes = problem.outputs if isinstance(problem.targets, ClassTargets) else None
        given = {name: "tune" if name in asked else self._given(name) for name in (*TUNABLE, "epsilon")}
        grids = default_grids(given, problem.X, problem.weights)
        parts, last = validation_parts(n, seed, codes), larger_part(n, seed, codes)
        found = search(problem, settings, grids, parts, last, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose, run=run)
        # beside what was asked: a gamma that goes with learned length scales, kernels that bring their own
        chosen = {name: value for name, value in found.parameters.items() if name in asked or (value,) != getattr(grids, name)}
        return Choice(chosen, {"reason": found.reason, "table": found.table})

    def explain_plan(self, X: Any, y: Any = None) -> Plan:
        """How ``fit`` would hold the kernel matrix of these rows, why, and what that would cost; nothing is computed.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows; only their number and width are used.
        y : array-like of shape (n_samples,), optional
            Their targets: a classifier has one unit per class.

        Returns
        -------
        Plan
            ``print`` says it in words; ``bytes`` and ``seconds`` are estimates.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> plan = KStoNetRegressor().explain_plan(np.zeros((50_000, 8)))
        >>> plan.solver, plan.reason
        ('low_rank', '50,000 rows are more than the 20,000 whose matrix is factored')
        """
        self._check_parameters()
        n, p = np.shape(X)
        grams = Grams(np.broadcast_to(0.0, (n, p)), **self._gram_options())
        settings, asked, work, together = self._settings(), self._asked(), self._work(n), 1
        if asked and not work.searched and n >= FEWEST_ROWS:
            given = {name: getattr(self, name) for name in FIXED}
            classes = 2 if y is None else len(np.unique(np.asarray(y)))
            units = class_units(classes, self.ordinal) if is_classifier(self) else None
            shape = network_shape(grams, given, pairwise=self._pairwise, class_units=units)
            settings = settings.with_parameters({name: value for name, value in shape.items() if name in asked})
            if "kernel" in asked:
                outputs = 0 if units is not None else 1 if y is None or np.ndim(y) == 1 else np.shape(y)[1]
                most = joining(grams, given, shape["loss"], outputs, p, intervals=self.residuals is not None)[1]
                together = max(kernels_together(grams, classes=units is not None, thorough=self.tuning == "thorough"), most)
        plan = self._planned(settings, grams, replace(work, groups=together))
        return plan if together == 1 else replace(plan, least_bytes=self._planned(settings, grams, work).bytes)

    def _work(self, n: int) -> Workload:
        """What a fit of n rows does beside its training: a search, or a choice with so many threads."""
        asked, work = self._asked(), Workload(squared=False, classes=is_classifier(self))
        tuned = [name for name in TUNABLE if is_tune(getattr(self, name))]
        if tuned:
            return replace(work, searched=1 + any(name in tuned for name in ("kernel", "gamma", "length_scale")))
        jobs = -1 if self.n_jobs is None else int(self.n_jobs)
        threads = jobs if jobs > 0 else max(1, cpu_count() + 1 + jobs)  # as joblib counts
        return replace(work, threads=threads) if "C" in asked and n >= FEWEST_ROWS else work

    def _planned(self, settings: TrainingSettings, grams: Grams, work: Workload) -> Plan:
        plan = settings.plan(grams, work)
        assert plan is not None
        if not work.searched or plan.solver != "dense":
            return plan
        return replace(plan, bytes=int(searched_bytes(*search_sizes(len(grams.X)), work, plan.bytes)))

    def _check_room(self, problem: Problem) -> None:
        if self.max_memory is not None or self.device is not None:
            return
        plan, n = self.explain_plan(problem.X, problem.rows.y), len(problem.X)
        if plan.solver in ("dense", LowRank.name, Iterative.name):  # of a Gram from outside nothing is known
            needed = plan.least_bytes or plan.bytes
            threads = self._work(n).threads
            if self.n_jobs is None and plan.solver == "dense":
                threads = max(threads, available_threads())
            require_room(n, needed, threads, adapts=plan.solver != "dense")

    def _expected(self, problem: Problem, settings: TrainingSettings) -> Plan:
        return self._planned(settings, problem.grams, self._work(len(problem.X)))

    @property
    def plan_(self) -> Plan:
        """How the kernel matrix was held, why, and what was left out."""
        plan = self.trained_.plan
        if plan is None:
            raise AttributeError("plan_ is not known: the model is from a file of an earlier version.")
        return plan

    @property
    def kernel_(self) -> Kernel:
        """The kernel of the first unit, with gamma resolved."""
        kernel = self.trained_.kernel
        assert kernel is not None
        return kernel

    @property
    def n_support_(self) -> int:
        """Training rows kept for prediction."""
        return self.trained_.n_support

    @property
    def tuned_(self) -> dict[str, Any]:
        """The values chosen from the training rows."""
        return self._of_choice("tuned_", self.trained_.chosen)

    @property
    def tuning_(self) -> dict[str, Any]:
        """How they were chosen."""
        return self._of_choice("tuning_", self.trained_.choice)

    @staticmethod
    def _of_choice(name: str, value: dict[str, Any]) -> dict[str, Any]:
        if not value:
            raise AttributeError(f"{name} exists where fit chose parameters from the training rows.")
        return value


class KStoNetRegressor(StreamMixin, RegressionTask, BaseKStoNet):
    __doc__ = f"""Kernel-expanded stochastic neural network for regression.
{KSTONET_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import KStoNetRegressor
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KStoNetRegressor(max_iter=10, random_state=0).fit(X, y)
    >>> round(model.score(X, y), 2) > 0.98
    True

    Data frames may have missing values and categories:

    >>> import pandas as pd
    >>> table = pd.DataFrame({{"x": X[:, 0], "sign": np.where(np.arange(100) % 2, "plus", "minus")}})
    >>> table.loc[::10, "x"] = np.nan
    >>> model.fit(table, np.where(table["sign"] == "plus", y, -y)).predict_interval(table).shape
    (100, 2)
    >>> model.encoding_.output_names(model.feature_names_in_)
    ['x', 'sign=minus', 'sign=plus']
    """

    _chosen_besides = ("target_transform",)

    def _check_parameters(self) -> None:
        maps = ("none", *MAPS)
        known = f"one of {', '.join(map(repr, maps))}, or None"
        require("target_transform", self.target_transform, lambda v: v in (None, *maps), known)
        super()._check_parameters()

    def _targets(self) -> TargetsKind:
        return super()._targets() if self.target_transform in (None, "none") else MappedTargets(self.target_transform)


class KStoNetClassifier(ClassificationTask, BaseKStoNet):
    __doc__ = f"""Kernel-expanded stochastic neural network for classification.
{classifier(KSTONET_PARAMETERS)}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = None,
        activation: str = "softplus",
        *,
        tuning: str = "fast",
        kernel: Any = None,
        gamma: Any = None,
        length_scale: Any = None,
        C: Any = None,
        loss: str | None = None,
        epsilon: Any = None,
        svr_tol: float = 1e-3,
        noise_variance: Any = "auto",
        penalty: str = "lasso",
        upper_layer: str = "dense",
        alpha: Any = "auto",
        residuals: str | None = "auto",
        sampler: str = "sghmc",
        n_imputation_steps: int = 25,
        step_size: Any = "auto",
        friction: float = 0.1,
        temperature: float | str = "auto",
        max_iter: int | None = None,
        n_average: int | None = None,
        n_chains: int = 1,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        warm_start: bool = False,
        max_memory: float | None = None,
        solver: str = "auto",
        device: str | None = None,
        checkpoint: Any = None,
        callback: Callable[[Any], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
        class_weight: Any = None,
        ordinal: Any = False,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation,
            tuning=tuning,
            kernel=kernel,
            gamma=gamma,
            length_scale=length_scale,
            C=C,
            loss=loss,
            epsilon=epsilon,
            svr_tol=svr_tol,
            noise_variance=noise_variance,
            penalty=penalty,
            upper_layer=upper_layer,
            alpha=alpha,
            residuals=residuals,
            sampler=sampler,
            n_imputation_steps=n_imputation_steps,
            step_size=step_size,
            friction=friction,
            temperature=temperature,
            max_iter=max_iter,
            n_average=n_average,
            n_chains=n_chains,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            standardize=standardize,
            warm_start=warm_start,
            max_memory=max_memory,
            solver=solver,
            device=device,
            checkpoint=checkpoint,
            callback=callback,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        del self.target_transform  # of numbers
        self.class_weight = class_weight
        self.ordinal = ordinal
