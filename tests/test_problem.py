"""Rows, the problem made of them, and the Grams that trainings on the same rows share."""

import numpy as np
import pytest

from kstonet.gram import LowRank, make_kernel
from kstonet.gram.kernels import RBF
from kstonet.gram.low_rank_options import Sizes
from kstonet.problem import Grams, Problem, Rows
from kstonet.targets import ClassTargets, NumericTargets

RNG = np.random.default_rng(0)
X = RNG.normal(loc=3.0, scale=[1.0, 10.0], size=(12, 2))
y = 100.0 + X[:, 0] ** 2
WEIGHTS = np.arange(12.0)


def test_some_of_the_rows():
    rows = Rows(X, y, WEIGHTS).take(np.array([5, 2]))
    np.testing.assert_array_equal(rows.X, X[[5, 2]])
    np.testing.assert_array_equal(rows.y, y[[5, 2]])
    np.testing.assert_array_equal(rows.weights, [5.0, 2.0])
    assert not rows.pairwise
    assert Rows(X, y).take(np.array([1])).weights is None
    np.testing.assert_array_equal(Rows(X, y).take(np.array([1]), against=np.array([0, 3])).X, X[[1]])  # features stay


def test_a_part_of_a_kernel_matrix_has_fewer_columns_too():
    K = np.arange(144.0).reshape(12, 12)
    rows = Rows(K, y, pairwise=True)
    chosen, other = np.array([7, 0, 4]), np.array([1, 2])
    own, against = rows.take(chosen), rows.take(other, against=chosen)
    assert own.pairwise
    assert against.pairwise
    for i, row in enumerate(chosen):
        for j, column in enumerate(chosen):
            assert own.X[i, j] == K[row, column]
    assert against.X.shape == (2, 3)
    np.testing.assert_array_equal(against.X[:, 1], K[other, 0])


def test_rows_of_weight_zero_do_not_count():
    without = Rows(X, y, WEIGHTS).that_count()
    np.testing.assert_array_equal(without.y, y[1:])
    plain = Rows(X, y)
    assert plain.that_count() is plain
    K = X @ X.T
    assert Rows(K, y, WEIGHTS, pairwise=True).that_count().X.shape == (11, 11)


def test_a_problem_is_standardised_with_its_weights():
    problem = Problem.of(Rows(X, y, WEIGHTS), NumericTargets)
    for values in (problem.X, problem.outputs):
        np.testing.assert_allclose(np.average(values, axis=0, weights=WEIGHTS), 0.0, atol=1e-12)
        np.testing.assert_allclose(np.average(values**2, axis=0, weights=WEIGHTS), 1.0)
    assert problem.columns is problem.outputs
    assert problem.weights is WEIGHTS
    plain = Problem.of(Rows(X, y), NumericTargets, standardize=False)
    np.testing.assert_array_equal(plain.X, X)
    np.testing.assert_array_equal(plain.outputs[:, 0], y)
    pairwise = Problem.of(Rows(X @ X.T, y, pairwise=True), NumericTargets)
    np.testing.assert_array_equal(pairwise.X, X @ X.T)  # kernel values have no scale
    assert abs(pairwise.outputs.mean()) < 1e-12


@pytest.mark.parametrize("standardize", [True, False])
def test_a_part_is_the_problem_of_these_rows_alone(standardize):
    chosen = np.array([1, 3, 4, 8, 9])
    whole = Problem.of(Rows(X, y, WEIGHTS), NumericTargets, standardize=standardize, max_memory=1e6, solver="dense")
    part = whole.part(chosen)
    alone = Problem.of(Rows(X[chosen], y[chosen], WEIGHTS[chosen]), NumericTargets, standardize=standardize)
    for name in ("X", "outputs", "weights"):
        np.testing.assert_array_equal(getattr(part, name), getattr(alone, name))
    assert (part.standardize, part.grams.max_memory, part.grams.solver) == (standardize, 1e6, "dense")
    assert part.validation is None


def test_a_part_with_fewer_classes_numbers_them_anew():
    labels = np.repeat(["a", "b", "c"], 4)
    problem = Problem.of(Rows(X, labels), ClassTargets)
    np.testing.assert_array_equal(problem.columns.sum(axis=0), [4, 4, 4])
    part = problem.part(np.arange(4, 12))
    assert list(part.targets.classes) == ["b", "c"]
    np.testing.assert_array_equal(part.outputs, np.repeat([0, 1], 4))


def test_validation_rows_have_the_scale_of_the_training_rows():
    problem = Problem.of(Rows(X, y), NumericTargets)
    watched = problem.with_validation(Rows(X[:3] + 1.0, y[:3] + 2.0))
    np.testing.assert_allclose(watched.validation[0], problem.X[:3] + 1.0 / X.std(axis=0))
    np.testing.assert_allclose(watched.validation[1], problem.outputs[:3] + 2.0 / y.std())
    assert problem.validation is None
    assert watched.grams is problem.grams


def test_grams_are_made_once_for_every_kernel():
    grams = Problem.of(Rows(X, y), NumericTargets).grams
    one, same, other = (make_kernel("rbf", grams.X, gamma=gamma) for gamma in (0.1, 0.1, 0.2))
    assert grams.of(one) is grams.of(same)
    assert grams.of(other) is not grams.of(one)
    assert grams.new(one) is not grams.of(one)
    assert len(grams.held) == 2


def test_maps_are_made_once_for_every_kernel_and_ridge():
    grams = Problem.of(Rows(X, y), NumericTargets).grams
    kernel = make_kernel("rbf", grams.X, gamma=0.1)
    one = grams.ridge_map(kernel, 0.5, None)
    assert grams.ridge_map(kernel, 0.5, None) is one
    assert grams.ridge_map(kernel, 0.2, None) is not one
    assert one.gram is grams.of(kernel)
    grams.clear()
    assert grams.held == {}
    assert grams.maps == {}


def test_the_solver_is_chosen_once(monkeypatch):
    """Grams that are held leave less memory: a second look must not end in another solver, and in a second Gram."""
    grams = Grams(np.random.default_rng(0).normal(size=(50, 2)))
    first = grams.of(RBF(gamma=1.0))
    monkeypatch.setattr("kstonet.gram.devices.available_memory", lambda: 10)
    assert grams.of(RBF(gamma=1.0)) is first


def test_grams_of_several_kernels_share_the_memory():
    grams = Grams(np.random.default_rng(0).normal(size=(3000, 2)), LowRank(rank=50), max_memory=4e7)
    alone = grams.new(RBF(gamma=1.0))
    grams.share(3, pairwise=False, squared=False)
    shared = grams.new(RBF(gamma=1.0))
    assert shared.leaf_rows < alone.leaf_rows
    assert 3 * Sizes(3000, 50, shared.leaf_rows).bytes < 4e7
