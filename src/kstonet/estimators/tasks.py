"""Regression and classification: what is predicted, its scale, and the output layer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.preprocessing import LabelEncoder
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from kstonet.estimators.callbacks import fit_tasks, tears_down_callbacks
from kstonet.estimators.intervals import RegressionIntervals
from kstonet.estimators.multi_target_svr import validated_weights
from kstonet.estimators.probabilities import ClassificationIntervals
from kstonet.scaling import Scaler
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead


class RegressionTask(MultiOutputMixin, RegressorMixin, RegressionIntervals):
    """One or several numeric targets."""

    @tears_down_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : array-like of shape (n_samples,), optional
        X_val, y_val : array-like, optional
            Rows to watch: their loss and score enter ``history_``, and ``tol`` looks at them instead of the training rows.

        Returns
        -------
        self
        """
        callbacks = fit_tasks(self, X, y, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        X, y, weights = self._that_count(X, y.astype(np.float64), validated_weights(sample_weight, X))
        with callbacks as tasks, self._tuned(X, y, None, weights):
            X, targets = self._standardised(X, y, weights)
            validation = None
            if _given(X_val, y_val):
                X_val = validate_data(self, X_val, dtype=np.float64, reset=False)
                y_val = check_array(y_val, dtype=np.float64, ensure_2d=False, input_name="y_val")
                check_consistent_length(X_val, y_val)
                if y_val.shape[1:] != y.shape[1:]:
                    raise ValueError(f"y_val has the shape {y_val.shape}, y {y.shape}; they must have the same targets.")
                validation = self._x_scaler.forward(X_val), self._as_outputs(y_val)
            self._train(X, targets, targets, weights, validation, tasks)
        return self

    def _standardised(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Standardised features and targets; the scales are kept."""
        X = self._fit_x_scaler(X, weights)
        self._single_target = y.ndim == 1
        targets = y.reshape(len(y), -1)
        self._y_scaler = Scaler.fit(targets, weights) if self.standardize else Scaler.identity(targets.shape[1])
        return X, self._y_scaler.forward(targets)

    def _as_outputs(self, y: np.ndarray) -> np.ndarray:
        return self._y_scaler.forward(y.reshape(len(y), -1))

    def _as_columns(self, outputs: np.ndarray) -> np.ndarray:
        return outputs

    def _validation_losses(self, X: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        return np.asarray(((self._outputs(X).mean(axis=0) - outputs) ** 2).mean(axis=1))

    def _new_head(self, below: int, outputs: np.ndarray, alpha: float) -> DenseLayer:
        k = outputs.shape[1]
        return DenseLayer(np.zeros((k, below)), np.zeros(k), 1.0, get_activation(self.activation), self.penalty, alpha)

    def _score_outputs(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        spread = ((outputs - outputs.mean(axis=0)) ** 2).sum(axis=0)
        left = ((outputs - prediction) ** 2).sum(axis=0)
        return float(np.mean(1.0 - left / np.where(spread > 0, spread, 1.0)))


class ClassificationTask(ClassifierMixin, ClassificationIntervals):
    """Two or more classes, labels of any type."""

    @tears_down_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            Labels of any type.
        sample_weight : array-like of shape (n_samples,), optional
        X_val, y_val : array-like, optional
            Rows to watch: their loss and score enter ``history_``, and ``tol`` looks at them instead of the training rows.

        Returns
        -------
        self
        """
        callbacks = fit_tasks(self, X, y, sample_weight)
        X, y = validate_data(self, X, y, dtype=np.float64)
        check_classification_targets(y)
        X, y, weights = self._that_count(X, y, validated_weights(sample_weight, X))
        self.classes_ = LabelEncoder().fit(y).classes_
        if len(self.classes_) < 2:
            where = "" if weights is None else " where sample_weight is positive"
            raise ValueError(f"y holds one class only{where}, {self.classes_[0]!r}; a classifier needs at least two classes.")
        with callbacks as tasks, self._tuned(X, y, self._as_outputs(y), weights):
            X, codes = self._standardised(X, y, weights)
            validation = None
            if _given(X_val, y_val):
                X_val = validate_data(self, X_val, dtype=np.float64, reset=False)
                check_consistent_length(X_val, y_val)
                unknown = set(np.asarray(y_val).tolist()) - set(self.classes_.tolist())
                if unknown:
                    raise ValueError(f"y_val holds {sorted(map(str, unknown))}, which y does not; the classes are those of y.")
                validation = self._x_scaler.forward(X_val), self._as_outputs(np.asarray(y_val))
            self._train(X, codes, self._as_columns(codes), weights, validation, tasks)
        return self

    def _standardised(self, X: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Standardised features and class codes; scale and classes are kept."""
        X = self._fit_x_scaler(X, weights)
        self.classes_ = LabelEncoder().fit(y).classes_
        self.calibration_temperature_ = 1.0
        return X, self._as_outputs(y)

    def _as_outputs(self, y: np.ndarray) -> np.ndarray:
        return np.asarray(LabelEncoder().fit(self.classes_).transform(y))

    def _as_columns(self, outputs: np.ndarray) -> np.ndarray:
        return np.asarray(np.eye(len(self.classes_))[outputs])

    def _validation_losses(self, X: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        return np.asarray(-np.log(np.maximum(self._proba(X)[np.arange(len(X)), outputs], 1e-12)))

    def _new_head(self, below: int, outputs: np.ndarray, alpha: float) -> CategoricalHead:
        k = len(self.classes_)
        rows = 1 if k == 2 else k
        return CategoricalHead(
            np.zeros((rows, below)), np.zeros(rows), k, 1.0, get_activation(self.activation), self.penalty, alpha
        )

    def _score_outputs(self, prediction: np.ndarray, outputs: np.ndarray) -> float:
        return float(np.mean(prediction.argmax(axis=1) == outputs))


def _given(X_val: Any, y_val: Any) -> bool:
    if (X_val is None) != (y_val is None):
        missing, there = ("X_val", "y_val") if X_val is None else ("y_val", "X_val")
        raise ValueError(f"{there} is given without {missing}; validation needs both.")
    return X_val is not None
