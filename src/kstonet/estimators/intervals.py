"""What a regressor says beside its means: standard deviations, intervals, quantiles, distributions."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.checks import both_or_neither
from kstonet.estimators.scaling import Scaler
from kstonet.iro import IROState
from kstonet.uncertainty.conformal import ConformalFactor, NormalFactor, StudentFactor
from kstonet.uncertainty.cross_fitting import cross_fitted, regression_folds
from kstonet.uncertainty.distribution import NOISE, PredictiveDistribution
from kstonet.uncertainty.moments import FIRST_LAYER, Moments
from kstonet.uncertainty.network import left_out_moments
from kstonet.uncertainty.noise_model import EXACT, NoiseModel


class RegressionIntervals(BaseStoNet):
    """Prediction uncertainty of both regressors."""

    _y_scaler: Scaler
    _single_target: bool
    _noise_model: NoiseModel
    _factor: NormalFactor | StudentFactor | ConformalFactor

    # -- made by fit -------------------------------------------------------------------------------------------------------

    def _prepare_intervals(
        self, states: list[IROState], inputs: Any, outputs: np.ndarray, weights: np.ndarray | None, residuals: str
    ) -> None:
        """Learn the noise and the scale of the first layer's variance from the residuals asked for."""
        super()._prepare_intervals(states, inputs, outputs, weights, residuals)
        fitted = np.mean([state.network.forward(inputs)[-1] for state in states], axis=0)
        self._noise_model = NoiseModel.of_training(outputs - fitted, weights)
        if residuals != "training":
            moments = left_out_moments(self._uncertainty, states, inputs)
            if residuals == "crossfit":
                honest = cross_fitted(states[-1], inputs, outputs, self._settings(), weights, regression_folds(len(outputs)))
                moments = replace(moments, mean=honest)
            self._use_honest(outputs, moments, weights)
        self._factor = StudentFactor(self._noise_model.df) if residuals == "training" else self._honest

    def _use_honest(self, outputs: np.ndarray, moments: Moments, weights: np.ndarray | None) -> None:
        residuals = outputs - moments.mean
        variances = {source: np.diagonal(part, axis1=1, axis2=2) for source, part in moments.parts.items()}
        other = sum(part for source, part in variances.items() if source != FIRST_LAYER)
        rows = moments.mean, variances[FIRST_LAYER], np.asarray(other)
        self._noise_model = NoiseModel.of_honest(residuals, *rows, weights)
        deviations = np.maximum(np.sqrt(self._noise_model.variances(*rows)), EXACT)
        counted = np.ones(len(residuals), dtype=bool) if weights is None else weights > 0
        self._honest = ConformalFactor.of(residuals[counted], deviations[counted], self._noise_model.df)

    # -- asked by users ----------------------------------------------------------------------------------------------------

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict, averaged over the last ``n_average`` iterations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation.
        return_cov : bool, default=False
            Also return the covariance of the targets of a new observation, shape (n_samples, n_targets, n_targets).

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets), or a tuple of it and the standard deviations or covariances
        """
        if return_std and return_cov:
            raise ValueError(
                "return_std=True and return_cov=True exclude each other; the variances are the covariance's diagonal."
            )
        if return_std or return_cov:
            distribution = self.predict_dist(X)
            return distribution.mean, distribution.std if return_std else distribution.covariance
        outputs = self._outputs(self._check_X(X))
        mean = self._y_scaler.backward(outputs.mean(axis=0))
        return mean[:, 0] if self._single_target else mean

    def predict_dist(self, X: Any, order: int = 1) -> PredictiveDistribution:
        """The predictive distribution of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        order : {1, 2}, default=1
            Of the Taylor expansion through the activations; the paper's is 1. The mean is that of :meth:`predict` for 1 only.

        Returns
        -------
        PredictiveDistribution
        """
        if order not in (1, 2):
            raise ValueError(f"order={order!r} must be 1 or 2.")
        moments = self._moments(X, order)
        model, size = self._noise_model, self._y_scaler.scale
        parts = {NOISE: model.noise(moments.mean)} | model.scaled(moments.parts)
        parts = {source: size[:, None] * part * size for source, part in parts.items()}
        return PredictiveDistribution(self._y_scaler.backward(moments.mean), parts, self._single_target, model.df, self._factor)

    def predict_interval(self, X: Any, coverage: Any = 0.95, kind: str = "prediction") -> np.ndarray:
        """Intervals for new observations, or for their mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        coverage : float or sequence of float, default=0.95
        kind : {"prediction", "confidence"}, default="prediction"
            "prediction" covers a new observation, "confidence" its mean: without the noise.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, 2, n_levels) for a sequence of coverages; several targets have an axis
        of their own after the first
        """
        if kind not in ("prediction", "confidence"):
            raise ValueError(f"kind={kind!r} must be 'prediction' or 'confidence'.")
        distribution = self.predict_dist(X)
        return (distribution if kind == "prediction" else distribution.of_mean).interval(coverage)

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of new observations, shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)."""
        return self.predict_dist(X).ppf(quantiles)

    def predict_var(self, X: Any) -> np.ndarray:
        """Variance of new observations, shape (n_samples,) or (n_samples, n_targets)."""
        return np.asarray(self.predict_dist(X).std ** 2)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw new observations, shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)."""
        return self.predict_dist(X).sample(n_samples, random_state)

    def calibrate(self, X: Any = None, y: Any = None) -> Self:
        """Conformal calibration with rows of your own.

        The half-width of an interval is std times a quantile of the scores abs(y - mean)/std of rows the model was not fitted
        on. fit has taken the training rows, predicted without themselves; that needs no extra data but has no exact guarantee.
        Rows of your own replace them; without any they come back.

        Parameters
        ----------
        X, y : array-like, optional
            Rows the model was not fitted on: split conformal prediction, with its finite-sample guarantee whatever the
            distribution of the errors.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        both_or_neither(X, y)
        if X is None:
            if not hasattr(self, "_honest"):
                raise ValueError(
                    f"this fit (residuals={self.residuals!r}) keeps no honest residuals, or was interrupted before it had "
                    "them; give X and y, or fit with residuals='crossfit'."
                )
            self._factor = self._honest
            return self
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        check_consistent_length(X, y)
        distribution = self.predict_dist(X)
        self._factor = ConformalFactor.of(y.reshape(distribution.means.shape) - distribution.means, distribution._deviations)
        return self
