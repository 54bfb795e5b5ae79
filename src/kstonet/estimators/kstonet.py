"""The K-StoNet estimators."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from kstonet.estimators.base_kstonet import BaseKStoNet, Scaler
from kstonet.estimators.multi_target_svr import validated_weights
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.solvers.multinomial import log_proba

_PARAMETERS = """
    Parameters
    ----------
    hidden_layer_sizes : int or tuple of int, default=(5,)
        Units of every hidden layer; the first is a layer of support vector regressions.
    activation : {"softplus", "tanh", "sigmoid", "relu", "gelu", "identity"}, default="softplus"
        The last three lie outside the paper's Assumption 1.
    kernel, gamma : default="rbf", "scale"
        As in :class:`MultiTargetSVR`; one value, or one per first-layer unit.
    C, epsilon : float or one per first-layer unit, default=10.0, 0.01
        Of the support vector regressions, in scikit-learn's scaling. ``C`` may be a function of the iteration.
    noise_variance : "auto", float or schedule, default="auto"
        Variance of the noise above the first layer (temperature of a classification head). "auto" follows C and the residual.
    penalty : {"lasso", "ridge", "scad", "mcp", "none"}, default="lasso"
        Of the regression layers.
    alpha : float or schedule, default=1e-4
        Strength of the penalty, in scikit-learn's scaling.
    n_imputation_steps, step_size, friction, temperature : default=25, "auto", 0.1, 1.0
        Of the imputation, eq. (imputationeq) of the paper; friction 1 is Langevin Monte Carlo.
    max_iter : int, default=40
        Iterations of Algorithm 1.
    n_average : int, default=10
        Predictions are averaged over this many last iterations (Theorem 3); 1 uses the last.
    tol, n_iter_no_change : default=None, 10
        Stop when the training loss has not fallen by this fraction for so many iterations.
    svr_tol : float, default=1e-3
        Relative duality gap of the support vector regressions.
    standardize : bool, default=True
        Standardise X (and the targets) inside.
    warm_start : bool, default=False
        Go on from the last iteration when fit is called again on the same X.
    max_memory : float, optional
        Bytes a kernel matrix and its factor may take.
    callback : callable, optional
        Called with the :class:`~kstonet.iro.IROState` of every iteration.
    random_state : int, RandomState or None
    verbose : int, default=0

    Attributes
    ----------
    history_ : list of dict
        One record per iteration: loss, noise, step size, SVR gap and iterations, support vectors, seconds per part.
    n_iter_ : int
    kernel_ : Kernel
        Of the first unit, with gamma resolved.
    n_features_in_, feature_names_in_
        As in scikit-learn.
"""


class KStoNetRegressor(MultiOutputMixin, RegressorMixin, BaseKStoNet):
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on (n_samples, n_features) and (n_samples,) or (n_samples, n_targets)."""
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weights = validated_weights(sample_weight, X)
        X = self._fit_x_scaler(X, weights)
        self._single_target = y.ndim == 1
        targets = y.astype(np.float64).reshape(len(y), -1)
        self._y_scaler = Scaler.fit(targets, weights, active=self.standardize)
        targets = self._y_scaler.forward(targets)
        self._train(X, targets, targets, weights)
        return self

    def _head(self, below: int, outputs: np.ndarray, alpha: float) -> DenseLayer:
        k = outputs.shape[1]
        return DenseLayer(np.zeros((k, below)), np.zeros(k), 1.0, get_activation(self.activation), self.penalty, alpha)

    def predict(self, X: Any) -> np.ndarray:
        """Predict, averaged over the last ``n_average`` iterations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
        """
        outputs = self._outputs(X)
        mean = self._y_scaler.backward(outputs.mean(axis=0))
        return mean[:, 0] if self._single_target else mean


class KStoNetClassifier(ClassifierMixin, BaseKStoNet):
    __doc__ = f"""Kernel-expanded stochastic neural network for classification.
{_PARAMETERS}    classes_ : ndarray of shape (n_classes,)

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from kstonet import KStoNetClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, random_state=0).fit(X, y)
    >>> model.score(X, y) > 0.9
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Train on (n_samples, n_features) and (n_samples,) labels of any type."""
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        encoder = LabelEncoder().fit(y)
        self.classes_ = encoder.classes_
        if len(self.classes_) < 2:
            raise ValueError(f"y holds one class only, {self.classes_[0]!r}; a classifier needs at least two classes.")
        weights = validated_weights(sample_weight, X)
        X = self._fit_x_scaler(X, weights)
        codes = np.asarray(encoder.transform(y))
        self._train(X, codes, np.eye(len(self.classes_))[codes], weights)
        return self

    def _head(self, below: int, outputs: np.ndarray, alpha: float) -> CategoricalHead:
        k = len(self.classes_)
        rows = 1 if k == 2 else k
        return CategoricalHead(
            np.zeros((rows, below)), np.zeros(rows), k, 1.0, get_activation(self.activation), self.penalty, alpha
        )

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, averaged over the last ``n_average`` iterations; rows sum to one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        logits = self._outputs(X)
        probabilities = np.mean([np.exp(log_proba(each)) for each in logits], axis=0)
        return np.asarray(probabilities / probabilities.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])
