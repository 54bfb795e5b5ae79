"""Models that are quick to fit, for the tests of the report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.preprocessing import OneHotEncoder

from kstonet import KStoNetClassifier, KStoNetRegressor

FAST = {"max_iter": 12, "n_average": 4, "n_imputation_steps": 5, "random_state": 0}


@pytest.fixture(autouse=True, scope="module")
def _rough(within_few_folds, within_few_steps):
    """Pages show choices and intervals of any quality."""
    with within_few_folds(), within_few_steps():
        yield


def frame_and_target(n, random_state=0):
    """Numbers, categories, a switch, a column with gaps; y depends on the first two and on the category."""
    rng = np.random.default_rng(random_state)
    frame = pd.DataFrame(
        {
            "size": rng.normal(50.0, 10.0, n),
            "age": rng.integers(0, 80, n),
            "kind": rng.choice(["a", "b", "c"], n),
            "new": rng.random(n) < 0.3,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
        }
    )
    y = 0.1 * frame["size"] + np.sin(frame["age"] / 10) + (frame["kind"] == "b") * 2.0 + 0.3 * rng.normal(size=n)
    return frame, pd.Series(y, name="price")


@pytest.fixture(scope="session")
def mixed(within_few_folds):
    """A regressor on encoded columns: model, encode, training and test frames with their targets."""
    frame, y = frame_and_target(320)
    encoder = make_column_transformer((OneHotEncoder(sparse_output=False), ["kind", "new"]), remainder="passthrough").fit(frame)

    def encode(rows):
        return np.nan_to_num(encoder.transform(rows).astype(float))

    with within_few_folds():
        model = KStoNetRegressor(tuning="none", C=1, **FAST).fit(encode(frame[:200]), y[:200])
    return model, encode, (frame[:200], y[:200]), (frame[200:], y[200:])


@pytest.fixture(scope="session")
def numeric(within_few_folds):
    """A regressor on plain arrays: model, X, y, X_test, y_test."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(260, 3))
    y = 2.0 * np.tanh(X[:, 0]) + X[:, 1] + 0.2 * rng.normal(size=260)
    with within_few_folds():
        return KStoNetRegressor(tuning="none", C=1, **FAST).fit(X[:170], y[:170]), X[:170], y[:170], X[170:], y[170:]


@pytest.fixture(scope="session")
def classes(within_few_folds):
    """A classifier of three classes: model, X, y, X_test, y_test."""
    rng = np.random.default_rng(2)
    X = rng.normal(size=(320, 3))
    y = np.array(["one", "three", "two"])[np.argmax(2 * X + rng.gumbel(size=X.shape), axis=1)]
    with within_few_folds():
        return KStoNetClassifier(tuning="none", C=1, **FAST).fit(X[:200], y[:200]), X[:200], y[:200], X[200:], y[200:]
