"""The K-StoNet estimators: the first layer is a set of support vector regressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstonet.estimators.base import BaseStoNet, Choice
from kstonet.estimators.classification import ClassificationTask
from kstonet.estimators.regression import RegressionTask
from kstonet.gram import Kernel
from kstonet.problem import Problem
from kstonet.settings import KernelLayerSettings, TrainingSettings
from kstonet.targets import ClassTargets
from kstonet.tuning.candidates import TUNABLE, default_grids, is_tune
from kstonet.tuning.parts import larger_part, validation_parts
from kstonet.tuning.search import search

SHARED_PARAMETERS = """
    noise_variance : "auto", float or schedule, default="auto"
        Variance of the noise above the first layer (temperature of a classification head). "auto" follows the residual. A
        schedule is a number per iteration (the last is kept) or a function of the iteration; tuples in place of its numbers
        have a variance for every layer above the first: ``[(0.001, 0.01)]`` for two hidden layers.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"}, default="lasso"
        Of the regression layers.
    upper_layer : str, default="dense"
        Kind of the layers above the first: a name known to :func:`kstonet.layers.register_layer`. The output layer of a
        classifier is a multinomial logit whatever it is.
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
    solver : str, default="auto"
        Kind of the Gram that holds the kernel matrix, as in :func:`kstonet.gram.make_gram`: "dense", or a name known to
        :func:`kstonet.gram.register_gram`. "auto" is "dense".
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
        upper_layer: str = "dense",
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
        solver: str = "auto",
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
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _first_layer(self) -> KernelLayerSettings:
        return KernelLayerSettings(self.kernel, self.gamma, self.length_scale, self.C, self.epsilon, self.svr_tol)

    def _gram_options(self) -> dict[str, Any]:
        return {"solver": self.solver, "device": self.device, "max_memory": self.max_memory}

    def _asked(self) -> set[str]:
        return {name for name in TUNABLE if is_tune(getattr(self, name))}

    def _check_parameters(self) -> None:
        for name in ("hidden_layer_sizes", "length_scale", "C"):
            value = getattr(self, name)
            if isinstance(value, str) and not is_tune(value):
                raise ValueError(f"{name}={value!r} is unknown; give numbers, or 'tune' to have them chosen by validation.")
        super()._check_parameters()

    def _choose(self, asked: set[str], problem: Problem, settings: TrainingSettings) -> Choice:
        counted = problem.rows.that_count()
        problem = problem if counted is problem.rows else self._problem(counted)
        n, seed = len(problem.X), self._seed()
        codes = problem.outputs if isinstance(problem.targets, ClassTargets) else None
        given = {name: getattr(self, name) for name in (*TUNABLE, "epsilon")}
        grids = default_grids(given, problem.X, problem.weights)
        parts, last = validation_parts(n, seed, codes), larger_part(n, seed, codes)
        found = search(problem, settings, grids, parts, last, seed=seed, n_jobs=self.n_jobs, verbose=self.verbose)
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
        The labels of the classes, sorted.
    calibration_temperature_ : float
        Divides the logits; at least one after fit.
    logit_variance_scale_ : float
        Multiplies the variance of the logits in intervals of probabilities.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
