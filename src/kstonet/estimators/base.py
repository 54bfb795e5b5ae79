"""What regression and classification share: validation, standardisation, the training loop, averaged prediction."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kstonet.gram import DenseGram, Kernel, make_kernel
from kstonet.gram.dense import cross_blocks
from kstonet.initialisation import initial_latents
from kstonet.iro import IROSettings, IROState, iro, scheduled
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.kernel import KernelLayer, UnitGroup
from kstonet.network import Network


@dataclass(frozen=True)
class Scaler:
    """Centre and scale of columns; constant columns keep scale one."""

    mean: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, values: np.ndarray, weights: np.ndarray | None, *, active: bool) -> Scaler:
        """Learn from the columns of ``values``; the identity unless ``active``."""
        columns = values.shape[1]
        if not active:
            return cls(np.zeros(columns), np.ones(columns))
        mean = np.average(values, axis=0, weights=weights)
        spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
        return cls(mean, np.where(spread > 1e-12 * (np.abs(mean) + 1e-300), spread, 1.0))

    def forward(self, values: np.ndarray) -> np.ndarray:
        """To standard units."""
        return np.asarray((values - self.mean) / self.scale)

    def backward(self, values: np.ndarray) -> np.ndarray:
        """Back to the user's units."""
        return np.asarray(values * self.scale + self.mean)


@dataclass(frozen=True)
class _Iterate:
    """What prediction needs of one iteration."""

    coef: np.ndarray  # (units, n)
    intercept: np.ndarray  # (units,)
    network: Network  # without its first layer, which holds the training problem

    @classmethod
    def of(cls, network: Network) -> _Iterate:
        first = network.layers[0]
        return cls(first.coef, first.intercept, Network((None, *network.layers[1:])))

    def outputs(self, first: np.ndarray) -> np.ndarray:
        return self.network.forward_from(first)[-1]


class BaseKStoNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Everything regression and classification share; not to be used alone."""

    kernel_: Kernel
    history_: list[dict[str, Any]]
    _X_fit: np.ndarray
    _state: IROState

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "softplus",
        *,
        kernel: Any = "rbf",
        gamma: Any = "scale",
        C: Any = 10.0,
        epsilon: Any = 0.01,
        noise_variance: Any = "auto",
        penalty: str = "lasso",
        alpha: Any = 1e-4,
        n_imputation_steps: int = 25,
        step_size: Any = "auto",
        friction: float = 0.1,
        temperature: float = 1.0,
        max_iter: int = 40,
        n_average: int = 10,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        svr_tol: float = 1e-3,
        standardize: bool = True,
        warm_start: bool = False,
        max_memory: float | None = None,
        callback: Callable[[Any], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.kernel = kernel
        self.gamma = gamma
        self.C = C
        self.epsilon = epsilon
        self.noise_variance = noise_variance
        self.penalty = penalty
        self.alpha = alpha
        self.n_imputation_steps = n_imputation_steps
        self.step_size = step_size
        self.friction = friction
        self.temperature = temperature
        self.max_iter = max_iter
        self.n_average = n_average
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.svr_tol = svr_tol
        self.standardize = standardize
        self.warm_start = warm_start
        self.max_memory = max_memory
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    # -- validation ------------------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int, ...]:
        sizes = tuple(np.atleast_1d(self.hidden_layer_sizes).tolist())
        if not sizes or any(int(size) != size or size < 1 for size in sizes):
            raise ValueError(
                f"hidden_layer_sizes={self.hidden_layer_sizes!r} must be a positive whole number of units, or a tuple of them."
            )
        return tuple(int(size) for size in sizes)

    def _check_numbers(self) -> None:
        rules: dict[str, tuple[Any, Callable[[Any], bool], str]] = {
            "n_imputation_steps": (self.n_imputation_steps, lambda v: int(v) == v and v >= 1, "a whole number >= 1"),
            "max_iter": (self.max_iter, lambda v: int(v) == v and v >= 1, "a whole number >= 1"),
            "n_average": (self.n_average, lambda v: int(v) == v and v >= 1, "a whole number >= 1"),
            "n_iter_no_change": (self.n_iter_no_change, lambda v: int(v) == v and v >= 1, "a whole number >= 1"),
            "friction": (self.friction, lambda v: 0 < v <= 1, "in (0, 1]; 1 is Langevin Monte Carlo"),
            "temperature": (self.temperature, lambda v: v >= 0, "non-negative"),
            "svr_tol": (self.svr_tol, lambda v: v > 0, "positive"),
        }
        for name, (value, valid, demand) in rules.items():
            if not valid(value):
                raise ValueError(f"{name}={value!r} must be {demand}.")
        for name in ("step_size", "noise_variance"):
            value = scheduled(getattr(self, name), 0)
            if value != "auto" and not (not isinstance(value, str) and value > 0):
                raise ValueError(f"{name}={value!r} must be 'auto', a positive number, or a schedule of them.")

    def _per_unit(self, name: str, units: int, *, zero_allowed: bool = False) -> np.ndarray:
        """One value per first-layer unit from a number or a sequence of them."""
        value = getattr(self, name)
        values = np.broadcast_to(np.asarray(value, dtype=np.float64), (units,)).copy() if np.size(value) in (1, units) else None
        if values is None or not (np.isfinite(values).all() and ((values >= 0) if zero_allowed else (values > 0)).all()):
            demand = "non-negative" if zero_allowed else "positive"
            raise ValueError(f"{name}={value!r} must be one {demand} number, or one for each of the {units} first-layer units.")
        return values

    # -- training --------------------------------------------------------------------------------------------------------

    def _groups(self, X: np.ndarray, units: int, weights: np.ndarray | None) -> tuple[UnitGroup, ...]:
        """One Gram per distinct kernel."""
        kernels = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel] * units
        gammas = [self.gamma] * units if isinstance(self.gamma, str) or np.ndim(self.gamma) == 0 else list(self.gamma)
        if len(kernels) != units or len(gammas) != units:
            raise ValueError(
                f"kernel and gamma take one value, or one for each of the {units} first-layer units; got "
                f"{len(kernels)} kernels and {len(gammas)} gammas."
            )
        members: dict[Kernel, list[int]] = {}
        for unit, (kernel, gamma) in enumerate(zip(kernels, gammas, strict=True)):
            made = make_kernel(kernel, X, gamma=gamma, sample_weight=weights)
            members.setdefault(made, []).append(unit)
        return tuple(
            UnitGroup(DenseGram(X, kernel, max_memory=self.max_memory), np.array(group)) for kernel, group in members.items()
        )

    def _train(self, X: np.ndarray, outputs: np.ndarray, mixtures: np.ndarray, weights: np.ndarray | None) -> None:
        """Run Algorithm 1 on standardised data; ``mixtures`` are the columns the initial latent values are made of."""
        self._check_numbers()
        sizes, activation = self._sizes(), get_activation(self.activation)
        resumed = (
            self.warm_start and hasattr(self, "_state") and self._X_fit.shape == X.shape and np.array_equal(self._X_fit, X)
        )
        if resumed:
            state, history = self._state, list(self.history_)
        else:
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            rng = np.random.default_rng(seed)
            C = np.full(sizes[0], float(self.C(0))) if callable(self.C) else self._per_unit("C", sizes[0])
            first = KernelLayer(
                self._groups(X, sizes[0], weights), C, self._per_unit("epsilon", sizes[0], zero_allowed=True), tol=self.svr_tol
            )
            alpha = float(scheduled(self.alpha, 0))
            layers: list[Any] = [first]
            for below, size in pairwise(sizes):
                layers.append(DenseLayer(np.zeros((size, below)), np.zeros(size), 1.0, activation, self.penalty, alpha))
            layers.append(self._head(sizes[-1], outputs, alpha))
            latents = initial_latents(rng, X, mixtures, sizes, activation)
            network = Network(tuple(layers)).refit(None, latents, outputs, weights)
            state, history = IROState(0, network, latents, dict(rng.bit_generator.state)), []
        self._X_fit = X
        settings = IROSettings(
            n_imputation_steps=self.n_imputation_steps,
            step_size=self.step_size,
            friction=self.friction,
            temperature=self.temperature,
            noise_variance=self.noise_variance,
            C=self.C if callable(self.C) else None,
            alpha=self.alpha if np.ndim(self.alpha) or callable(self.alpha) else None,
        )
        recent: deque[_Iterate] = deque(maxlen=self.n_average)
        best, waiting, started_at = np.inf, 0, state.iteration
        try:
            for new in iro(None, outputs, state, settings, weights):
                assert new.record is not None
                state = new
                recent.append(_Iterate.of(state.network))
                history.append(asdict(new.record))
                self._publish(state, history, recent)
                if self.verbose:
                    self._report(history[-1])
                if self.callback is not None:
                    self.callback(state)
                if state.iteration - started_at >= self.max_iter:
                    break
                if self.tol is not None:
                    improved = history[-1]["loss"] < best * (1.0 - self.tol)
                    best, waiting = (history[-1]["loss"], 0) if improved else (best, waiting + 1)
                    if waiting >= self.n_iter_no_change:
                        break
        except KeyboardInterrupt:  # what is trained so far is a model
            if not recent:
                raise

    def _publish(self, state: IROState, history: list[dict[str, Any]], recent: deque[_Iterate]) -> None:
        """Make the model usable as it stands: a callback may predict with it, an interrupt may leave it so."""
        self._state, self.history_, self.n_iter_ = state, history, state.iteration
        self._iterates = list(recent)
        groups = state.network.layers[0].groups
        self._unit_kernels = [(group.gram.kernel, group.units) for group in groups]
        self.kernel_ = self._unit_kernels[0][0]
        self._n_features_out = state.latents[-1].shape[1]  # of transform

    def _report(self, record: dict[str, Any]) -> None:
        print(
            f"[{type(self).__name__}] iteration {record['iteration']:4d}  loss {record['loss']:.5g}  "
            f"SVR gap {record['svr_gap']:.1e}  seconds: impute {record['seconds_impute']:.2f}, "
            f"SVR {record['seconds_svr']:.2f}, regressions {record['seconds_regressions']:.2f}"
        )

    # -- prediction ------------------------------------------------------------------------------------------------------

    def _first_layer(self, X: np.ndarray, coef: np.ndarray) -> Any:
        """Yield ``(rows, K(X, training rows) @ coefᵀ)`` in blocks, every unit with its own kernel.

        ``coef`` has shape (iterates, units, n), the values (iterates, rows, units).
        """
        blocks = zip(*(cross_blocks(kernel, X, self._X_fit) for kernel, _ in self._unit_kernels), strict=True)
        for parts in blocks:
            rows = parts[0][0]
            values = np.empty((coef.shape[0], rows.stop - rows.start, coef.shape[1]))
            for (_, units), (_, kernel_values) in zip(self._unit_kernels, parts, strict=True):
                flat = coef[:, units].reshape(-1, coef.shape[2])  # one product for all iterates
                values[:, :, units] = (kernel_values @ flat.T).reshape(-1, len(coef), len(units)).swapaxes(0, 1)
            yield rows, values

    def _check_X(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._x_scaler.forward(X)

    def _outputs(self, X: Any) -> np.ndarray:
        """Outputs of every averaged iterate, shape (iterates, n, outputs), in standardised units."""
        X = self._check_X(X)
        coef = np.stack([iterate.coef for iterate in self._iterates])
        out: list[np.ndarray] = []
        for _, values in self._first_layer(X, coef):
            out.append(np.stack([it.outputs(v + it.intercept) for it, v in zip(self._iterates, values, strict=True)]))
        return np.concatenate(out, axis=1)

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
        last = self._iterates[-1]
        parts = [
            last.network.forward_from(values[0] + last.intercept)[-2] for _, values in self._first_layer(X, last.coef[None])
        ]
        return np.concatenate(parts)

    def _head(self, below: int, outputs: np.ndarray, alpha: float) -> Any:
        raise NotImplementedError

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        state.pop("_state", None)  # the training problem with its kernel matrix: a stored model predicts, it does not resume
        return state

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    def _fit_x_scaler(self, X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        self._x_scaler = Scaler.fit(X, weights, active=self.standardize and not self._precomputed)
        return self._x_scaler.forward(X)
