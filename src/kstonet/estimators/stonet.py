"""The StoNet estimators: the same loop with a first layer that is linear in the features, or in the kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.kstonet import SHARED_ATTRIBUTES, SHARED_PARAMETERS
from kstonet.estimators.tasks import ClassificationTask, RegressionTask
from kstonet.gram import DenseGram, Kernel, make_kernel
from kstonet.iro import IROState
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.uncertainty.network import LinearUncertainty
from kstonet.uncertainty.regression import RegressionUncertainty

_PARAMETERS = f"""
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Units of every hidden layer; the first is a layer of penalised linear regressions.
    activation : {{"softplus", "tanh", "sigmoid", "relu", "gelu", "identity"}}, default="softplus"
        The last three lie outside the paper's Assumption 1.
    kernel : None, str or callable, default=None
        None: the first layer is linear in X. Otherwise linear in the rows of the kernel matrix (the variant of the paper's
        discussion: the Gram matrix as the input of a StoNet); as in :class:`MultiTargetSVR`.
    gamma : float or {{"scale", "auto", "median"}}, default="scale"
        Of the kernel.{SHARED_PARAMETERS}
    Notes
    -----
    A linear first layer carries ten times the noise of the layers above it, so that the residual moves the first layer first.

    Attributes
    ----------{SHARED_ATTRIBUTES}"""


class BaseLinearStoNet(BaseStoNet):
    """The first layer of both StoNets."""

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "softplus",
        *,
        kernel: Any = None,
        gamma: Any = "scale",
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
        callback: Callable[[Any], Any] | None = None,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
        self.kernel = kernel
        self.gamma = gamma
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
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _new_first_layer(self, X: np.ndarray, units: int, weights: np.ndarray | None) -> tuple[DenseLayer, np.ndarray]:
        self._kernel: Kernel | None = None
        inputs = X
        if self.kernel is not None:
            self._kernel = make_kernel(self.kernel, X, gamma=self.gamma, sample_weight=weights)
            gram = DenseGram(X, self._kernel, max_memory=self.max_memory)  # estimates the memory before it takes it
            inputs = gram.columns(np.arange(len(X))).T  # symmetric, in C order
        alpha = self._first_alpha(len(X), inputs.shape[1])
        identity = get_activation("identity")  # the features enter as they are
        layer = DenseLayer(np.zeros((units, inputs.shape[1])), np.zeros(units), 1.0, identity, self.penalty, alpha)
        return layer, inputs

    def _first_layer_uncertainty(self, states: list[IROState], inputs: Any, weights: np.ndarray | None) -> LinearUncertainty:
        layer, used = states[-1].network.layers[0], self._expansion.parts[0].used
        kept = replace(layer, weights=layer.weights[:, used])
        return LinearUncertainty(RegressionUncertainty.of_dense(kept, inputs[:, used], states[-1].latents[0], weights))

    def _kernels(self, first: DenseLayer) -> list[tuple[Kernel | None, np.ndarray, np.ndarray]]:
        return [(self._kernel, first.weights, np.arange(len(first.intercept)))]


class StoNetRegressor(RegressionTask, BaseLinearStoNet):
    __doc__ = f"""Stochastic neural network for regression: K-StoNet's loop with a linear first layer.
{_PARAMETERS}
    Examples
    --------
    >>> import numpy as np
    >>> from kstonet import StoNetRegressor
    >>> X = np.random.default_rng(0).normal(size=(300, 4))
    >>> y = np.tanh(X[:, 0] + X[:, 1]) - X[:, 2]
    >>> model = StoNetRegressor(random_state=0).fit(X, y)
    >>> round(model.score(X, y), 1) > 0.9
    True
    """


class StoNetClassifier(ClassificationTask, BaseLinearStoNet):
    __doc__ = f"""Stochastic neural network for classification: K-StoNet's loop with a linear first layer.
{_PARAMETERS}    classes_ : ndarray of shape (n_classes,)
    calibration_temperature_ : float
        Divides the logits; at least one after fit.
    logit_variance_scale_ : float
        Multiplies the variance of the logits in intervals of probabilities.
        The labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import StoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StoNetClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
