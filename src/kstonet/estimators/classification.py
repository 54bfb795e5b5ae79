"""Classification: two or more classes with labels of any type, their probabilities, intervals of these, and calibration."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kstonet._checks import both_or_neither
from kstonet.estimators.base import BaseStoNet
from kstonet.estimators.callbacks import fit_tasks, tears_down_callbacks
from kstonet.estimators.weights import class_weighted, validated_weights
from kstonet.problem import Rows
from kstonet.targets import ClassTargets, OrderedClasses, TargetsKind


def known_classes(rows: Rows) -> ClassTargets:
    """The classes of the rows that count; at least two."""
    known = ClassTargets.of(rows.y if rows.weights is None else rows.y[rows.weights > 0])
    if known.n_outputs < 2:
        where = "" if rows.weights is None else " where sample_weight is positive"
        only = known.classes.tolist()[0]
        raise ValueError(f"y holds one class only{where}, {only!r}; a classifier needs at least two classes.")
    return known


class ClassificationTask(ClassifierMixin, BaseStoNet):
    """What both classifiers are asked."""

    class_weight: Any
    ordinal: Any

    def _targets(self) -> TargetsKind:
        return ClassTargets if self.ordinal is False else OrderedClasses.given(self.ordinal)

    def _row_weights(self, y: np.ndarray, sample_weight: Any, X: np.ndarray) -> np.ndarray | None:
        """Sample weights times class weights."""
        return class_weighted(self.class_weight, y, validated_weights(sample_weight, X))

    @tears_down_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, *, X_val: Any = None, y_val: Any = None) -> Self:
        """Train.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Training rows. Missing values are NaN; columns of a data frame may hold truth values and categories.
        y : array-like of shape (n_samples,)
            Their labels, of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows, multiplied by ``class_weight``. They act on the loss of every layer as repeated rows do; a row
            of weight zero takes no part.
        X_val, y_val : array-like, optional
            Validation rows: their loss and score enter ``history_``, and ``tol`` refers to them instead of the training rows.

        Returns
        -------
        self
        """
        callbacks = fit_tasks(self, X, y, sample_weight)
        X, y = self._learn(X, y, sample_weight)
        check_classification_targets(y)
        rows = self._rows(X, y, self._row_weights(y, sample_weight, X))
        known = known_classes(rows)
        validation = None
        if both_or_neither(X_val, y_val, ("X_val", "y_val"), "validation"):
            X_val, y_val = self._read(X_val), np.asarray(y_val)
            check_consistent_length(X_val, y_val)
            unknown = set(y_val.tolist()) - set(known.classes.tolist())
            if unknown:
                raise ValueError(f"y_val holds {sorted(map(str, unknown))}, which y does not; the classes are those of y.")
            validation = Rows(X_val, y_val)
        with callbacks as tasks:
            self._train(rows, validation, tasks)
        return self

    @property
    def classes_(self) -> np.ndarray:
        """The labels of the classes, sorted."""
        targets = self.trained_.targets
        assert isinstance(targets, ClassTargets)
        return targets.classes

    @property
    def calibration_temperature_(self) -> float:
        """Divides the logits; at least one after ``fit``, unless probabilities have a floor."""
        return self.trained_.temperature

    @property
    def calibration_floor_(self) -> np.ndarray | None:
        """The least probability of every class, where a share of the labels is wrong at random; else None."""
        return self.trained_.tempering.floor

    @property
    def logit_variance_scale_(self) -> float:
        """Multiplies the variance of the logits in intervals of probabilities."""
        return self.trained_.variance_scale

    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities, averaged over the last ``n_average`` iterations and tempered; rows sum to one.

        With the averaged p, they are p^(1/T), renormalised. T is ``calibration_temperature_``: ``fit`` learns it from
        out-of-sample predictions of the training rows (see :meth:`calibrate`). It is one with ``residuals="training"`` or None.
        Where these predictions show that a share e of the labels is wrong at random, the probabilities are multiplied by 1 - e
        and added to ``calibration_floor_``, e times the frequencies of the classes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        X = self._check_X(X)
        return self._network.proba(X)

    def predict_log_proba(self, X: Any) -> np.ndarray:
        """Logarithms of :meth:`predict_proba`, finite where a probability is too small for a number.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        X = self._check_X(X)
        return self._network.log_proba(X)

    def decision_function(self, X: Any) -> np.ndarray:
        """Log-odds of the second of two classes; of more classes one score each, the largest for the predicted class.

        The scores of three or more classes are logarithms of :meth:`predict_proba` whose mean over the classes is zero, so that
        their softmax is :meth:`predict_proba`.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.

        Returns
        -------
        ndarray of shape (n_samples,) for two classes, (n_samples, n_classes) for more
        """
        log_p = self.predict_log_proba(X)
        if log_p.shape[1] == 2:
            return np.asarray(log_p[:, 1] - log_p[:, 0])
        return np.asarray(log_p - log_p.mean(axis=1, keepdims=True))

    def predict(self, X: Any) -> np.ndarray:
        """The most probable class of every row."""
        winners = self.predict_proba(X).argmax(axis=1)
        return np.asarray(self.classes_[winners])

    def predict_proba_interval(self, X: Any, coverage: Any = 0.95) -> np.ndarray:
        """Confidence intervals for the class probabilities.

        The variance of the logits comes from the recursion of the paper's Section 5; the delta method gives that of
        the log-odds log(p/(1-p)) of every class, whose interval is transformed back. Where the first layer has a squared loss,
        its part is that of a Gaussian process with the noise of the labels, and the deviation grows where a class is certain:
        an interval ends where the deviation at the end is too small for it, as Wilson's score interval does. Elsewhere the
        interval is symmetric on the scale of the log-odds (Wald), and the variance is multiplied by ``logit_variance_scale_``,
        which ``fit`` learns by training on labels drawn from the model itself (a parametric bootstrap); with
        ``residuals="training"``, the paper's, it is one. Where there is a floor, the intervals are those of the part above it.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        coverage : float or sequence of float, default=0.95
            Probability with which an interval is to cover.

        Returns
        -------
        ndarray of shape (n_samples, n_classes, 2), or (n_samples, n_classes, 2, n_levels) for a sequence of coverages
        """
        X = self._check_X(X)
        return self._network.proba_interval(X, coverage)

    def predict_set(self, X: Any, coverage: Any = 0.9, class_conditional: bool = False) -> np.ndarray:
        """Sets of classes that hold the true class with a given probability: adaptive prediction sets.

        A class is in the set of a row if the classes that are more probable have together no more than a threshold of the
        probability. The threshold is the conformal quantile of that number for the true classes of rows the model was not
        fitted on: the out-of-sample predictions of ``fit``, which need no extra data but have no exact guarantee, or the rows
        that :meth:`calibrate` was given. Sets are never empty. They hold one class each, and cover more than is asked for,
        where the most probable class is right more often than that.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to predict.
        coverage : float or sequence of float, default=0.9
            Probability with which a set is to hold the true class.
        class_conditional : bool, default=False
            Whether that probability is to hold within each of the classes, with one threshold per class, and not only on
            average over them. Sets are larger; a class with fewer than coverage/(1 - coverage) rows is in every set.

        Returns
        -------
        bool ndarray of shape (n_samples, n_classes), or (n_samples, n_classes, n_levels) for a sequence of coverages
            Whether a class, in the order of ``classes_``, is in the set: ``[model.classes_[row] for row in sets]`` are labels.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from kstonet import KStoNetClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> sets = KStoNetClassifier(max_iter=3, random_state=0).fit(X, y).predict_set(X, coverage=0.9)
        >>> sets.shape, bool(sets[range(150), y].mean() > 0.9)
        ((150, 3), True)
        """
        X = self._check_X(X)
        return self._network.sets(X, coverage, class_conditional)

    def calibrate(self, X: Any = None, y: Any = None) -> Self:
        """Temperature scaling: probabilities p^(1/temperature), renormalised, with the temperature of the best log-likelihood.

        Where the log-likelihood gains by 5 or more, a share of the labels is taken to be wrong at random, and probabilities
        have a floor, ``calibration_floor_``. ``fit`` has done it already with out-of-sample predictions of the training rows;
        without a floor that temperature is at least one. The rows given here replace them; without rows, the calibration of
        ``fit`` comes back. Without a floor the predicted labels stay. On the log-odds scale an interval is divided by the
        temperature; ``logit_variance_scale_`` belongs to the logits before it and stays.

        Parameters
        ----------
        X, y : array-like, optional
            Rows the model was not fitted on.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if both_or_neither(X, y):
            X, y = self._check_X(X), np.asarray(y)
            check_consistent_length(X, y)
            targets = self.trained_.targets
            assert isinstance(targets, ClassTargets)
            unknown = targets.unknown(y)
            if len(unknown):
                raise ValueError(
                    f"y holds {unknown[0]!r}, a class the model was not fitted on; it knows {self.classes_.tolist()}."
                )
        self.trained_ = replace(self.trained_, calibration=self._network.calibrated(X, y).calibration)
        return self
