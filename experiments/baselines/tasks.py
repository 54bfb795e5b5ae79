"""Regression and classification: what a target is, what a prediction is. Nothing here knows what the inputs are."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import softmax
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d, validate_data

from experiments.baselines.base import BaseNetwork
from experiments.baselines.losses import CrossEntropy, SquaredError, weighted_mean
from experiments.baselines.training import EpochState, Rows
from kstonet.scaling import Scaler


class NetworkRegressor(MultiOutputMixin, RegressorMixin, BaseNetwork):
    """Squared error, and Gaussian noise around the network's mean."""

    noise_variance_: np.ndarray
    _y_scaler: Scaler

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        X_val, y_val : array-like, optional
            Rows that are not trained on: their loss is recorded in ``history_`` and decides early stopping.

        Returns
        -------
        self
            Fitted.
        """
        self._check_arguments()
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        weights = self._check_weights(sample_weight, X)
        targets = y.astype(np.float64).reshape(len(y), -1)
        held_out = self._held_out(X_val, y_val, targets.shape[1])
        resumed = self._resumable(X, targets.shape[1])
        self._single_target = y.ndim == 1
        if not resumed:
            self._forget()
            self._y_scaler = Scaler.fit(targets, weights) if self.standardize else Scaler.identity(targets.shape[1])
        inputs = self._fit_inputs(X, weights, 0 if held_out is None else len(held_out[0]), resumed=resumed)
        rows = self._rows(inputs, self._y_scaler.forward(targets), weights)
        validation = None
        if held_out is not None:
            validation = self._rows(self._inputs(held_out[0]), self._y_scaler.forward(held_out[1]), None)
        self._train(rows, validation, SquaredError(), resumed=resumed)
        return self

    def _held_out(self, X_val: Any, y_val: Any, n_targets: int) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._check_validation(X_val, y_val):
            return None
        X_val = validate_data(self, X_val, dtype=np.float64, reset=False)
        y_val = check_array(y_val, dtype=np.float64, ensure_2d=False, input_name="y_val")
        check_consistent_length(X_val, y_val)
        targets = y_val.reshape(len(y_val), -1)
        if targets.shape[1] != n_targets:
            raise ValueError(f"y_val has {targets.shape[1]} targets and y has {n_targets}; they must be the same targets.")
        return X_val, targets

    def _squared_errors(self, outputs: np.ndarray, rows: Rows) -> np.ndarray:
        """Mean squared error of every target, in the user's units."""
        errors = ((outputs - rows.targets).astype(np.float64) * self._y_scaler.scale) ** 2
        return np.array([weighted_mean(column, rows.weights) for column in errors.T])

    def _measures(self, outputs: np.ndarray, rows: Rows) -> dict[str, float]:
        return {"mse": float(self._squared_errors(outputs, rows).mean())}

    def _publish(self, state: EpochState, history: list[dict[str, Any]], rows: Rows, validation: Rows | None) -> None:
        super()._publish(state, history, rows, validation)
        if validation is not None and state.val_outputs is not None:  # honest where the training rows are overfitted
            self.noise_variance_ = self._squared_errors(state.val_outputs, validation)
        else:
            self.noise_variance_ = self._squared_errors(state.outputs, rows)

    def predict(self, X: Any, return_std: bool = False, *, tau: float | None = None) -> Any:
        """Predict; with dropout, the mean of ``mc_samples`` stochastic passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Return the standard deviation of a new observation, too: variance of the passes plus that of the noise
            (Gal & Ghahramani, 2016). Without dropout it is that of the noise alone.
        tau : float, optional
            Precision of the noise in the units of y: its variance is 1/tau. Default: ``noise_variance_``.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape
            Only with ``return_std=True``.
        """
        if tau is not None and not 0 < tau < np.inf:
            raise ValueError(f"tau={tau!r} must be a positive number, the precision of the noise; None uses noise_variance_.")
        means, variances = [], []
        for passes in self._passes(X):
            means.append(self._y_scaler.backward(passes.mean(axis=0)))
            if return_std:
                variances.append(passes.var(axis=0) * self._y_scaler.scale**2)
        mean = self._shaped(np.concatenate(means))
        if not return_std:
            return mean
        noise = self.noise_variance_ if tau is None else 1.0 / tau
        return mean, self._shaped(np.sqrt(np.concatenate(variances) + noise))

    def predict_samples(self, X: Any) -> np.ndarray:
        """All stochastic passes of MC dropout, without noise; one pass without dropout.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (mc_samples, n_samples) or (mc_samples, n_samples, n_targets)
            ``predict`` returns their mean.
        """
        return self._shaped(np.concatenate([self._y_scaler.backward(passes) for passes in self._passes(X)], axis=1))

    def _shaped(self, values: np.ndarray) -> np.ndarray:
        return values[..., 0] if self._single_target else values


class NetworkClassifier(ClassifierMixin, BaseNetwork):
    """Cross-entropy of the softmax of one output per class."""

    classes_: np.ndarray

    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
        X_val, y_val : array-like, optional
            Rows that are not trained on: their loss is recorded in ``history_`` and decides early stopping.

        Returns
        -------
        self
            Fitted.
        """
        self._check_arguments()
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        weights = self._check_weights(sample_weight, X)
        encoder = LabelEncoder().fit(y)
        classes = encoder.classes_
        if len(classes) < 2:
            raise ValueError(f"y holds one class only, {classes[0]!r}; a classifier needs at least two classes.")
        held_out = self._held_out(X_val, y_val, encoder)
        resumed = self._resumable(X, len(classes)) and np.array_equal(classes, self.classes_)
        if not resumed:
            self._forget()
        self.classes_ = classes
        indicators = np.eye(len(classes))
        inputs = self._fit_inputs(X, weights, 0 if held_out is None else len(held_out[0]), resumed=resumed)
        rows = self._rows(inputs, indicators[encoder.transform(y)], weights)
        validation = None if held_out is None else self._rows(self._inputs(held_out[0]), indicators[held_out[1]], None)
        self._train(rows, validation, CrossEntropy(), resumed=resumed)
        return self

    def _held_out(self, X_val: Any, y_val: Any, encoder: LabelEncoder) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._check_validation(X_val, y_val):
            return None
        X_val = validate_data(self, X_val, dtype=np.float64, reset=False)
        y_val = column_or_1d(y_val)
        check_consistent_length(X_val, y_val)
        unknown = sorted(set(y_val.tolist()) - set(encoder.classes_.tolist()), key=str)
        if unknown:
            raise ValueError(f"y_val holds labels that y does not: {unknown}; the classes are {encoder.classes_.tolist()}.")
        return X_val, np.asarray(encoder.transform(y_val))

    def _measures(self, outputs: np.ndarray, rows: Rows) -> dict[str, float]:
        right = outputs.argmax(axis=1) == rows.targets.argmax(axis=1)
        return {"accuracy": weighted_mean(right.astype(np.float64), rows.weights)}

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities; with dropout, the mean of those of ``mc_samples`` stochastic passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Rows sum to one.
        """
        return np.concatenate([softmax(passes, axis=-1).mean(axis=0) for passes in self._passes(X)])

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])
