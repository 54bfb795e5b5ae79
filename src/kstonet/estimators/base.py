"""What all four estimators share: the training loop, standardisation, averaged prediction."""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from kstonet.estimators.callbacks import CallbackSupportMixin, FitTasks
from kstonet.estimators.checks import require, whole
from kstonet.estimators.links import DocumentationLink
from kstonet.estimators.progress import Progress
from kstonet.estimators.scaling import Scaler
from kstonet.estimators.search import rows_that_count
from kstonet.gram import Kernel
from kstonet.imputation import SAMPLERS
from kstonet.imputation.chain import ChainSettings
from kstonet.initialisation import initial_latents
from kstonet.iro import IROSettings, IROState, iro, scheduled, training_loss
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.expansion import Expansion, ExpansionPart
from kstonet.network import Network
from kstonet.noise import automatic_alpha
from kstonet.uncertainty.moments import Moments
from kstonet.uncertainty.network import NetworkUncertainty

RESIDUALS = ("crossfit", "loo", "training", None)


class BaseStoNet(CallbackSupportMixin, DocumentationLink, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Everything the estimators share. Subclasses say what the first layer is; the mixins of tasks.py what the head is."""

    hidden_layer_sizes: Any
    activation: str
    kernel: Any
    noise_variance: Any
    penalty: str
    residuals: str | None
    alpha: Any
    sampler: str
    n_imputation_steps: int
    step_size: Any
    friction: float
    temperature: float | str
    max_iter: int
    n_average: int
    n_chains: int
    tol: float | None
    n_iter_no_change: int
    standardize: bool
    warm_start: bool
    max_memory: float | None
    callback: Callable[[Any], Any] | None
    n_jobs: int | None
    random_state: Any
    verbose: int

    history_: list[dict[str, Any]]
    _X_fit: np.ndarray
    _states: list[IROState]
    _inputs: Any

    # -- what subclasses answer ------------------------------------------------------------------------------------------

    def _new_first_layer(self, X: np.ndarray, units: int, weights: np.ndarray | None) -> tuple[Any, Any]:
        """The first layer before its first refit, and the inputs it wants to be handed."""
        raise NotImplementedError

    def _new_head(self, below: int, outputs: np.ndarray, alpha: float) -> Any:
        """The output layer before its first refit."""
        raise NotImplementedError

    def _kernels(self, first: Any) -> list[tuple[Kernel | None, np.ndarray, np.ndarray]]:
        """``(kernel, coef, units)`` for the groups of units of a first layer that share a kernel."""
        raise NotImplementedError

    def _finished(self, states: list[IROState], weights: np.ndarray | None) -> list[IROState]:
        """The iterates as intervals and prediction want them."""
        return states

    def _first_layer_uncertainty(self, states: list[IROState], inputs: Any, weights: np.ndarray | None) -> Any:
        """The variance of the first layer of the last iterate."""
        raise NotImplementedError

    def _schedules(self) -> dict[str, Any]:
        """Schedules of the first layer."""
        return {}

    def _score_outputs(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        """R² or accuracy."""
        raise NotImplementedError

    def _as_outputs(self, y: np.ndarray) -> np.ndarray:
        """Targets as training sees them: standardised columns, or class codes."""
        raise NotImplementedError

    def _as_columns(self, outputs: np.ndarray) -> np.ndarray:
        """The same as numeric columns: those, or indicators of the classes."""
        raise NotImplementedError

    def _validation_losses(self, X: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """Squared error or negative log-likelihood of the averaged prediction at every standardised row."""
        raise NotImplementedError

    @contextmanager
    def _tuned(self, X: np.ndarray, y: np.ndarray, codes: np.ndarray | None, weights: np.ndarray | None) -> Iterator[None]:
        """Train inside with the values chosen for parameters that ask for it; ``codes`` are the classes of a classifier."""
        yield

    # -- validation ------------------------------------------------------------------------------------------------------

    def _sizes(self) -> tuple[int, ...]:
        given = self.hidden_layer_sizes
        sizes = np.atleast_1d(given).tolist()
        require(
            "hidden_layer_sizes",
            given,
            lambda _: sizes and all(map(whole, sizes)),
            "a positive whole number of units, or a tuple of them",
        )
        return tuple(int(size) for size in sizes)

    def _check_numbers(self) -> None:
        rules: dict[str, tuple[Callable[[Any], Any], str]] = {
            **dict.fromkeys(
                ("n_imputation_steps", "max_iter", "n_average", "n_chains", "n_iter_no_change"), (whole, "a whole number >= 1")
            ),
            "friction": (lambda v: 0 < v <= 1, "in (0, 1]; 1 is Langevin Monte Carlo"),
            "sampler": (lambda v: v in SAMPLERS, f"one of {', '.join(SAMPLERS)}"),
            "residuals": (lambda v: v in RESIDUALS, "one of 'crossfit', 'loo', 'training' or None"),
            "temperature": (
                lambda v: v == "auto" if isinstance(v, str) else v > 0 or (v == 0 and self.sampler == "sghmc"),
                "'auto' or positive (0, which follows the gradient only, needs sampler='sghmc')",
            ),
            "tol": (lambda v: v is None or v >= 0, "a non-negative number, or None to do all max_iter iterations"),
            "max_memory": (lambda v: v is None or v > 0, "a positive number of bytes, or None for what the machine has"),
            "callback": (lambda v: v is None or callable(v), "a function of the state of an iteration, or None"),
            "verbose": (lambda v: v >= 0, "0, 1 or 2"),
            "step_size": (
                lambda v: (first := scheduled(v, 0)) == "auto" or first > 0,
                "'auto', a positive number, or a schedule of them",
            ),
            "noise_variance": (
                self._is_noise,
                "'auto', a positive number, a schedule of them, or a schedule of tuples with a positive number for every layer "
                "above the first, such as [(0.001, 0.01)] for two hidden layers",
            ),
            "alpha": (
                lambda v: (first := scheduled(v, 0)) == "auto" or first >= 0,
                "'auto', a non-negative number, or a schedule of them",
            ),
        }
        for name, (valid, demand) in rules.items():
            require(name, getattr(self, name), valid, demand)

    def _is_noise(self, value: Any) -> bool:
        first = scheduled(value, 0)
        if isinstance(first, tuple):
            return len(first) == len(self._sizes()) and min(first) > 0
        return bool(first == "auto" or first > 0)

    @staticmethod
    def _note_shape(sizes: tuple[int, ...], outputs: int) -> None:
        """The theory wants a pyramid: m₁ ≥ m₂ ≥ … ≥ outputs (Lemma 1, condition ii); other shapes work, outside it."""
        shape = (*sizes, outputs)
        if any(above > below for below, above in pairwise(shape)):
            warnings.warn(
                f"the network {'-'.join(map(str, shape))} (hidden units and outputs) is not pyramidal: it widens towards the "
                "output, where the theory has no guarantee against local traps. Give earlier layers at least as many units.",
                UserWarning,
                stacklevel=4,
            )

    # -- training --------------------------------------------------------------------------------------------------------

    def _blank(self, X: np.ndarray, outputs: np.ndarray, weights: np.ndarray | None) -> tuple[Network, Any]:
        """The network before its first refit, and the inputs of its first layer."""
        sizes, activation = self._sizes(), get_activation(self.activation)
        first, inputs = self._new_first_layer(X, sizes[0], weights)
        layers: list[Any] = [first]
        for below, size in pairwise(sizes):
            alpha = self._first_alpha(len(X), below)
            layers.append(DenseLayer(np.zeros((size, below)), np.zeros(size), 1.0, activation, self.penalty, alpha))
        layers.append(self._new_head(sizes[-1], outputs, self._first_alpha(len(X), sizes[-1])))
        self._note_shape(sizes, len(layers[-1].intercept))
        return Network(tuple(layers)), inputs

    def _starts(
        self,
        network: Network,
        inputs: Any,
        X: np.ndarray,
        outputs: np.ndarray,
        mixtures: np.ndarray,
        weights: np.ndarray | None,
    ) -> Iterator[IROState]:
        """The first state of every chain, made when it is asked for."""
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        for chain in range(self.n_chains):
            rng = np.random.default_rng([seed, chain] if chain else seed)
            latents = initial_latents(rng, X, mixtures, self._sizes(), get_activation(self.activation))
            yield IROState(0, network.refit(inputs, latents, outputs, weights), latents, dict(rng.bit_generator.state))

    def _first_alpha(self, n: int, inputs: int) -> float:
        """Penalty of a regression layer before anything is fitted: standardised targets are residuals of size one."""
        value = scheduled(self.alpha, 0)
        return automatic_alpha(1.0, n, inputs) if value == "auto" else float(value)

    def _settings(self) -> IROSettings:
        return IROSettings(
            chain=ChainSettings(self.sampler, self.n_imputation_steps, self.friction),
            temperature=self.temperature,
            step_size=self.step_size,
            noise_variance=self.noise_variance,
            alpha=self.alpha,
            n_jobs=self.n_jobs,
            **self._schedules(),
        )

    def _train(
        self,
        X: np.ndarray,
        outputs: np.ndarray,
        mixtures: np.ndarray,
        weights: np.ndarray | None,
        validation: tuple[np.ndarray, np.ndarray] | None,
        tasks: FitTasks,
    ) -> None:
        """Run Algorithm 1 on standardised data; ``mixtures`` are the columns the initial latent values are made of."""
        self._check_numbers()
        for stale in ("_uncertainty", "_noise_model", "_honest"):  # of an earlier fit
            self.__dict__.pop(stale, None)
        resumed = self.warm_start and hasattr(self, "_states") and np.array_equal(self._X_fit, X)
        starts: Iterable[IROState]
        if resumed:
            starts, inputs, history = self._states, self._inputs, list(self.history_)
            chains = len(self._states)
        else:
            network, inputs = self._blank(X, outputs, weights)
            starts, history, chains = self._starts(network, inputs, X, outputs, mixtures, weights), [], self.n_chains
        self._X_fit, self.history_ = X, history
        progress = Progress(type(self).__name__, self.max_iter * chains, self.verbose)
        finished: list[IROState] = []  # the iterates that predictions average, of chains that are done
        recent: deque[IROState] = deque(maxlen=self.n_average)  # of the chain that runs
        ends: dict[int, IROState] = {}  # where chains are
        watch: Callable[[Network], dict[str, float]] | None = None
        try:
            for chain, start in enumerate(starts):
                recent.clear()
                if validation is not None and watch is None:  # the chains share their kernels
                    watch = self._watch(start.network, *validation)
                best, waiting = np.inf, 0
                for new in tasks.each(iro(inputs, outputs, start, self._settings(), weights)):
                    ends[chain] = new
                    assert new.record is not None
                    recent.append(new)
                    record = asdict(new.record) | {"chain": chain}
                    record["score"] = self._score_outputs(new.network.forward(inputs)[-1], outputs)
                    if watch is not None:
                        record |= watch(new.network)
                    history.append(record)
                    progress.update(record)
                    if self.callback is not None:
                        self._publish([*finished, *recent])  # a callback may predict with the model as it stands
                        self.callback(new)
                    stopped = tasks.end(lambda: self._publish([*finished, *recent]))
                    if stopped or new.iteration - start.iteration >= self.max_iter:
                        break
                    if self.tol is not None:
                        loss = record["loss"] if watch is None else record["validation_loss"]
                        best, waiting = (loss, 0) if loss < best * (1.0 - self.tol) else (best, waiting + 1)
                        if waiting >= self.n_iter_no_change:
                            break
                finished.extend(recent)
                if stopped:
                    break
            kept = self._finished(finished, weights)
        except KeyboardInterrupt:  # what is trained so far is a model
            done = finished or list(recent)
            if not done:
                raise
            self._publish(done)  # a second interrupt may leave it so
            kept = self._finished(done, weights)
        finally:
            progress.close()
        self._publish(kept)
        if self.residuals is not None:
            tasks.begin("intervals")
            try:
                self._prepare_intervals(kept, inputs, outputs, weights, self.residuals)
            except KeyboardInterrupt:
                self._prepare_intervals(kept, inputs, outputs, weights, "training")  # little work
                warnings.warn(
                    "interrupted while intervals were prepared: they are those of residuals='training' and may be too short.",
                    UserWarning,
                    stacklevel=3,
                )
            tasks.end()
        if self.warm_start:  # holds the kernel matrix
            self._states, self._inputs = list(ends.values()), inputs

    def _watch(self, network: Network, X: np.ndarray, outputs: np.ndarray) -> Callable[[Network], dict[str, float]]:
        """Loss and score of an iterate on validation rows; the kernel values are computed once."""
        parts = [
            (ExpansionPart.of(kernel, self._X_fit, np.ones((1, *coef.shape)), units).features(X), units)
            for kernel, coef, units in self._kernels(network.layers[0])
        ]

        def watch(network: Network) -> dict[str, float]:
            first = np.empty((len(X), len(network.layers[0].intercept)))
            for (features, units), (_, coef, _) in zip(parts, self._kernels(network.layers[0]), strict=True):
                first[:, units] = features @ coef.T
            prediction = network.forward_from(first + network.layers[0].intercept)[-1]
            return {
                "validation_loss": training_loss(network, prediction, outputs),
                "validation_score": self._score_outputs(prediction, outputs),
            }

        return watch

    def _publish(self, states: list[IROState]) -> None:
        """Make the model of some iterates, the last of the training."""
        firsts = [state.network.layers[0] for state in states]
        groups = [self._kernels(first) for first in firsts]
        parts = []
        for k, (kernel, _, units) in enumerate(groups[0]):
            parts.append(ExpansionPart.of(kernel, self._X_fit, np.stack([group[k][1] for group in groups]), units))
        self._expansion = Expansion(tuple(parts), np.stack([first.intercept for first in firsts]))
        self._uppers = [Network((None, *state.network.layers[1:])) for state in states]
        self.n_iter_ = states[-1].iteration
        self._n_features_out = states[-1].latents[-1].shape[1]  # of transform

    def _prepare_intervals(
        self, states: list[IROState], inputs: Any, outputs: np.ndarray, weights: np.ndarray | None, residuals: str
    ) -> None:
        """Keep what the uncertainty of predictions needs."""
        first = self._first_layer_uncertainty(states, inputs, weights)
        self._uncertainty = NetworkUncertainty.of(self._expansion, first, states, outputs, weights)

    # -- prediction ------------------------------------------------------------------------------------------------------

    def _check_X(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        return self._x_scaler.forward(X)

    def _outputs(self, X: np.ndarray) -> np.ndarray:
        """Outputs of every averaged iterate at standardised rows, shape (iterates, n, outputs), in standardised units."""
        parts = [
            np.stack([upper.forward_from(first)[-1] for upper, first in zip(self._uppers, values, strict=True)])
            for _, values, _ in self._expansion.blocks(X)
        ]
        return np.concatenate(parts, axis=1)

    def _moments(self, X: Any, order: int = 1) -> Moments:
        """Moments of the outputs at rows as users give them, in standardised units, before noise and scale."""
        X = self._check_X(X)
        if self.residuals is None:
            raise ValueError(
                f"{type(self).__name__} was fitted with residuals=None, without intervals; fit with residuals='crossfit'."
            )
        return self._uncertainty.moments(X, order)

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
        return np.concatenate([self._uppers[-1].forward_from(values[-1])[-2] for _, values, _ in self._expansion.blocks(X)])

    # -- scikit-learn's manners --------------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        for name in ("_states", "_inputs", "_X_fit"):  # the training problem: a stored model predicts, it does not resume
            state.pop(name, None)
        return state

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    def _that_count(
        self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        """Without the rows of weight zero: latent values imputed for them would still enter noise and penalty.

        A kernel matrix keeps them, because prediction is given its columns as training was.
        """
        return (X, y, weights) if self._precomputed else rows_that_count(self, X, y, weights)

    def _fit_x_scaler(self, X: np.ndarray, weights: np.ndarray | None) -> np.ndarray:
        self._x_scaler = Scaler.fit(X, weights) if self.standardize and not self._precomputed else Scaler.identity(X.shape[1])
        return self._x_scaler.forward(X)
