"""The generators against slow, obvious references that draw from the same stream, and their statistics.

Statistical bounds are at five standard errors: with a new seed, a comparison fails a correct generator with probability 6e-7.
"""

import numpy as np
import pytest
from scipy import stats
from sklearn.svm import SVR

from kstonet.datasets import make_full_row_rank, make_kernel_network, make_measurement_error


def assert_near(value, expected, standard_error):
    assert np.abs(np.asarray(value) - expected).max() < 5 * standard_error


def assert_unit_noise(residuals):
    n = len(residuals)
    assert_near(residuals.mean(), 0, 1 / np.sqrt(n))
    assert_near(residuals.var(), 1, np.sqrt(2 / n))
    assert stats.kstest(residuals, "norm").pvalue > 6e-7


def assert_correlated(X, rho):
    """Sample correlations have standard error (1 - ρ²)/√n."""
    correlations = np.corrcoef(X.T)[np.triu_indices(X.shape[1], 1)]
    assert_near(correlations, rho, (1 - rho**2) / np.sqrt(len(X)))


def correlated_rows(rng, n, p):
    common, own = rng.normal(size=(n, 1)), rng.normal(size=(n, p))
    return np.array([[(common[i, 0] + own[i, j]) / 2**0.5 for j in range(p)] for i in range(n)])


def measurement_error_reference(n, seed):
    rng = np.random.default_rng(seed)
    Z = correlated_rows(rng, n, 5)
    mean = np.array([5 * z[1] / (1 + z[0] ** 2) + 5 * np.sin(z[2] * z[3]) + 2 * z[4] for z in Z])
    noise = rng.normal(size=n)
    return Z, mean, mean + noise, Z + 0.5 * rng.normal(size=(n, 5))


def test_measurement_error_is_the_paper_s_formula():
    Z, mean, y_reference, X_reference = measurement_error_reference(4000, 3)
    X, y = make_measurement_error(4000, random_state=3)
    np.testing.assert_allclose(X, X_reference, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(y, y_reference, rtol=1e-12, atol=1e-12)
    assert_unit_noise(y - mean)
    assert_unit_noise(((X - Z) / 0.5).ravel())  # the error has standard deviation 0.5, as in the authors' code


def test_measurement_error_inputs():
    X, _ = make_measurement_error(20000, random_state=0)
    assert_near(X.mean(axis=0), 0, np.sqrt(1.25 / 20000))
    assert_near(X.var(axis=0), 1.25, 1.25 * np.sqrt(2 / 20000))
    assert_correlated(X, 0.4)  # 0.5 before the error, which adds a quarter to the variance


def test_measurement_error_does_not_drift():
    X, y = make_measurement_error(random_state=0)
    assert X.shape == (500, 5)
    assert y.shape == (500,)
    stored = [0.5238149019081295, 0.9447165331082407, -0.7350094515792991, -0.5084753029938014, 0.5344018782695752]
    np.testing.assert_allclose(X[0], stored, rtol=1e-12)
    np.testing.assert_allclose(y[:3], [4.823162099079482, -1.5047186568105813, 4.232951566303041], rtol=1e-12)


def full_row_rank_reference(n, p, seed):
    """Inputs and noise-free responses of eq. (roweq)."""
    rng = np.random.default_rng(seed)
    w1, w2, w3 = (rng.choice([-2.0, -1.0, 1.0, 2.0], size=shape) for shape in [(5, p), (5, 5), (5,)])
    X = correlated_rows(rng, n, p)
    return X, np.array([w3 @ np.tanh(w2 @ np.tanh(w1 @ x)) for x in X])


@pytest.mark.parametrize("n", [3000, 3500])
def test_full_row_rank_is_the_paper_s_network(n):
    """For both n: the weights are those of the seed, however many rows are drawn."""
    X_reference, mean = full_row_rank_reference(n, 40, 5)
    X, y = make_full_row_rank(n, n_features=40, random_state=5)
    np.testing.assert_allclose(X, X_reference, rtol=1e-12, atol=1e-12)
    assert_unit_noise(y - mean)
    assert y.var() > 2  # there is a signal


def test_full_row_rank_inputs():
    X, _ = make_full_row_rank(20000, n_features=6, random_state=1)
    assert_near(X.mean(axis=0), 0, np.sqrt(1 / 20000))
    assert_near(X.var(axis=0), 1, np.sqrt(2 / 20000))
    assert_correlated(X, 0.5)
    assert stats.kstest(X[:, 0], "norm").pvalue > 6e-7


def test_full_row_rank_has_full_row_rank():
    X, y = make_full_row_rank(random_state=0)
    assert X.shape == (1000, 1000)
    assert y.shape == (1000,)
    assert np.linalg.matrix_rank(np.column_stack([X, np.ones(1000)])) == 1000


def kernel_network_reference(n, m, seed, tanh):
    """The data by scikit-learn's SVR and the written-out kernel, with the noise apart."""
    rng = np.random.default_rng(seed)
    w2, b2 = rng.normal(size=5), rng.normal()
    X, responses, noise = correlated_rows(rng, n, 5), rng.normal(size=(n, 5)), rng.normal(size=n)
    X_test, noise_test = correlated_rows(rng, m, 5), rng.normal(size=m)
    gamma = 1 / (5 * X.var())
    svrs = [SVR(C=5, epsilon=0.01, gamma=gamma, tol=1e-8).fit(X, responses[:, j]) for j in range(5)]

    def mean(rows):
        k = np.exp(-gamma * ((rows[:, None, :] - X[None, :, :]) ** 2).sum(axis=2))
        hidden = np.column_stack([k[:, svr.support_] @ svr.dual_coef_[0] + svr.intercept_ for svr in svrs])
        return (np.tanh(hidden) if tanh else hidden) @ w2 + b2

    return X, mean(X), noise, X_test, mean(X_test), noise_test


@pytest.mark.parametrize("tanh", [True, False])
def test_kernel_network_is_the_paper_s_network(tanh):
    X, mean, noise, X_test, mean_test, noise_test = kernel_network_reference(150, 3000, 7, tanh)
    ours = make_kernel_network(150, 3000, tanh=tanh, random_state=7)
    np.testing.assert_allclose(ours[0], X, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(ours[2], X_test, rtol=1e-12, atol=1e-12)
    # The duals agree to the solver's gap, which the noise of variance 1 buries.
    np.testing.assert_allclose(ours[1], mean + noise, atol=0.03)
    np.testing.assert_allclose(ours[3], mean_test + noise_test, atol=0.03)
    assert_unit_noise(ours[3] - mean_test)
    assert mean_test.std() > 0.1


def test_tanh_is_the_only_difference():
    with_tanh = make_kernel_network(60, 30, random_state=2)
    without = make_kernel_network(60, 30, tanh=False, random_state=2)
    np.testing.assert_array_equal(with_tanh[0], without[0])
    np.testing.assert_array_equal(with_tanh[2], without[2])
    assert np.abs(with_tanh[1] - without[1]).max() > 0.01


def test_training_part_does_not_depend_on_the_test_part():
    short, long = make_kernel_network(60, 10, random_state=2), make_kernel_network(60, 50, random_state=2)
    np.testing.assert_array_equal(short[0], long[0])
    np.testing.assert_array_equal(short[1], long[1])


MAKERS = {
    "measurement_error": lambda seed: make_measurement_error(50, random_state=seed),
    "full_row_rank": lambda seed: make_full_row_rank(50, n_features=7, random_state=seed),
    "kernel_network": lambda seed: make_kernel_network(40, 20, random_state=seed),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_seed_names_a_data_set(make):
    for arrays in zip(make(4), make(4), make(np.random.default_rng(4)), strict=True):
        np.testing.assert_array_equal(arrays[0], arrays[1])
        np.testing.assert_array_equal(arrays[0], arrays[2])
    assert not np.array_equal(make(4)[0], make(5)[0])
    assert not np.array_equal(make(None)[0], make(None)[0])
    np.testing.assert_array_equal(make(np.random.RandomState(4))[1], make(np.random.RandomState(4))[1])
    assert all(np.isfinite(array).all() and array.dtype == np.float64 for array in make(4))


@pytest.mark.parametrize("make", [make_measurement_error, make_full_row_rank, make_kernel_network])
def test_bad_arguments_are_named(make):
    with pytest.raises(ValueError, match=r"n_samples=0 must be a whole number of at least [12]"):
        make(0)
    with pytest.raises(ValueError, match=r"n_samples=2\.5 must be a whole number"):
        make(2.5)
    with pytest.raises(ValueError, match="random_state='x' names no generator"):
        make(10, random_state="x")
    with pytest.raises(ValueError, match="random_state=-1 names no generator"):
        make(10, random_state=-1)


def test_further_bad_arguments():
    with pytest.raises(ValueError, match="n_features=0 must be a whole number"):
        make_full_row_rank(n_features=0)
    with pytest.raises(ValueError, match="n_test=0 must be a whole number"):
        make_kernel_network(10, 0)
