"""Rows whose features come from elsewhere: calibration with weights covers them, calibration without does not."""

import numpy as np
import pytest

from kstonet import StoNetRegressor
from kstonet.metrics import coverage

SHIFT = 0.7  # of the mean of a normal feature, which says how large the noise is
FAST = {"max_iter": 3, "n_average": 1, "n_imputation_steps": 5, "residuals": "crossfit", "random_state": 0}


def drawn(n, rng, shift=0.0):
    """A straight line along one feature, with noise that grows along another one."""
    X = rng.normal(loc=(0.0, shift), size=(n, 2))
    return X, X[:, 0] + np.exp(0.5 * X[:, 1]) * rng.normal(size=n)


@pytest.fixture(scope="module")
def model():
    return StoNetRegressor((3,), **FAST).fit(*drawn(300, np.random.default_rng(0)))


def test_weights_are_those_of_weighted_conformal_prediction(model):
    """The smallest score whose rows, and those below it, have a share of the weight of all and of a new row.

    Tibshirani, Barber, Candès & Ramdas (2019); the weight of a new row is its mean, that of the squared weights.
    """
    rng = np.random.default_rng(1)
    X, y = drawn(400, rng)
    weight = np.exp(SHIFT * X[:, 1])
    mean, std = model.predict(X, return_std=True)
    scores = np.abs(y - mean) / std
    order = np.argsort(scores)
    own = weight / weight.mean()
    for level in (0.5, 0.8, 0.9):
        reached = np.searchsorted(np.cumsum(own[order]), level * (len(y) + np.mean(own**2)))
        expected = scores[order][reached] * std
        found = model.calibrate(X, y, weight=weight).predict_interval(X, level)
        np.testing.assert_allclose((found[:, 1] - found[:, 0]) / 2, expected, rtol=1e-6)
        model.calibrate()


def test_shifted_rows_are_covered_with_the_ratio_of_the_densities(model):
    """Ten calibrations of 2,000 rows, worth 1,200 shifted ones: the mean of ten coverages has a standard error of 0.003."""
    rng = np.random.default_rng(2)
    found = {"weighted": [], "plain": []}
    for _ in range(10):
        (X, y), (new, observed) = drawn(2000, rng), drawn(5000, rng, SHIFT)
        for name, weight in (("weighted", np.exp(SHIFT * X[:, 1])), ("plain", None)):
            found[name].append(coverage(observed, model.calibrate(X, y, weight=weight).predict_interval(new, 0.9)))
    model.calibrate()
    assert abs(np.mean(found["weighted"]) - 0.9) < 4 * 0.003
    assert np.mean(found["plain"]) < 0.85
