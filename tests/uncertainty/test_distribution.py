"""Predictive distributions, conformal factors and the noise model."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from kstonet.uncertainty.conformal import ConformalFactor, NormalFactor
from kstonet.uncertainty.distribution import NOISE, PredictiveDistribution
from kstonet.uncertainty.moments import FIRST_LAYER
from kstonet.uncertainty.noise_model import NoiseModel


def example(k, n=4, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, n, k, k))
    parts = {NOISE: root[0] @ root[0].swapaxes(1, 2), FIRST_LAYER: root[1] @ root[1].swapaxes(1, 2)}
    return PredictiveDistribution(rng.normal(size=(n, k)), parts, single=k == 1)


def test_one_target_is_scipys_normal():
    d = example(1)
    same = norm(d.mean, d.std)
    y = np.array([0.0, 1.0, -1.0, 2.0])
    np.testing.assert_allclose(d.cdf(y), same.cdf(y))
    np.testing.assert_allclose(d.logpdf(y), same.logpdf(y))
    np.testing.assert_allclose(d.interval(0.9), np.column_stack(same.interval(0.9)))
    np.testing.assert_allclose(d.ppf(0.2), same.ppf(0.2))
    np.testing.assert_allclose(d.ppf([0.5, 0.7])[:, 1], same.ppf(0.7))
    assert d.interval([0.5, 0.9]).shape == (4, 2, 2)
    np.testing.assert_allclose(sum(d.variance_by_source.values()), d.std**2)
    np.testing.assert_allclose(d.of_mean.std**2, d.variance_by_source[FIRST_LAYER])


def test_several_targets():
    d = example(3)
    y = np.ones((4, 3))
    expected = [multivariate_normal(d.mean[i], d.covariance[i]).logpdf(y[i]) for i in range(4)]
    np.testing.assert_allclose(d.logpdf(y), expected)
    assert d.interval(0.9).shape == (4, 3, 2)
    assert d.interval([0.8, 0.9]).shape == (4, 3, 2, 2)
    assert d.ppf([0.1, 0.9]).shape == (4, 3, 2)
    draws = d.sample(200_000, random_state=0)
    assert draws.shape == (4, 3, 200_000)
    for i in range(4):
        np.testing.assert_allclose(np.cov(draws[i]), d.covariance[i], rtol=0.05, atol=0.05 * d.covariance[i].max())


@pytest.mark.parametrize("bad", [0.0, 1.0, 95, [0.5, 1.5]])
def test_bad_levels_are_named(bad):
    with pytest.raises(ValueError, match=r"coverage=.* strictly between 0 and 1"):
        example(1).interval(bad)


def test_conformal_factors_are_the_order_statistics():
    scores = np.array([0.3, 0.1, 0.2, 0.5, 0.4, 0.9, 0.8, 0.7, 0.6])
    factor = ConformalFactor.of(-scores, np.ones(9))
    np.testing.assert_allclose(factor(np.array([0.5, 0.9, 0.1, 0.95])), [0.5, 0.9, 0.1, np.inf])
    two = ConformalFactor.of(np.column_stack([scores, -2 * scores]), np.ones((9, 2)))
    np.testing.assert_allclose(two(np.array([0.5, 0.8])), [[0.5, 1.0], [0.8, 1.6]])
    assert NormalFactor()(np.array(0.95)) == pytest.approx(1.959964, abs=1e-6)


def test_conformal_coverage_is_exact_for_any_distribution():
    """4,000 calibrations with 19 scores of a skewed distribution: P(covered) is 0.9 exactly; four standard errors."""
    rng = np.random.default_rng(0)
    scores = rng.exponential(size=(4000, 20)) ** 2
    hits = [
        new <= ConformalFactor.of(known, np.ones(19))(np.array(0.9))
        for known, new in zip(scores[:, :19], scores[:, 19], strict=True)
    ]
    assert abs(np.mean(hits) - 0.9) < 4 * np.sqrt(0.09 / 4000)


def test_noise_and_scale_are_found_again():
    """20,000 residuals with known noise 0.3 and scale 2.5 (their standard errors are about 0.01 and 0.04)."""
    rng = np.random.default_rng(1)
    first, other = rng.uniform(0.01, 1.0, size=(20_000, 1)), rng.uniform(0.0, 0.1, size=(20_000, 1))
    residuals = rng.normal(size=first.shape) * np.sqrt(0.3 + 2.5 * first + other)
    model = NoiseModel.of_honest(residuals, first, other)
    assert model.covariance[0, 0] == pytest.approx(0.3, abs=0.05)
    assert model.scale[0] == pytest.approx(2.5, abs=0.2)
    doubled = NoiseModel.of_honest(residuals, first, other, np.full(20_000, 2.0))
    assert doubled.scale[0] == pytest.approx(model.scale[0], rel=1e-6)


def test_noise_of_several_targets_keeps_their_correlation():
    rng = np.random.default_rng(2)
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    residuals = rng.multivariate_normal([0, 0], covariance, size=20_000)
    model = NoiseModel.of_honest(residuals, rng.uniform(0.1, 10.0, size=(20_000, 2)), np.zeros((20_000, 2)))
    np.testing.assert_allclose(model.covariance, covariance, rtol=0.1)
    np.testing.assert_allclose(NoiseModel.of_training(residuals).covariance, residuals.T @ residuals / 20_000)


def test_exact_fits_have_no_noise():
    model = NoiseModel.of_honest(np.zeros((5, 1)), np.ones((5, 1)), np.zeros((5, 1)))
    assert model.covariance[0, 0] == 0.0
