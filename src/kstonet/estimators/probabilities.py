"""What a classifier says beside its labels: probabilities, their intervals, their calibration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, softmax
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kstonet.estimators.base import BaseStoNet
from kstonet.iro import IROState
from kstonet.solvers.softmax import log_proba
from kstonet.uncertainty.conformal import NormalFactor
from kstonet.uncertainty.cross_fitting import cross_fitted
from kstonet.uncertainty.distribution import probabilities
from kstonet.uncertainty.network import left_out_moments

HOTTEST = 100.0  # bound of the calibration temperature, either way


class ClassificationIntervals(BaseStoNet):
    """Probabilities of both classifiers."""

    classes_: np.ndarray
    calibration_temperature_: float

    def _prepare_intervals(
        self, states: list[IROState], inputs: Any, outputs: np.ndarray, weights: np.ndarray | None, residuals: str
    ) -> None:
        super()._prepare_intervals(states, inputs, outputs, weights, residuals)
        if residuals == "crossfit":
            honest = cross_fitted(states[-1], inputs, outputs, self._settings(), weights)
        elif residuals == "loo":
            honest = left_out_moments(self._uncertainty, states, inputs).mean
        else:
            return
        counted = np.ones(len(outputs), dtype=bool) if weights is None else weights > 0
        self._honest = (honest[counted], outputs[counted])

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, averaged over the last ``n_average`` iterations; rows sum to one.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._proba(self._check_X(X))

    def _proba(self, X: np.ndarray) -> np.ndarray:
        """At standardised rows."""
        outputs = self._outputs(X)
        averaged = np.mean([np.exp(log_proba(logits)) for logits in outputs], axis=0)
        if self.calibration_temperature_ == 1.0:
            return np.asarray(averaged / averaged.sum(axis=1, keepdims=True))
        return np.asarray(softmax(np.log(np.maximum(averaged, 1e-300)) / self.calibration_temperature_, axis=1))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def predict_proba_interval(self, X: Any, coverage: Any = 0.95) -> np.ndarray:
        """Confidence intervals for the class probabilities.

        The variance of the logits comes from the recursion of the paper's Section 5; the delta method gives that of
        the log-odds log(p/(1-p)) of every class, where the interval is symmetric; its end points are transformed back (Wald).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or sequence of float, default=0.95

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2), or (n_samples, n_classes, 2, n_levels) for a sequence of coverages
        """
        levels = probabilities("coverage", coverage)
        moments = self._moments(X)
        deviation = _log_odds_deviation(moments.mean, moments.covariance) / self.calibration_temperature_
        p = np.clip(self.predict_proba(X), 1e-15, 1.0 - 1e-15)
        half = deviation[:, :, None] * NormalFactor()(levels)
        centre = np.log(p / (1.0 - p))[:, :, None]
        bounds = expit(np.stack([centre - half, centre + half], axis=2))
        return np.asarray(bounds if np.ndim(coverage) else bounds[..., 0])

    def calibrate(self, X: Any = None, y: Any = None) -> Self:
        """Temperature scaling: probabilities p^(1/temperature), renormalised, with the temperature of the best log-likelihood.

        Parameters
        ----------
        X, y : array-like, optional
            Rows the model was not fitted on. Without them the training rows are used, predicted without themselves.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if (X is None) != (y is None):
            raise ValueError("calibrate takes X and y together, or neither.")
        if X is None:
            if not hasattr(self, "_honest"):
                raise ValueError(
                    f"this fit (residuals={self.residuals!r}) keeps no honest predictions, or was interrupted before it had "
                    "them; give X and y, or fit with residuals='crossfit'."
                )
            logits, codes = self._honest
            log_p = log_proba(logits)
        else:
            check_consistent_length(X, y)
            codes = np.searchsorted(self.classes_, y)
            if (self.classes_[np.minimum(codes, len(self.classes_) - 1)] != np.asarray(y)).any():
                raise ValueError(f"y holds classes the model was not fitted on; it knows {self.classes_.tolist()}.")
            self.calibration_temperature_ = 1.0
            log_p = np.log(np.maximum(self.predict_proba(X), 1e-300))

        def loss(log_temperature: float) -> float:
            tempered = log_proba(log_p / np.exp(log_temperature))
            return float(-tempered[np.arange(len(codes)), codes].mean())

        bound = np.log(HOTTEST)
        self.calibration_temperature_ = float(np.exp(minimize_scalar(loss, bounds=(-bound, bound), method="bounded").x))
        return self


def _log_odds_deviation(logits: np.ndarray, covariance: np.ndarray) -> np.ndarray:
    """Standard deviation of log(p_k/(1-p_k)) = η_k - logsumexp(the other η) for every class, shape (n, k)."""
    k = logits.shape[1]
    out = np.empty_like(logits)
    for j in range(k):
        rest = [i for i in range(k) if i != j]
        gradient = np.zeros_like(logits)
        gradient[:, j] = 1.0
        gradient[:, rest] = -softmax(logits[:, rest], axis=1)
        out[:, j] = np.sqrt(np.maximum(np.einsum("na,nab,nb->n", gradient, covariance, gradient), 0.0))
    return out
