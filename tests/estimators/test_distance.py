"""Intervals of a squared loss grow with the distance from the data; tests/uncertainty has the other loss, and gaps."""

import numpy as np
import pytest

from kstonet import KStoNetRegressor

STATIONARY = ("rbf", "laplacian", "matern12", "matern32", "matern52", "exponential")


@pytest.mark.parametrize("kernel", [*STATIONARY, "linear", "poly"])
def test_intervals_grow_outside_the_training_range(kernel):
    """One feature. The noise may follow the mean, which goes on changing: a step may fall back by half a per cent."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(120, 1))
    y = np.sin(2 * X[:, 0]) + 0.1 * rng.normal(size=120)
    given = {"max_iter": 5, "n_average": 3, "random_state": 0}
    model = KStoNetRegressor(tuning="none", kernel=kernel, loss="squared", **given).fit(X, y)
    width = np.diff(model.predict_interval(np.linspace(2, 6, 30)[:, None]))[:, 0]
    assert (np.diff(width) > -0.005 * width[0]).all()
    if kernel != "linear":  # a straight line of 120 rows is known far beyond them
        assert width[-1] > 1.5 * width[0]
