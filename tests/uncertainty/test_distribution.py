"""Predictive distributions, conformal factors and the noise model."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, multivariate_t, norm, t

from kstonet.layers.moments import FIRST_LAYER
from kstonet.uncertainty.conformal import ConformalFactor, NormalFactor, StudentFactor
from kstonet.uncertainty.distribution import NOISE, PredictiveDistribution
from kstonet.uncertainty.noise_model import NoiseModel


def example(k, n=4, seed=0, df=np.inf):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(2, n, k, k))
    parts = {NOISE: root[0] @ root[0].swapaxes(1, 2), FIRST_LAYER: root[1] @ root[1].swapaxes(1, 2)}
    return PredictiveDistribution(rng.normal(size=(n, k)), parts, single=k == 1, df=df)


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


def test_one_target_is_scipys_t_of_the_same_variance():
    d = example(1, df=4.0)
    same = t(4.0, d.mean, d.std / np.sqrt(2.0))  # t of 4 degrees of freedom has variance 2
    np.testing.assert_allclose(same.std(), d.std)
    y = np.array([0.0, 1.0, -1.0, 2.0])
    np.testing.assert_allclose(d.cdf(y), same.cdf(y))
    np.testing.assert_allclose(d.logpdf(y), same.logpdf(y))
    np.testing.assert_allclose(d.interval(0.9), np.column_stack(same.interval(0.9)))
    np.testing.assert_allclose(d.ppf([0.2, 0.5, 0.99]), np.column_stack([same.ppf(q) for q in (0.2, 0.5, 0.99)]))
    np.testing.assert_allclose(d.of_mean.interval(0.9), np.column_stack(norm(d.mean, d.of_mean.std).interval(0.9)))


def test_several_targets_share_the_size_of_an_error():
    """200,000 draws: a covariance of t with 12 degrees of freedom deviates by less than 1 %; 5 % is five deviations."""
    d, y = example(3, df=12.0), np.ones((4, 3))
    shapes = d.covariance * 10.0 / 12.0
    expected = [multivariate_t(d.mean[i], shapes[i], df=12.0).logpdf(y[i]) for i in range(4)]
    np.testing.assert_allclose(d.logpdf(y), expected)
    draws = d.sample(200_000, random_state=0)
    for i in range(4):
        np.testing.assert_allclose(np.cov(draws[i]), d.covariance[i], rtol=0.05, atol=0.05 * d.covariance[i].max())
    away = np.abs(draws - d.mean[:, :, None]) > 3.0 * d.std[:, :, None]
    together = (away[:, 0] & away[:, 1]).mean()
    assert together > 5 * away[:, 0].mean() * away[:, 1].mean()


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


def test_the_factor_of_t_goes_over_into_the_normal_one():
    levels = np.array([0.5, 0.95])
    np.testing.assert_allclose(StudentFactor(np.inf)(levels), NormalFactor()(levels))
    np.testing.assert_allclose(StudentFactor(1e6)(levels), NormalFactor()(levels), rtol=1e-5)


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
    model = NoiseModel.of_residuals(residuals, np.zeros_like(first), first, other)
    assert model.covariance[0, 0] == pytest.approx(0.3, abs=0.05)
    assert model.scale[0] == pytest.approx(2.5, abs=0.2)
    doubled = NoiseModel.of_residuals(residuals, np.zeros_like(first), first, other, np.full(20_000, 2.0))
    assert doubled.scale[0] == pytest.approx(model.scale[0], rel=1e-6)


def test_noise_of_several_targets_keeps_their_correlation():
    rng = np.random.default_rng(2)
    covariance = np.array([[1.0, 0.8], [0.8, 2.0]])
    residuals, none = rng.multivariate_normal([0, 0], covariance, size=20_000), np.zeros((20_000, 2))
    model = NoiseModel.of_residuals(residuals, none, rng.uniform(0.1, 10.0, size=(20_000, 2)), none)
    np.testing.assert_allclose(model.covariance, covariance, rtol=0.1)
    np.testing.assert_allclose(NoiseModel.of_training(residuals).covariance, residuals.T @ residuals / 20_000)


def test_exact_fits_have_no_noise():
    model = NoiseModel.of_residuals(np.zeros((5, 1)), np.arange(5.0)[:, None], np.ones((5, 1)), np.zeros((5, 1)))
    assert model.covariance[0, 0] <= 1e-300


@pytest.mark.parametrize("df", [4.0, np.inf])
def test_tails_are_found_again(df):
    """20,000 residuals of t with 4 degrees of freedom (found with a standard error of about 0.15), or normal ones."""
    rng = np.random.default_rng(3)
    first = rng.uniform(0.01, 1.0, size=(20_000, 2))
    draws = rng.normal(size=first.shape) if np.isinf(df) else rng.standard_t(df, size=first.shape) * np.sqrt((df - 2) / df)
    model = NoiseModel.of_residuals(draws * np.sqrt(0.3 + 2.5 * first), np.zeros_like(first), first, np.zeros_like(first))
    assert model.df > 50 if np.isinf(df) else abs(model.df - df) < 0.6
    np.testing.assert_allclose(np.diagonal(model.covariance), 0.3, atol=0.06)
    np.testing.assert_allclose(model.scale, 2.5, atol=0.25)


def test_the_likelihood_is_scipys_and_at_its_maximum():
    """With the three priors it says it has; another df, noise, scale or growth is less likely."""
    rng = np.random.default_rng(4)
    first, other = rng.uniform(0.01, 1.0, size=(300, 1)), rng.uniform(0.0, 0.1, size=(300, 1))
    mean = rng.normal(size=(300, 1))
    residuals = rng.standard_t(5, size=(300, 1)) * np.sqrt(0.2 * np.exp(mean) + first)
    model = NoiseModel.of_residuals(residuals, mean, first, other)

    def posterior(noise, scale, df, growth):
        deviation = np.sqrt(noise * np.exp(growth * mean) + scale * first + other)
        likelihood = t.logpdf(residuals, df, scale=deviation * np.sqrt((df - 2) / df)).sum()
        return likelihood + np.log(df) - 0.1 * df - 0.5 * (np.log(scale) / np.log(10)) ** 2 - 0.5 * growth**2

    noise, scale, df, growth = model.covariance[0, 0], model.scale[0], model.df, model.growth[0]
    best = posterior(noise, scale, df, growth)
    for factor in (0.97, 1.03):
        assert posterior(noise * factor, scale, df, growth) < best
        assert posterior(noise, scale * factor, df, growth) < best
        assert posterior(noise, scale, df, growth * factor) < best
    for factor in (0.9, 1.1):
        assert posterior(noise, scale, df * factor, growth) < best


def test_noise_that_grows_with_the_mean_is_found_again():
    """20,000 residuals of two outputs, one whose noise grows and one whose noise shrinks (standard errors about 0.02)."""
    rng = np.random.default_rng(6)
    means, none = rng.normal(size=(20_000, 2)), np.zeros((20_000, 2))
    growth, correlation = np.array([1.5, -0.5]), np.array([[1.0, 0.6], [0.6, 1.0]])
    residuals = rng.multivariate_normal([0, 0], correlation, size=20_000) * np.exp(0.5 * growth * means)
    model = NoiseModel.of_residuals(residuals, means, none, none)
    np.testing.assert_allclose(model.growth, growth, atol=0.08)
    np.testing.assert_allclose(model.covariance, correlation, atol=0.06)
    at = np.array([[0.0, 0.0], [1.0, -1.0], [1e6, -1e6]])
    noise = model.noise(at)
    np.testing.assert_allclose(noise[0], model.covariance)
    np.testing.assert_allclose(np.diagonal(noise[1]), np.diagonal(model.covariance) * np.exp(model.growth * at[1]))
    edge = np.array([[means[:, 0].max(), means[:, 1].min()]])
    np.testing.assert_allclose(noise[2], model.noise(edge)[0])  # outside what was seen it grows no further
    np.testing.assert_allclose(np.diagonal(noise, axis1=1, axis2=2), model.variances(at, 0 * at, 0 * at))


def test_a_scale_that_the_rows_say_nothing_about_is_about_one():
    """Noise of variance one and a first layer whose variance hardly differs between rows, and is small everywhere."""
    rng = np.random.default_rng(5)
    first = rng.uniform(0.9e-4, 1e-4, size=(200, 1))
    model = NoiseModel.of_residuals(rng.normal(size=(200, 1)), np.zeros_like(first), first, np.zeros_like(first))
    assert 0.1 < model.scale[0] < 10


def test_noise_that_grows_is_never_larger_than_the_largest_residual():
    # most means are small, and noise grows quickly among them; a few are thirty times as large
    rng = np.random.default_rng(0)
    means = np.concatenate([rng.normal(0.0, 0.3, 600), rng.uniform(5.0, 9.0, 6)])[:, None]
    residuals = 0.2 * np.exp(2.0 * np.minimum(means, 0.8)) * rng.standard_t(4.0, size=means.shape)
    none = np.zeros_like(means)
    model = NoiseModel.of_residuals(residuals, means, none, none)
    assert model.growth is not None
    assert model.growth[0] > 1.0
    deviation = np.sqrt(model.variances(means, none, none))
    assert deviation.max() <= 1.5 * np.abs(residuals).max()
