"""Noise that depends on the features: the likelihood, left-out values, the choice of the ridge, what the record keeps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import t

import kstonet
from kstonet import KStoNetRegressor, StoNetRegressor
from kstonet.gram.kernels import RBF, Linear, Precomputed
from kstonet.metrics import coverage
from kstonet.uncertainty import local_scale
from kstonet.uncertainty.conformal import ConformalFactor, SkewedFactor, conformal_factor
from kstonet.uncertainty.local_scale import _log_density, _pull, _Smoother, learn_scale

FAST = {"max_iter": 3, "n_average": 2, "n_imputation_steps": 5, "random_state": 0}


def heteroscedastic(n, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + np.exp(X[:, 1] - 1) * rng.normal(size=n)


# -- the likelihood ----------------------------------------------------------------------------------------------------------


def test_log_density_is_that_of_students_t_of_variance_one():
    z, eta, df = np.array([-2.0, 0.1, 5.0]), np.array([0.3, -1.0, 0.0]), 4.5
    size = np.exp(eta) * np.sqrt((df - 2) / df)
    np.testing.assert_allclose(_log_density(z, eta, df) - 0.5 * np.log(np.pi), t.logpdf(z, df, 0, size))


def test_pull_is_the_derivative_over_its_information():
    """Against finite differences, and the information against an integral."""
    df, eta = 6.0, 0.4
    for z in (0.0, 0.7, -3.0):
        slope = approx_fprime(np.array([eta]), lambda at, z=z: float(_log_density(np.array(z), at[0], df)), 1e-7)[0]
        np.testing.assert_allclose(_pull(np.array(z), eta, df), slope * (df + 3) / (2 * df), atol=1e-5)
    draws = t.ppf((np.arange(200_000) + 0.5) / 200_000, df) * np.sqrt((df - 2) / df)
    np.testing.assert_allclose(np.mean((_pull(draws, 0.0, df) * 2 * df / (df + 3)) ** 2), 2 * df / (df + 3), rtol=1e-2)


@pytest.mark.parametrize("weighted", [False, True])
def test_scoring_finds_the_optimum_of_the_penalised_likelihood(weighted):
    rng = np.random.default_rng(0)
    n, df, ridge = 60, 5.0, 2.0
    F, z = rng.normal(size=(n, 3)), rng.normal(size=n)
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    weights /= weights.mean()
    fit = _Smoother.of(F, weights).fitted(z, ridge, df, np.zeros(n))
    information = 2 * df / (df + 3)

    def loss(at):
        eta = at[0] + F @ at[1:]
        return -(weights * _log_density(z, eta, df)).sum() + 0.5 * ridge * information * (at[1:] ** 2).sum()

    best = minimize(loss, np.zeros(4), tol=1e-12).x
    np.testing.assert_allclose(np.r_[fit.intercept, fit.coef], best, atol=3e-3)
    np.testing.assert_allclose(fit.intercept + F @ fit.coef, fit.eta, atol=3e-3)


def test_left_out_values_are_those_of_fits_without_the_row():
    rng = np.random.default_rng(1)
    n, df, ridge = 80, 8.0, 1.0
    F, z = rng.normal(size=(n, 4)), rng.normal(size=n)
    fit = _Smoother.of(F, np.ones(n)).fitted(z, ridge, df, np.zeros(n))
    without = np.empty(n)
    for i in range(n):
        rest = np.delete(np.arange(n), i)
        one = _Smoother.of(F[rest], np.ones(n - 1)).fitted(z[rest], ridge, df, np.zeros(n - 1))
        without[i] = one.intercept + F[i] @ one.coef
    moved = np.abs(without - fit.eta)
    assert np.median(np.abs(without - fit.left_out)) < 0.25 * np.median(moved)
    assert np.corrcoef(without, fit.left_out)[0, 1] > 0.99


# -- what is chosen ----------------------------------------------------------------------------------------------------------


def test_constant_noise_stays_constant():
    """The rule asks for one standard error of a gain that has been chosen as the best: it is rarely fooled."""
    fooled = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X, z = rng.normal(size=(200, 3)), rng.normal(size=(200, 1))
        found = learn_scale(RBF(gamma=0.3), X, X[:, :1], z, 30.0, None)
        fooled += found.scale is not None
        assert found.scale is None or np.ptp(found.left_out) < 1.5
    assert fooled <= 5


def test_rows_that_occur_twice_do_not_deceive():
    """Half of the rows have next to no residual since their twin is among the others: likely, but intervals gain nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 4))
    twins = rng.uniform(size=600) < 0.3
    z = np.where(twins, 1e-3, 1.0)[:, None] * rng.normal(size=(600, 1))
    found = learn_scale(RBF(gamma=0.25), X, X[:, :1], z / z.std(), 2.6, None)
    assert found.scale is None


def test_scale_of_every_output_is_learnt_on_its_own():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(800, 2))
    truth = np.column_stack([X[:, 0], 0 * X[:, 0]])
    found = learn_scale(RBF(gamma=0.5), X, np.zeros((800, 2)), np.exp(truth) * rng.normal(size=(800, 2)), 30.0, None)
    eta = found.scale(X, np.zeros((800, 2)))
    assert np.corrcoef(eta[:, 0], truth[:, 0])[0, 1] > 0.95
    assert (eta[:, 1] == 0).all()
    assert (np.abs(found.left_out - eta)[:, 0] < 0.5).all()


def test_scale_may_follow_the_mean_alone():
    rng = np.random.default_rng(0)
    X, mean = rng.normal(size=(1500, 20)), rng.uniform(-1.5, 1.5, size=(1500, 1))  # the features say nothing about it
    found = learn_scale(RBF(gamma=0.05), X, mean, np.exp(1 - mean**2) * rng.normal(size=(1500, 1)), 30.0, None)
    assert np.corrcoef(found.scale(X, mean)[:, 0], 1 - mean[:, 0] ** 2)[0, 1] > 0.9


def test_means_that_only_differ_by_their_own_residuals_are_no_guide():
    """The mean of all rows but one is as much lower as the target of that one is higher: errors seem to follow it exactly."""
    rng = np.random.default_rng(0)
    X, z = rng.normal(size=(500, 2)), rng.normal(size=(500, 1))
    without = (z.sum() - z) / 499
    assert learn_scale(RBF(gamma=0.5), X, without, z - without, 50.0, None).scale is None
    found = learn_scale(RBF(gamma=0.5), X, without, np.exp(X[:, :1]) * z, 50.0, None)
    assert not found.scale.slopes.any()
    assert abs(np.corrcoef(found.left_out[:, 0], X[:, 0])[0, 1]) > 0.9


def test_intervals_cover_where_nothing_can_be_predicted():
    """Pure noise; the band is four standard deviations of 2,000 binary draws, and of the half-width from 650 rows."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(2650, 6)), rng.normal(size=2650)
    model = KStoNetRegressor(random_state=0).fit(X[:650], y[:650])
    assert "better than the mean" in model.tuning_["reason"]
    assert 0.91 < coverage(y[650:], model.predict_interval(X[650:], 0.95)) < 0.99


def test_a_weight_is_a_count_and_rows_of_weight_zero_take_no_part(monkeypatch):
    monkeypatch.setattr(local_scale, "LANDMARKS", 10_000)  # all rows: landmarks are drawn from them
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(150, 1))
    z, weights = np.exp(X) * rng.normal(size=(150, 1)), rng.integers(0, 3, size=150).astype(float)
    counted = weights > 0
    weighted = learn_scale(RBF(gamma=1.0), X, 0 * X, z, 30.0, weights)
    alone = learn_scale(RBF(gamma=1.0), X[counted], 0 * X[counted], z[counted], 30.0, weights[counted])
    np.testing.assert_allclose(weighted.left_out[counted], alone.left_out, atol=1e-8)


@pytest.mark.parametrize("kernel", [None, Linear(), "precomputed"])
def test_any_kernel_will_do(kernel):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(600, 1))
    z = np.exp(X) * rng.normal(size=(600, 1))
    rows = X
    if kernel == "precomputed":
        kernel, rows = Precomputed(), np.exp(-((X - X.T) ** 2))
    found = learn_scale(kernel, rows, np.zeros((600, 1)), z, 30.0, None)
    assert np.corrcoef(found.scale(rows, np.zeros((600, 1)))[:, 0], X[:, 0])[0, 1] > 0.95


def test_exact_residuals_and_few_rows_leave_the_noise_alone():
    X = np.linspace(0, 1, 60)[:, None]
    assert learn_scale(RBF(gamma=1.0), X, X, 0 * X, 5.0, None).scale is None
    assert learn_scale(RBF(gamma=1.0), X[:20], X[:20], X[:20], 5.0, None).scale is None


# -- skewed errors -----------------------------------------------------------------------------------------------------------


def test_two_tails_have_their_coverage_on_either_side():
    """A fixed seed; the bounds are more than four standard errors of the counts of 4,000 rows."""
    rng = np.random.default_rng(0)
    errors = rng.exponential(size=(6000, 1)) - 1.0
    factor = conformal_factor(errors[:2000], np.ones((2000, 1)), 5.0)
    assert isinstance(factor, SkewedFactor)
    below, above = factor.tails(np.array([0.9]))
    assert abs(np.mean(errors[2000:] < -below) - 0.05) < 0.02
    assert abs(np.mean(errors[2000:] > above) - 0.05) < 0.02


def test_symmetric_errors_keep_one_factor():
    draws = [np.random.default_rng(seed).standard_t(4, size=(500, 1)) for seed in range(20)]
    assert sum(isinstance(conformal_factor(errors, 1.0, 4.0), SkewedFactor) for errors in draws) <= 3


def test_beyond_the_scores_students_t_goes_on():
    factor = SkewedFactor(np.linspace(-1, 2, 9)[:, None], df=5.0)
    below, above = factor.tails(np.array([0.99]))
    assert below == ConformalFactor(np.linspace(0, 1, 9)[:, None], df=5.0)(np.array([0.99]))
    assert above >= 2.0
    assert np.isinf(SkewedFactor(np.linspace(-1, 2, 9)[:, None]).tails(np.array([0.99]))).all()


# -- weights of calibration rows ---------------------------------------------------------------------------------------------


def test_equal_weights_are_no_weights():
    errors = np.random.default_rng(0).normal(size=(40, 2))
    levels = np.array([0.1, 0.5, 0.9, 0.99])
    plain, weighted = (ConformalFactor.of(errors, np.ones((40, 2)), weight=weight) for weight in (None, np.full(40, 3.0)))
    np.testing.assert_array_equal(weighted(levels), plain(levels))
    single = ConformalFactor.of(errors[:, 0], np.ones(40), weight=np.ones(40))
    np.testing.assert_array_equal(single(levels), plain(levels)[:, 0])


def test_weighted_scores_cover_after_a_shift_and_others_do_not():
    """Errors grow with x, and new rows have a larger x; the standard error of the coverage is below 0.015."""
    rng = np.random.default_rng(0)
    x, x_new = rng.uniform(size=3000), rng.beta(3, 1, size=5000)
    errors, new = (1 + 3 * x) * rng.normal(size=3000), (1 + 3 * x_new) * rng.normal(size=5000)
    covered = []
    for weight in (None, 3 * x**2):  # the ratio of the densities
        half = ConformalFactor.of(errors, np.ones(3000), weight=weight)(np.array(0.9))
        covered.append(np.mean(np.abs(new) <= half))
    assert covered[0] < 0.83
    assert abs(covered[1] - 0.9) < 0.03


# -- in a model --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model():
    return KStoNetRegressor(random_state=0).fit(*heteroscedastic(500))


def test_first_call_learns_where_the_noise_is(model):
    assert model.residuals == "auto"
    assert model.trained_.residuals == model.tuned_["residuals"] == "local"
    X, y = heteroscedastic(4000, seed=1)
    quiet, loud = X[:, 1] < -1, X[:, 1] > 1
    interval = model.predict_interval(X, 0.9)
    assert np.median(np.diff(interval[loud])) > 4 * np.median(np.diff(interval[quiet]))
    # One draw of 500 rows covers a part by 0.8 to 0.96; tests/long/test_conditional_coverage.py has the mean of four.
    assert all(0.78 < coverage(y[part], interval[part]) < 0.98 for part in (slice(None), quiet, loud))


def test_everything_that_is_said_of_a_row_goes_together(model):
    X, _ = heteroscedastic(50, seed=2)
    found = model.predict_dist(X)
    np.testing.assert_allclose(sum(found.variance_by_source.values()), model.predict_var(X))
    np.testing.assert_allclose(model.predict(X, return_std=True)[1] ** 2, model.predict_var(X))
    np.testing.assert_allclose(model.predict_quantiles(X, [0.05, 0.95]), model.predict_interval(X, 0.9))
    np.testing.assert_allclose(found.mean, model.predict(X))


def test_fixed_defaults_and_stonets_keep_one_noise_unless_they_are_asked():
    X, y = heteroscedastic(200)
    fixed = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    assert fixed.trained_.residuals == "crossfit"
    assert fixed.trained_.calibration.local is None
    asked = StoNetRegressor(residuals="local", **FAST).fit(X, y)
    assert asked.trained_.calibration.local is not None
    with pytest.raises(ValueError, match="residuals='local' must be one of"):
        kstonet.KStoNetClassifier(residuals="local", **FAST).fit(X, y > 0)


def test_files_and_graphs_hold_it(model, tmp_path):
    X, _ = heteroscedastic(40, seed=3)
    kstonet.save(model, tmp_path / "m.kstonet")
    loaded = kstonet.load(tmp_path / "m.kstonet")
    np.testing.assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    onnxruntime = pytest.importorskip("onnxruntime")
    kstonet.to_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx")
    (std,) = session.run(["std"], {"X": X})
    np.testing.assert_allclose(std, model.predict(X, return_std=True)[1], rtol=1e-8)


def test_groups_are_covered_each(tmp_path):
    """New rows of two groups whose noise differs in a way that the model cannot know: bounds of four standard errors."""
    rng = np.random.default_rng(0)

    def draw(n):
        X, groups = rng.uniform(-2, 2, size=(n, 1)), rng.choice(["calm", "wild"], size=n)
        return X, np.sin(X[:, 0]) + np.where(groups == "wild", 1.0, 0.1) * rng.normal(size=n), groups

    X, y, _ = draw(200)
    model = KStoNetRegressor(tuning="none", **FAST).fit(X, y)
    X, y, groups = draw(800)
    model.calibrate(X, y, groups=groups)
    X, y, groups = draw(4000)
    interval = model.predict_interval(X, 0.9, groups=groups)
    for label in ("calm", "wild"):
        assert abs(coverage(y[groups == label], interval[groups == label]) - 0.9) < 0.07
    assert coverage(y[groups == "wild"], model.predict_interval(X[groups == "wild"], 0.9)) < 0.86
    unknown = model.predict_interval(X, [0.5, 0.9], groups=np.full(4000, "other"))
    np.testing.assert_array_equal(unknown[:, :, 1], model.predict_interval(X, 0.9))
    kstonet.save(model, tmp_path / "m.kstonet")
    loaded = kstonet.load(tmp_path / "m.kstonet")
    np.testing.assert_array_equal(loaded.predict_interval(X, 0.9, groups=groups), interval)
    with pytest.raises(ValueError, match="not calibrated by groups"):
        loaded.calibrate().predict_interval(X, groups=groups)
    with pytest.raises(ValueError, match="groups is given without rows"):
        loaded.calibrate(groups=groups)
    with pytest.raises(ValueError, match="one group per row"):
        model.predict_interval(X, groups=["calm"])


def test_skewed_errors_and_several_targets(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(500, 1))
    Y = np.column_stack([X[:, 0] + rng.exponential(size=500), X[:, 0] ** 2 + rng.normal(size=500)])
    model = KStoNetRegressor(hidden_layer_sizes=3, **FAST).fit(X, Y)
    assert isinstance(model.trained_.calibration.factor, SkewedFactor)
    interval, mean = model.predict_interval(X, 0.9), model.predict(X)
    assert (interval[:, 0, 1] - mean[:, 0] > 1.2 * (mean[:, 0] - interval[:, 0, 0])).all()
    quantiles = model.predict_quantiles(X, [0.05, 0.5, 0.95])
    np.testing.assert_allclose(quantiles[:, :, [0, 2]], interval)
    assert (quantiles[:, 0, 1] < mean[:, 0]).all()  # the median of errors that are skewed to the right
    kstonet.save(model, tmp_path / "m.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "m.kstonet").predict_interval(X, 0.9), interval)
    new_X = rng.uniform(-2, 2, size=(200, 1))
    new_Y = np.column_stack([new_X[:, 0] + rng.exponential(size=200), new_X[:, 0] ** 2 + rng.normal(size=200)])
    new = model.calibrate(new_X, new_Y).trained_.calibration
    assert isinstance(new.factor, SkewedFactor)
    assert new.factor is not new.out_of_sample
    weighted = model.calibrate(new_X, new_Y, weight=np.arange(200.0)).trained_.calibration.factor
    assert weighted.weights.shape == (200, 2)
    kstonet.save(model, tmp_path / "weighted.kstonet")
    np.testing.assert_array_equal(kstonet.load(tmp_path / "weighted.kstonet").predict_interval(X), model.predict_interval(X))
    assert model.calibrate().trained_.calibration.factor is new.out_of_sample
    with pytest.raises(ValueError, match="weight is given without rows"):
        model.calibrate(weight=[1.0])
