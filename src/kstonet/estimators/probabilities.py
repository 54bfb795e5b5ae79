"""What a classifier says beside its labels: probabilities, their intervals, their calibration."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from scipy.special import expit, softmax
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.checks import both_or_neither
from kstonet.iro import IROState
from kstonet.solvers.softmax import log_proba
from kstonet.uncertainty.conformal import NormalFactor
from kstonet.uncertainty.cross_fitting import cross_fitted
from kstonet.uncertainty.distribution import probabilities
from kstonet.uncertainty.logits import best_temperature, bootstrap_scale, honest_temperature, log_odds_variance
from kstonet.uncertainty.network import left_out_moments


class ClassificationIntervals(BaseStoNet):
    """Probabilities of both classifiers."""

    classes_: np.ndarray
    calibration_temperature_: float
    logit_variance_scale_: float = 1.0  # where nothing was learnt about it, files of earlier versions included

    def _prepare_intervals(
        self, states: list[IROState], inputs: Any, outputs: np.ndarray, weights: np.ndarray | None, residuals: str
    ) -> None:
        """Learn the temperature of the logits and the scale of their variance from honest predictions."""
        super()._prepare_intervals(states, inputs, outputs, weights, residuals)
        self.calibration_temperature_ = self.logit_variance_scale_ = 1.0
        if residuals == "training":
            return
        settings = self._settings()
        if residuals == "crossfit":
            logits = cross_fitted(states[-1], inputs, outputs, settings, weights)
        else:
            logits = left_out_moments(self._uncertainty, states, inputs).mean
        honest: tuple[np.ndarray, ...] = (logits, outputs)
        if weights is not None:
            honest = tuple(part[weights > 0] for part in (logits, outputs, weights))
        temperature = honest_temperature(*honest)
        fitted = self._uncertainty.moments(self._X_fit)
        scale = bootstrap_scale(states[-1], inputs, fitted, temperature, settings, weights)
        self._honest, self.calibration_temperature_, self.logit_variance_scale_ = honest, temperature, scale

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, averaged over the last ``n_average`` iterations and tempered; rows sum to one.

        With the averaged p, they are p^(1/T), renormalised. T is ``calibration_temperature_``: fit learns it from training rows
        that were hidden in turn (see :meth:`calibrate`). It is one with ``residuals="training"`` or None.

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
        averaged = self._averaged(X)
        if self.calibration_temperature_ == 1.0:
            return averaged
        return np.asarray(softmax(np.log(np.maximum(averaged, 1e-300)) / self.calibration_temperature_, axis=1))

    def _averaged(self, X: np.ndarray) -> np.ndarray:
        """Before the temperature."""
        averaged = np.mean([np.exp(log_proba(logits)) for logits in self._outputs(X)], axis=0)
        return np.asarray(averaged / averaged.sum(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def predict_proba_interval(self, X: Any, coverage: Any = 0.95) -> np.ndarray:
        """Confidence intervals for the class probabilities.

        The variance of the logits comes from the recursion of the paper's Section 5; the delta method gives that of
        the log-odds log(p/(1-p)) of every class, where the interval is symmetric; its end points are transformed back (Wald).
        It is multiplied by ``logit_variance_scale_``, which fit learns by training on labels drawn from the model itself (a
        parametric bootstrap); with ``residuals="training"``, the paper's, it is one.

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
        deviation = np.sqrt(self._log_odds_variance(moments.mean, moments.covariance))
        p = np.clip(self.predict_proba(X), 1e-15, 1.0 - 1e-15)
        half = deviation[:, :, None] * NormalFactor()(levels)
        centre = np.log(p / (1.0 - p))[:, :, None]
        bounds = expit(np.stack([centre - half, centre + half], axis=2))
        return np.asarray(bounds if np.ndim(coverage) else bounds[..., 0])

    def _log_odds_variance(self, logits: np.ndarray, covariance: np.ndarray) -> np.ndarray:
        """Of the tempered log-odds of every class, from the moments of the logits before temperature and scale."""
        temperature = self.calibration_temperature_
        return self.logit_variance_scale_ * log_odds_variance(logits / temperature, covariance) / temperature**2

    def calibrate(self, X: Any = None, y: Any = None) -> Self:
        """Temperature scaling: probabilities p^(1/temperature), renormalised, with the temperature of the best log-likelihood.

        fit has done it already with the training rows, predicted without themselves; that temperature is at least one. Rows of
        your own replace it; without any it comes back. The predicted labels stay. On the log-odds scale an interval is divided
        by the temperature; ``logit_variance_scale_`` belongs to the logits before it and stays, too.

        Parameters
        ----------
        X, y : array-like, optional
            Rows the model was not fitted on.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        both_or_neither(X, y)
        if X is None:
            if not hasattr(self, "_honest"):
                raise ValueError(
                    f"this fit (residuals={self.residuals!r}) keeps no honest predictions, or was interrupted before it had "
                    "them; give X and y, or fit with residuals='crossfit'."
                )
            self.calibration_temperature_ = honest_temperature(*self._honest)
            return self
        check_consistent_length(X, y)
        codes = np.searchsorted(self.classes_, y)
        strange = np.asarray(y)[self.classes_[np.minimum(codes, len(self.classes_) - 1)] != np.asarray(y)]
        if len(strange):
            raise ValueError(f"y holds {strange[0]!r}, a class the model was not fitted on; it knows {self.classes_.tolist()}.")
        log_p = np.log(np.maximum(self._averaged(self._check_X(X)), 1e-300))
        self.calibration_temperature_ = best_temperature(log_p, codes)
        return self
