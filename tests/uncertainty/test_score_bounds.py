"""Ends of intervals of log-odds: against their equation, without growth, and without jumps."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.special import expit

from kstonet import KStoNetClassifier
from kstonet.uncertainty.score_bounds import certain_growth, score_bounds

ODDS = np.linspace(-9.0, 9.0, 61)


def test_without_growth_intervals_are_symmetric():
    low, high = score_bounds(ODDS, np.full(61, 1.3), 0.0)
    np.testing.assert_allclose(low, ODDS - 1.3, atol=1e-8)
    np.testing.assert_allclose(high, ODDS + 1.3, atol=1e-8)


@pytest.mark.parametrize("reach", [0.01, 0.3, 1.0])
@pytest.mark.parametrize("growth", [0.25, 0.5, 1.0])
def test_ends_are_as_far_away_as_the_deviation_there_allows(reach, growth):
    """Towards even odds, the equation as scipy solves it; away from them, where it has a solution nearby, nearly that."""
    decided = ODDS[np.abs(ODDS) >= reach]
    for odds, low, high in zip(decided, *score_bounds(decided, np.full(len(decided), reach), growth), strict=True):
        inner, outer = (low, high) if odds > 0 else (high, low)
        short = brentq(lambda e, o=odds: abs(o - e) - reach * certain_growth(e, growth), 0.0, odds)
        assert inner == pytest.approx(short, abs=1e-7)
        assert abs(outer - odds) >= reach * certain_growth(odds, growth)
        if reach * certain_growth(outer, growth) < 0.5:
            assert abs(outer - odds) == pytest.approx(reach * certain_growth(outer, growth), rel=0.01)


def test_intervals_change_little_by_little():
    """No jumps of probabilities, whatever the estimate and the deviation; both ends grow with the deviation."""
    odds, reach = np.meshgrid(np.linspace(-12, 12, 2401), np.linspace(0.05, 6.0, 120))
    low, high = (expit(end) for end in score_bounds(odds, reach, 0.5))
    assert np.abs(np.diff(low, axis=1)).max() < 0.02
    assert np.abs(np.diff(high, axis=1)).max() < 0.02
    assert (np.diff(low, axis=0) <= 1e-9).all()
    assert (np.diff(high, axis=0) >= -1e-9).all()
    assert ((low < expit(odds)) & (expit(odds) < high)).all()
    np.testing.assert_allclose(low, 1.0 - high[:, ::-1], atol=1e-9)


def test_classes_that_do_not_overlap_are_told_apart():
    """Two clouds, far apart, 60 rows each: no interval of a training row reaches the other class, which it once did."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 2)) + 4.0 * y[:, None]
    model = KStoNetClassifier(random_state=0).fit(X, y)
    low, high = np.moveaxis(model.predict_proba_interval(X), 2, 0)
    sure = model.predict_proba(X) > 0.95
    assert sure.any(axis=1).mean() > 0.9
    assert np.median(low[sure]) > 0.6
    assert np.median(high[~sure]) < 0.4
