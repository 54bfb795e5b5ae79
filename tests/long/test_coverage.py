"""Prediction intervals cover what they say, as a statistic.

Coverage of a new row, averaged over 25 training sets of 300 rows and 1,000 test rows each. Over training sets the standard
deviation is about 0.013, so that of the mean is below 0.003: the bounds (nominal ± 0.02) are wider than the bias we accept
(0.01) by more than three standard errors; a correct build fails less than once in a thousand runs with other seeds.
"""

import os

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import make_friedman1

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage


@pytest.mark.parametrize("C", [1.0, 10.0])
def test_default_intervals_cover(C):
    found = {0.8: [], 0.9: [], 0.95: []}
    for seed in range(25):
        X, y = make_measurement_error(1300, random_state=seed)
        model = KStoNetRegressor(tuning="none", C=C, max_iter=25, random_state=seed).fit(X[:300], y[:300])
        bounds = model.predict_interval(X[300:], list(found))
        for i, level in enumerate(found):
            found[level].append(coverage(y[300:], bounds[:, :, i]))
    for level, values in found.items():
        assert abs(np.mean(values) - level) < 0.02 + 0.01 * (level < 0.95)


def friedman(rng, n):
    """Features, means and the deviation of the noise."""
    X = rng.uniform(size=(n, 8))
    return X, 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3] + 5 * X[:, 4], 2.4


def line(rng, n):
    X = rng.normal(size=(n, 5))
    return X, X @ [1.0, 0.5, 0.0, 0.0, -0.5], 0.7


def noisy(rng, rows, n):
    X, mean, deviation = rows(rng, n)
    return X, mean + deviation * rng.normal(size=n)


@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("rows", [friedman, line])
def test_intervals_of_few_rows_cover(n, rows):
    """Coverage of the first call, KStoNetRegressor(), averaged over 40 training sets (12 in CI) and 400 new rows each.

    Over training sets the coverage of 90 % intervals has a standard deviation of about 0.09 at n = 20 and of 0.05 at n = 100,
    so that its mean has one below 0.015; the bounds are three of these and a bias of 0.01. Before choice and noise were judged
    on rows they had not seen, 90 % intervals covered 81 % at n = 20.
    """
    found = {0.8: [], 0.9: []}
    for seed in range(12 if os.environ.get("CI") else 40):
        rng = np.random.default_rng([seed, n])
        (X, y), (X_new, y_new) = (noisy(rng, rows, size) for size in (n, 400))
        bounds = KStoNetRegressor(random_state=0).fit(X, y).predict_interval(X_new, list(found))
        for i, level in enumerate(found):
            found[level].append(coverage(y_new, bounds[:, :, i]))
    for level, values in found.items():
        assert abs(np.mean(values) - level) < 0.01 + 3 * np.std(values) / np.sqrt(len(values))


def true_coverages(rows, n, sets, **parameters):
    """Of 95 % intervals at 1,000 new rows, from the known distribution there: one for each training set."""
    found = []
    for seed in range(sets):
        rng = np.random.default_rng([seed, n])
        X, y = noisy(rng, rows, n)
        X_new, mean, deviation = rows(rng, 1000)
        low, high = KStoNetRegressor(random_state=seed, **parameters).fit(X, y).predict_interval(X_new, 0.95).T
        found.append(np.mean(np.diff(norm.cdf((np.stack([low, high]) - mean) / deviation), axis=0)))
    return np.array(found)


@pytest.mark.parametrize("n", [150, 300, 500])
@pytest.mark.parametrize("rows", [friedman, line])
def test_intervals_cover_after_the_choice_of_the_first_call(n, rows):
    """Kernels, widths, relevance and C are chosen on the same rows, and 95 % intervals cover 93 to 97 %.

    Over training sets the coverage has a standard deviation of 0.011 to 0.023, the mean of 20 (10 in CI, of 300 rows alone) one
    of 0.006 at most. Means of 40 and more sets are 0.950 to 0.956: a correct build fails less than once in a hundred runs.
    """
    if os.environ.get("CI") and n != 300:
        pytest.skip("in CI, of 300 rows alone")
    assert 0.93 < true_coverages(rows, n, 10 if os.environ.get("CI") else 20).mean() < 0.97


@pytest.mark.skipif(bool(os.environ.get("CI")), reason="a search of 300 rows takes ten seconds")
@pytest.mark.parametrize("parameters", [{"tuning": "thorough"}, {"C": "tune", "gamma": "tune"}], ids=["thorough", "search"])
def test_intervals_cover_after_a_thorough_choice_and_a_search(parameters):
    """Ten training sets of 300 rows, a standard deviation of 0.02 at most: 0.006 of their mean.

    Means of more sets are 0.950 and 0.937: a search is not repeated without some of the rows, and its residuals are a little
    too small. The bounds are three standard errors from that.
    """
    assert 0.92 < true_coverages(friedman, 300, 10, **parameters).mean() < 0.97


@pytest.mark.parametrize("slope", [0.0, 0.1])
def test_intervals_cover_where_hardly_anything_can_be_predicted(slope):
    """Coverage of 95 % intervals of the first call, averaged over 24 tables (8 in CI) of 700 rows and 2,000 new rows each.

    Over tables the coverage has a standard deviation of about 0.01, so that its mean has one below 0.004 in CI: the bounds are
    three of these and a bias of 0.01. Before the local scale knew that means of left-out rows tell their residuals, a third
    of the new rows was covered.
    """
    found = []
    for seed in range(8 if os.environ.get("CI") else 24):
        rng = np.random.default_rng([seed, 700])
        X = rng.normal(size=(2700, 6))
        y = slope * X[:, 0] + rng.normal(size=2700)
        model = KStoNetRegressor(random_state=seed).fit(X[:700], y[:700])
        found.append(coverage(y[700:], model.predict_interval(X[700:], 0.95)))
    assert abs(np.mean(found) - 0.95) < 0.022
    assert min(found) > 0.85


def test_intervals_cover_where_features_are_many():
    """95 % intervals of the first call: coverage averaged over 24 tables (8 in CI) of 700 rows and 60 features.

    Over tables the coverage has a standard deviation of 0.018, its mean one of 0.0065 in CI, and the mean of 16 was 0.953: the
    bounds are three of these and a bias of 0.005. Before the choice was made again without some of the rows, 92 % were covered,
    and of tables with 100 features 80 %.
    """
    found = []
    for seed in range(8 if os.environ.get("CI") else 24):
        X, y = make_friedman1(2700, n_features=60, noise=1.0, random_state=seed)
        model = KStoNetRegressor(random_state=seed).fit(X[:700], y[:700])
        found.append(coverage(y[700:], model.predict_interval(X[700:], 0.95)))
    assert abs(np.mean(found) - 0.95) < 0.0245


@pytest.mark.parametrize("kind", ["multiplied", "counted"])
def test_intervals_of_skewed_targets_cover(kind):
    """95 % intervals of the first call: coverage averaged over 24 training sets (8 in CI) of 300 rows and 2,000 new rows each.

    Targets are learned as logarithms or roots where that is chosen, and the intervals put back. Over training sets the coverage
    has a standard deviation of about 0.015, its mean one of 0.005 in CI: the bounds are three of these and a bias of 0.01.
    """
    found, transforms = [], []
    for seed in range(8 if os.environ.get("CI") else 24):
        rng = np.random.default_rng([seed, 300])
        X = rng.normal(size=(2300, 5))
        signal = X[:, 0] + 0.7 * np.sin(2 * X[:, 1])
        y = np.exp(signal + 0.5 * rng.normal(size=2300)) if kind == "multiplied" else rng.poisson(np.exp(1.5 + 0.7 * signal))
        model = KStoNetRegressor(random_state=seed).fit(X[:300], y[:300])
        transforms.append(model.tuned_["target_transform"])
        found.append(coverage(y[300:], model.predict_interval(X[300:], 0.95)))
    assert abs(np.mean(found) - 0.95) < 0.025
    assert kind == "counted" or transforms.count("log") > 0.6 * len(transforms)
