"""The StoNet estimators: the same loop with a first layer that is linear in the features, or in the kernel matrix."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.classification import ClassificationTask
from kstonet.estimators.documentation import STONET_PARAMETERS, classifier
from kstonet.estimators.regression import RegressionTask
from kstonet.settings import LinearLayerSettings


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
        upper_layer: str = "dense",
        alpha: Any = "auto",
        residuals: str | None = "auto",
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
        checkpoint: Any = None,
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
        self.checkpoint = checkpoint
        self.callback = callback
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _first_layer(self) -> LinearLayerSettings:
        return LinearLayerSettings(self.kernel, self.gamma, self.penalty, self.alpha)


class StoNetRegressor(RegressionTask, BaseLinearStoNet):
    __doc__ = f"""Stochastic neural network for regression: K-StoNet's loop with a linear first layer.
{STONET_PARAMETERS}
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
{classifier(STONET_PARAMETERS)}
    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import StoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = StoNetClassifier(random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "softplus",
        *,
        kernel: Any = None,
        gamma: Any = "scale",
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
        max_iter: int = 40,
        n_average: int = 10,
        n_chains: int = 1,
        tol: float | None = None,
        n_iter_no_change: int = 10,
        standardize: bool = True,
        warm_start: bool = False,
        max_memory: float | None = None,
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
            kernel=kernel,
            gamma=gamma,
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
            checkpoint=checkpoint,
            callback=callback,
            n_jobs=n_jobs,
            random_state=random_state,
            verbose=verbose,
        )
        self.class_weight = class_weight
        self.ordinal = ordinal
