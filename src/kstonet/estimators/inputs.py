"""Rows as users give them: arrays of numbers, and data frames with missing values and categories, become a matrix.

What the columns of a table hold is learnt in ``fit`` and kept as ``encoding_``; every later table is read in the same way.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import is_classifier
from sklearn.utils import Tags
from sklearn.utils.validation import check_X_y, validate_data

from kstonet._words import readable_bytes
from kstonet.estimators.weights import validated_weights
from kstonet.gram.memory import available_memory
from kstonet.tables.encoding import TableEncoding, columns_of_numbers
from kstonet.tables.frames import columns_of, object_table
from kstonet.tables.roles import Roles
from kstonet.tuning.missing import chosen_encoding

BYTES = 8  # of a number


class TableInputMixin:
    """What the estimators share that take tables of mixed columns."""

    encoding_: TableEncoding

    @property
    def _takes_kernel_values(self) -> bool:
        """Whether the columns of X are kernel values, not features."""
        raise NotImplementedError

    @property
    def _n_encoded(self) -> int:
        """Columns of the matrix that the model is trained on."""
        encoding: TableEncoding | None = getattr(self, "encoding_", None)
        return int(self.n_features_in_) if encoding is None else encoding.n_outputs  # type: ignore[attr-defined]

    def _roles(self, X: np.ndarray, weights: np.ndarray | None) -> Roles | None:
        """What the columns of the matrix of the training rows stand for; rows of weight zero have no say."""
        encoding: TableEncoding | None = getattr(self, "encoding_", None)
        return None if encoding is None else encoding.roles(X if weights is None else X[weights > 0])

    def _learn(self, X: Any, y: Any, sample_weight: Any, **checks: Any) -> tuple[np.ndarray, np.ndarray]:
        """Learn how X is encoded; returns the matrix of the training rows and the targets, both validated.

        ``checks`` are options of :func:`sklearn.utils.validation.check_X_y`.
        """
        self.__dict__.pop("encoding_", None)
        X = dense(X)
        if self._takes_kernel_values:
            return validate_data(self, X, y, dtype=np.float64, **checks)  # type: ignore[no-any-return]
        table = object_table(X)
        if table is None:
            X, y = validate_data(self, X, y, dtype=np.float64, ensure_all_finite="allow-nan", **checks)
            weights = validated_weights(sample_weight, X)
            encoding = TableEncoding.of_numbers(X, weights, getattr(self, "feature_names_in_", None))
            matrix = encoding.encode_numbers(X)
            columns = columns_of_numbers(X)
        else:
            validate_data(self, table, skip_check_array=True)
            columns, weights = columns_of(table), validated_weights(sample_weight, table)
            encoding = TableEncoding.of(columns, weights)
            matrix, y = check_X_y(
                encoding.encode(columns), y, dtype=np.float64, estimator=self, ensure_min_features=0, **checks
            )
        if not encoding.n_outputs:
            raise ValueError("X holds no values: all of them are missing in all columns of the training rows.")
        self.encoding_ = encoding
        if encoding.special:
            self.encoding_ = chosen_encoding(encoding, columns, matrix, _columns(y, is_classifier(self)), weights)
            matrix = np.ascontiguousarray(matrix[:, encoding.kept(self.encoding_)])
            matrix = self.encoding_.complete(matrix, columns)
        return matrix, y

    def _read(self, X: Any) -> np.ndarray:
        """The matrix of rows to predict, validated."""
        encoding: TableEncoding | None = getattr(self, "encoding_", None)
        X = dense(X)
        if encoding is None:  # kernel values, or a model of an older version
            return np.asarray(validate_data(self, X, dtype=np.float64, reset=False))
        X = encoding.arranged(X, getattr(self, "feature_names_in_", None))
        table = object_table(X)
        if table is None:
            X = validate_data(self, X, dtype=np.float64, reset=False, ensure_all_finite="allow-nan")
            return encoding.encode_numbers(X)
        validate_data(self, table, reset=False, skip_check_array=True)
        return encoding.encode(columns_of(table))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        features = not self._takes_kernel_values
        tags.input_tags.pairwise = not features
        tags.input_tags.sparse = True  # made dense: the kernels are functions of all features
        tags.input_tags.allow_nan = features  # like HistGradientBoosting; its checks give "categorical" whole numbers only
        return tags


def dense(X: Any) -> Any:
    """A sparse matrix as an array, if there is memory for it; anything else as it is.

    Examples
    --------
    >>> import scipy.sparse
    >>> dense(scipy.sparse.csr_array([[0.0, 2.0]]))
    array([[0., 2.]])
    """
    if not issparse(X):
        return X
    needed, there = BYTES * math.prod(X.shape), available_memory()
    if needed > there:
        raise ValueError(
            f"X is a sparse matrix of {X.shape[0]:,} rows and {X.shape[1]:,} columns, which is made dense and needs "
            f"{readable_bytes(needed)} then; {readable_bytes(there)} are available. Reduce its columns first, such as with "
            "sklearn.decomposition.TruncatedSVD."
        )
    return X.toarray()


def _columns(y: np.ndarray, classes: bool) -> np.ndarray:
    """Targets as columns of numbers: one for each target, or for each class."""
    return (y[:, None] == np.unique(y)).astype(np.float64) if classes else y.reshape(len(y), -1).astype(np.float64)
