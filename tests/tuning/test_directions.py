"""Directions of the features in the automatic choice: found where the truth has them, left alone where it has none."""

from dataclasses import replace

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.gram.kernels.squash import squashed
from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.directions import with_directions
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.stationary import FAMILIES

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(300, 6)), RNG.normal(size=(300, 6))
NOISE = 0.1 * RNG.normal(size=300)
SUM = np.ones(6) / np.sqrt(6.0)
ALL = tuple(FAMILIES)


def standardised(y):
    return ((y - y.mean()) / y.std())[:, None]


def choices(X, y, weights=None, names=ALL):
    Y = standardised(y)
    found = automatic_choice(X, Y, weights, kernels=names)
    return found, with_directions(X, Y, weights, found, names, 0)


def error(choice, X, Y, new, truth):
    fit = ridge_fit(choice.kernel(X, X), Y, choice.ridges[0])
    return np.mean((choice.kernel(new, X) @ fit.coef[:, 0] + fit.intercept[0] - truth) ** 2)


def test_a_function_of_a_sum_of_features():
    y = np.sin(2.0 * X @ SUM) + NOISE
    plain, found = choices(X, y)
    assert plain.kernel.projection is None
    assert found.kernel.projection is not None
    scaled = np.array(found.kernel.projection) / np.array(found.kernel.length_scale)  # the metric's directions
    leading = np.linalg.svd(scaled)[0][:, 0]
    assert abs(leading @ SUM) > np.cos(np.radians(10))
    truth = (np.sin(2.0 * NEW @ SUM) - y.mean()) / y.std()
    Y = standardised(y)
    assert error(found, X, Y, NEW, truth) < 0.3 * error(plain, X, Y, NEW, truth)
    assert len(found.kernels) == len(found.ridges) == len(found.strengths) == len(found.noises)
    assert found.noises[0] < plain.noises[0]
    assert "directions of the features" in found.reason
    assert {row["relevance"] for row in found.table} >= {"evidence", "directions"}


def test_single_features_are_left_alone():
    plain, found = choices(X, np.sin(2.0 * X[:, 0]) + X[:, 1] ** 2 + NOISE)
    assert replace(found, table=plain.table) == plain


def test_no_signal_and_few_rows_are_left_alone():
    plain, found = choices(X, RNG.normal(size=300))
    assert found is plain
    few, y = X[:60], np.sin(2.0 * X[:60] @ SUM)  # ten rows per feature
    plain, found = choices(few, y)
    assert found is plain
    plain, found = choices(X, np.sin(2.0 * X @ SUM), names=("laplacian",))  # a sum of absolute differences has no directions
    assert found is plain


def test_rows_of_little_weight_do_not_count():
    Y = standardised(np.sin(2.0 * X @ SUM) + NOISE)
    plain = automatic_choice(X, Y)
    rows, weights = np.concatenate([X, NEW]), np.repeat([1.0, 1e-9], 300)
    wrong = np.concatenate([Y, 5.0 * RNG.normal(size=(300, 1))])
    assert with_directions(rows, wrong, weights, plain, ALL, 0).kernel.projection is not None


def test_heavy_tails_are_drawn_in_first():
    heavy = np.sinh(1.5 * X)
    plain, _ = choices(X, np.sin(2.0 * X @ SUM) + NOISE)
    squash = ((0.0, 1.0),) * 6
    start = replace(plain, kernels=tuple(replace(kernel, squash=squash) for kernel in plain.kernels))
    found = with_directions(heavy, standardised(np.sin(2.0 * X @ SUM) + NOISE), None, start, ALL, 0)
    assert found.kernel.squash == squash
    np.testing.assert_allclose(
        found.kernel(heavy, heavy),
        replace(found.kernel, squash=None)(squashed(heavy, squash), squashed(heavy, squash)),
        atol=1e-12,
    )
    assert found.kernel.projection is not None


@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_the_first_call_takes_them(loss):
    y = np.sin(2.0 * X @ SUM) + NOISE
    model = KStoNetRegressor(loss=loss, residuals=None, max_iter=3, random_state=0).fit(X, y)
    assert model.kernel_.projection is not None
    assert model.score(NEW, np.sin(2.0 * NEW @ SUM)) > 0.97
    assert "directions of the features" in model.tuning_["reason"]
