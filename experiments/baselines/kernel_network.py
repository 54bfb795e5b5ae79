"""Kernel-expanded networks with the representer as first layer, the paper's KNN."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.utils import Tags

from experiments.baselines.base import BaseNetwork
from experiments.baselines.documentation import ATTRIBUTES, PARAMETERS
from experiments.baselines.tasks import NetworkClassifier, NetworkRegressor
from experiments.baselines.training import EpochState
from kstonet.gram import Kernel, make_kernel
from kstonet.gram.dense import cross_blocks
from kstonet.gram.memory import DEFAULT_FRACTION, available_memory, require_memory
from kstonet.scaling import Scaler


class KernelInputs(BaseNetwork):
    """Hands the first layer kernel values against all training rows in place of features, eq. (KNN_kernel_form)."""

    kernel_: Kernel
    _X_fit: np.ndarray
    _kernel_scaler: Scaler

    def __init__(
        self,
        hidden_layer_sizes: Any = (5,),
        activation: str = "tanh",
        *,
        kernel: str | Callable[[Any, Any], Any] = "rbf",
        gamma: float | str = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        length_scale: Any = None,
        standardize_kernel: bool = False,
        solver: str = "momentum",
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
        max_memory: float | None = None,
        callback: Callable[[EpochState], Any] | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        super().__init__(
            hidden_layer_sizes,
            activation,
            solver=solver,
            learning_rate=learning_rate,
            momentum=momentum,
            batch_size=batch_size,
            max_epochs=max_epochs,
            alpha=alpha,
            dropout=dropout,
            mc_samples=mc_samples,
            tol=tol,
            n_iter_no_change=n_iter_no_change,
            standardize=standardize,
            warm_start=warm_start,
            dtype=dtype,
            callback=callback,
            random_state=random_state,
            verbose=verbose,
        )
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.length_scale = length_scale
        self.standardize_kernel = standardize_kernel
        self.max_memory = max_memory

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"

    def _kernel_arguments(self) -> dict[str, Any]:
        length_scale = None if self.length_scale is None else tuple(np.ravel(self.length_scale).tolist())
        return {
            "kernel": self.kernel,
            "gamma": self.gamma,
            "degree": self.degree,
            "coef0": self.coef0,
            "length_scale": length_scale,
        }

    def _fit_inputs(self, X: np.ndarray, weights: np.ndarray | None, n_val: int, *, resumed: bool) -> np.ndarray:
        n = len(X)
        if self._precomputed and X.shape != (n, n):
            raise ValueError(f"kernel='precomputed' needs the square matrix of all training rows; X has shape {X.shape}.")
        if not resumed:
            active = self.standardize and not self._precomputed
            self._x_scaler = Scaler.fit(X, weights) if active else Scaler.identity(X.shape[1])
        X = self._x_scaler.forward(X)
        if not resumed:
            self.kernel_ = make_kernel(X=X, sample_weight=weights, **self._kernel_arguments())
            self._fitted_arguments = self._kernel_arguments()
            # A precomputed kernel is asked for its values again at prediction: only the number of rows is needed.
            self._X_fit = np.empty((n, 0)) if self._precomputed else X
        needed = (n + 2 * n_val) * n * np.dtype(self.dtype).itemsize
        limit = DEFAULT_FRACTION * available_memory() if self.max_memory is None else self.max_memory
        require_memory(n, needed, limit, f"kernel rows in {self.dtype}", given=self.max_memory is not None)
        K = np.empty((n, n), dtype=self.dtype)
        for rows, values in cross_blocks(self.kernel_, X, self._X_fit):
            K[rows] = values
        if not resumed:
            self._kernel_scaler = Scaler.fit(K, weights) if self.standardize_kernel else Scaler.identity(n)
        self._kernel_scaler.forward_in_place(K)
        return K

    def _input_blocks(self, X: np.ndarray) -> Iterator[np.ndarray]:
        for _, values in cross_blocks(self.kernel_, self._x_scaler.forward(X), self._X_fit):
            block = np.array(values, dtype=self.dtype)
            self._kernel_scaler.forward_in_place(block)
            yield block

    def _resumable(self, X: np.ndarray, n_outputs: int) -> bool:
        if not (self.warm_start and hasattr(self, "_network")):
            return False
        if self._kernel_arguments() != self._fitted_arguments:
            return False
        # One weight vector per training row: other rows are another network.
        same_rows = len(X) == len(self._X_fit)
        if same_rows and not self._precomputed:
            X = self._x_scaler.forward(X) if X.shape[1] == self._X_fit.shape[1] else X
            same_rows = np.array_equal(X, self._X_fit)
        return same_rows and self._same_network(len(X), n_outputs)

    def _fitted_layers(self, name: str) -> list[tuple[np.ndarray, np.ndarray]]:
        (weights, biases), *above = super()._fitted_layers(name)
        weights = weights / self._kernel_scaler.scale[:, None]  # standardised kernel values → kernel values
        return [(weights, biases - self._kernel_scaler.mean @ weights), *above]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags


_KERNEL = """
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Units of every hidden layer.
    kernel : str or callable, default="rbf"
        As in :class:`kstonet.MultiTargetSVR`; the paper takes the kernel of K-StoNet.
    gamma : float or {"scale", "auto", "median"}, default="scale"
    degree, coef0, length_scale : default=3, 0.0, None
        Of the kernel, as in :class:`kstonet.MultiTargetSVR`.
    standardize_kernel : bool, default=False
        Standardise the kernel values against every training row before the first layer, with the means and spreads of the
        training set, as the authors' code does. The functions that the network can represent stay the same; gradient
        descent fits the training rows sooner, and overfits sooner.
        ``alpha`` and ``dropout`` act on what the first layer sees.
    max_memory : float, optional
        Bytes the kernel values may take; default 80 % of the available memory."""

# Adam moves all n weights of a unit by its learning rate at once: the rate would have to fall with n.
_PARAMETERS = PARAMETERS.replace('default="adam"', 'default="momentum"')

_REPRESENTER = """
    The first hidden layer is the representer of eq. (KNN_kernel_form), b₁ + Σᵢ w₁⁽ⁱ⁾·k(xᵢ, x), with one weight per unit
    and training row; the layers above are dense. Training holds the matrix of all kernel values in memory. Adam works, but
    moves all weights of a unit by its learning rate at once, so that the rate must fall with the number of rows.
"""

_KERNEL_ATTRIBUTES = """    kernel_ : Kernel
        With ``gamma`` resolved. ``coefs_[0]`` and ``intercepts_[0]`` are w₁ and b₁ for its values as they are.
"""


class KernelNetworkRegressor(KernelInputs, NetworkRegressor):  # noqa: D101 -- the docstrings share their parameter section
    __doc__ = f"""Kernel-expanded network for regression, trained by gradient descent: the paper's KNN.
{_REPRESENTER}{_KERNEL}{_PARAMETERS}{ATTRIBUTES}{_KERNEL_ATTRIBUTES}    noise_variance_ : ndarray of shape (n_targets,)
        Mean squared residual of the validation rows, else of the training rows: what ``predict`` takes for 1/tau.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.baselines import KernelNetworkRegressor
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = KernelNetworkRegressor(max_epochs=200, batch_size=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> model.coefs_[0].shape
    (100, 5)
    """


class KernelNetworkClassifier(KernelInputs, NetworkClassifier):  # noqa: D101
    __doc__ = f"""Kernel-expanded network for classification, trained by gradient descent: the paper's KNN.
{_REPRESENTER}{_KERNEL}{_PARAMETERS}{ATTRIBUTES}{_KERNEL_ATTRIBUTES}    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from experiments.baselines import KernelNetworkClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KernelNetworkClassifier(learning_rate=0.02, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
