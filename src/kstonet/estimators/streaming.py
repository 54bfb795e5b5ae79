"""``partial_fit``: rows that come one batch after the other."""

from __future__ import annotations

import warnings
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_array, check_consistent_length

from kstonet.checkpoint import Run
from kstonet.estimators.base import BaseStoNet
from kstonet.stream import Stream
from kstonet.sum_layers import unit_groups


class StreamMixin(BaseStoNet):
    """A regressor with a squared loss on landmarks, which learns from a stream."""

    solver: Any
    _stream: Stream

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from one batch of rows of a stream; no rows are kept.

        The first call trains on its batch as ``fit`` does on all rows, with a squared loss and the landmarks of a low-rank
        Gram: scales, categories, chosen parameters and landmarks stay those of this batch, so it should be representative and
        have a few thousand rows. Every later call is one iteration of Algorithm 1 on its batch, whose sums enter those of all
        rows before with a share that falls with their number (:mod:`kstonet.stream`).

        Batches are predicted before they are learnt from, and intervals are learnt from the last 2,000 of these predictions:
        they exist from the second batch on.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            Rows of the batch.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Weights of the rows.

        Returns
        -------
        self

        Warns
        -----
        UserWarning
            If the model was fitted or loaded, so that it holds no stream to go on with: it is trained anew. ``pickle`` keeps
            a stream.
        """
        stream: Stream | None = getattr(self, "_stream", None)
        trained = getattr(self, "trained_", None)
        if stream is None or stream.model is not trained:
            self._check_parameters()
            if self.checkpoint is not None:
                raise ValueError(
                    f"checkpoint={self.checkpoint!r} keeps the iterations of fit; partial_fit needs checkpoint=None. "
                    "Pickle the model between two batches to go on in another process."
                )
            if trained is not None:
                warnings.warn(
                    "partial_fit cannot go on: the model was fitted or loaded, and holds no stream. It is trained on this "
                    "batch from the start. pickle keeps a stream.",
                    UserWarning,
                    stacklevel=2,
                )
            X, y = self._learn(X, y, sample_weight, multi_output=True, y_numeric=True)
            rows = self._rows(X, y.astype(np.float64), sample_weight)
            if len(np.atleast_1d(self._given("hidden_layer_sizes"))) != 1 or self.sampler != "sghmc":
                raise ValueError("partial_fit needs one hidden layer and sampler='sghmc'; use fit for other networks.")
            problem = self._problem(rows)
            settings = self._with_choice(self._settings(), problem, None, Run())
            problem = problem.mapped(settings.chosen.get("target_transform", "none"))
            self._stream = Stream(problem, settings, unit_groups(problem, settings, self.solver))
        else:
            X = self._read(X)
            y = check_array(y, dtype=np.float64, ensure_2d=False, input_name="y")
            check_consistent_length(X, y)
            stream.update(self._rows(X, y, sample_weight))
        self.trained_ = self._stream.model
        self.__dict__.pop("_X_fit", None)
        return self
