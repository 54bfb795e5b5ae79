"""Directions of gradients: the products against finite differences, and functions that follow directions."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from kstonet.tuning.automatic import automatic_choice
from kstonet.tuning.directions import along_gradients, feature_machine, gradient_products
from kstonet.tuning.judging import Rows
from kstonet.tuning.screening_ridge import ridge_fit
from kstonet.tuning.stationary import FAMILIES

RNG = np.random.default_rng(0)
W = np.array([1.0, -1.0, 1.0, 0.0, 0.5, 0.0])


def sheared(n, seed=0):
    """A wave along one direction of six features."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6))
    Y = np.sin(0.9 * X @ W) + 0.05 * rng.normal(size=n)
    return Rows(X, ((Y - Y.mean()) / Y.std())[:, None], None)


@pytest.mark.parametrize("name", ["matern32", "matern52", "rbf"])
def test_products_are_those_of_finite_differences(name):
    X = RNG.normal(size=(40, 3))
    rows = Rows(X, np.column_stack([np.sin(X[:, 0] + X[:, 1]), X[:, 2] ** 2]), np.linspace(0.5, 2.0, 40))
    start = rows.best_width(FAMILIES[name])
    kernel, fit = start.kernel, start.fit

    def gradient(x, target):
        return approx_fprime(x, lambda at: float((kernel(at[None], X) @ fit.coef[:, target])[0]), 1e-6)

    each = [[gradient(x, target) for x in X] for target in range(2)]
    expected = sum(np.einsum("n,ni,nj->ij", rows.weights, np.array(g), np.array(g)) for g in each) / 40
    np.testing.assert_allclose(gradient_products(rows, start), expected, rtol=1e-3, atol=1e-5)


def test_a_turned_kernel_is_the_same_before_its_scales_are_learned(monkeypatch):
    rows = sheared(60)
    start = rows.learned(rows.best_width(FAMILIES["matern32"]), "evidence", 5)
    monkeypatch.setattr(Rows, "learned", lambda self, start, *_: start)
    directions, same = along_gradients(rows, start)
    np.testing.assert_allclose((rows.X @ directions).std(axis=0), 1.0)
    np.testing.assert_allclose(same.kernel(rows.X, rows.X), start.kernel(rows.X, rows.X), atol=1e-7)


@pytest.mark.parametrize("make", [along_gradients, feature_machine])
def test_the_direction_is_found(make):
    rows = sheared(300)
    family = FAMILIES["matern52"]
    plain = rows.judge(rows.learned(rows.best_width(family), "evidence", 20))
    directions, found = make(rows, family if make is feature_machine else plain)
    found = rows.turned(directions).judge(found)
    first = directions[:, found.scales.argmax()]
    assert abs(first @ W) > 0.98 * np.linalg.norm(first) * np.linalg.norm(W)
    assert found.score < 0.4 * plain.score
    np.testing.assert_allclose(found.kernel(rows.X, rows.X), found.family.matrix(rows.X @ directions, found.scales), atol=1e-7)


def test_the_choice_takes_directions_where_they_are_better():
    rows, new = sheared(300), sheared(300, seed=1)

    def error(choice):
        total = 0.0
        for kernel, ridge, share in zip(choice.kernels, choice.ridges, choice.shares or (1.0, 0.0), strict=True):
            fit = ridge_fit(kernel(rows.X, rows.X), rows.Y, ridge)
            total = total + share * (kernel(new.X, rows.X) @ fit.coef + fit.intercept)
        return np.sqrt(np.mean((new.Y - total) ** 2))

    alone, together = (automatic_choice(rows.X, rows.Y, together=most) for most in (1, 3))
    assert error(together) < 0.6 * error(alone)
    assert "directions" in together.reason
    assert len(together.kernels) <= 3
    assert sum(together.shares) == pytest.approx(1.0)


def test_several_kernels_are_chosen_where_they_are_worth_their_matrices():
    rows = sheared(300)
    any_gain, clear, none = (automatic_choice(rows.X, rows.Y, together=3, worth=worth) for worth in (0.0, 0.001, 0.9))
    assert len(any_gain.shares) > 1
    assert (clear.kernels, clear.shares) == (any_gain.kernels, any_gain.shares)
    assert none.shares == (1.0,)
    assert none.together == 1
    assert none.kernel in any_gain.kernels
    assert none.noises[0] == min(any_gain.noises)


def test_directions_along_which_rows_do_not_vary_stay_of_unit_length():
    """The columns of a category add up to one; divided by what rounding leaves of that, a new row would be far from all."""
    rng = np.random.default_rng(0)
    colours = np.eye(4)[rng.integers(0, 4, 200)]
    X = np.column_stack([colours - colours.mean(axis=0), rng.normal(size=(200, 2))])
    Y = (X[:, 0] * X[:, 4] + np.sin(X[:, 5]))[:, None]
    rows = Rows(X, (Y - Y.mean()) / Y.std(), None)
    start = rows.learned(rows.best_width(FAMILIES["matern32"]), "evidence", 10)
    directions, found = along_gradients(rows, start)
    assert np.abs(directions).max() < 1e3
    assert np.abs(np.log(found.scales)).max() < 10
    turned = rows.turned(directions).judge(found)
    assert turned.score < 1.1 * rows.judge(start).score
