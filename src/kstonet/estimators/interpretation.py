"""What the estimators say about the data: gradients of predictions, and the importance of the columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from kstonet._checks import require, whole
from kstonet.interpretation import (
    FeatureImportance,
    SufficientReduction,
    feature_importance,
    outer_product,
    sufficient_reduction,
)
from kstonet.interpretation.importance import shares
from kstonet.tables.encoding import TableEncoding
from kstonet.targets import ClassTargets
from kstonet.trained import TrainedNetwork


class InterpretationMixin:
    """Gradients and importances of a trained network, for the columns of X as users know them."""

    trained_: TrainedNetwork
    n_features_in_: int

    def _check_X(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def predict_gradient(self, X: Any) -> np.ndarray:
        """Gradients of the prediction with respect to the columns of X, in closed form and in the units of X.

        Those of a regressor are the gradients of :meth:`predict`, those of a classifier of :meth:`predict_proba`: derivatives
        of the probabilities, which sum to zero over the classes. Averaged iterates, calibration, standardisation, length scales
        and encoded columns are all accounted for. Where the kernel has a kink (such as "matern12" and "laplacian"), the terms
        of a training row are left out at its own place, which is the derivative halfway between the two sides.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to differentiate at.

        Returns
        -------
        ndarray of shape (n_samples, n_encoded), or (n_samples, n_targets or n_classes, n_encoded)
            One derivative for each column that X becomes: the columns of X themselves where all are numbers; otherwise
            ``feature_importance().encoded_names`` names them. That of a category is the slope on its way from 0 to 1.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 2))
        >>> model = KStoNetRegressor(residuals=None, random_state=0).fit(X, np.sin(X[:, 0]))
        >>> model.predict_gradient([[0.0, 0.0]]).round(1) + 0.0
        array([[1., 0.]])
        """
        X = self._check_X(X)
        return self.trained_.gradient(X)

    def feature_importance(self, X: Any = None) -> FeatureImportance:
        """Importance of the columns for the prediction and for every unit, with the uncertainty over the averaged iterates.

        The importance of a column is its standard deviation times the root mean squared derivative of the prediction, divided
        by the sum of these over the columns. A derivative-based sensitivity: it says which columns the *model* moves with,
        without the targets, and shares nothing out between columns that tell the same.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), optional
            Rows to average over. By default some of the training rows, at most 200, which the model keeps.

        Returns
        -------
        FeatureImportance
            ``importances`` and ``std`` for the columns of X, ``units`` for every unit of the first hidden layer, and
            ``encoded_importances`` for the columns that categories become.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> X = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = KStoNetRegressor(residuals=None, random_state=0).fit(X, 3 * X[:, 0] + X[:, 1])
        >>> model.feature_importance().importances.round(2)
        array([0.75, 0.25, 0.  ])
        """
        check_is_fitted(self)
        rows = self._rows_of_training() if X is None else self.trained_.scaler.forward(self._check_X(X))
        names = self._column_names()
        encoding: TableEncoding | None = getattr(self, "encoding_", None)
        encoded = names if encoding is None else encoding.output_names(names)
        return feature_importance(self.trained_, rows, self._owners(), names, encoded)

    def sufficient_directions(self, X: Any, y: Any = None, *, n_directions: int | str = "auto") -> SufficientReduction:
        """The few directions of X through which the prediction follows it: sufficient dimension reduction by gradients.

        They are the leading eigenvectors of the average gradient outer product of the network. d of them are taken to suffice
        where kernel ridge regressions on one or two more have no smaller leave-one-out errors, by a paired test at 1 %.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows to average over, such as the training rows.
        y : array-like, optional
            Their targets, which ``n_directions="auto"`` needs.
        n_directions : int or "auto", default="auto"
            Number of directions; "auto" finds it by the tests.

        Returns
        -------
        SufficientReduction
            ``directions``, ``eigenvalues``, ``tests``, and ``transform`` for rows.

        Examples
        --------
        >>> import numpy as np
        >>> from kstonet import KStoNetRegressor
        >>> X = np.random.default_rng(0).normal(size=(300, 4))
        >>> y = np.sin(X @ [0.6, 0.8, 0.0, 0.0])
        >>> model = KStoNetRegressor(residuals=None, random_state=0).fit(X, y)
        >>> reduction = model.sufficient_directions(X, y)
        >>> reduction.n_directions, np.abs(reduction.directions[:, 0]).round(1)
        (1, array([0.6, 0.8, 0. , 0. ]))
        """
        rows = self._check_X(X)
        network = self.trained_
        if n_directions == "auto":
            if y is None:
                raise ValueError("n_directions='auto' tests how many directions suffice and needs the targets y; give them.")
            given = np.asarray(y)
            check_consistent_length(rows, given)
            if isinstance(network.targets, ClassTargets) and len(network.targets.unknown(given)):
                raise ValueError(f"y holds {network.targets.unknown(given)[0]!r}, a class the model was not fitted on.")
            columns = network.targets.judged(network.targets.outputs(given), None)
            return sufficient_reduction(network, network.scaler.forward(rows), columns)
        require("n_directions", n_directions, lambda v: whole(v) and v <= rows.shape[1], "'auto' or at most the columns of X")
        return sufficient_reduction(network, network.scaler.forward(rows), None, int(n_directions))

    @property
    def feature_importances_(self) -> np.ndarray:
        """Importance of every column of X, as :meth:`feature_importance` has it; they sum to one."""
        check_is_fitted(self)
        try:
            rows = self._rows_of_training()
            product = outer_product(self.trained_, rows)
        except (TypeError, ValueError) as error:  # scikit-learn asks whether a model has importances by hasattr
            raise AttributeError(f"feature_importances_ does not exist here: {error}") from error
        covariance = np.atleast_2d(np.cov(rows, rowvar=False, bias=True))
        return shares(product, covariance, self._owners(), self.n_features_in_)

    def _rows_of_training(self) -> np.ndarray:
        sample = self.trained_.sample
        if sample is None:
            raise ValueError("the model keeps no training rows (a kernel matrix was given, or its file is old); give X.")
        return sample

    def _column_names(self) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        return [f"x{j}" for j in range(self.n_features_in_)] if known is None else [str(name) for name in known]

    def _owners(self) -> np.ndarray:
        encoding: TableEncoding | None = getattr(self, "encoding_", None)
        return np.arange(self.n_features_in_) if encoding is None else encoding.owners()
