"""Regression: one or several numeric targets, with standard deviations, intervals, quantiles and distributions."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted

from kstonet._checks import both_or_neither, check_not_negative, check_numbers, require
from kstonet.estimators.base import RESIDUALS, BaseStoNet
from kstonet.estimators.callbacks import fit_tasks, tears_down_callbacks
from kstonet.problem import Rows
from kstonet.targets import NumericTargets, TargetsKind
from kstonet.uncertainty.distribution import PredictiveDistribution
from kstonet.uncertainty.mapped import MappedDistribution
from kstonet.uncertainty.regions import PredictiveRegion

USUAL_COVERAGE = 0.95
ENOUGH_ROWS = 20  # to see whether they are those of the training


def _say_what_few_rows_allow(n: int) -> None:
    """The ⌈(n + 1)·coverage⌉-th of n scores does not exist for a coverage above n/(n + 1)."""
    needed = int(np.ceil(USUAL_COVERAGE / (1.0 - USUAL_COVERAGE) - 1e-9))
    if n < needed:
        warnings.warn(
            f"calibrate: {n} rows cannot tell more than {n / (n + 1):.0%} intervals; wider ones are infinite. "
            f"{USUAL_COVERAGE:.0%} intervals need {needed} rows; calibrate() without rows goes back to those of fit.",
            UserWarning,
            stacklevel=3,
        )


class RegressionTask(MultiOutputMixin, RegressorMixin, BaseStoNet):
    """What both regressors are asked."""

    _residuals_known = ("local", *RESIDUALS)

    def _targets(self) -> TargetsKind:
        return NumericTargets

    @tears_down_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. Missing values are NaN; columns of a data frame may hold truth values and categories.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.
        X_val, y_val : array-like, optional
            Validation rows: their loss and score enter ``history_``, and ``tol`` refers to them instead of the training rows.

        Returns
        -------
        self
        """
        callbacks = fit_tasks(self, X, y, sample_weight)
        X, y = self._learn(X, y, sample_weight, multi_output=True, y_numeric=True)
        rows = self._rows(X, y.astype(np.float64), sample_weight)
        validation = None
        if both_or_neither(X_val, y_val, ("X_val", "y_val"), "validation"):
            X_val = self._read(X_val)
            y_val = check_array(y_val, dtype=np.float64, ensure_2d=False, input_name="y_val")
            check_consistent_length(X_val, y_val)
            if y_val.shape[1:] != y.shape[1:]:
                raise ValueError(f"y_val has the shape {y_val.shape}, y {y.shape}; they must have the same targets.")
            validation = Rows(X_val, y_val)
        with callbacks as tasks:
            self._train(rows, validation, tasks)
        return self

    def predict(self, X: Any, return_std: bool = False, return_cov: bool = False) -> Any:
        """Predict, averaged over the last ``n_average`` iterations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
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
        X = self._check_X(X)
        return self._network.mean(X)

    def predict_dist(self, X: Any, order: int = 1) -> PredictiveDistribution | MappedDistribution:
        """The predictive distribution of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        order : {1, 2}, default=1
            Order of the Taylor expansion through the activations; the paper's is 1. The mean is that of :meth:`predict` for 1
            only.

        Returns
        -------
        PredictiveDistribution or MappedDistribution
            The latter where the target was learned as its square root or logarithm (``target_transform``); both answer the
            same questions.
        """
        if order not in (1, 2):
            raise ValueError(f"order={order!r} must be 1 or 2.")
        X = self._check_X(X)
        return self._network.distribution(X, order)

    def predict_interval(self, X: Any, coverage: Any = 0.95, kind: str = "prediction", *, groups: Any = None) -> np.ndarray:
        """Intervals for new observations, or for their mean.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        coverage : float or sequence of float, default=0.95
            Probability with which an interval is to cover.
        kind : {"prediction", "confidence"}, default="prediction"
            "prediction" covers a new observation, "confidence" its mean: without the noise.
        groups : array-like of shape (n_samples,), optional
            The groups of the rows, after a calibration by groups: see :meth:`calibrate`.

        Returns
        -------
        ndarray of shape (n_samples, 2), or (n_samples, 2, n_levels) for a sequence of coverages; several targets have an axis
        of their own after the first
        """
        X = self._check_X(X)
        return self._network.interval(X, coverage, kind, None if groups is None else _groups(groups, len(X)))

    def predict_region(self, X: Any, coverage: Any = 0.95, *, groups: Any = None) -> PredictiveRegion:
        """Joint regions for all targets of new observations: ellipsoids, of the shape of the predicted covariance.

        Intervals cover each target on its own; a region holds all targets of a row at once. Its radius is the conformal
        quantile of the Mahalanobis distances of out-of-sample errors, or of the rows that :meth:`calibrate` was given. With
        ``residuals="training"`` it is that of the predictive distribution.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict, by a model of several targets.
        coverage : float or sequence of float, default=0.95
            Probability with which a region is to hold all targets.
        groups : array-like of shape (n_samples,), optional
            The groups of the rows, after a calibration by groups: see :meth:`calibrate`.

        Returns
        -------
        PredictiveRegion
            With ``contains(y)``, ``volume``, ``bounds`` (the box around it) and ``boundary()`` for a picture.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 2))
        >>> Y = X + rng.multivariate_normal([0, 0], [[0.1, 0.09], [0.09, 0.1]], size=200)
        >>> region = KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(X, Y).predict_region(X, 0.9)
        >>> region.contains(Y).shape, bool(region.contains(Y).mean() > 0.85), region.volume.shape
        ((200,), True, (200,))
        """
        X = self._check_X(X)
        return self.trained_.region(X, coverage, None if groups is None else _groups(groups, len(X)))

    def predict_quantiles(self, X: Any, quantiles: Any = (0.05, 0.5, 0.95)) -> np.ndarray:
        """Quantiles of new observations, shape (n_samples, n_quantiles) or (n_samples, n_targets, n_quantiles)."""
        return self.predict_dist(X).ppf(quantiles)

    def predict_var(self, X: Any) -> np.ndarray:
        """Variance of new observations, shape (n_samples,) or (n_samples, n_targets)."""
        return np.asarray(self.predict_dist(X).std ** 2)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> np.ndarray:
        """Draw new observations, shape (n_rows, n_samples) or (n_rows, n_targets, n_samples)."""
        return self.predict_dist(X).sample(n_samples, random_state)

    def calibrate(self, X: Any = None, y: Any = None, *, weight: Any = None, groups: Any = None) -> Self:
        """Calibrate the intervals by conformal prediction, with rows the model was not fitted on.

        The half-width of an interval is the predicted standard deviation times a quantile of the scores abs(y - mean)/std.
        ``fit`` takes the scores from out-of-sample predictions of the training rows; that needs no extra data but has no exact
        guarantee. The scores of the rows given here replace them; without rows, those of ``fit`` come back.

        Parameters
        ----------
        X, y : array-like, optional
            Rows the model was not fitted on: split conformal prediction, with its finite-sample guarantee whatever the
            distribution of the errors.
        weight : array-like of shape (n_samples,), optional
            How much more often a row like this one will occur among new rows than among these, up to a factor: the ratio of the
            densities of X where it has shifted, known or estimated; or weights that fall with the age of the rows of a series.
            Weighted conformal prediction: coverage holds for the new distribution of X, with symmetric intervals.
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, numbers or strings (Mondrian conformal prediction). ``predict_interval(X, groups=...)`` then
            covers within every group; a group of fewer than coverage/(1 - coverage) rows has infinite intervals, and one that
            is not among these has those of all rows together.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if both_or_neither(X, y):
            X, y = self._new_rows(X, y)
            self._refuse_training_rows(X)
            _say_what_few_rows_allow(len(X))
            weight = None if weight is None else _calibration_weights(weight, len(X))
            groups = None if groups is None else _groups(groups, len(X))
        elif weight is not None or groups is not None:
            name = "groups" if weight is None else "weight"
            raise ValueError(f"{name} is given without rows: {name} belongs to the rows X and y of a calibration.")
        found = self._network.calibrated(X, y, weight, groups).calibration
        self.trained_ = replace(self.trained_, calibration=found)
        return self

    def update(self, X: Any, y: Any, *, step: Any = "auto") -> Self:
        """Adapt the intervals to rows of a series, as they arrive: adaptive conformal inference.

        The network stays as it is. After every row the probability of a miss that the next intervals are made for rises a
        little if the row was inside its interval, and falls if it was missed; the row's score joins the last 500 that the
        quantiles are taken from. So the share of rows that are covered approaches the nominal one also where the series drifts
        or its noise changes, for intervals of every coverage, quantiles and regions. An interval may be infinite for some rows
        after many misses in a row. :meth:`calibrate` without rows goes back to the intervals of ``fit``.

        Parameters
        ----------
        X, y : array-like
            One row or several in the order of time, none of them used before; predict them first.
        step : float or "auto", default="auto"
            How fast intervals adapt, between 0 and 1: 0.005 (steady) to 0.1 (fast) are usual. "auto" weighs eight steps by
            their success. Another step than before begins at the nominal probabilities.

        Returns
        -------
        self

        References
        ----------
        Gibbs and Candès (2021), Adaptive conformal inference under distribution shift; Gibbs and Candès (2024), Conformal
        inference for online prediction with arbitrary distribution shifts.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> rng = np.random.default_rng(0)
        >>> x = rng.uniform(-2, 2, size=(300, 1))
        >>> y = np.sin(x[:, 0]) + np.where(np.arange(300) < 200, 0.1, 0.5) * rng.normal(size=300)
        >>> model = KStoNetRegressor(tuning="none", max_iter=3, random_state=0).fit(x[:150], y[:150])
        >>> widths = []
        >>> for t in range(150, 300):
        ...     low, high = model.predict_interval(x[[t]], 0.9)[0]
        ...     widths.append(high - low)
        ...     model = model.update(x[[t]], y[[t]])
        >>> bool(np.mean(widths[-20:]) > 2 * np.mean(widths[:40]))
        True
        """
        check_is_fitted(self)
        require("step", step, lambda v: v == "auto" if isinstance(v, str) else 0 < v < 1, "'auto' or a number between 0 and 1")
        X, y = self._new_rows(X, y)
        if len(X) >= ENOUGH_ROWS:  # single rows may be as others by chance
            self._refuse_training_rows(X, "update")
        self.trained_ = self.trained_.updated(X, y, step)
        return self

    def _new_rows(self, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Rows with the targets that were observed for them, as many as the model has."""
        y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
        check_consistent_length(X, y)
        X = self._check_X(X)
        targets = self.trained_.targets.n_outputs
        if y.size != len(X) * targets or y.ndim > 2:
            raise ValueError(f"y has shape {y.shape}; the model has {targets} target(s) and X {len(X)} rows.")
        return X, y


def _calibration_weights(weight: Any, n: int) -> np.ndarray:
    """One weight per calibration row, not negative and not all zero."""
    weights = check_numbers("weight", weight)
    check_not_negative("weight", weights, "a row cannot occur less than never")
    if weights.shape != (n,) or not weights.any():
        raise ValueError(f"weight has shape {weights.shape}; it must be ({n},), one number per row of X, not all of them zero.")
    return weights


def _groups(groups: Any, n: int) -> np.ndarray:
    """One label per row; labels of any type but numbers become strings."""
    labels = np.asarray(groups)
    if labels.shape != (n,):
        raise ValueError(f"groups has shape {labels.shape}; it must be ({n},), one group per row of X.")
    return labels if labels.dtype.kind in "biuf" else labels.astype(str)
