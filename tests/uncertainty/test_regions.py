"""Joint regions: distances and volumes by hand, coverage as a statistic beside a box of Bonferroni, files, groups."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import betabinom

import kstonet
from kstonet import KStoNetRegressor
from kstonet.uncertainty.conformal import student_radius
from kstonet.uncertainty.distribution import PredictiveDistribution
from kstonet.uncertainty.regions import JointFactor, PredictiveRegion, distances, shrunk

RATE = 1e-4  # of a false alarm, on either side
FAST = {"tuning": "none", "max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "random_state": 0}


def series(n, seed, correlation=0.9, size=0.3):
    """Two targets with correlated noise."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    noise = size * rng.multivariate_normal([0, 0], [[1, correlation], [correlation, 1]], size=n)
    return X, np.column_stack([np.sin(X[:, 0]), 10 * X[:, 1]]) + noise * [1, 10]


@pytest.fixture(scope="module")
def model():
    return KStoNetRegressor(**FAST).fit(*series(400, 0))


def test_distances_and_volumes_by_hand():
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(5, 3, 3))
    covariance, errors = roots @ roots.swapaxes(1, 2), rng.normal(size=(5, 3))
    by_hand = [np.sqrt(e @ np.linalg.inv(c) @ e) for e, c in zip(errors, covariance, strict=True)]
    np.testing.assert_allclose(distances(errors, covariance), by_hand, rtol=1e-9)
    region = PredictiveRegion(np.zeros((5, 3)), covariance, np.full((5, 1), 2.0), single=True)
    ball = 4 / 3 * np.pi * 2.0**3
    np.testing.assert_allclose(region.volume, ball * np.sqrt(np.linalg.det(covariance)), rtol=1e-9)
    np.testing.assert_array_equal(region.contains(errors), np.array(by_hand) <= 2.0)


def test_the_volume_is_that_of_a_monte_carlo_box():
    covariance = np.array([[[2.0, 1.5], [1.5, 3.0]]])
    region = PredictiveRegion(np.array([[1.0, -1.0]]), covariance, np.array([[1.5]]), single=True)
    low, high = region.bounds[0].T
    draws = np.random.default_rng(0).uniform(low, high, size=(40_000, 2))
    many = PredictiveRegion(
        np.tile(region.means, (40_000, 1)), np.tile(covariance, (40_000, 1, 1)), np.full((40_000, 1), 1.5), True
    )
    assert region.volume[0] == pytest.approx(many.contains(draws).mean() * np.prod(high - low), rel=0.02)
    edge = region.boundary(200)[0]
    np.testing.assert_allclose([edge.min(axis=0), edge.max(axis=0)], [low, high], atol=1e-2)


@pytest.mark.parametrize("df", [5.0, np.inf])
def test_the_radius_of_students_t_is_that_of_draws(df):
    d = PredictiveDistribution(np.zeros((1, 3)), {"noise": np.eye(3)[None]}, False, df)
    draws = np.sort(np.linalg.norm(d.sample(200_000, 0)[0], axis=0))
    assert draws[180_000] == pytest.approx(float(student_radius(0.9, df, 3)), rel=0.01)
    assert student_radius(0.9, df, 1) == pytest.approx(float(d.ppf(0.95)[0, 0]))


def test_conformal_radii_cover_whatever_the_covariance():
    """Split conformal prediction: the covered ones of m new rows are beta-binomial."""
    rng = np.random.default_rng(0)
    n, m, level = 499, 5000, 0.9
    errors = rng.standard_t(3, size=(n + m, 2)) @ np.array([[1.0, 0.8], [0.0, 0.6]])
    covariance = np.tile([[2.0, -0.5], [-0.5, 1.0]], (n + m, 1, 1))  # wrong
    joint = JointFactor.of(errors[:n], covariance[:n])
    d = PredictiveDistribution(np.zeros((m, 2)), {"noise": covariance[n:]}, False, joint=joint)
    k = int(np.ceil((n + 1) * level - 1e-9))
    low, high = betabinom(m, k, n + 1 - k).ppf([RATE, 1 - RATE])
    assert low <= d.region(level).contains(errors[n:]).sum() <= high


def test_regions_of_a_model_cover_and_are_smaller_than_a_box(model):
    """4,000 new rows, scores of 400: a standard error of 0.016; the bound is three of them."""
    X, Y = series(4000, 1)
    region = model.predict_region(X, [0.8, 0.9, 0.95])
    covered = region.contains(Y).mean(axis=0)
    assert (np.abs(covered - [0.8, 0.9, 0.95]) < 0.045).all()
    box = model.predict_interval(X, 0.95)  # Bonferroni: 90 % for two targets
    inside = ((box[:, :, 0] <= Y) & (box[:, :, 1] >= Y)).all(axis=1).mean()
    assert inside > 0.87
    assert region.volume[:, 1].mean() < 0.75 * np.prod(box[:, :, 1] - box[:, :, 0], axis=1).mean()
    np.testing.assert_array_equal(model.predict_region(X, 0.9).contains(Y), region.contains(Y)[:, 1])
    assert (np.diff(region.volume, axis=1) > 0).all()


def test_marginal_intervals_do_not_hold_both_targets(model):
    X, Y = series(4000, 2)
    interval = model.predict_interval(X, 0.9)
    inside = ((interval[:, :, 0] <= Y) & (interval[:, :, 1] >= Y)).all(axis=1).mean()
    assert inside < 0.885 < model.predict_region(X, 0.9).contains(Y).mean() + 0.03


def test_the_shape_follows_the_noise(model):
    X, _ = series(50, 3)
    covariance = model.predict_region(X).covariance
    correlation = covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])
    assert 0.75 < np.median(correlation) < 0.95  # at rows among the others; uncertainty of the means has no correlation


def test_targets_that_are_the_same_have_regions():
    X, Y = series(60, 4)
    twice = np.column_stack([Y[:, 0], Y[:, 0], -Y[:, 0]])
    region = KStoNetRegressor(**FAST).fit(X, twice).predict_region(X, 0.9)
    assert np.isfinite(region.volume).all()
    assert region.contains(twice).mean() > 0.8


def test_more_targets_than_rows_say_the_diagonal():
    np.testing.assert_allclose(shrunk(np.ones((1, 2, 2)), 0.4), [[[1, 0.6], [0.6, 1]]])
    errors = np.random.default_rng(0).normal(size=(5, 20))
    joint = JointFactor.of(errors, np.tile(np.cov(errors.T), (5, 1, 1)), df=4.0)
    assert joint.shrinkage == 0.8
    assert np.isfinite(joint.factor(np.array([0.5, 0.99]))).all()


def test_calibration_rows_groups_and_files(model, tmp_path):
    X, _ = series(200, 5)
    before = model.predict_region(X, 0.9).volume
    kstonet.save(model, tmp_path / "before.kstonet")
    loaded = kstonet.load(tmp_path / "before.kstonet")
    np.testing.assert_array_equal(loaded.predict_region(X, 0.9).volume, before)
    wide_X, wide_Y = series(400, 6, size=0.6)
    groups = np.arange(400) % 2
    wide_Y[groups == 1] += 3.0
    loaded.calibrate(wide_X, wide_Y, groups=groups)
    assert (loaded.predict_region(X, 0.9).volume > before).all()
    kstonet.save(loaded, tmp_path / "after.kstonet")
    again = kstonet.load(tmp_path / "after.kstonet")
    zero, one, other = (again.predict_region(X, 0.9, groups=np.full(200, g)).volume for g in (0, 1, 7))
    assert (zero < one).all()
    np.testing.assert_array_equal(other, loaded.predict_region(X, 0.9).volume)
    np.testing.assert_array_equal(loaded.calibrate().predict_region(X, 0.9).volume, before)


def test_input_is_checked(model):
    X, Y = series(20, 7)
    region = model.predict_region(X)
    with pytest.raises(ValueError, match=r"y has shape \(20,\)"):
        region.contains(Y[:, 0])
    with pytest.raises(ValueError, match="coverage=95"):
        model.predict_region(X, 95)
    with pytest.raises(ValueError, match="not calibrated by groups"):
        model.predict_region(X, groups=np.zeros(20))
    with pytest.raises(ValueError, match="a region is for several targets"):
        KStoNetRegressor(**FAST).fit(X, Y[:, 0]).predict_region(X)
    with pytest.raises(ValueError, match="boundary is for two targets"):
        PredictiveRegion(np.zeros((1, 3)), np.eye(3)[None], np.ones((1, 1)), True).boundary()
