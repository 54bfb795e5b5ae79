"""The recursion of Section 5 against Monte Carlo, closed forms and Gaussian processes.

Monte Carlo comparisons have fixed seeds and allow five standard errors: less than one false alarm in a million comparisons.
"""

import numpy as np
import pytest
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import LinearRegression, LogisticRegression

from kstonet.layers.activations import ACTIVATIONS, get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.heads import CategoricalHead
from kstonet.layers.margin import MOST_ROWS, MarginFactor, thinned
from kstonet.layers.moments import FIRST_LAYER, REGRESSION, Moments


def spread(rng, m, size):
    """A covariance matrix of a given size."""
    root = rng.normal(size=(m, m))
    return size * root @ root.T / m


# -- through the activations -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["tanh", "softplus", "sigmoid", "gelu", "identity"])
def test_bends_by_finite_differences(name):
    x, h = np.linspace(-4, 4, 41), 1e-5
    activation = ACTIVATIONS[name]
    numeric = (activation.slope(x + h) - activation.slope(x - h)) / (2 * h)
    np.testing.assert_allclose(activation.bend(x), numeric, atol=1e-6)
    numeric = (activation.bend(x + h) - activation.bend(x - h)) / (2 * h)
    np.testing.assert_allclose(activation.twist(x), numeric, atol=1e-6)


@pytest.mark.parametrize("name", ["tanh", "softplus", "gelu"])
def test_taylor_orders_approach_monte_carlo_at_their_rates(name):
    """Second order is better by far where the spread is small, and still better where it is wide."""
    rng = np.random.default_rng(0)
    activation, mean = get_activation(name), np.array([[0.7, -0.4]])
    base = spread(rng, 2, 1.0)
    nodes = rng.standard_normal((400_000, 2))
    nodes = np.concatenate([nodes, -nodes])
    errors = {}
    for size in (0.02, 0.2):
        covariance = size * base
        draws = activation.value(mean + nodes @ np.linalg.cholesky(covariance).T)
        for order in (1, 2):
            moments = Moments(mean, {FIRST_LAYER: covariance[None]}).activated(activation, order)
            errors[order, size] = (
                np.abs(moments.mean[0] - draws.mean(axis=0)).max(),
                np.abs(moments.covariance[0] - np.cov(draws.T)).max() / np.trace(covariance),
            )
    for size, better in ((0.02, 0.2), (0.2, 0.6)):
        for part in range(2):
            assert errors[2, size][part] < better * errors[1, size][part] + 2e-4


def test_the_whole_recursion_against_monte_carlo():
    """Two regression layers above random first-layer values: random inputs and random coefficients, drawn a million times."""
    rng = np.random.default_rng(1)
    activation = get_activation("tanh")
    n = 300
    Y1, Y2 = rng.normal(size=(n, 3)), None
    w1, w2 = rng.normal(size=(2, 3)), rng.normal(size=(1, 2))
    Y2 = np.tanh(Y1) @ w1.T + 0.3 * rng.normal(size=(n, 2))
    y = np.tanh(Y2) @ w2.T + 0.2 * rng.normal(size=(n, 1))
    layers = []
    for inputs, outputs in ((Y1, Y2), (Y2, y)):
        fit = LinearRegression().fit(np.tanh(inputs), outputs)
        layer = DenseLayer(fit.coef_, fit.intercept_, 1.0, activation, penalty="none")
        layers.append(layer.uncertainty(inputs, outputs))
    mean, covariance = np.array([0.3, -0.5, 0.2]), spread(rng, 3, 0.01)
    moments = Moments(mean[None], {FIRST_LAYER: covariance[None]})
    for layer in layers:
        moments = layer.propagate(moments, order=2)
    values = rng.multivariate_normal(mean, covariance, size=400_000)
    for layer in layers:
        k, q1 = len(layer.intercept), layer.weights.shape[1] + 1
        flat = np.column_stack([layer.intercept, layer.weights]).ravel()
        size = k * q1
        coefficients = rng.multivariate_normal(flat, layer.covariance.reshape(size, size), size=len(values)).reshape(-1, k, q1)
        extended = np.column_stack([np.ones(len(values)), np.tanh(values)])
        values = np.einsum("nka,na->nk", coefficients, extended)
    error = values.std() / np.sqrt(len(values))
    assert abs(values.mean() - moments.mean[0, 0]) < 5 * error + 1e-3
    assert values.var() == pytest.approx(moments.covariance[0, 0, 0], rel=0.03)
    assert set(moments.parts) == {FIRST_LAYER, REGRESSION}
    assert all((part > 0).all() for part in moments.parts.values())


# -- one regression layer ----------------------------------------------------------------------------------------------------


def test_least_squares_is_the_textbook_formula():
    """With exact inputs the variance is σ̂² x̃ᵀ(X̃ᵀX̃)⁻¹x̃, intercept and degrees of freedom included."""
    rng = np.random.default_rng(2)
    n, q = 40, 3
    inputs = rng.normal(size=(n, q))
    outputs = inputs @ rng.normal(size=(q, 2)) + rng.normal(size=(n, 2)) * [0.5, 2.0]
    fit = LinearRegression().fit(inputs, outputs)
    layer = DenseLayer(fit.coef_, fit.intercept_, 1.0, get_activation("identity"), penalty="none")
    uncertainty = layer.uncertainty(inputs, outputs)
    design = np.column_stack([np.ones(n), inputs])
    noise = ((outputs - fit.predict(inputs)) ** 2).sum(axis=0) / (n - q - 1)
    np.testing.assert_allclose(uncertainty.noise, noise)
    new = rng.normal(size=(5, q))
    moments = uncertainty.propagate(Moments(new, {FIRST_LAYER: np.zeros((5, q, q))}))
    extended = np.column_stack([np.ones(5), new])
    leverage = np.einsum("na,ab,nb->n", extended, np.linalg.inv(design.T @ design), extended)
    np.testing.assert_allclose(np.diagonal(moments.covariance, axis1=1, axis2=2), np.outer(leverage, noise))
    assert moments.covariance[0, 0, 1] == 0.0


@pytest.mark.parametrize("penalty", ["lasso", "scad", "mcp"])
def test_selected_layers_use_their_active_set(penalty):
    rng = np.random.default_rng(3)
    inputs = rng.normal(size=(60, 4))
    outputs = inputs[:, :2] @ np.array([[1.0], [-1.0]]) + 0.1 * rng.normal(size=(60, 1))
    layer = DenseLayer(np.zeros((1, 4)), np.zeros(1), 1.0, get_activation("identity"), penalty, 0.1).refit(inputs, outputs)
    assert (layer.weights[0, 2:] == 0).all()
    alone = DenseLayer(layer.weights[:, :2], layer.intercept, 1.0, layer.activation, penalty)
    small = alone.uncertainty(inputs[:, :2], outputs)
    whole = layer.uncertainty(inputs, outputs)
    np.testing.assert_allclose(whole.covariance[0, :3, 0, :3], small.covariance[0, :, 0, :])
    assert (whole.covariance[0, 3:] == 0).all()


def test_ridge_is_the_sandwich_by_simulation():
    """The variance of ridge coefficients over 4,000 simulated data sets with the same design."""
    rng = np.random.default_rng(4)
    n, q, alpha, sd = 50, 3, 0.3, 0.7
    inputs, truth = rng.normal(size=(n, q)), rng.normal(size=(q, 1))
    new = rng.normal(size=(1, q))
    start = DenseLayer(np.zeros((1, q)), np.zeros(1), 1.0, get_activation("identity"), "ridge", alpha)
    predictions, variances = [], []
    for _ in range(4000):
        outputs = inputs @ truth + sd * rng.normal(size=(n, 1))
        layer = start.refit(inputs, outputs)
        predictions.append(layer.mean(new)[0, 0])
        if len(variances) < 200:
            moments = layer.uncertainty(inputs, outputs).propagate(Moments(new, {FIRST_LAYER: np.zeros((1, q, q))}))
            variances.append(moments.covariance[0, 0, 0])
    assert np.mean(variances) == pytest.approx(np.var(predictions), rel=0.25)


@pytest.mark.parametrize("classes", [2, 3])
def test_logits_have_the_covariance_of_simulated_refits(classes):
    """Contrasts of multinomial logits over 300 data sets drawn from the fitted model, against the Fisher information."""
    rng = np.random.default_rng(5)
    n, q = 400, 2
    inputs = rng.normal(size=(n, q))
    logits = inputs @ rng.normal(size=(q, classes)) + [0.0, 0.5, -0.3][:classes]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(classes, p=row) for row in p])
    rows = 1 if classes == 2 else classes
    start = CategoricalHead(np.zeros((rows, q)), np.zeros(rows), classes, 1.0, get_activation("identity"), "none", 0.0)
    head = start.refit(inputs, codes)
    new = np.array([[0.5, -0.5]])
    uncertainty = head.uncertainty(inputs, codes)
    moments = uncertainty.propagate(Moments(new, {FIRST_LAYER: np.zeros((1, q, q))}))
    np.testing.assert_allclose(moments.mean, head.mean(new), atol=1e-10)
    fitted = np.exp(head.mean(inputs))
    fitted /= fitted.sum(axis=1, keepdims=True)
    contrasts = []
    for _ in range(300):
        drawn = (fitted.cumsum(axis=1) < rng.uniform(size=(n, 1))).sum(axis=1)
        model = LogisticRegression(C=np.inf, max_iter=1000).fit(inputs, drawn)
        value = model.decision_function(new)
        contrasts.append(value[0] if classes == 2 else value[0, 1] - value[0, 0])
    gradient = np.zeros(classes)
    gradient[1], gradient[0] = 1.0, -1.0
    assert gradient @ moments.covariance[0] @ gradient == pytest.approx(np.var(contrasts), rel=5 * np.sqrt(2 / 300))


# -- the support vector layer ------------------------------------------------------------------------------------------------


def kernel(A, B, gamma=0.5):
    return np.exp(-gamma * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def test_svr_variance_is_the_gaussian_process_posterior_on_the_margin_set():
    """Eq. (SVRvareq) without noise; with the intercept term the limit of a process with an unknown constant mean."""
    rng = np.random.default_rng(6)
    margin, new = rng.normal(size=(12, 2)), rng.normal(size=(7, 2))
    factor = MarginFactor.of(kernel(margin, margin), np.arange(12))
    ones = np.ones(7)
    process = GaussianProcessRegressor(RBF(1.0), optimizer=None, alpha=1e-12).fit(margin, np.zeros(12))
    _, std = process.predict(new, return_std=True)
    np.testing.assert_allclose(factor.variance(kernel(new, margin), ones, intercept=False), std**2, atol=1e-8)
    unknown = GaussianProcessRegressor(RBF(1.0) + ConstantKernel(1e4), optimizer=None, alpha=1e-12).fit(margin, np.zeros(12))
    _, std = unknown.predict(new, return_std=True)
    np.testing.assert_allclose(factor.variance(kernel(new, margin), ones), std**2, rtol=1e-2, atol=1e-6)


def test_left_out_variances_are_those_of_the_reduced_margin_set():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(15, 2))
    K = kernel(X, X)
    members = np.array([1, 4, 5, 9, 13])
    factor = MarginFactor.of(K[np.ix_(members, members)], members)
    spans = factor.left_out(K, np.diagonal(K), members)
    for i in range(15):
        rest = members[members != i]
        alone = MarginFactor.of(K[np.ix_(rest, rest)], rest)
        assert spans[i] == pytest.approx(alone.variance(K[i : i + 1], np.ones(1))[0], rel=1e-8)


def test_duplicates_and_empty_and_large_margin_sets():
    X = np.repeat(np.linspace(-1, 1, 5)[:, None], 4, axis=0)
    K = kernel(X, X)
    factor = MarginFactor.of(K, np.arange(20))
    at_rows = factor.variance(K, np.ones(20), intercept=False)
    assert (at_rows >= 0).all()
    assert at_rows.max() < 1e-4
    assert np.isfinite(factor.left_out(K, np.ones(20), np.arange(20))).all()
    empty = MarginFactor.of(np.empty((0, 0)), np.empty(0, dtype=int))
    np.testing.assert_array_equal(empty.variance(K, np.ones(20)), 1.0)
    np.testing.assert_array_equal(empty.left_out(K, np.ones(20), empty.columns), 1.0)
    assert len(thinned(np.arange(5000))) == len(np.unique(thinned(np.arange(5000)))) == MOST_ROWS
    np.testing.assert_array_equal(thinned(np.arange(30)), np.arange(30))


def test_moments_add_up():
    rng = np.random.default_rng(8)
    a, b = spread(rng, 2, 1.0)[None], spread(rng, 2, 0.5)[None]
    np.testing.assert_allclose(Moments(np.zeros((1, 2)), {FIRST_LAYER: a, REGRESSION: b}).covariance, a + b)
    assert np.isfinite(multivariate_normal(np.zeros(2), a[0]).logpdf(np.zeros(2)))
