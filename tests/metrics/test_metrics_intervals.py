"""Intervals, by hand and in expectation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from metric_data import (
    EVEN,
    Z,
    properties,
)
from scipy import stats

from kstonet.metrics import (
    coverage,
    mean_width,
    pinball_loss,
    winkler_score,
)


def test_interval_metrics_by_hand(data):
    y, interval = data["y"], data["interval"]
    inside, width, score = [], [], []
    for value, (low, high) in zip(y.ravel(), interval.reshape(-1, 2), strict=True):
        inside.append(low <= value <= high)
        width.append(high - low)
        penalty = low - value if value < low else value - high if value > high else 0.0
        score.append(high - low + 2 / 0.3 * penalty)
    assert coverage(y, interval) == pytest.approx(np.mean(inside))
    assert mean_width(interval) == pytest.approx(np.mean(width))
    assert winkler_score(y, interval, coverage=0.7) == pytest.approx(np.mean(score))


def test_winkler_is_two_pinball_losses(data):
    y, interval = data["y"], data["interval"]
    assert winkler_score(y, interval, 0.8) == pytest.approx(2 / 0.2 * 2 * pinball_loss(y, interval, [0.1, 0.9]))


def test_bounds_belong_to_the_interval():
    assert coverage([1.0, 2.0], [[1.0, 1.0], [0.0, 2.0]]) == 1.0
    assert winkler_score([1.0, 2.0], [[1.0, 1.0], [0.0, 2.0]], 0.9) == 1.0


def test_coverage_of_the_truth():
    """Binomial, 20,000 draws; and the closed form 2·φ(q)·2/(1 - c) of the expected score of the true interval."""
    y, level = np.random.default_rng(5).normal(size=20_000), 0.9
    q = stats.norm.ppf(0.95)
    interval = np.broadcast_to([-q, q], (20_000, 2))
    assert coverage(y, interval) == pytest.approx(level, abs=Z * math.sqrt(level * (1 - level) / 20_000))
    assert winkler_score(EVEN, interval, level) == pytest.approx(4 / (1 - level) * stats.norm.pdf(q), rel=1e-4)


@properties
@given(low=st.floats(-3, 0), high=st.floats(0, 3), level=st.floats(0.05, 0.95))
def test_interval_and_quantile_scores_are_proper(low, high, level):
    tails = [(1 - level) / 2, (1 + level) / 2]
    best, other = (np.broadcast_to(bounds, (len(EVEN), 2)) for bounds in (stats.norm.ppf(tails), [low, high]))
    assert winkler_score(EVEN, best, level) <= winkler_score(EVEN, other, level) + 1e-6
    assert pinball_loss(EVEN, best, tails) <= pinball_loss(EVEN, other, tails) + 1e-6


def test_infinite_intervals_are_honest():
    interval = [[-np.inf, np.inf], [0.0, 1.0]]
    assert coverage([5.0, 5.0], interval) == 0.5
    assert mean_width(interval) == winkler_score([5.0, 0.5], interval, 0.9) == np.inf
    assert mean_width(interval, sample_weight=[0, 1]) == winkler_score([5.0, 0.5], interval, 0.9, sample_weight=[0, 1]) == 1.0


@pytest.mark.parametrize(
    ("interval", "message"),
    [
        (np.zeros((2, 4)), r"interval has shape \(2, 4\); it must be \(4, 2\) to match y_true.*numpy.stack"),
        (np.zeros((4, 1, 2)), r"interval has shape \(4, 1, 2\); it must be \(4, 2\)"),
        ([[0, 1], [0, 1], [3, 1], [0, 1]], r"lower bound of 3.0 at \[2\] .* upper bound of 1.0.*numpy.sort"),
        ([[0, 1], [np.inf, np.inf], [0, 1], [0, 1]], r"lower bound of inf at \[1\]"),
        ([[0, 1], [-np.inf, -np.inf], [0, 1], [0, 1]], r"lower bound of -inf at \[1\] .* upper bound of -inf"),
    ],
)
def test_bad_intervals_are_named(interval, message):
    with pytest.raises(ValueError, match=message):
        coverage(np.zeros(4), interval)
    with pytest.raises(ValueError, match=message):
        winkler_score(np.zeros(4), interval, 0.9)


def test_bad_intervals_without_y():
    with pytest.raises(ValueError, match=r"interval has shape \(3,\); it must be \(n, 2\) or \(n, k, 2\)"):
        mean_width([1.0, 2.0, 3.0])


@pytest.mark.parametrize("level", [0.0, 1.0, 95, -0.1])
def test_bad_nominal_coverage_is_named(level):
    with pytest.raises(ValueError, match=f"coverage={level!r} must lie strictly between 0 and 1"):
        winkler_score([0.0], [[0.0, 1.0]], level)
    with pytest.raises(ValueError, match=r"coverage=\[0.5, 0.9\] must be a single number"):
        winkler_score([0.0], [[0.0, 1.0]], [0.5, 0.9])
