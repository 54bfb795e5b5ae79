"""Quantiles and draws, against scikit-learn, loops and integrals."""

from __future__ import annotations

import math

import numpy as np
import pytest
from metric_data import (
    LEVELS,
    Z,
)
from scipy import stats
from sklearn.metrics import d2_pinball_score, mean_absolute_error, mean_pinball_loss

from kstonet.metrics import (
    crps_gaussian,
    crps_samples,
    pinball_loss,
)


def test_pinball_loss_is_that_of_scikit_learn(data):
    y, quantiles, w = data["y"], data["quantiles"], data["weights"]
    options = {"sample_weight": w, "multioutput": "raw_values"}
    losses = [mean_pinball_loss(y, quantiles[..., i], alpha=level, **options) for i, level in enumerate(LEVELS)]
    np.testing.assert_allclose(pinball_loss(y, quantiles, LEVELS, **options), np.mean(losses, axis=0))
    for i, level in enumerate(LEVELS):
        np.testing.assert_allclose(pinball_loss(y, quantiles[..., i], level, **options), losses[i])
        np.testing.assert_allclose(pinball_loss(y, quantiles[..., i : i + 1], [level], **options), losses[i])
        constant = np.broadcast_to(np.quantile(y[:, 0], level), len(y))
        skill = 1 - pinball_loss(y[:, 0], quantiles[:, 0, i], level) / pinball_loss(y[:, 0], constant, level)
        assert skill == pytest.approx(d2_pinball_score(y[:, 0], quantiles[:, 0, i], alpha=level))


def test_pinball_loss_at_many_levels_is_half_the_crps(data):
    y, mean, std = (data[key][:, 0] for key in ("y", "mean", "std"))
    levels = (np.arange(4000) + 0.5) / 4000
    quantiles = mean[:, None] + std[:, None] * stats.norm.ppf(levels)
    assert 2 * pinball_loss(y, quantiles, levels) == pytest.approx(crps_gaussian(y, mean, std), rel=1e-4)


@pytest.mark.parametrize("fair", [False, True])
def test_crps_of_draws_by_brute_force(fair, data):
    y, samples = data["y"], data["samples"]
    m = samples.shape[-1]
    pairs = np.abs(samples[..., :, None] - samples[..., None, :]).sum(axis=(-1, -2)) / (m * (m - fair))
    expected = (np.abs(samples - y[..., None]).mean(axis=-1) - 0.5 * pairs).mean(axis=0)
    np.testing.assert_allclose(crps_samples(y, samples, fair=fair, multioutput="raw_values"), expected, rtol=1e-12)
    np.testing.assert_allclose(crps_samples(y + 1e9, samples + 1e9, fair=fair), expected.mean(), rtol=1e-6)


def test_crps_of_draws_is_the_integral_over_their_steps(data):
    y, samples = data["y"][0, 0], np.sort(data["samples"][0, 0])
    knots = np.sort(np.append(samples, y))
    heights = np.searchsorted(samples, knots[:-1], side="right") / len(samples) - (knots[:-1] >= y)
    assert crps_samples([y], [samples]) == pytest.approx(np.sum(heights**2 * np.diff(knots)))


def test_fair_crps_is_unbiased_and_the_other_is_not():
    """Three draws each: the mean over 40,000 observations, against the exact scores; the bias is std/(√π·m)."""
    rng = np.random.default_rng(6)
    y, draws = rng.normal(size=40_000), 0.5 + 2 * rng.normal(size=(40_000, 3))
    exact, bias = crps_gaussian(y, 0.5, 2.0), 2 / math.sqrt(math.pi) / 3
    error = Z * 2.0 / math.sqrt(40_000)  # one score varies by less than 2
    assert crps_samples(y, draws, fair=True) == pytest.approx(exact, abs=error)
    assert crps_samples(y, draws) == pytest.approx(exact + bias, abs=error)
    assert bias > 3 * error


def test_one_draw_is_the_absolute_error(data):
    y, samples = data["y"], data["samples"][..., :1]
    assert crps_samples(y, samples) == pytest.approx(mean_absolute_error(y, samples[..., 0]))
    with pytest.raises(ValueError, match="samples holds one draw per observation, fair=True needs at least two"):
        crps_samples(y, samples, fair=True)


@pytest.mark.parametrize(
    ("quantiles", "levels", "message"),
    [
        (np.zeros((3, 2)), [0.1, 1.5], r"levels=\[0.1, 1.5\] must lie strictly between 0 and 1"),
        (np.zeros((3, 2)), [0.1], r"quantiles has shape \(3, 2\); .* need \(3, 1\)"),
        (np.zeros((3, 1)), 0.1, r"quantiles has shape \(3, 1\); .* need \(3,\)"),
        (np.zeros((3, 0)), [], r"levels has shape \(0,\)"),
        (np.zeros((3, 1, 1)), [[0.1]], r"levels has shape \(1, 1\)"),
    ],
)
def test_bad_quantiles_are_named(quantiles, levels, message):
    with pytest.raises(ValueError, match=message):
        pinball_loss(np.zeros(3), quantiles, levels)


@pytest.mark.parametrize("samples", [np.zeros(3), np.zeros((2, 3)), np.zeros((3, 0)), np.zeros((3, 2, 2))])
def test_bad_draws_are_named(samples):
    with pytest.raises(ValueError, match=r"samples has shape .*; it must be \(3, m\)"):
        crps_samples(np.zeros(3), samples)
