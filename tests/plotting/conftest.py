"""Data and fitted models that the displays show."""

import pytest
from drawing import FAST
from sklearn.datasets import load_breast_cancer, load_linnerud

from experiments.baselines import DNNRegressor
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True, scope="module")
def _rough_intervals(within_few_folds):
    """Displays show intervals of any quality."""
    with within_few_folds():
        yield


@pytest.fixture(autouse=True)
def _no_figure_survives():
    yield
    plt.close("all")


@pytest.fixture(scope="module")
def data():
    X, y = make_measurement_error(400, random_state=0)
    return X[:150], y[:150], X[150:], y[150:]


@pytest.fixture(scope="module")
def model(data):
    X, y, X_test, y_test = data
    return KStoNetRegressor(tuning="none", **FAST).fit(X, y, X_val=X_test, y_val=y_test)


@pytest.fixture(scope="module")
def several():
    X, Y = load_linnerud(return_X_y=True)
    return KStoNetRegressor(tuning="none", **FAST).fit(X, Y), X, Y


@pytest.fixture(scope="module")
def classifier():
    X, y = load_breast_cancer(return_X_y=True)
    return KStoNetClassifier(tuning="none", **FAST).fit(X[:150], y[:150]), X[150:], y[150:]


@pytest.fixture(scope="module")
def dnn(data):
    X, y, X_test, y_test = data
    return DNNRegressor((4,), max_epochs=8, random_state=0).fit(X, y, X_val=X_test, y_val=y_test)
