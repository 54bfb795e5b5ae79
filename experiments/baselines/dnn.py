"""Fully connected networks, the paper's DNN."""

from __future__ import annotations

from experiments.baselines.documentation import ATTRIBUTES, PARAMETERS
from experiments.baselines.tasks import NetworkClassifier, NetworkRegressor

_SIZES = """
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Units of every hidden layer; () is a linear model."""


class DNNRegressor(NetworkRegressor):  # noqa: D101 -- the docstrings share their parameter section
    __doc__ = f"""Fully connected neural network for regression, trained by gradient descent: the paper's DNN.

    The comparators of the paper are settings of it: ``solver="sgd"`` with ``learning_rate=0.005`` (Section 3.1),
    ``solver="momentum"`` with the same rate (Section 3.2), ``alpha=0.1`` for the Lasso-penalised runs. MC dropout is
    ``activation="relu", dropout=0.05`` and ``predict(X, return_std=True)``.
{_SIZES}{PARAMETERS}{ATTRIBUTES}    noise_variance_ : ndarray of shape (n_targets,)
        Mean squared residual of the validation rows, else of the training rows: what ``predict`` takes for 1/tau.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.baselines import DNNRegressor
    >>> X = np.linspace(-3, 3, 100)[:, None]
    >>> y = np.sin(X[:, 0])
    >>> model = DNNRegressor(20, max_epochs=500, batch_size=20, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.99
    True
    >>> dropout = DNNRegressor(50, "relu", dropout=0.05, max_epochs=50, random_state=0).fit(X, y)
    >>> mean, std = dropout.predict(X, return_std=True)
    >>> bool((std > np.sqrt(dropout.noise_variance_)).all())
    True
    """


class DNNClassifier(NetworkClassifier):  # noqa: D101
    __doc__ = f"""Fully connected neural network for classification, trained by gradient descent: the paper's DNN.

    LeNet-300-100 of the paper's Section 4.2 is ``DNNClassifier((300, 100), learning_rate=0.001, batch_size=128,
    max_epochs=300)``.
{_SIZES}{PARAMETERS}{ATTRIBUTES}    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from experiments.baselines import DNNClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = DNNClassifier((10, 5), max_epochs=100, alpha=1e-3, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """
