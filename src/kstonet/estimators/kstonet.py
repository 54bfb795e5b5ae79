"""The K-StoNet estimators: the first layer is a set of support vector regressions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.callbacks import without_callbacks
from kstonet.estimators.candidates import TUNABLE, default_grids, is_tune
from kstonet.estimators.checks import require
from kstonet.estimators.search import rows_that_count, search
from kstonet.estimators.tasks import ClassificationTask, RegressionTask
from kstonet.gram import DenseGram, Kernel, make_kernel
from kstonet.iro import IROState
from kstonet.layers.kernel import KernelLayer, UnitGroup, joint_refits
from kstonet.network import Network
from kstonet.tuning.parts import larger_part, validation_parts
from kstonet.uncertainty.network import MarginUncertainty

NEARLY_ALL = 0.9  # share of rows: fewer support vectors make a model smaller

SHARED_PARAMETERS = """
    noise_variance : "auto", float or schedule, default="auto"
        Variance of the noise above the first layer (temperature of a classification head). "auto" follows the residual. A
        schedule is a number per iteration (the last is kept) or a function of the iteration; tuples in place of its numbers
        have a variance for every layer above the first: ``[(0.001, 0.01)]`` for two hidden layers.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"}, default="lasso"
        Of the regression layers.
    alpha : "auto", float or schedule, default="auto"
        Strength of the penalty, in scikit-learn's scaling. "auto" is 0.1·residual·√(log(inputs)/n),
        the order the theory asks for, with the residual of the current fit.
    residuals : {"crossfit", "loo", "training", None}, default="crossfit"
        Where prediction intervals take the noise of the data from. "crossfit": training goes on for three iterations with each
        of five folds hidden (ten in regressions of fewer than 1,000 rows), and they are predicted.
        "loo": every row is left out of the last refit of the first layer, in closed form; faster, a little optimistic.
        "training": plain training residuals, the paper's; far too small where the network nearly interpolates. None prepares no
        intervals: training is faster and gives means only.
    sampler : {"sghmc", "mala", "hmc", "gibbs"}, default="sghmc"
        Of the imputation: the paper's momentum update, eq. (imputationeq); the Langevin and the Hamiltonian algorithm with an
        accept step; slice draws, one coordinate at a time.
    n_imputation_steps : int, default=25
        Of the imputation, in every iteration.
    step_size : "auto", float or schedule, default="auto"
        Of the imputation. "auto" is inside the stability limit by construction.
    friction : float, default=0.1
        Of the imputation; 1 is Langevin Monte Carlo. "hmc" makes 1/friction leapfrog steps for one step.
    temperature : "auto" or float, default="auto"
        Of the imputation. 1 draws from the model's own distribution; "auto" is 1, or C/10 where C is below 10 and that noise
        would swamp the first layer.
    max_iter : int, default=40
        Iterations of Algorithm 1.
    n_average : int, default=10
        Predictions are averaged over this many last iterations (Theorem 3); 1 uses the last.
    n_chains : int, default=1
        Trainings from different starts, one after the other, whose last iterations are all averaged. Three predict a little
        better than one, at three times the cost; networks of two layers gain most.
    tol : float, optional
        Stop when the loss (of the validation rows, where fit is given some) has not fallen by this fraction for
        ``n_iter_no_change`` iterations. None: never.
    n_iter_no_change : int, default=10
        Iterations that ``tol`` waits for.
    standardize : bool, default=True
        Standardise X (and the targets) inside.
    warm_start : bool, default=False
        Go on from the last iteration when fit is called again on the same X. Keeps the kernel matrix after fit.
    max_memory : float, optional
        Bytes a kernel matrix and its factor may take.
    callback : callable, optional
        Called with the :class:`~kstonet.iro.IROState` of every iteration; the estimator can predict meanwhile.
    n_jobs : int, optional
        Threads of the imputation, as in joblib; the result does not depend on it.
    random_state : int, RandomState or None, default=None
        Of the initial values and the imputation.
    verbose : int, default=0
        1 shows a progress bar, 2 a line per iteration, on standard error.
"""

SHARED_ATTRIBUTES = """
    history_ : list of dict
        One record per iteration: loss and score (and those of the validation rows), noise, step size, acceptance, SVR gap
        and iterations, support vectors, seconds per part.
    n_iter_ : int
        Iterations done.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where all are strings.
"""

_PARAMETERS = f"""
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Units of every hidden layer; the first is a layer of support vector regressions.
    activation : {{"softplus", "tanh", "sigmoid", "relu", "gelu", "identity"}}, default="softplus"
        The last three lie outside the paper's Assumption 1.
    kernel : str, callable or one per first-layer unit, default="rbf"
        As in :class:`MultiTargetSVR`.
    gamma : float, {{"scale", "auto", "median"}} or one per first-layer unit, default="scale"
        As in :class:`MultiTargetSVR`.
    length_scale : array of shape (n_features,), optional
        One length scale per (standardised) feature: features are divided by it before the kernel sees them.
    C : float, one per first-layer unit or schedule, default=10.0
        Weight of the loss of the support vector regressions, in scikit-learn's scaling; may be a function of the iteration.
    epsilon : float or one per first-layer unit, default=0.01
        Half-width of their tube, in which errors cost nothing.
    svr_tol : float, default=1e-3
        Relative duality gap of the support vector regressions.
    device : str, optional
        Where the kernel matrix lives and the support vector regressions are solved: None is NumPy on the CPU, "cuda" a GPU (any
        name PyTorch knows; extra "gpu"). Prediction runs on the CPU either way.{SHARED_PARAMETERS}
    Notes
    -----
    ``hidden_layer_sizes``, ``kernel``, ``gamma``, ``length_scale``, ``C`` and ``noise_variance`` also take "tune": the value is
    chosen by validation inside the training rows (at most 3,000 of them, several random 80/20 parts), and the network is then
    trained on all rows. Kernels are RBF, Matérn 3/2 and Laplacian ones, or the best two in one layer; length scales all equal,
    or learned. A search costs the iterations of 10 to 20 trainings; one that ``warm_start`` goes on with keeps its choice.

    Attributes
    ----------
    tuned_ : dict
        The values chosen, where a parameter is "tune", and others they come with: learned length scales with a gamma.
    tuning_ : dict
        How: "reason" in words, and "table", one dict per candidate and number of iterations (0: first layer alone) with its
        validation losses, "scores", and their mean, "score": squared errors of standardised targets, negative log-likelihoods
        of classes (first layer alone: squared errors). The reason is also in ``history_[0]["tuning"]``.
    kernel_ : Kernel
        Of the first unit, with gamma resolved.
    n_support_ : int
        Training rows kept for prediction.{SHARED_ATTRIBUTES}"""


class BaseKStoNet(BaseStoNet):
    """The first layer of both K-StoNets."""

    kernel_: Kernel
    tuned_: dict[str, Any]
    tuning_: dict[str, Any]

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "softplus",
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        length_scale: Any = None,
        C: Any = 10.0,
        epsilon: Any = 0.01,
        svr_tol: float = 1e-3,
        noise_variance: Any = "auto",
        penalty: str = "lasso",
        alpha: Any = "auto",
        residuals: str | None = "crossfit",
        sampler: str = "sghmc",
        n_imputation_steps: int = 25,
        step_size: Any = "auto",
        friction: float = 0.1,
        temperature: float | str = "auto",
        max_iter: int = 40,
        n_average: int = 10,
        n_chains: int = 1,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        warm_start: bool = False,
        max_memory: float | None = None,
        device: str | None = None,
        callback: Callable[[Any], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.kernel = kernel
        self.gamma = gamma
        self.length_scale = length_scale
        self.C = C
        self.epsilon = epsilon
        self.svr_tol = svr_tol
        self.noise_variance = noise_variance
        self.penalty = penalty
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
        self.device = device
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _per_unit(self, name: str, units: int, *, zero_allowed: bool = False) -> np.ndarray:
        """One value per first-layer unit from a number or a sequence of them."""
        given = getattr(self, name)

        def valid(value: Any) -> bool:
            values = np.asarray(value, dtype=np.float64)
            positive = (values >= 0) if zero_allowed else (values > 0)
            return values.size in (1, units) and bool((np.isfinite(values) & positive).all())

        demand = "non-negative" if zero_allowed else "positive"
        require(name, given, valid, f"one {demand} number, or one for each of the {units} first-layer units")
        return np.broadcast_to(np.asarray(given, dtype=np.float64), (units,)).copy()

    def _groups(self, X: np.ndarray, units: int, weights: np.ndarray | None) -> tuple[UnitGroup, ...]:
        """One Gram per distinct kernel."""
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel] * units
        gammas = [self.gamma] * units if isinstance(self.gamma, str) or np.ndim(self.gamma) == 0 else list(self.gamma)
        if len(kernels) != units or len(gammas) != units:
            raise ValueError(
                f"kernel={self.kernel!r} and gamma={self.gamma!r}: each must be one value, or one for each of the {units} "
                f"first-layer units of hidden_layer_sizes={self.hidden_layer_sizes!r}."
            )
        members: dict[Kernel, list[int]] = {}
        for unit, (kernel, gamma) in enumerate(zip(kernels, gammas, strict=True)):
            made = make_kernel(kernel, X, gamma=gamma, length_scale=self.length_scale, sample_weight=weights)
            members.setdefault(made, []).append(unit)
        return tuple(UnitGroup(self._gram(X, kernel), np.array(group)) for kernel, group in members.items())

    def _gram(self, X: np.ndarray, kernel: Kernel) -> DenseGram:
        """The Gram matrix; the networks a search trains on the same rows share theirs."""
        shared: dict[Kernel, DenseGram] | None = getattr(self, "_grams", None)
        if shared is None:
            return self._new_gram(X, kernel)
        if kernel not in shared:
            shared[kernel] = self._new_gram(X, kernel)
        return shared[kernel]

    def _new_gram(self, X: np.ndarray, kernel: Kernel) -> DenseGram:
        if self.device is None:
            return DenseGram(X, kernel, max_memory=self.max_memory)
        try:
            from kstonet.gram.torch import torch_gram
        except ImportError as error:
            raise ImportError(f"device={self.device!r} needs PyTorch: pip install kstonet[gpu].") from error
        return torch_gram(X, kernel, self.device, self.max_memory)

    @contextmanager
    def _tuned(self, X: np.ndarray, y: np.ndarray, codes: np.ndarray | None, weights: np.ndarray | None) -> Iterator[None]:
        for name in ("hidden_layer_sizes", "length_scale", "C"):
            value = getattr(self, name)
            if isinstance(value, str) and not is_tune(value):
                raise ValueError(f"{name}={value!r} is unknown; give numbers, or 'tune' to have them chosen by validation.")
        asked = {name for name in TUNABLE if is_tune(getattr(self, name))}
        if not (asked and self._keeps_choice(asked, X, y, weights)):
            for stale in ("tuned_", "tuning_"):
                self.__dict__.pop(stale, None)
            if asked:
                self._choose(asked, X, y, codes, weights)
        chosen = self.tuned_ if asked else {}
        given = {name: getattr(self, name) for name in chosen}
        try:
            self.set_params(**chosen)
            yield
        finally:
            self.set_params(**given)
        if asked:
            self.history_[0]["tuning"] = self.tuning_["reason"]

    def _keeps_choice(self, asked: set[str], X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> bool:
        """Whether training goes on where it was, with what was chosen then."""
        held = self.warm_start and hasattr(self, "_states") and asked <= getattr(self, "tuned_", {}).keys()
        return held and np.array_equal(self._X_fit, copy(self)._standardised(X, y, weights)[0])

    def _choose(
        self, asked: set[str], X: np.ndarray, y: np.ndarray, codes: np.ndarray | None, weights: np.ndarray | None
    ) -> None:
        if codes is not None and weights is not None:
            codes = codes[weights > 0]
        X, y, weights = rows_that_count(self, X, y, weights)
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        parts, last = validation_parts(len(X), seed, codes), larger_part(len(X), seed, codes)
        trial = without_callbacks(copy(self)).set_params(callback=None)  # which need not be one that can be copied
        grids = default_grids(self, copy(trial)._standardised(X, y, weights)[0], weights)
        found = search(trial, X, y, weights, grids, parts, last, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose)
        # beside what was asked: a gamma that goes with learned length scales, kernels that bring their own
        self.tuned_ = {
            name: value for name, value in found.parameters.items() if name in asked or (value,) != getattr(grids, name)
        }
        self.tuning_ = {"reason": found.reason, "table": found.table}

    def _new_first_layer(self, X: np.ndarray, units: int, weights: np.ndarray | None) -> tuple[KernelLayer, None]:
        require("svr_tol", self.svr_tol, lambda v: v > 0, "positive; it is a relative duality gap, such as 1e-3")
        C = np.full(units, float(self.C(0))) if callable(self.C) else self._per_unit("C", units)
        epsilon = self._per_unit("epsilon", units, zero_allowed=True)
        layer = KernelLayer(self._groups(X, units, weights), C, epsilon, tol=self.svr_tol)
        self.kernel_ = layer.groups[0].gram.kernel
        return layer, None

    def _schedules(self) -> dict[str, Any]:
        return {"C": self.C} if callable(self.C) else {}

    def _kernels(self, first: KernelLayer) -> list[tuple[Kernel | None, np.ndarray, np.ndarray]]:
        pairs = zip(first.groups, first.solutions, strict=True)
        return [(group.gram.kernel, solution.coef, group.units) for group, solution in pairs]

    def _finished(self, states: list[IROState], weights: np.ndarray | None) -> list[IROState]:
        """Solve the first layers anew with exact support sets.

        Intervals want that of the last iterate. The others' would make the model smaller, and are spared where nearly every row
        supports a unit of some iterate: the model keeps all rows then. (Leaving rows out asks for all of them.)
        """
        if self.residuals is None:
            return states
        rows = np.any([state.network.layers[0].supporting_rows for state in states], axis=0)
        exact = states[-1:] if rows.mean() > NEARLY_ALL and self.residuals != "loo" else states
        firsts, latents = [state.network.layers[0] for state in exact], [state.latents[0] for state in exact]
        layers = joint_refits(firsts, latents, [weights] * len(exact), support=True)
        solved = [
            replace(state, network=Network((layer, *state.network.layers[1:])))
            for state, layer in zip(exact, layers, strict=True)
        ]
        return states[: len(states) - len(exact)] + solved

    def _first_layer_uncertainty(self, states: list[IROState], inputs: Any, weights: np.ndarray | None) -> MarginUncertainty:
        return MarginUncertainty.of(states[-1].network.layers[0], self._expansion)

    def _publish(self, states: list[IROState]) -> None:
        super()._publish(states)
        self.n_support_ = self._expansion.n_support


class KStoNetRegressor(RegressionTask, BaseKStoNet):
    __doc__ = f"""Kernel-expanded stochastic neural network for regression.
{_PARAMETERS}
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
{_PARAMETERS}    classes_ : ndarray of shape (n_classes,)
    calibration_temperature_ : float
        Divides the logits; at least one after fit.
    logit_variance_scale_ : float
        Multiplies the variance of the logits in intervals of probabilities.
        The labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
