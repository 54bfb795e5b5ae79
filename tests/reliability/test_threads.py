"""Eight threads fit and predict at once: the same results as one after the other."""

import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetRegressor

THREADS = 8
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=60)
SHORT: dict[str, Any] = {"max_iter": 3, "n_average": 2, "random_state": 0}
MODELS = (
    lambda: KStoNetRegressor(tuning="none", **SHORT).fit(X, Y),
    lambda: KStoNetClassifier(tuning="none", **SHORT).fit(X, Y > 0),
    lambda: KStoNetRegressor(n_jobs=1, residuals=None, **SHORT).fit(X, Y),  # intervals of few rows would choose ten times more
    lambda: StoNetRegressor(**SHORT).fit(X, Y),
)


def answers(model: Any) -> bytes:
    if hasattr(model, "predict_proba"):
        found = model.predict_proba(X)
    else:
        found = model.predict(X) if model.residuals is None else model.predict_interval(X)
    return bytes(np.ascontiguousarray(found).tobytes())


@pytest.mark.usefixtures("few_folds")
def test_eight_threads_fit_and_predict() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [answers(make()) for make in MODELS]
        shared = MODELS[0]()
        with ThreadPoolExecutor(THREADS) as pool:
            fitted = list(pool.map(lambda k: answers(MODELS[k % len(MODELS)]()), range(THREADS)))
            predicted = list(pool.map(lambda _: answers(shared), range(2 * THREADS)))
    assert fitted == [expected[k % len(MODELS)] for k in range(THREADS)]
    assert set(predicted) == {expected[0]}


def test_a_fit_with_threads_leaves_the_filters_of_warnings_alone() -> None:
    """They belong to the process: threads that set and restore them would lose those of the user, or of each other."""
    rows, targets = np.random.default_rng(1).normal(size=(250, 3)), np.random.default_rng(2).normal(size=250)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "something", UserWarning, "somewhere")
        before = list(warnings.filters)
        KStoNetRegressor(n_jobs=3, residuals=None, **SHORT).fit(rows, targets + rows[:, 0])
        assert list(warnings.filters) == before
