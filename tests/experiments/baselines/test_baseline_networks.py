"""What the four estimators are: scikit-learn's manners, known optima, the kernel expansion, MC dropout, kinds of data."""

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes, load_iris, load_linnerud, make_regression
from sklearn.linear_model import Lasso, LinearRegression, LogisticRegression
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_sample_weight_equivalence_on_dense_data, parametrize_with_checks

from experiments.baselines import DNNClassifier, DNNRegressor, KernelNetworkClassifier, KernelNetworkRegressor
from kstonet import GramTooLargeError

REGRESSORS = [DNNRegressor, KernelNetworkRegressor]
CLASSIFIERS = [DNNClassifier, KernelNetworkClassifier]
FAST = {"max_epochs": 30, "learning_rate": 0.03, "batch_size": 20, "random_state": 0}


def expected_failures(estimator):
    if isinstance(estimator, KernelNetworkRegressor | KernelNetworkClassifier):
        reason = "every training row carries weights of its own: a row given twice makes another network than one of weight two"
    else:
        reason = "a row given twice and a row of weight two meet in different minibatches; it passes with batch_size=None"
    return {"check_sample_weight_equivalence_on_dense_data": reason}


@parametrize_with_checks([cls(**FAST) for cls in REGRESSORS + CLASSIFIERS], expected_failed_checks=expected_failures)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("cls", [DNNRegressor, DNNClassifier])
def test_a_weight_of_two_is_a_row_given_twice_where_batches_play_no_part(cls):
    check_sample_weight_equivalence_on_dense_data(cls.__name__, cls(**(FAST | {"batch_size": None})))


@pytest.fixture(scope="module")
def diabetes():
    X, y = load_diabetes(return_X_y=True)
    return StandardScaler().fit_transform(X), (y - y.mean()) / y.std()


@pytest.fixture(scope="module")
def well_conditioned():
    X, Y = make_regression(200, 4, n_informative=4, n_targets=2, noise=5.0, random_state=0)
    return X, Y / Y.std()


def sine(n=120, noise=0.1):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, size=(n, 1))
    return X, np.sin(X[:, 0]) + rng.normal(scale=noise, size=n)


# -- known optima ----------------------------------------------------------------------------------------------------------


# Adam divides by the size of recent gradients: where they vanish, at a constant rate, it jumps off the optimum now and then.
PRECISION = {"sgd": 1e-7, "momentum": 1e-7, "adam": 1e-3}


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("solver", PRECISION)
def test_without_hidden_layer_it_is_linear_regression(well_conditioned, solver, standardize):
    X, Y = well_conditioned
    model = DNNRegressor(
        (), solver=solver, learning_rate=0.05, batch_size=None, max_epochs=1000, standardize=standardize, random_state=0
    ).fit(X, Y)
    exact = LinearRegression().fit(X, Y)
    np.testing.assert_allclose(model.predict(X), exact.predict(X), atol=PRECISION[solver])
    if not standardize:
        np.testing.assert_allclose(model.coefs_[0], exact.coef_.T, atol=PRECISION[solver])
        np.testing.assert_allclose(model.intercepts_[0], exact.intercept_, atol=PRECISION[solver])


def test_without_hidden_layer_it_is_logistic_regression():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = (X @ rng.normal(size=(3, 3)) + rng.gumbel(size=(300, 3))).argmax(axis=1)  # the model itself, so not separable
    exact = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    model = DNNClassifier((), learning_rate=0.05, batch_size=None, max_epochs=1000, random_state=0).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
def test_with_a_penalty_it_is_the_lasso(diabetes, solver, alpha):
    X, y = diabetes
    settings = {"learning_rate": 0.02, "batch_size": None, "max_epochs": 2000, "standardize": False, "random_state": 0}
    model = DNNRegressor((), solver=solver, alpha=alpha, **settings).fit(X, y)
    w = model.coefs_[0][:, 0]
    exact = Lasso(alpha=alpha / 2, tol=1e-10).fit(X, y)  # its loss is half the mean squared error
    np.testing.assert_allclose(w, exact.coef_, atol=1e-8)
    np.testing.assert_array_equal(w == 0, exact.coef_ == 0)
    assert 0 < (w == 0).sum() < len(w)
    gradient = 2 * X.T @ (model.predict(X) - y) / len(y)
    assert (np.abs(gradient[w == 0]) <= alpha + 1e-8).all()  # 0 ∈ gradient + alpha·∂|w|
    np.testing.assert_allclose(gradient[w != 0], -alpha * np.sign(w[w != 0]), atol=1e-8)
    assert model.history_[-1]["penalty"] == pytest.approx(alpha * np.abs(w).sum())


def test_the_penalty_acts_in_minibatches_and_hidden_layers_and_spares_biases():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 20))
    y = np.tanh(X[:, 0]) + X[:, 1] ** 2 + 0.1 * rng.normal(size=300)
    model = DNNRegressor((6, 4), alpha=0.02, max_epochs=300, random_state=0).fit(X, y)
    first = model.coefs_[0]
    assert (first[2:] == 0).mean() > 0.6  # exactly
    assert (first[:2] != 0).any(axis=1).all()
    assert all((biases != 0).all() for biases in model.intercepts_)
    assert model.score(X, y) > 0.9
    assert (model.set_params(alpha=0.0, max_epochs=10).fit(X, y).coefs_[0] != 0).all()


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize("solver", ["sgd", "momentum", "adam"])
def test_every_solver_learns_a_curve(cls, solver):
    X, y = sine()
    rate = {"sgd": 0.05, "momentum": 0.02, "adam": 0.01}[solver]
    model = cls((10,), solver=solver, learning_rate=rate, batch_size=20, max_epochs=300, random_state=0).fit(X, y)
    assert model.score(X, y) > 0.95


# -- the kernel expansion --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("standardize_kernel", [True, False])
def test_kernel_network_is_the_representer_of_the_paper(standardize_kernel):
    X, y = sine(50)
    new = np.linspace(-4, 4, 7)[:, None]
    model = KernelNetworkRegressor(
        (4, 3), gamma=0.7, standardize=False, standardize_kernel=standardize_kernel, max_epochs=20, random_state=0
    ).fit(X, y)
    (w1, w2, w3), (b1, b2, b3) = model.coefs_, model.intercepts_
    assert w1.shape == (50, 4)
    for x, predicted in zip(new, model.predict(new), strict=True):
        first = b1 + sum(w1[i] * np.exp(-0.7 * (X[i, 0] - x[0]) ** 2) for i in range(50))  # eq. (KNN_kernel_form)
        by_hand = np.tanh(np.tanh(first) @ w2 + b2) @ w3 + b3
        assert predicted == pytest.approx(by_hand[0])


def test_precomputed_kernel_is_the_same_network(diabetes):
    X, y = diabetes
    model = KernelNetworkRegressor(gamma=0.1, **FAST).fit(X[:100], y[:100])
    kernel, scaled = model.kernel_, StandardScaler().fit(X[:100]).transform(X)
    given = clone(model).set_params(kernel="precomputed").fit(kernel(scaled[:100], scaled[:100]), y[:100])
    np.testing.assert_allclose(given.predict(kernel(scaled[100:], scaled[:100])), model.predict(X[100:]))
    assert len(pickle.dumps(given)) < 100 * 100 * 8
    with pytest.raises(ValueError, match=r"square matrix .* shape \(100, 10\)"):
        given.fit(X[:100], y[:100])


@pytest.mark.parametrize("kernel", ["laplacian", "poly", lambda X, Y: X @ Y.T])
def test_other_kernels(diabetes, kernel):
    X, y = diabetes
    assert KernelNetworkRegressor(kernel=kernel, **FAST).fit(X[:80], y[:80]).score(X[:80], y[:80]) > 0.4


def test_memory_is_asked_for_before_it_is_taken(diabetes):
    X, y = diabetes
    with pytest.raises(GramTooLargeError, match=r"n=442 rows needs 1\.6 MB"):
        KernelNetworkRegressor(max_memory=1e6).fit(X, y)


# -- MC dropout ------------------------------------------------------------------------------------------------------------


def test_dropout_variance_is_that_of_the_formula(well_conditioned):
    X, Y = well_conditioned
    model = DNNRegressor((), dropout=0.2, mc_samples=4000, max_epochs=50, standardize=False, random_state=0).fit(X, Y[:, 0])
    mean, std = model.predict(X, return_std=True, tau=4.0)
    w, b = model.coefs_[0][:, 0], model.intercepts_[0]
    # Each product w_j·x_j is kept with probability 0.8 and divided by it: the mean stays, the variance is known.
    variance = (w * X) ** 2 @ np.full(4, 0.2 / 0.8)
    np.testing.assert_allclose(std**2 - 1 / 4.0, variance, rtol=0.15)
    assert (np.abs(mean - X @ w - b) <= 5 * np.sqrt(variance / 4000)).all()
    samples = model.predict_samples(X)
    assert samples.shape == (4000, len(X))
    np.testing.assert_allclose(samples.mean(axis=0), mean)
    np.testing.assert_allclose(model.set_params(mc_samples=0).predict(X), X @ w + b)


def test_dropout_doubts_what_it_has_not_seen_and_covers_what_it_has():
    X, y = sine(300, noise=0.2)
    X_val, y_val = X[200:], y[200:]
    model = DNNRegressor(50, "relu", dropout=0.05, max_epochs=200, learning_rate=0.01, random_state=0)
    model.fit(X[:200], y[:200], X_val=X_val, y_val=y_val)
    mean, std = model.predict(X_val, return_std=True)
    assert 0.88 <= (np.abs(y_val - mean) <= 1.96 * std).mean() <= 1.0
    assert model.noise_variance_[0] == pytest.approx(model.history_[-1]["val_mse"])
    far = model.predict([[8.0]], return_std=True)[1]
    assert far[0] > 2 * np.median(std)


def test_without_dropout_the_noise_is_all(diabetes):
    X, y = diabetes
    model = DNNRegressor(**FAST).fit(X, y)
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_array_equal(mean, model.predict(X))
    np.testing.assert_allclose(std**2, np.mean((y - mean) ** 2))
    with pytest.raises(ValueError, match="tau=0"):
        model.predict(X, return_std=True, tau=0)


@pytest.mark.parametrize("cls", REGRESSORS + CLASSIFIERS)
def test_with_dropout_a_prediction_does_not_depend_on_its_company(cls, monkeypatch):
    X, y = load_iris(return_X_y=True)
    model = cls((8, 8), dropout=0.1, mc_samples=20, **FAST).fit(X, y)
    predict = getattr(model, "predict_proba", model.predict)
    np.testing.assert_allclose(predict(X)[90:], predict(X[90:]))
    np.testing.assert_array_equal(predict(X), predict(X))
    before = predict(X)
    for module in ("base", "feedforward"):
        monkeypatch.setattr(f"experiments.baselines.{module}.BLOCK_VALUES", 100)
    np.testing.assert_allclose(predict(X), before)
    assert model.score(X, y) > 0.8


def test_dropout_in_classification_softens_the_probabilities():
    X, y = load_iris(return_X_y=True)
    model = DNNClassifier(20, dropout=0.3, mc_samples=200, **FAST).fit(X, y)
    soft = model.predict_proba(X).max(axis=1).mean()
    sharp = model.set_params(mc_samples=0).predict_proba(X).max(axis=1).mean()
    assert soft < sharp


# -- data ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("cls", REGRESSORS)
def test_many_targets(cls):
    X, Y = load_linnerud(return_X_y=True)
    model = cls(**FAST).fit(X, Y)
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    assert model.noise_variance_.shape == (3,)
    np.testing.assert_allclose(((Y - mean) ** 2).mean(), model.history_[-1]["mse"])
    assert cls(**FAST).fit(X, Y[:, 0]).predict(X).ndim == 1


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_labels_of_any_type(cls):
    X, codes = load_iris(return_X_y=True)
    y = np.array(["setosa", "versicolor", "virginica"])[codes]
    model = cls(**FAST).fit(X, y)
    assert set(model.predict(X)) == set(y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.history_[-1]["accuracy"] == pytest.approx(model.score(X, y))
    np.testing.assert_array_equal(cls(**FAST).fit(X, codes).predict_proba(X), model.predict_proba(X))
    two = cls(**FAST).fit(X[:100], y[:100])
    assert two.predict_proba(X).shape == (150, 2)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_feature_names_and_weights(cls, diabetes):
    X, y = diabetes
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(10)])
    weights = np.random.default_rng(0).uniform(0.5, 1.5, size=len(y))
    model = cls(**FAST).fit(frame, y, sample_weight=weights)
    assert list(model.feature_names_in_) == list(frame.columns)
    rescaled = cls(**FAST).fit(X, y, sample_weight=10 * weights)  # only ratios of weights mean anything
    np.testing.assert_allclose(rescaled.predict(X), model.predict(frame), atol=1e-8)
    mse = np.average((y - model.predict(frame)) ** 2, weights=weights)
    assert model.history_[-1]["mse"] == pytest.approx(mse)


def test_weights_decide_whom_the_network_serves():
    X = np.zeros((100, 1))
    y = np.repeat([0.0, 1.0], 50)
    weights = np.repeat([1.0, 9.0], 50)
    assert DNNRegressor(**FAST).fit(X, y, sample_weight=weights).predict([[0.0]])[0] == pytest.approx(0.9, abs=0.02)
    probabilities = DNNClassifier(**FAST).fit(X, y, sample_weight=weights).predict_proba([[0.0]])
    np.testing.assert_allclose(probabilities, [[0.1, 0.9]], atol=0.02)


def test_float32_is_the_same_training_up_to_rounding(diabetes):
    X, y = diabetes
    for cls in REGRESSORS:
        double = cls(**FAST).fit(X, y)
        single = cls(dtype="float32", **FAST).fit(X, y)
        assert single.coefs_[1].dtype == np.float32
        np.testing.assert_allclose(single.predict(X), double.predict(X), atol=0.02)


def test_degenerate_data_gives_sensible_fits():
    X = np.random.default_rng(0).normal(size=(4, 2))
    for cls in REGRESSORS:
        assert np.isfinite(cls((20,), **FAST).fit(X, [1.0, 2.0, 3.0, 4.0]).predict(X)).all()
        np.testing.assert_allclose(cls(**FAST).fit(X, np.full(4, 7.0)).predict(X), 7.0, atol=0.2)
        np.testing.assert_allclose(cls(**FAST).fit(np.full((4, 2), 0.1), [1.0, 2.0, 3.0, 4.0]).predict(X[:1]), 2.5, atol=0.5)
