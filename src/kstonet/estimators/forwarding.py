"""Methods that pipelines and searches forward to the estimator inside them, with its signatures and docstrings."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from sklearn.utils.metaestimators import available_if

from kstonet.estimators.kstonet import KStoNetClassifier, KStoNetRegressor


def forwarded(method: Callable[..., Any]) -> Any:
    """A method that is handed on, there where the estimator inside has one of its name.

    The class it belongs to says by ``_has(name)`` whether that is so, and answers by ``_forward(name, *args, **kwargs)``.
    """
    name = method.__name__

    def has(model: Any) -> bool:
        return bool(model._has(name))

    @wraps(method)
    def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return self._forward(name, *args, **kwargs)

    return available_if(has)(forward)


class ForwardsIntervals:
    """What regressors say of new rows beside a mean."""

    predict_interval = forwarded(KStoNetRegressor.predict_interval)
    predict_dist = forwarded(KStoNetRegressor.predict_dist)
    predict_quantiles = forwarded(KStoNetRegressor.predict_quantiles)
    predict_var = forwarded(KStoNetRegressor.predict_var)
    sample_y = forwarded(KStoNetRegressor.sample_y)


class ForwardsSets:
    """What classifiers say of new rows beside labels and probabilities."""

    predict_proba_interval = forwarded(KStoNetClassifier.predict_proba_interval)
    predict_set = forwarded(KStoNetClassifier.predict_set)
