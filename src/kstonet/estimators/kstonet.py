"""The K-StoNet estimators: the first layer is a set of support vector regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from kstonet._checks import require
from kstonet.checkpoint import Run
from kstonet.estimators.base import BaseStoNet, Choice
from kstonet.estimators.classification import ClassificationTask
from kstonet.estimators.documentation import CLASSIFIER_ATTRIBUTES, KSTONET_PARAMETERS
from kstonet.estimators.regression import RegressionTask
from kstonet.gram import Kernel
from kstonet.problem import Problem
from kstonet.settings import LARGEST, KernelLayerSettings, TrainingSettings, units_given
from kstonet.targets import ClassTargets
from kstonet.tuning.candidates import TUNABLE, default_grids, is_tune
from kstonet.tuning.fast import FEWEST_ROWS, fast_choice
from kstonet.tuning.parts import larger_part, validation_parts
from kstonet.tuning.search import search

TUNINGS = ("fast", "thorough", "none")
LOSSES = ("squared", "epsilon_insensitive")

#: What a parameter is that is left out and not chosen.
FIXED: dict[str, Any] = {
    "hidden_layer_sizes": (5,),
    "kernel": "rbf",
    "gamma": "scale",
    "length_scale": None,
    "C": 10.0,
    "loss": "epsilon_insensitive",
    "epsilon": 0.01,
    "max_iter": 40,
    "n_average": 10,
}


class BaseKStoNet(BaseStoNet):
    """The first layer of both K-StoNets."""

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
        residuals: str | None = "crossfit",
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
            units = units_given({each: getattr(self, each) for each in ("kernel", "gamma", "C", "epsilon")})
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
        return {name for name in FIXED if getattr(self, name) is None}

    def _check_parameters(self) -> None:
        require("tuning", self.tuning, lambda v: v in TUNINGS, f"one of {', '.join(map(repr, TUNINGS))}")
        require("loss", self.loss, lambda v: v in (None, *LOSSES), f"one of {', '.join(map(repr, LOSSES))}, or None")
        for name in ("hidden_layer_sizes", "length_scale", "C"):
            value = getattr(self, name)
            if isinstance(value, str) and not is_tune(value):
                raise ValueError(f"{name}={value!r} is unknown; give numbers, or 'tune' to have them chosen by validation.")
        super()._check_parameters()
        if self.length_scale is not None and not is_tune(self.length_scale):
            scales = np.asarray(self.length_scale, dtype=np.float64)
            within = bool(((scales >= 1.0 / LARGEST) & (scales <= LARGEST)).all())
            require("length_scale", self.length_scale, lambda _: within, f"positive, and within 1/{LARGEST:g} and {LARGEST:g}")

    def _choose(self, asked: set[str], problem: Problem, settings: TrainingSettings, seed: int, run: Run) -> Choice:
        counted = problem.rows.that_count()
        problem = problem if counted is problem.rows else self._problem(counted)
        if any(is_tune(getattr(self, name)) for name in TUNABLE):
            return self._searched(asked, problem, settings, seed, run)
        if len(problem.X) < FEWEST_ROWS:
            reason = f"fewer than {FEWEST_ROWS} rows say too little: all values are the fixed defaults"
            return Choice({name: FIXED[name] for name in asked}, {"reason": reason, "table": []})
        given = {name: getattr(self, name) for name in FIXED}
        thorough = self.tuning == "thorough"
        found = fast_choice(problem, given, seed=seed, thorough=thorough, n_jobs=self.n_jobs)
        return Choice(found.parameters, {"reason": found.reason, "table": found.table})

    def _searched(self, asked: set[str], problem: Problem, settings: TrainingSettings, seed: int, run: Run) -> Choice:
        """Values for the parameters that are "tune", by training networks on validation parts."""
        n = len(problem.X)
        codes = problem.outputs if isinstance(problem.targets, ClassTargets) else None
        given = {name: "tune" if name in asked else self._given(name) for name in (*TUNABLE, "epsilon")}
        grids = default_grids(given, problem.X, problem.weights)
        parts, last = validation_parts(n, seed, codes), larger_part(n, seed, codes)
        found = search(problem, settings, grids, parts, last, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose, run=run)
        # beside what was asked: a gamma that goes with learned length scales, kernels that bring their own
        chosen = {name: value for name, value in found.parameters.items() if name in asked or (value,) != getattr(grids, name)}
        return Choice(chosen, {"reason": found.reason, "table": found.table})

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


class KStoNetRegressor(RegressionTask, BaseKStoNet):
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
    """


class KStoNetClassifier(ClassificationTask, BaseKStoNet):
    __doc__ = f"""Kernel-expanded stochastic neural network for classification.
{KSTONET_PARAMETERS}{CLASSIFIER_ATTRIBUTES}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
