"""target_transform of the estimator: in the units of the target everywhere, chosen or given."""

import json

import numpy as np
import pytest
from sklearn.base import clone

from kstonet import KStoNetClassifier, KStoNetRegressor, load, save
from kstonet.estimators.display import fitted_facts
from kstonet.gram import LowRank
from kstonet.target_map import MAPS

FAST = {"max_iter": 3, "n_average": 2, "random_state": 0}
RNG = np.random.default_rng(0)
X = RNG.normal(size=(260, 3))
SIGNAL = X[:, 0] + 0.7 * np.sin(2 * X[:, 1])
Y = 100.0 * np.exp(SIGNAL + 0.4 * RNG.normal(size=len(X)))
TRAIN, TEST = slice(0, 160), slice(160, None)
each_map = pytest.mark.parametrize("kind", MAPS)


@pytest.fixture(scope="module", params=MAPS)
def fitted(request, within_few_folds):
    with within_few_folds():
        model = KStoNetRegressor(target_transform=request.param, tuning="none", C=1.0, gamma=0.1, **FAST)
        return model.fit(X[TRAIN], Y[TRAIN])


@pytest.fixture(scope="module")
def chosen(within_few_folds):
    with within_few_folds():
        return KStoNetRegressor(random_state=0).fit(X[TRAIN], Y[TRAIN])


def test_the_first_call_takes_the_logarithm_where_errors_are_multiplicative(chosen):
    assert chosen.tuned_["target_transform"] == "log"
    assert "learned as its logarithm" in chosen.tuning_["reason"]
    plain = KStoNetRegressor(target_transform="none", residuals="training", random_state=0).fit(X[TRAIN], Y[TRAIN])
    assert "target_transform" not in plain.tuned_
    errors = [np.sqrt(np.mean((model.predict(X[TEST]) - Y[TEST]) ** 2)) for model in (chosen, plain)]
    assert errors[0] < 0.95 * errors[1]
    facts = fitted_facts(chosen.trained_)
    assert facts["Chosen"].startswith("target_transform log, kernel")
    assert "around the logarithm of the prediction" in facts["Intervals"]


def test_the_chosen_values_train_the_same_network_again(chosen, few_folds):
    again = KStoNetRegressor(tuning="none", random_state=0, **chosen.tuned_).fit(X[TRAIN], Y[TRAIN])
    np.testing.assert_array_equal(again.trained_.outputs(X[TEST]), chosen.trained_.outputs(X[TEST]))
    # the mean of a transformed target also depends on the size of left-out errors, which a first call knows better
    np.testing.assert_allclose(again.predict(X[TEST]), chosen.predict(X[TEST]), rtol=0.1)


def test_answers_are_in_the_units_of_the_target(fitted):
    mean, std = fitted.predict(X[TEST], return_std=True)
    np.testing.assert_array_equal(mean, fitted.predict(X[TEST]))
    assert np.sqrt(np.mean((mean - Y[TEST]) ** 2)) < 0.9 * Y[TEST].std()
    interval = fitted.predict_interval(X[TEST], 0.9)
    assert 0.8 < np.mean((interval[:, 0] <= Y[TEST]) & (Y[TEST] <= interval[:, 1])) < 0.98
    assert (interval >= 0).all()
    np.testing.assert_allclose(fitted.predict_var(X[TEST]), std**2)
    assert (np.diff(fitted.predict_quantiles(X[TEST], (0.1, 0.5, 0.9)), axis=1) > 0).all()
    confidence = fitted.predict_interval(X[TEST], 0.9, kind="confidence")
    assert (confidence[:, 0] < mean).all()
    assert (mean < confidence[:, 1]).all()
    assert fitted.sample_y(X[TEST], 5).shape == (100, 5)
    assert fitted.history_[-1]["score"] == pytest.approx(fitted.score(X[TRAIN], Y[TRAIN]), abs=0.05)


def test_without_errors_the_mean_is_the_inverse_of_the_map(fitted):
    targets = fitted.trained_.targets
    outputs = fitted.trained_.outputs(X[TEST]).mean(axis=0)
    assert targets.map.error > 0  # left-out errors of z
    exact = targets.map.with_error(0.0).mean(targets.scaler.backward(outputs))[:, 0]
    assert (fitted.predict(X[TEST]) > exact).all()  # both maps are concave


def test_gradients_are_those_of_finite_differences(fitted):
    rows, step = X[:5], 1e-5
    numeric = np.empty((5, 3))
    for j in range(3):
        away = np.eye(3)[j] * step
        numeric[:, j] = (fitted.predict(rows + away) - fitted.predict(rows - away)) / (2 * step)
    np.testing.assert_allclose(fitted.predict_gradient(rows), numeric, rtol=1e-4, atol=1e-5)
    assert fitted.feature_importances_.argmin() == 2


def test_a_file_keeps_the_map(fitted, tmp_path):
    save(fitted, tmp_path / "model.kstonet")
    again = load(tmp_path / "model.kstonet")
    np.testing.assert_array_equal(again.predict_interval(X[TEST]), fitted.predict_interval(X[TEST]))
    np.testing.assert_array_equal(again.predict(X[TEST], return_std=True), fitted.predict(X[TEST], return_std=True))
    assert again.target_transform == fitted.target_transform


def test_a_graph_gives_the_same(fitted, tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    from kstonet.onnx_export import to_onnx

    to_onnx(fitted, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx")
    names = [output.name for output in session.get_outputs()]
    assert names == ["mean", "transformed_mean", "std", "transformed_std"]
    mean, z, std, deviation = session.run(None, {"X": X[TEST]})
    expected = fitted.predict(X[TEST], return_std=True)
    np.testing.assert_allclose(mean, expected[0], rtol=1e-9)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)
    properties = session.get_modelmeta().custom_metadata_map
    known, above = json.loads(properties["target_transform"]), json.loads(properties["interval_factors"])["0.9"]
    below = json.loads(properties.get("interval_factors_below", properties["interval_factors"]))["0.9"]
    bounds = np.column_stack([z - below * deviation, z + above * deviation])
    end = np.sqrt(known["top"]) if known["kind"] == "sqrt" else np.log(known["top"] + known["offset"])
    inside = np.minimum(bounds, end)
    back = np.maximum(inside, 0) ** 2 if known["kind"] == "sqrt" else np.maximum(np.exp(inside) - known["offset"], 0)
    slope = 2 * end if known["kind"] == "sqrt" else known["top"] + known["offset"]
    back += slope * np.maximum(bounds - end, 0)
    np.testing.assert_allclose(back, fitted.predict_interval(X[TEST], 0.9), rtol=1e-6, atol=1e-6)


def test_calibration_and_series_count_in_what_was_learned(fitted):
    model = clone(fitted)
    model.__dict__.update({name: value for name, value in vars(fitted).items() if name.endswith("_")})
    model.calibrate(X[TEST], Y[TEST])
    interval = model.predict_interval(X[TEST], 0.9)
    inside = (interval[:, 0] <= Y[TEST]) & (Y[TEST] <= interval[:, 1])
    assert 0.9 <= inside.mean() <= 0.93  # of the calibration rows themselves
    wide = np.diff(model.update(X[TEST], 5.0 * Y[TEST]).predict_interval(X[TEST], 0.9)).mean()
    assert wide > 1.5 * np.diff(interval).mean()


def test_without_intervals_the_errors_are_those_of_the_training_rows():
    model = KStoNetRegressor(target_transform="log", residuals=None, tuning="none", C=1.0, gamma=0.1, **FAST)
    assert model.fit(X[TRAIN], Y[TRAIN]).trained_.targets.map.error > 0
    assert model.score(X[TEST], Y[TEST]) > 0.3


@pytest.mark.parametrize("residuals", ["crossfit", "training"])
def test_other_residuals(residuals, few_folds):
    model = KStoNetRegressor(target_transform="log", residuals=residuals, tuning="none", **FAST).fit(X[TRAIN], Y[TRAIN])
    assert model.predict_interval(X[TEST]).shape == (100, 2)


def test_validation_rows_are_scored_in_the_units_of_the_target(few_folds):
    model = KStoNetRegressor(target_transform="log", tuning="none", C=1.0, gamma=0.1, **FAST)
    model.fit(X[TRAIN], Y[TRAIN], X_val=X[TEST], y_val=Y[TEST])
    assert model.history_[-1]["validation_score"] == pytest.approx(model.score(X[TEST], Y[TEST]), abs=0.15)


def test_a_stream_learns_the_map_of_its_first_batch(few_folds):
    model = KStoNetRegressor(solver=LowRank(rank=40, leaf_rows=0), **FAST)
    for part in np.array_split(np.arange(len(X)), 2):
        model.partial_fit(X[part], Y[part])
    assert model.tuned_["target_transform"] == "log"
    assert model.trained_.targets.map.kind == "log"
    assert model.score(X, Y) > 0.5
    assert (model.predict_interval(X) >= 0).all()


def test_targets_that_no_map_is_for():
    fast = {"tuning": "none", "residuals": None, **FAST}
    with pytest.raises(ValueError, match=r"target_transform='log' is for targets that are never negative.*add a constant"):
        KStoNetRegressor(target_transform="log", **fast).fit(X, Y - Y.mean())
    with pytest.raises(ValueError, match="target_transform='sqrt' is for a single target, and y has 2"):
        KStoNetRegressor(target_transform="sqrt", **fast).fit(X, np.column_stack([Y, Y]))
    with pytest.raises(ValueError, match=r"target_transform='cube'.*one of 'none', 'sqrt', 'log', or None"):
        KStoNetRegressor(target_transform="cube", **fast).fit(X, Y)
    assert "target_transform" not in KStoNetClassifier().get_params()
    model = KStoNetRegressor(target_transform="log", **fast).fit(X, Y[:, None])
    assert model.predict(X).shape == (260, 1)


def test_counts_with_many_zeros(few_folds):
    rng = np.random.default_rng(1)
    counts = rng.poisson(np.exp(0.5 * SIGNAL - 1.0)).astype(float)
    for kind in MAPS:
        model = KStoNetRegressor(target_transform=kind, tuning="none", C=1.0, gamma=0.1, **FAST).fit(X[TRAIN], counts[TRAIN])
        assert np.mean(model.predict(X[TEST])) == pytest.approx(counts[TEST].mean(), rel=0.4)
        assert (model.predict(X[TEST]) > 0).all()
