"""The first layer with a squared loss, against linear systems solved row by row and against scikit-learn's regressions."""

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer

from kstonet import KStoNetRegressor
from kstonet.gram import DenseGram, inverted, make_kernel
from kstonet.gram.factored import FactoredSolver, factor_order
from kstonet.gram.halves import CholeskyFactor
from kstonet.layers.kernel import UnitGroup
from kstonet.layers.margin import MOST_ROWS
from kstonet.layers.ridge import RidgeLayer
from kstonet.layers.ridge_map import RidgeMap

RNG = np.random.default_rng(0)
N = 30
X = RNG.normal(size=(N, 2))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] ** 2, X[:, 0] * X[:, 1]]) + 0.3 * RNG.normal(size=(N, 3))
NEW = RNG.normal(size=(9, 2))
GAMMA, RIDGE = 0.7, 0.4
K = rbf_kernel(X, gamma=GAMMA)
FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 3, "random_state": 0, "loss": "squared"}


def gram_of(rows=X, gamma=GAMMA, kernel="rbf"):
    return DenseGram(rows, make_kernel(kernel, rows, gamma=gamma))


def layer_of(targets=Y, rows=X, ridges=(RIDGE,), weights=None, hidden=None):
    """A refitted layer: one group of units per ridge, whose kernels differ."""
    grams = [gram_of(rows, GAMMA + k) for k in range(len(ridges))]
    parts = np.array_split(np.arange(targets.shape[1]), len(ridges))
    maps = tuple(RidgeMap(gram, ridge, weights) for gram, ridge in zip(grams, ridges, strict=True))
    groups = tuple(UnitGroup(gram, part) for gram, part in zip(grams, parts, strict=True))
    used = np.ones(len(rows)) if weights is None else weights
    shown = used if hidden is None else np.where(hidden, 0.0, used)
    return RidgeLayer(groups, maps).refit(None, targets, None if weights is None and hidden is None else shown)


def bordered(K, targets, ridges):
    """Coefficients and intercepts from [[K + R, 1], [1ᵀ, 0]]·(α, b) = (y, 0): the definition, solved directly."""
    n = len(K)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.diag(np.broadcast_to(ridges, n))
    system[:n, n] = system[n, :n] = 1.0
    solution = np.linalg.solve(system, np.vstack([targets, np.zeros((1, targets.shape[1]))]))
    return solution[:n], solution[n]


def without(i):
    return np.delete(np.arange(N), i)


def kriging_variance(K, values, diagonal, ridges):
    """The variance of a function with an unpenalised intercept: the value of the bordered system's quadratic form."""
    n = len(K)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = K + np.diag(np.broadcast_to(ridges, n))
    system[:n, n] = system[n, :n] = 1.0
    right = np.vstack([values.T, np.ones(len(values))])
    return diagonal - np.einsum("in,in->n", right, np.linalg.solve(system, right))


# -- coefficients ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ridge", [1e-3, RIDGE, 1e4])
def test_solutions_are_those_of_the_bordered_system(ridge):
    coef, intercept = RidgeMap(gram_of(), ridge).solve(Y, None)
    expected = bordered(K, Y, ridge)
    np.testing.assert_allclose(coef, expected[0], rtol=1e-8, atol=1e-10 / ridge)
    np.testing.assert_allclose(intercept, expected[1], rtol=1e-8)


def test_centred_problems_are_scikit_learns_kernel_ridge():
    """With the kernel and the targets centred the intercept is nought, and the fitted values are those of KernelRidge."""
    centred = KernelCenterer().fit_transform(K)
    targets = Y - Y.mean(axis=0)
    model = KernelRidge(alpha=RIDGE, kernel="precomputed").fit(centred, targets)
    fitted = layer_of().mean() - Y.mean(axis=0)
    np.testing.assert_allclose(fitted, model.predict(centred), atol=1e-10)


def test_fitted_values_are_those_of_the_coefficients():
    layer = layer_of(ridges=(RIDGE, 2.0))
    for group, ridge in zip(layer.groups, (RIDGE, 2.0), strict=True):
        values = group.gram.columns(np.arange(N))
        coef, intercept = bordered(values, Y[:, group.units], ridge)
        np.testing.assert_allclose(layer.mean()[:, group.units], values @ coef + intercept, atol=1e-9)
        np.testing.assert_allclose(layer.coef[group.units], coef.T, atol=1e-9)
        np.testing.assert_allclose(layer.intercept[group.units], intercept, atol=1e-9)


@pytest.mark.parametrize("ridge", [1e-6, RIDGE, 1e12])
def test_hidden_rows_take_no_part(ridge):
    """A fold hidden from the refit: coefficients, intercept and values are those of a regression on the other rows alone."""
    hidden = np.arange(N) % 5 == 2
    targets = np.where(hidden[:, None], 1e6, Y)
    layer = layer_of(targets, ridges=(ridge,), hidden=hidden)
    coef, intercept = bordered(K[np.ix_(~hidden, ~hidden)], Y[~hidden], ridge)
    np.testing.assert_allclose(layer.coef[:, ~hidden], coef.T, rtol=1e-5, atol=1e-7 * np.abs(coef).max())
    assert (layer.coef[:, hidden] == 0.0).all()
    np.testing.assert_allclose(layer.mean(), K[:, ~hidden] @ coef + intercept, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("last", [True, False])
def test_a_factor_serves_as_an_inverse_does(monkeypatch, last):
    """Rows that are hidden, the last ones of the factor or any: one more factor is made for the latter."""
    monkeypatch.setattr(DenseGram, "largest_inverse", 0)
    weights = np.linspace(0.5, 2.0, N)
    hidden = np.isin(np.arange(N), factor_order(N)[-6:]) if last else np.arange(N) % 5 == 2
    layer = layer_of(weights=weights, hidden=hidden)
    coef, intercept = bordered(K[np.ix_(~hidden, ~hidden)], Y[~hidden], RIDGE / weights[~hidden])
    np.testing.assert_allclose(layer.mean(), K[:, ~hidden] @ coef + intercept, atol=1e-3 * RIDGE)
    ridge = layer.maps[0]
    inverse = np.linalg.inv(K[np.ix_(~hidden, ~hidden)] + np.diag(RIDGE / weights[~hidden]))
    ones = inverse.sum(axis=1)
    diagonal = ridge.diagonal(np.where(hidden, 0.0, weights))
    np.testing.assert_allclose(diagonal[~hidden], np.diagonal(inverse) - ones**2 / ones.sum(), rtol=1e-6)
    ridge.solve(Y, None)
    assert ridge.gram.n_factorizations == (1 if last else 2)


@pytest.mark.parametrize("hidden", [None, factor_order(N)[-6:]])
def test_corrections_that_are_certain_are_not_checked(monkeypatch, hidden):
    """A solver of a thousandth's error: two corrections, of which a product shows the first; hidden rows need the second."""
    monkeypatch.setattr(DenseGram, "largest_inverse", 0)
    rough = FactoredSolver.solve
    monkeypatch.setattr(FactoredSolver, "solve", lambda self, rows: rough(self, rows) * (1.0 + 1e-3))
    gram, products = gram_of(), []
    weights = None if hidden is None else np.where(np.isin(np.arange(N), hidden), 0.0, 1.0)
    seen = np.arange(N) if hidden is None else np.setdiff1d(np.arange(N), hidden)
    ridge, product = RidgeMap(gram, 0.1 * RIDGE), gram.product
    ridge.solve(Y, weights)  # what is applied to ones is known from now on
    monkeypatch.setattr(gram, "product", lambda rows: products.append(1) or product(rows))
    found = ridge.regress(Y, weights)
    coef, intercept = bordered(K[np.ix_(seen, seen)], Y[seen], 0.1 * RIDGE)
    np.testing.assert_allclose(found.coef[seen], coef, atol=2e-5 * np.abs(coef).max())
    np.testing.assert_allclose(found.image + found.intercept, K[:, seen] @ coef + intercept, atol=2e-5)
    assert len(products) == (1 if hidden is None else 2)


def test_two_ridges_share_a_matrix_but_no_solver():
    gram = gram_of()
    one, two = RidgeMap(gram, 0.1), RidgeMap(gram, 5.0)
    hidden = np.where(np.arange(N) < 4, 0.0, 1.0)
    for ridge in (one, two, one):
        rows = hidden > 0
        expected = bordered(K[np.ix_(rows, rows)], Y[rows], ridge.ridge)[0]
        np.testing.assert_allclose(ridge.solve(Y, hidden)[0][rows], expected, atol=1e-8)
    assert gram.n_factorizations == 2


def test_all_rows_but_one_may_be_hidden():
    layer = layer_of(hidden=np.arange(N) != 4)
    np.testing.assert_allclose(layer.mean(), np.tile(Y[4], (N, 1)), atol=1e-8)


def test_weights_are_repetitions():
    repeats = np.arange(N) % 3
    layer = layer_of(weights=repeats.astype(float))
    rows = np.repeat(np.arange(N), repeats)
    coef, intercept = bordered(K[np.ix_(rows, rows)], Y[rows], RIDGE)
    np.testing.assert_allclose(layer.mean(), K[:, rows] @ coef + intercept, atol=1e-9)
    np.testing.assert_allclose(layer.intercept, intercept, atol=1e-9)
    summed = np.zeros((N, 3))
    np.add.at(summed, rows, coef)
    np.testing.assert_allclose(layer.coef, summed.T, atol=1e-9)


def test_weights_and_hidden_rows_together():
    weights, hidden = np.linspace(0.0, 2.0, N), np.arange(N) % 4 == 0
    layer = layer_of(weights=weights, hidden=hidden)
    shown = ~hidden & (weights > 0)
    coef, intercept = bordered(K[np.ix_(shown, shown)], Y[shown], RIDGE / weights[shown])
    np.testing.assert_allclose(layer.mean(), K[:, shown] @ coef + intercept, atol=1e-8)


def test_a_matrix_that_rounding_makes_singular_is_solved():
    """Duplicates and a ridge below the last digit: the jitter keeps the solution, which interpolates the mean of duplicates."""
    rows, targets = np.repeat(X[:10], 3, axis=0), np.repeat(Y[:10], 3, axis=0)
    coef, intercept = RidgeMap(gram_of(rows), 1e-18).solve(targets, None)
    np.testing.assert_allclose(rbf_kernel(rows, gamma=GAMMA) @ coef + intercept, targets, atol=1e-3)


def test_a_matrix_that_is_no_kernel_is_refused():
    class NoKernel:
        n = 5

        def columns(self, indices):
            return -np.eye(5)[:, indices]

        def diagonal(self):
            return -np.ones(5)

    with pytest.raises(np.linalg.LinAlgError, match="not positive semi-definite"):
        RidgeMap(NoKernel(), 0.1).solve(Y[:5], None)


def test_the_map_is_made_once(monkeypatch):
    """A training solves one regression per unit, iteration and fold, and factors one matrix."""
    made = []
    original = CholeskyFactor.of

    def counted(matrix, ridge, **options):
        made.append(len(matrix))
        return original(matrix, ridge, **options)

    monkeypatch.setattr(CholeskyFactor, "of", counted)
    KStoNetRegressor(tuning="none", **FAST, C=2.0).fit(X, Y[:, 0])
    assert made.count(N) == 1


def test_the_factor_of_a_fold_is_made_once(monkeypatch):
    """The same rows are hidden in every iteration of a fold."""
    made = []
    original = inverted.cholesky

    def counted(matrix, **options):
        made.append(len(matrix))
        return original(matrix, **options)

    monkeypatch.setattr(inverted, "cholesky", counted)
    ridge, weights = layer_of().maps[0], np.r_[np.zeros(4), np.ones(N - 4)]
    one, two = (ridge.solve(Y[:, :1], weights)[0] for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert made == [4]


# -- the density -------------------------------------------------------------------------------------------------------------


def test_scores_are_slopes_of_the_density():
    layer = layer_of().with_noise(0.5)
    outputs, step = layer.mean() + RNG.normal(size=(N, 3)), 1e-6
    for unit in range(3):
        shift = np.zeros((N, 3))
        shift[:, unit] = step
        slope = (layer.log_density(None, outputs + shift) - layer.log_density(None, outputs - shift)) / (2 * step)
        np.testing.assert_allclose(layer.score_output(None, outputs)[:, unit], slope, rtol=1e-6, atol=1e-7)
        score = layer.score_output(None, outputs + shift) - layer.score_output(None, outputs - shift)
        np.testing.assert_allclose(layer.curvature_output()[unit], -score[:, unit] / (2 * step), rtol=1e-6)


def test_the_density_is_normal():
    layer = layer_of(Y[:, :1]).with_noise(0.5)
    spread = np.sqrt(layer.variance) * np.linspace(-9, 9, N)
    expected = norm.logpdf(spread, scale=np.sqrt(layer.variance))
    np.testing.assert_allclose(layer.log_density(None, layer.mean() + spread[:, None]), expected, rtol=1e-10)


def test_a_layer_needs_a_refit_first():
    layer = layer_of()
    new = RidgeLayer(layer.groups, layer.maps)
    for ask in (new.mean, lambda: new.expansion([new], None), lambda: new.values_at(NEW)(new)):
        with pytest.raises(ValueError, match="refit it first"):
            ask()


# -- beyond the training rows ------------------------------------------------------------------------------------------------


def test_values_at_new_rows():
    layer = layer_of(ridges=(RIDGE, 2.0))
    expansion = layer.expansion([layer], None)
    ((_, values, _),) = expansion.blocks(NEW)
    np.testing.assert_allclose(values[0], layer.values_at(NEW)(layer), atol=1e-12)
    for k, (group, ridge) in enumerate(zip(layer.groups, (RIDGE, 2.0), strict=True)):
        coef, intercept = bordered(rbf_kernel(X, gamma=GAMMA + k), Y[:, group.units], ridge)
        np.testing.assert_allclose(values[0][:, group.units], rbf_kernel(NEW, X, gamma=GAMMA + k) @ coef + intercept, atol=1e-9)


WEIGHTS = [None, np.where(np.arange(N) % 7 == 3, 0.0, np.linspace(0.2, 3.0, N))]


@pytest.mark.parametrize("weights", WEIGHTS, ids=["equal", "weighted"])
def test_left_out_values_are_those_of_refits_without_the_row(weights):
    """Closed form, to rounding; a row of weight zero is left out already, and stays out of the others' refits."""
    layer = layer_of(ridges=(RIDGE, 2.0), weights=weights)
    own = np.ones(N) if weights is None else weights
    closed = layer.mean() + layer.left_out_shifts(np.empty((N, 3)))
    for i in range(N):
        rest = without(i)[own[without(i)] > 0]
        for k, (group, ridge) in enumerate(zip(layer.groups, (RIDGE, 2.0), strict=True)):
            values = rbf_kernel(X, gamma=GAMMA + k)
            coef, intercept = bordered(values[np.ix_(rest, rest)], Y[np.ix_(rest, group.units)], ridge / own[rest])
            np.testing.assert_allclose(closed[i, group.units], values[i, rest] @ coef + intercept, atol=1e-8)


@pytest.mark.parametrize("weights", WEIGHTS, ids=["equal", "weighted"])
def test_variance_is_that_of_kriging(weights):
    """At new rows, and at training rows left out: of the function, without the noise of a target."""
    layer = layer_of(ridges=(RIDGE, 2.0), weights=weights)
    own = np.ones(N) if weights is None else weights
    expansion = layer.expansion([layer], None)
    uncertainty = layer.uncertainty(expansion, None, Y, weights)
    ((_, _, features),) = expansion.blocks(NEW)
    at_new = uncertainty.covariance(NEW, features)
    (shifts,), spans = uncertainty.left_out([layer], expansion, None, Y)
    np.testing.assert_array_equal(shifts, layer.left_out_shifts(spans))
    assert (at_new[:, ~np.eye(3, dtype=bool)] == 0).all()
    counted = np.flatnonzero(own > 0)
    for k, (group, ridge) in enumerate(zip(layer.groups, (RIDGE, 2.0), strict=True)):
        values = rbf_kernel(X, gamma=GAMMA + k)
        inner, cross = values[np.ix_(counted, counted)], rbf_kernel(NEW, X[counted], gamma=GAMMA + k)
        expected = kriging_variance(inner, cross, np.ones(len(NEW)), ridge / own[counted])
        for unit in group.units:
            np.testing.assert_allclose(at_new[:, unit, unit], expected, rtol=1e-8)
            for i in range(N):
                rest = counted[counted != i]
                inner, cross = values[np.ix_(rest, rest)], values[i : i + 1, rest]
                alone = kriging_variance(inner, cross, np.ones(1), ridge / own[rest])
                np.testing.assert_allclose(spans[i, unit], alone[0], rtol=1e-7)


def test_variance_is_that_of_a_gaussian_process():
    """Without the intercept's term the variance is that of scikit-learn's GaussianProcessRegressor."""
    layer = layer_of()
    expansion = layer.expansion([layer], None)
    factor = layer.uncertainty(expansion, None, Y, None).factors[0]
    ((_, _, (features,)),) = expansion.blocks(NEW)
    process = GaussianProcessRegressor(RBF((2 * GAMMA) ** -0.5), alpha=RIDGE, optimizer=None).fit(X, Y[:, 0])
    expected = process.predict(NEW, return_std=True)[1] ** 2
    np.testing.assert_allclose(factor.variance(features, np.ones(len(NEW)), intercept=False), expected, rtol=1e-8)


def test_many_rows_are_thinned():
    """Beyond the limit some rows pin the function down: the variance is larger than that of all rows, and finite."""
    rng = np.random.default_rng(0)
    rows = rng.uniform(-1, 1, size=(MOST_ROWS + 100, 2))
    layer = layer_of(np.sin(3 * rows[:, :1]), rows)
    expansion = layer.expansion([layer], None)
    uncertainty = layer.uncertainty(expansion, None, rows[:, :1], None)
    (members,) = uncertainty.columns
    assert len(members) == MOST_ROWS
    ((_, _, features),) = expansion.blocks(NEW)
    thinned = uncertainty.covariance(NEW, features)[:, 0, 0]
    values, cross = rbf_kernel(rows, gamma=GAMMA), rbf_kernel(NEW, rows, gamma=GAMMA)
    assert (thinned >= kriging_variance(values, cross, np.ones(len(NEW)), RIDGE)).all()
    _, spans = uncertainty.left_out([layer], expansion, None, rows[:, :1])
    assert ((spans >= 0) & (spans < 1)).all()


def test_a_coefficient_of_exactly_zero_is_no_part_of_the_variance():
    """Units whose coefficients are all zero keep no rows: their variance is the kernel's own."""
    layer = layer_of(np.zeros((N, 1)))
    expansion = layer.expansion([layer], None)
    uncertainty = layer.uncertainty(expansion, None, np.zeros((N, 1)), None)
    assert list(uncertainty.contradictions(expansion)) == []
    ((_, _, features),) = expansion.blocks(NEW)
    np.testing.assert_array_equal(uncertainty.covariance(NEW, features)[:, 0, 0], 1.0)


def test_the_layer_among_some_rows_is_that_of_these_rows():
    """Two kernels, weighted rows: fitted values and coefficients are those of a layer that has never seen the others."""
    weights, some = RNG.uniform(0.5, 2.0, size=N), np.arange(0, N, 2)
    whole = layer_of(ridges=(RIDGE, 0.1), weights=weights)
    own = whole.among(X, some).refit(None, Y[some], weights[some])
    alone = layer_of(Y[some], X[some], ridges=(RIDGE, 0.1), weights=weights[some])
    np.testing.assert_allclose(own.coef, alone.coef, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(own.mean(), alone.mean(), rtol=1e-9)
