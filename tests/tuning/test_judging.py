"""Candidates on some rows: the climbs end where no neighbour is better."""

from dataclasses import replace

import numpy as np
import pytest

from kstonet.targets import ClassTargets
from kstonet.tuning.judging import HARDLY_LUCK, NARROWER, WIDTHS, Rows, ahead, best_of_families
from kstonet.tuning.log_loss import LeftOutLogLoss
from kstonet.tuning.screening_ridge import RIDGES, ridge_fit
from kstonet.tuning.stationary import FAMILIES

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
ROWS = Rows(X, (np.sin(2 * X[:, :1]) + 0.2 * RNG.normal(size=(120, 1))), None)


def grid_scores(family):
    width = family.width(X, np.ones(3))
    matrices = [family.matrix(X, np.full(3, 1.0 / (width * factor))) for factor in WIDTHS]
    return np.array([[ridge_fit(K, ROWS.Y, ridge).score for ridge in RIDGES] for K in matrices])


@pytest.mark.parametrize("name", FAMILIES)
def test_no_neighbour_of_the_best_width_is_better(name):
    family = FAMILIES[name]
    like = ROWS.best_width(FAMILIES["rbf"])
    for found in (ROWS.best_width(family), ROWS.best_width(family, like)):
        scores = grid_scores(family)
        width, ridge = np.unravel_index(np.abs(scores - found.score).argmin(), scores.shape)
        around = scores[max(0, width - 1) : width + 2, ridge], scores[width, max(0, ridge - 1) : ridge + 2]
        assert found.score == pytest.approx(np.concatenate(around).min(), rel=1e-3)  # the climb is in float32


@pytest.mark.parametrize("name", FAMILIES)
def test_oscillations_are_not_taken_for_noise(name):
    """Sixteen waves: kernels of half the median distance and more see nothing of them, and all climbs end there."""
    x = np.random.default_rng(1).uniform(-3, 3, size=(300, 1))
    assert Rows(x, np.sin(16 * x), None).best_width(FAMILIES[name]).score < 0.2


def test_more_or_less_ridge_is_tried_as_long_as_it_is_better():
    start = ROWS.best_width(FAMILIES["rbf"])
    far = ROWS.judge(ROWS.with_best_ridge(start))
    K = FAMILIES["rbf"].matrix(X, start.scales)
    assert far.score <= start.score
    for factor in (3.0, 1.0 / 3.0):
        assert ridge_fit(K, ROWS.Y, factor * far.fit.ridge).score >= far.score


def class_rows(n):
    """Two classes whose border is a wave: many rows show more of it than few."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(n, 2))
    codes = (X[:, 1] + 0.3 * rng.normal(size=n) > np.sin(6 * X[:, 0])).astype(int)
    targets = ClassTargets(np.arange(2))
    Y = targets.judged(codes, None)
    return Rows(X, Y, None, LeftOutLogLoss.of(targets, codes, Y, None))


def test_kernels_become_narrower_as_long_as_the_log_loss_clearly_falls():
    every = class_rows(600)
    start = every.best_width(FAMILIES["matern32"])
    wide = every.judge(replace(start, scales=start.scales / 5.0))
    found = every.narrowed(wide)
    assert ahead(found, wide) > HARDLY_LUCK
    assert found.scales[0] > 2.0 * wide.scales[0]
    assert ahead(every.judge(replace(found, scales=found.scales * NARROWER)), found) <= HARDLY_LUCK
    assert found.score < 1.05 * start.score
    assert every.narrowed(found) is found


def test_a_narrow_kernel_stays():
    every = class_rows(300)
    start = every.best_width(FAMILIES["rbf"])
    narrow = every.judge(replace(start, scales=5.0 * start.scales))
    assert every.narrowed(narrow) is narrow


def test_learning_keeps_the_prior_of_its_start():
    start = ROWS.best_width(FAMILIES["matern32"])
    learned = ROWS.learned(start, "evidence", 10)
    assert learned.relevance == "evidence"
    np.testing.assert_array_equal(learned.centre, np.log(start.scales))
    assert learned.scales[0] > 3 * learned.scales[1:].max()


def test_the_best_of_every_family_comes_first():
    found = [ROWS.best_width(FAMILIES[name]) for name in ("rbf", "laplacian")]
    found.append(ROWS.judge(ROWS.learned(found[0], "evidence", 10)))
    best = best_of_families(found)
    assert [one.family.name for one in best] == ["rbf", "laplacian"]
    assert best[0] is found[2]


def test_a_blend_lies_between():
    start = ROWS.best_width(FAMILIES["rbf"])
    learned = ROWS.learned(start, "evidence", 10)
    blend = start.blended(learned)
    np.testing.assert_allclose(np.log(blend.scales), (np.log(start.scales) + np.log(learned.scales)) / 2)
    np.testing.assert_allclose(blend.fit.ridge**2, start.fit.ridge * learned.fit.ridge)
    assert ROWS.judge(blend).score < start.score
