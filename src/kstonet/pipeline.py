"""Pipelines whose last step is a K-StoNet, with its intervals.

scikit-learn's ``Pipeline`` forwards ``predict`` and ``predict_proba`` to its last step, and no other method. The one of this
module forwards the others, too, and is a scikit-learn pipeline in everything else.
"""

from __future__ import annotations

from typing import Any, Self

import sklearn.pipeline
from sklearn.utils.validation import check_is_fitted

from kstonet.estimators.display import FittedDisplayMixin
from kstonet.estimators.forwarding import ForwardsIntervals, ForwardsSets

__all__ = ["Pipeline", "make_pipeline"]


class Pipeline(ForwardsIntervals, ForwardsSets, FittedDisplayMixin, sklearn.pipeline.Pipeline):
    """A pipeline that gives the intervals of its last step.

    The parameters are those of :class:`sklearn.pipeline.Pipeline`. To have the intervals of a pipeline that is fitted already,
    hand over its steps: ``kstonet.pipeline.Pipeline(fitted.steps)``.

    Parameters
    ----------
    steps : list of tuples (name, estimator)
        Transformers, and last an estimator of this package, or a search for one such as :class:`KStoNetRegressorCV`.
    transform_input : list of str, default=None
        As in :class:`sklearn.pipeline.Pipeline`.
    memory : str or object with the interface of joblib.Memory, default=None
        Where fitted transformers are kept.
    verbose : bool, default=False
        Whether the time of every step is printed.

    See Also
    --------
    make_pipeline : Names the steps by itself.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.pipeline import Pipeline
    >>> X = np.linspace(-3, 3, 60)[:, None]
    >>> model = KStoNetRegressor(tuning="none", max_iter=3, random_state=0)
    >>> pipeline = Pipeline([("scale", StandardScaler()), ("model", model)]).fit(X, np.sin(X[:, 0]))
    >>> pipeline.predict_interval(X, coverage=0.9).shape
    (60, 2)
    """

    def _transformed(self, X: Any) -> Any:
        check_is_fitted(self)
        return self[:-1].transform(X) if len(self.steps) > 1 else X

    def _displayed(self) -> Any:
        last = self.steps[-1][1]
        return getattr(last, "best_estimator_", last)

    def _has(self, name: str) -> bool:
        return hasattr(self.steps[-1][1], name)

    def _forward(self, name: str, X: Any, *args: Any, **kwargs: Any) -> Any:
        """The answer of the last step, on rows that the other steps have transformed."""
        return getattr(self.steps[-1][1], name)(self._transformed(X), *args, **kwargs)

    def calibrate(self, X: Any = None, y: Any = None, **params: Any) -> Self:
        """Calibrate the last step with rows that the pipeline was not fitted on; see its own ``calibrate``.

        Parameters
        ----------
        X, y : array-like, optional
            Rows before the transformations, and their targets.
        **params : dict
            ``weight`` and ``groups`` of a regressor.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.steps[-1][1].calibrate(None if X is None else self._transformed(X), y, **params)
        return self

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One record per iteration of the last step."""
        return list(self.steps[-1][1].history_)


def make_pipeline(*steps: Any, memory: Any = None, transform_input: Any = None, verbose: bool = False) -> Pipeline:
    """A pipeline with steps that are named after their classes.

    Parameters
    ----------
    *steps : estimators
        Transformers, and last an estimator of this package.
    memory, transform_input, verbose
        As in :class:`Pipeline`.

    Returns
    -------
    Pipeline

    Examples
    --------
    >>> from sklearn.preprocessing import StandardScaler
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.pipeline import make_pipeline
    >>> [name for name, step in make_pipeline(StandardScaler(), KStoNetRegressor()).steps]
    ['standardscaler', 'kstonetregressor']
    """
    named = sklearn.pipeline.make_pipeline(*steps).steps
    return Pipeline(named, memory=memory, transform_input=transform_input, verbose=verbose)
