"""Prediction intervals and probabilities as users meet them."""

import pickle

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_linnerud
from sklearn.metrics import log_loss

from kstonet import KStoNetClassifier, KStoNetRegressor, StoNetClassifier, StoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage, mean_width

FAST = {"max_iter": 8, "n_average": 3, "n_imputation_steps": 10, "random_state": 0}
REGRESSORS = [KStoNetRegressor, StoNetRegressor]


@pytest.fixture(scope="module")
def data():
    X, y = make_measurement_error(700, random_state=0)
    return X[:300], y[:300], X[300:], y[300:]


@pytest.mark.parametrize("kind", REGRESSORS)
def test_the_ways_to_ask_agree(kind, data):
    X, y, Xt, yt = data
    model = kind(**FAST).fit(X, y)
    mean, std = model.predict(Xt, return_std=True)
    np.testing.assert_allclose(mean, model.predict(Xt))
    np.testing.assert_allclose(model.predict_var(Xt), std**2)
    d = model.predict_dist(Xt)
    np.testing.assert_allclose(sum(d.variance_by_source.values()), std**2)
    assert set(d.variance_by_source) == {"noise", "first layer", "regression layers", "between iterations"}
    np.testing.assert_allclose(model.predict_interval(Xt, 0.9), d.interval(0.9))
    assert model.predict_interval(Xt, [0.5, 0.9, 0.95]).shape == (len(Xt), 2, 3)
    np.testing.assert_allclose(model.predict_quantiles(Xt, [0.05, 0.95]), d.interval(0.9))
    narrow, wide = model.predict_interval(Xt, kind="confidence"), model.predict_interval(Xt)
    assert (narrow[:, 0] >= wide[:, 0]).all()
    assert mean_width(narrow) < 0.9 * mean_width(wide)
    draws = model.sample_y(Xt[:5], 4000, random_state=1)
    np.testing.assert_allclose(draws.std(axis=1), std[:5], rtol=0.1)
    second = model.predict_dist(Xt, order=2)
    assert np.abs(second.mean - mean).max() < 0.5 * y.std()
    assert d.logpdf(yt).mean() > -0.5 * np.log(2 * np.pi * yt.var()) - 0.6


def test_cross_fitted_residuals_cover_where_training_residuals_do_not(data):
    """400 test rows: the binomial standard error of a coverage of 0.95 is 0.011; four of them are allowed below."""
    X, y, Xt, yt = data
    honest = KStoNetRegressor(tuning="none", **FAST, C=100.0, residuals="crossfit").fit(X, y)
    paper = KStoNetRegressor(tuning="none", **FAST, C=100.0, residuals="training").fit(X, y)
    assert coverage(yt, honest.predict_interval(Xt)) > 0.95 - 4 * 0.011
    assert coverage(yt, paper.predict_interval(Xt)) < 0.9


def test_noise_that_grows_with_the_target_is_covered_where_it_is_small_and_where_it_is_large():
    """Deviation exp(x/2) around 2x, 1,000 new rows in each third: four standard errors of 0.9 are 0.04, the fit adds some."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(3400, 1))
    y = 2 * X[:, 0] + np.exp(0.5 * X[:, 0]) * rng.normal(size=len(X))
    model = KStoNetRegressor(tuning="none", C=1.0, random_state=0).fit(X[:400], y[:400])
    order = 400 + np.argsort(X[400:, 0])
    thirds = [order[:1000], order[1000:2000], order[2000:]]
    inside = [coverage(y[rows], model.predict_interval(X[rows], 0.9)) for rows in thirds]
    assert np.abs(np.array(inside) - 0.9).max() < 0.06
    deviations = model.predict(np.array([[-1.5], [1.5]]), return_std=True)[1]
    assert deviations[1] / deviations[0] == pytest.approx(np.exp(1.5), rel=0.3)


def test_an_interrupt_while_intervals_are_prepared_leaves_a_model(data):
    """The penalty of an iteration after the eighth is asked for by cross-fitting only."""
    X, y, Xt, _ = data

    def interrupt(iteration):
        if iteration >= FAST["max_iter"]:
            raise KeyboardInterrupt
        return 1e-3

    with pytest.warns(UserWarning, match="interrupted while intervals were prepared"):
        model = KStoNetRegressor(tuning="none", **FAST, alpha=interrupt).fit(X, y)
    paper = KStoNetRegressor(tuning="none", **FAST, alpha=1e-3, residuals="training").fit(X, y)
    np.testing.assert_allclose(model.predict_interval(Xt), paper.predict_interval(Xt), rtol=1e-8)
    with pytest.raises(ValueError, match="interrupted before it had them"):
        model.calibrate()


def test_several_targets_have_covariances():
    X, Y = load_linnerud(return_X_y=True)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, Y)
    mean, covariance = model.predict(X, return_cov=True)
    assert mean.shape == (20, 3)
    assert covariance.shape == (20, 3, 3)
    assert (np.linalg.eigvalsh(covariance) > 0).all()
    _, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(std**2, np.diagonal(covariance, axis1=1, axis2=2))
    assert model.predict_interval(X).shape == (20, 3, 2)
    assert model.predict_interval(X, [0.8, 0.9]).shape == (20, 3, 2, 2)
    assert model.predict_quantiles(X, [0.1, 0.5, 0.9]).shape == (20, 3, 3)
    assert model.sample_y(X, 5).shape == (20, 3, 5)
    with pytest.raises(ValueError, match="exclude each other"):
        model.predict(X, return_std=True, return_cov=True)
    model.calibrate()
    assert np.isfinite(model.predict_interval(X, 0.8)).all()


def test_split_conformal_covers_whatever_the_model(data):
    """A poor model, then calibrated on 200 rows: coverage of 200 others is beta-distributed around 0.9 (sd 0.03); 4 sd."""
    X, y, Xt, yt = data
    model = KStoNetRegressor(tuning="none", **(FAST | {"max_iter": 1, "n_average": 1}), residuals="training", C=1000.0).fit(
        X[:40], y[:40]
    )
    before = coverage(yt[200:], model.predict_interval(Xt[200:], 0.9))
    model.calibrate(Xt[:200], yt[:200])
    after = coverage(yt[200:], model.predict_interval(Xt[200:], 0.9))
    assert abs(after - 0.9) < 0.12
    assert abs(after - 0.9) <= abs(before - 0.9) + 0.03
    q = model.predict_quantiles(Xt[:5], [0.05, 0.5, 0.95])
    np.testing.assert_allclose(q[:, [0, 2]], model.predict_interval(Xt[:5], 0.9))
    np.testing.assert_allclose(q[:, 1], model.predict(Xt[:5]), atol=0.5)


def test_widths_are_counted_on_the_out_of_sample_residuals(data):
    X, y, Xt, yt = data
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    scores = model.trained_.calibration.out_of_sample.scores[:, 0]
    assert len(scores) == len(X)
    mean, std = model.predict(Xt, return_std=True)
    for level in (0.8, 0.9, 0.95):
        interval = model.predict_interval(Xt, level)
        assert abs(coverage(yt, interval) - level) < 0.08
        deviations = (interval - mean[:, None]) / std[:, None]  # the same number of them for every row, either way
        np.testing.assert_allclose(deviations, [[-deviations[0, 1], deviations[0, 1]]] * len(Xt), rtol=1e-9)
        within = np.mean(scores <= deviations[0, 1] * (1 + 1e-9))  # of the training rows, predicted out of sample
        assert level <= within <= level + 2 / len(X)
    assert np.isfinite(model.predict_interval(Xt, 0.99999)).all()
    own = model.predict_interval(Xt)
    assert not np.allclose(model.calibrate(Xt, yt).predict_interval(Xt), own)
    np.testing.assert_array_equal(model.calibrate().predict_interval(Xt), own)
    with pytest.raises(ValueError, match="keeps no out-of-sample predictions"):
        KStoNetRegressor(tuning="none", **FAST, residuals="training").fit(X, y).calibrate()
    with pytest.raises(ValueError, match="together"):
        model.calibrate(X)


@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_cross_fitting(kernel, data):
    X, y, Xt, yt = data
    X, y = X[:150], y[:150]
    model = KStoNetRegressor(tuning="none", **FAST, residuals="crossfit", kernel=kernel, C=50.0)
    if kernel == "precomputed":
        reference = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
        scale = reference.trained_.scaler.forward
        K, Kt = reference.kernel_(scale(X), scale(X)), reference.kernel_(scale(Xt), scale(X))
        model.fit(K, y)
        assert coverage(yt, model.predict_interval(Kt)) > 0.9
    else:
        model.fit(X, y)
        assert coverage(yt, model.predict_interval(Xt)) > 0.9


def test_units_with_their_own_kernels_and_stored_models(data):
    X, y, Xt, _ = data
    model = KStoNetRegressor((3,), tuning="none", kernel=["rbf", "matern32", "rbf"], gamma=[0.1, 0.2, 0.3], **FAST).fit(X, y)
    stored = pickle.loads(pickle.dumps(model))
    np.testing.assert_allclose(stored.predict_interval(Xt), model.predict_interval(Xt), rtol=1e-10)
    assert len(pickle.dumps(model)) < 8 * 300 * 300 * 3


def test_precomputed_kernels_need_a_shared_diagonal(data):
    X, y, _, _ = data
    with pytest.raises(ValueError, match="Normalise the kernel"):
        KStoNetRegressor(tuning="none", kernel="precomputed", **FAST).fit(X @ X.T, y)
    assert KStoNetRegressor(tuning="none", kernel="precomputed", residuals=None, **FAST).fit(X @ X.T, y).n_iter_ == 8


def test_means_only(data):
    X, y, Xt, _ = data
    model = KStoNetRegressor(tuning="none", **FAST, residuals=None).fit(X, y)
    assert np.isfinite(model.predict(Xt)).all()
    with pytest.raises(ValueError, match="residuals=None"):
        model.predict_interval(Xt)
    with pytest.raises(ValueError, match="residuals=None"):
        KStoNetClassifier(tuning="none", **FAST, residuals=None).fit(X, y > 0).predict_proba_interval(Xt)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, X: m.predict_interval(X, 95), "coverage=95 must lie strictly between 0 and 1"),
        (lambda m, X: m.predict_interval(X, kind="both"), "kind='both'"),
        (lambda m, X: m.predict_dist(X, order=3), "order=3"),
        (lambda m, X: m.predict_quantiles(X, [0.0]), r"q=\[0.0\]"),
    ],
)
def test_bad_questions_are_named(call, message, data):
    X, y, Xt, _ = data
    model = KStoNetRegressor(tuning="none", **(FAST | {"max_iter": 1})).fit(X[:60], y[:60])
    with pytest.raises(ValueError, match=message):
        call(model, Xt)


def test_weights_of_zero_leave_rows_out_of_the_noise_too(data):
    X, y, Xt, _ = data
    spoiled = y.copy()
    spoiled[:30] += 1000.0
    weights = np.ones(len(y))
    weights[:30] = 0.0
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, spoiled, weights)
    assert model.predict(Xt, return_std=True)[1].max() < 5 * y.std()


# -- classifiers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [KStoNetClassifier, StoNetClassifier])
@pytest.mark.parametrize("load", [load_breast_cancer, load_iris])
def test_probability_intervals_hold_the_probability(kind, load):
    X, y = load(return_X_y=True)
    model = kind(**FAST).fit(X[::2], y[::2])
    p = model.predict_proba(X[1::2])
    bounds = model.predict_proba_interval(X[1::2], [0.5, 0.95])
    assert bounds.shape == (*p.shape, 2, 2)
    assert (bounds[..., 0, :] <= p[..., None] + 1e-12).all()
    assert (bounds[..., 1, :] >= p[..., None] - 1e-12).all()
    assert ((bounds >= 0) & (bounds <= 1)).all()
    assert (bounds[..., 1, 1] >= bounds[..., 1, 0]).all()
    if p.shape[1] == 2:  # the interval of the other class is the mirror image
        np.testing.assert_allclose(bounds[:, 0, 0], 1 - bounds[:, 1, 1], atol=1e-9)


def test_calibrated_probabilities_are_better_and_still_sum_to_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(900, 3))
    y = np.where(rng.uniform(size=900) < 1 / (1 + np.exp(-2 * X[:, 0])), "yes", "no")
    model = KStoNetClassifier(tuning="none", **FAST, C=100.0).fit(X[:300], y[:300])  # noisy labels and a large C: overconfident
    labels = model.predict(X[600:])
    inside = log_loss(y[600:], model.predict_proba(X[600:]))
    before = log_loss(y[600:], model.trained_.proba(X[600:], tempered=False))
    model.calibrate(X[300:600], y[300:600])
    p = model.predict_proba(X[600:])
    assert log_loss(y[600:], p) < before
    assert inside < before
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    np.testing.assert_array_equal(model.predict(X[600:]), labels)
    assert model.calibration_temperature_ > 1.0
    with pytest.raises(ValueError, match="it knows"):
        model.calibrate(X[:2], ["maybe", "no"])


def test_diabetes_by_default():
    """A user's first try: 221 rows to train, 221 new ones; coverage 0.95 has a standard error of 0.015."""
    X, y = load_diabetes(return_X_y=True)
    model = KStoNetRegressor(tuning="none", random_state=0).fit(X[::2], y[::2])
    assert 0.90 <= coverage(y[1::2], model.predict_interval(X[1::2])) <= 0.995


def test_a_new_fit_forgets_the_old_calibration():
    X, y = load_breast_cancer(return_X_y=True)
    model = KStoNetClassifier(tuning="none", **FAST, residuals=None).fit(X[::3], y[::3])
    fresh = model.predict_proba(X)
    model.calibrate(X[1::3], y[1::3])
    model.fit(X[::3], y[::3])
    assert model.calibration_temperature_ == 1.0
    np.testing.assert_array_equal(model.predict_proba(X), fresh)
