"""What all four estimators share: parameters and their checks, the run of the training loop, the passes of a prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from experiments.baselines.feedforward import BLOCK_VALUES, FeedForward, dropout_masks
from experiments.baselines.losses import Loss
from experiments.baselines.optimizers import SOLVERS, Optimizer, make_optimizer
from experiments.baselines.training import DivergedError, EpochState, Rows, train
from kstonet._checks import both_or_neither, require
from kstonet._progress import write
from kstonet.estimators.weights import validated_weights
from kstonet.layers.activations import get_activation
from kstonet.scaling import Scaler


def _whole(value: Any) -> bool:
    return bool(int(value) == value)


class BaseNetwork(BaseEstimator):
    """Everything the four networks share; not to be used alone."""

    history_: list[dict[str, Any]]
    n_iter_: int
    best_epoch_: int
    _network: FeedForward
    _optimizer: Optimizer
    _rng: np.random.Generator
    _draw_seed: int
    _x_scaler: Scaler

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "tanh",
        *,
        solver: str = "adam",
        learning_rate: float = 0.005,
        momentum: float = 0.9,
        batch_size: int | None = 100,
        max_epochs: int = 200,
        alpha: float = 0.0,
        dropout: float = 0.0,
        mc_samples: int = 100,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        warm_start: bool = False,
        dtype: str = "float64",
        callback: Callable[[EpochState], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.solver = solver
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.batch_size = batch_size
        self.max_epochs = max_epochs
        self.alpha = alpha
        self.dropout = dropout
        self.mc_samples = mc_samples
        self.tol = tol
        self.n_iter_no_change = n_iter_no_change
        self.standardize = standardize
        self.warm_start = warm_start
        self.dtype = dtype
        self.callback = callback
        self.random_state = random_state
        self.verbose = verbose

    # -- validation ------------------------------------------------------------------------------------------------------

    def _rules(self) -> dict[str, tuple[Callable[[Any], bool], str]]:
        """What every argument must satisfy, and how to say it."""
        return {
            "hidden_layer_sizes": (
                lambda v: all(_whole(size) and size >= 1 for size in np.atleast_1d(v).tolist()),
                "a positive whole number of units, or a tuple of them; () is a network without hidden layer",
            ),
            "solver": (lambda v: v in SOLVERS, f"one of {', '.join(SOLVERS)}"),
            "learning_rate": (lambda v: 0 < v < np.inf, "a positive number; 0.001 to 0.01 is usual"),
            "momentum": (lambda v: 0 <= v < 1, "in [0, 1)"),
            "batch_size": (lambda v: v is None or (_whole(v) and v >= 1), "a whole number >= 1, or None for all rows"),
            "max_epochs": (lambda v: _whole(v) and v >= 1, "a whole number >= 1"),
            "alpha": (lambda v: 0 <= v < np.inf, "a non-negative number; 0 is no penalty"),
            "dropout": (lambda v: 0 <= v < 1, "a probability below 1; 0 is no dropout"),
            "mc_samples": (lambda v: _whole(v) and v >= 0, "a whole number >= 0; 0 predicts with the averaged network"),
            "tol": (lambda v: v is None or 0 <= v < 1, "a fraction in [0, 1), or None to run all epochs"),
            "n_iter_no_change": (lambda v: _whole(v) and v >= 1, "a whole number >= 1"),
            "verbose": (lambda v: _whole(v) and v >= 0, "a whole number >= 0; 0 is silent"),
            "dtype": (lambda v: v in ("float64", "float32"), "'float64' or 'float32'"),
        }

    def _check_arguments(self) -> None:
        for name, (valid, demand) in self._rules().items():
            require(name, getattr(self, name), valid, demand)
        get_activation(self.activation)

    def _check_weights(self, sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
        """Sample weights of mean one: their scale is no business of the learning rate's."""
        weights = validated_weights(sample_weight, X)
        if weights is None:
            return None
        if not weights.sum() > 0:
            raise ValueError("sample_weight is zero for every row: nothing is left to fit; give some row a positive weight.")
        return np.asarray(weights / weights.mean())

    def _check_validation(self, X_val: Any, y_val: Any) -> bool:
        both_or_neither(X_val, y_val, ("X_val", "y_val"), "validation")
        return X_val is not None

    # -- inputs: a kernel network overrides the first three --------------------------------------------------------------

    def _fit_inputs(self, X: np.ndarray, weights: np.ndarray | None, n_val: int, *, resumed: bool) -> np.ndarray:
        """What the first layer sees of the training rows; learns the scaling unless ``resumed``."""
        if not resumed:
            self._x_scaler = Scaler.fit(X, weights) if self.standardize else Scaler.identity(X.shape[1])
        return self._x_scaler.forward(X).astype(self.dtype)

    def _input_blocks(self, X: np.ndarray) -> Iterator[np.ndarray]:
        """What the first layer sees of new rows, in order, in blocks of bounded memory."""
        step = max(1, BLOCK_VALUES // X.shape[1])
        for start in range(0, len(X), step):
            yield self._x_scaler.forward(X[start : start + step]).astype(self.dtype)

    def _resumable(self, X: np.ndarray, n_outputs: int) -> bool:
        """Whether ``warm_start`` can go on from the last fit."""
        return self.warm_start and hasattr(self, "_network") and self._same_network(X.shape[1], n_outputs)

    def _same_network(self, n_inputs: int, n_outputs: int) -> bool:
        old = self._network
        return (
            old.sizes == self._sizes(n_inputs, n_outputs)
            and old.activation.name == self.activation
            and old.theta.dtype == np.dtype(self.dtype)
        )

    def _forget(self) -> None:
        """Drop the last fit before a new one changes the scaling: a fit that fails leaves no model, not half of each."""
        for name in ("_network", "history_", "n_iter_", "best_epoch_"):
            self.__dict__.pop(name, None)

    def _inputs(self, X: np.ndarray) -> np.ndarray:
        return np.concatenate(list(self._input_blocks(X)))

    def _rows(self, inputs: np.ndarray, targets: np.ndarray, weights: np.ndarray | None) -> Rows:
        return Rows(inputs, targets.astype(self.dtype), None if weights is None else weights.astype(self.dtype))

    # -- training --------------------------------------------------------------------------------------------------------

    def _sizes(self, n_inputs: int, n_outputs: int) -> tuple[int, ...]:
        return (n_inputs, *(int(size) for size in np.atleast_1d(self.hidden_layer_sizes).tolist()), n_outputs)

    def _train(self, rows: Rows, validation: Rows | None, loss: Loss, *, resumed: bool) -> None:
        """Run the training loop; whatever ends it, the estimator is left with the parameters of a whole epoch."""
        if resumed:
            network, rng, history, previous = self._network.copy(), self._rng, list(self.history_), self._optimizer
        else:
            seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
            rng, history, previous = np.random.default_rng(seed), [], None
            sizes = self._sizes(rows.inputs.shape[1], rows.targets.shape[1])
            network = FeedForward.random(sizes, get_activation(self.activation), rng, np.dtype(self.dtype))
            self._draw_seed = int(rng.integers(2**31))
        l1 = (self.alpha * network.is_weight()).astype(network.theta.dtype) if self.alpha else None
        optimizer = make_optimizer(self.solver, self.learning_rate, self.momentum, l1, previous)
        first = len(history) + 1
        states = train(
            network,
            optimizer,
            loss,
            rows,
            validation,
            l1=l1,
            batch_size=len(rows.inputs) if self.batch_size is None else min(int(self.batch_size), len(rows.inputs)),
            dropout=self.dropout,
            epochs=range(first, first + int(self.max_epochs)),
            rng=rng,
        )
        best: EpochState | None = None
        reference, waiting = np.inf, 0
        try:
            for state in states:
                history.append(self._record(state, rows, validation))
                self._publish(state, history, rows, validation)
                self._optimizer, self._rng = optimizer, rng
                if self.verbose and state.epoch % int(self.verbose) == 0:
                    figures = "  ".join(f"{name} {value:.5g}" for name, value in history[-1].items())
                    write(f"[{type(self).__name__}] {figures}\n")
                if best is None or self._watched(state) < self._watched(best):
                    best = state
                if self.callback is not None:
                    self.callback(state)
                if self.tol is not None:
                    improved = self._watched(state) < reference * (1.0 - self.tol)
                    reference, waiting = (self._watched(state), 0) if improved else (reference, waiting + 1)
                    if waiting >= self.n_iter_no_change:
                        break
        except KeyboardInterrupt:  # what is trained so far is a model
            if best is None:
                raise
        except DivergedError as error:
            self._after_divergence(error, best)
            assert best is not None
            self._publish(best, history, rows, validation)
            return
        if best is not None and self.tol is not None and validation is not None:  # early stopping
            self._publish(best, history, rows, validation)

    @staticmethod
    def _watched(state: EpochState) -> float:
        """What decides which epoch is best."""
        return state.objective if state.val_loss is None else state.val_loss

    def _after_divergence(self, error: DivergedError, best: EpochState | None) -> None:
        happened = f"{type(self).__name__} diverged in epoch {error.epoch}: the loss is not finite or left all bounds."
        remedy = (
            f"learning_rate={self.learning_rate!r} is too large for solver={self.solver!r} on these data; try a tenth of it"
            + ("." if self.standardize else ", or standardize=True.")
        )
        if best is None or not best.objective < error.start:
            raise FloatingPointError(f"{happened} It had learnt nothing before. {remedy}") from None
        warnings.warn(f"{happened} The model is that of epoch {best.epoch}. {remedy}", ConvergenceWarning, stacklevel=4)

    def _record(self, state: EpochState, rows: Rows, validation: Rows | None) -> dict[str, Any]:
        record: dict[str, Any] = {"epoch": state.epoch, "loss": state.loss, "penalty": state.penalty}
        record |= self._measures(state.outputs, rows)
        if validation is not None and state.val_outputs is not None:
            record |= {"val_loss": state.val_loss}
            record |= {f"val_{name}": value for name, value in self._measures(state.val_outputs, validation).items()}
        return record | {"seconds": state.seconds}

    def _measures(self, outputs: np.ndarray, rows: Rows) -> dict[str, float]:
        """Figures for ``history_`` in the user's terms."""
        raise NotImplementedError

    def _publish(self, state: EpochState, history: list[dict[str, Any]], rows: Rows, validation: Rows | None) -> None:
        """Make the model usable as it stands: a callback may predict with it, an interrupt may leave it so."""
        self._network, self.history_ = state.network, history
        self.n_iter_, self.best_epoch_ = len(history), state.epoch

    @property
    def coefs_(self) -> list[np.ndarray]:
        """Weights of every layer, shape (inputs, units)."""
        return [weights for weights, _ in self._fitted_layers("coefs_")]

    @property
    def intercepts_(self) -> list[np.ndarray]:
        """Biases of every layer."""
        return [biases for _, biases in self._fitted_layers("intercepts_")]

    def _fitted_layers(self, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        if not hasattr(self, "_network"):
            raise AttributeError(f"{name} exists after fit.")
        return self._network.layers

    # -- prediction ------------------------------------------------------------------------------------------------------

    def _draws(self) -> Iterator[FeedForward]:
        """The networks a prediction averages: draws of MC dropout, the same at every call, or the network itself."""
        if not (self.dropout and self.mc_samples):
            yield self._network
            return
        rng = np.random.default_rng(self._draw_seed)
        for _ in range(int(self.mc_samples)):
            yield self._network.thinned(dropout_masks(self._network.sizes, self.dropout, rng, 1, self._network.theta.dtype))

    def _passes(self, X: Any) -> Iterator[np.ndarray]:
        """Outputs of every draw for blocks of rows, shape (draws, rows, outputs), in the units the network sees."""
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        draws = int(self.mc_samples) if self.dropout and self.mc_samples else 1
        step = max(1, BLOCK_VALUES // (draws * self._network.sizes[-1]))
        for inputs in self._input_blocks(X):
            for start in range(0, len(inputs), step):
                block = inputs[start : start + step]
                yield np.stack([network.outputs(block) for network in self._draws()]).astype(np.float64)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_network")
