"""Distributions of targets learned as roots or logarithms: against draws, integrals and what was learned."""

import numpy as np
import pytest
from scipy.integrate import quad

from kstonet.metrics import crps_samples
from kstonet.target_map import MAPS, TargetMap
from kstonet.uncertainty.conformal import ConformalFactor
from kstonet.uncertainty.distribution import PredictiveDistribution
from kstonet.uncertainty.mapped import MappedDistribution

Y = np.random.default_rng(0).lognormal(1.0, 0.8, size=300)
each_map = pytest.mark.parametrize("kind", MAPS)


def mapped(kind, *, df=np.inf, noise=0.06, first=0.02, factor=None, single=True):
    own = TargetMap.of(kind, Y).with_error(np.sqrt(noise))
    z = own.forward(np.array([0.5, 2.0, 6.0]))[:, None]
    parts = {"noise": np.full((3, 1, 1), noise), "first layer": np.full((3, 1, 1), first)}
    return MappedDistribution(PredictiveDistribution(z, parts, single, df, factor), own)


@each_map
@pytest.mark.parametrize("df", [np.inf, 6.0])
def test_moments_and_scores_are_those_of_draws(kind, df):
    d = mapped(kind, df=df)
    draws = d.sample(200_000, random_state=0)
    np.testing.assert_allclose(d.std, draws.std(axis=1), rtol=0.03 if np.isinf(df) else 0.1)
    y = np.array([0.6, 1.5, 8.0])
    expected = np.mean([crps_samples(y[i : i + 1], draws[i : i + 1, :4000]) for i in range(3)])
    assert d.crps(y) == pytest.approx(expected, rel=0.03)
    np.testing.assert_allclose(d.cdf(y), (draws <= y[:, None]).mean(axis=1), atol=0.005)
    np.testing.assert_allclose(d.ppf([0.1, 0.9]), np.quantile(draws, [0.1, 0.9], axis=1).T, rtol=0.02)
    assert sum(d.variance_by_source.values()) == pytest.approx(d.std**2)
    assert d.covariance.shape == (3, 1, 1)


@each_map
def test_the_density_is_the_derivative_of_the_distribution_function(kind):
    d = mapped(kind, df=5.0)
    y, step = np.array([0.6, 1.5, 8.0]), 1e-5
    np.testing.assert_allclose(np.exp(d.logpdf(y)), (d.cdf(y + step) - d.cdf(y - step)) / (2 * step), rtol=1e-5)
    mass = quad(lambda value: np.exp(d.logpdf(np.full(3, value)))[0], 1e-9, 60.0, limit=400, points=[0.05, 0.5, 2.0])[0]
    assert mass + np.exp(d.logpdf(np.zeros(3)))[0] == pytest.approx(1.0, abs=2e-3)
    assert np.isneginf(d.logpdf(np.full(3, -1.0))).all()
    assert (d.cdf(np.full(3, -1.0)) == 0).all()
    assert d.nll(y) == pytest.approx(-d.logpdf(y).mean())


@each_map
def test_intervals_are_those_of_what_was_learned_put_back(kind):
    scores = np.linspace(0.1, 3.0, 60)[:, None]
    d = mapped(kind, factor=ConformalFactor(scores))
    bounds = d.interval([0.5, 0.9])
    np.testing.assert_allclose(bounds, d.map.backward(d.plain.interval([0.5, 0.9])))
    assert bounds.shape == (3, 2, 2)
    assert (bounds[:, 0] >= 0).all()
    few = mapped(kind, factor=ConformalFactor(scores[:3])).interval(0.95)
    np.testing.assert_array_equal(few, [[0.0, np.inf]] * 3)  # too few scores for 95 %
    np.testing.assert_array_equal(d.uncalibrated.interval(0.9), mapped(kind).interval(0.9))


@each_map
def test_confidence_is_about_the_mean(kind):
    d = mapped(kind)
    narrow = d.of_mean
    low, high = narrow.interval(0.95).T
    assert (low < d.mean).all() and (d.mean < high).all()  # noqa: PT018
    np.testing.assert_allclose(narrow.mean, d.mean)
    assert (narrow.std < d.std).all()
    np.testing.assert_allclose(narrow.cdf(d.mean), 0.5, atol=1e-9)


def test_shapes_of_one_column_and_of_some_rows():
    d = mapped("log", single=False)
    assert d.mean.shape == d.std.shape == (3, 1)
    assert d.interval(0.9).shape == (3, 1, 2)
    some = d.take(np.array([2, 0]), None)
    np.testing.assert_allclose(some.mean, d.mean[[2, 0]])
    with pytest.raises(ValueError, match="a region is for several targets"):
        d.region()
    with pytest.raises(ValueError, match="q=2"):
        d.ppf(2)
