"""The excess risk of the target coverage: against its definition, against covmetrics, and where it is known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier

from kstonet.metrics import conditional_coverage_error

STEP = DecisionTreeClassifier(max_depth=1)


def halves(n=4000, low=0.8, high=1.0, seed=0):
    """Intervals that cover with one probability on the left and another on the right."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(n, 1))
    covered = rng.uniform(size=n) < np.where(X[:, 0] < 0, low, high)
    return np.where(covered, 0.0, 2.0), np.tile([-1.0, 1.0], (n, 1)), X


def test_what_is_known():
    """Coverages 0.8 and 1 at nominal 0.9: mean distance 0.1, mean square 0.01; standard errors 0.005 and 0.002."""
    y, interval, X = halves()
    assert conditional_coverage_error(y, interval, X, 0.9, classifier=STEP) == pytest.approx(0.1, abs=0.015)
    assert conditional_coverage_error(y, interval, X, 0.9, loss="squared", classifier=STEP) == pytest.approx(0.01, abs=0.004)
    p = np.array([0.8, 1.0])
    with np.errstate(divide="ignore", invalid="ignore"):
        divergence = np.nansum(p * np.log(p / 0.9) + np.array([0.2 * np.log(0.2 / 0.1), 0.0])) / 2
    assert conditional_coverage_error(y, interval, X, 0.9, loss="log", classifier=STEP) == pytest.approx(divergence, abs=0.015)


def test_intervals_that_are_right_everywhere_have_none():
    y, interval, X = halves(low=0.9, high=0.9)
    for loss in ("absolute", "squared", "log"):
        assert abs(conditional_coverage_error(y, interval, X, 0.9, loss=loss)) < 0.012


def test_intervals_that_are_wrong_everywhere_count_too():
    y, interval, X = halves(low=0.7, high=0.7)
    assert conditional_coverage_error(y, interval, X, 0.9) == pytest.approx(0.2, abs=0.03)
    assert conditional_coverage_error(np.zeros(50), interval[:50], X[:50], 0.9) == pytest.approx(0.1)


@pytest.mark.parametrize("loss", ["absolute", "squared"])
def test_the_definition(loss):
    y, interval, X = halves(200)
    covered, gains = (np.abs(y) <= 1).astype(float), []
    for train, test in KFold(4, shuffle=True, random_state=3).split(X):
        p = LogisticRegression().fit(X[train], covered[train]).predict_proba(X[test])[:, 1]
        if loss == "squared":
            gains.append(((0.9 - covered[test]) ** 2).mean() - ((p - covered[test]) ** 2).mean())
        else:
            gains.append((np.sign(p - 0.9) * (covered[test] - 0.9)).mean())
    found = conditional_coverage_error(
        y, interval, X, 0.9, loss=loss, classifier=LogisticRegression(), n_splits=4, random_state=3
    )
    assert found == pytest.approx(np.mean(gains), rel=1e-12)


def test_covmetrics_agrees():
    covmetrics = pytest.importorskip("covmetrics")
    losses = pytest.importorskip("covmetrics.losses")
    y, interval, X = halves(600)
    X = np.column_stack([X, np.random.default_rng(1).normal(size=600)])
    covered = (np.abs(y) <= 1).astype(float)
    theirs = covmetrics.ERT(LogisticRegression)
    pairs = {"absolute": losses.L1_miscoverage, "squared": losses.brier_score, "log": losses.logloss}
    for loss, their_loss in pairs.items():
        expected = theirs.evaluate(X, covered, 0.1, n_splits=5, random_state=42, loss=their_loss)
        own = conditional_coverage_error(
            y, interval, X, 0.9, loss=loss, classifier=LogisticRegression(), n_splits=5, random_state=42
        )
        assert own == pytest.approx(expected, rel=1e-9)


def test_input_is_checked():
    y, interval, X = halves(30)
    with pytest.raises(ValueError, match="loss='l1' must be one of"):
        conditional_coverage_error(y, interval, X, 0.9, loss="l1")
    with pytest.raises(ValueError, match="coverage=90"):
        conditional_coverage_error(y, interval, X, 90)
    with pytest.raises(ValueError, match=r"X has shape \(29, 1\)"):
        conditional_coverage_error(y, interval, X[:-1], 0.9)
    with pytest.raises(ValueError, match="n_splits=31 must be at most"):
        conditional_coverage_error(y, interval, X, 0.9, n_splits=31)
