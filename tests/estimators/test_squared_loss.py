"""Estimators with a squared loss in the first layer: stored, exported, weighted, with intervals that cover."""

import numpy as np
import pytest
from scipy.stats import binom
from sklearn.metrics.pairwise import laplacian_kernel, rbf_kernel

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.onnx_export import to_onnx
from kstonet.persistence import load, save
from kstonet.targets import numbers

FAST = {"max_iter": 4, "n_average": 2, "n_imputation_steps": 3, "random_state": 0, "loss": "squared"}


def two_targets(n=90):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(n, 2))
    targets = np.column_stack([np.sin(2 * rows[:, 0]), rows[:, 1] ** 2 - rows[:, 0]])
    return rows, targets + 0.1 * rng.normal(size=targets.shape)


CONFIGURATIONS = {
    "one unit": {"hidden_layer_sizes": (1,)},
    "two kernels": {"kernel": ["rbf", "laplacian"]},
    "two ridges": {"hidden_layer_sizes": (2,), "C": [1.0, 30.0]},
    "deep": {"hidden_layer_sizes": (4, 3)},
    "chains": {"n_chains": 2},
    "means only": {"residuals": None},
}


@pytest.mark.usefixtures("few_folds")
@pytest.mark.filterwarnings("ignore:the network 1-2 .* is not pyramidal")
@pytest.mark.parametrize("name", CONFIGURATIONS)
@pytest.mark.parametrize("n_targets", [1, 2])
def test_saved_and_exported_models_predict_the_same(name, n_targets, tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    rows, targets = two_targets()
    targets = targets[:, 0] if n_targets == 1 else targets
    model = KStoNetRegressor(tuning="none", **(FAST | CONFIGURATIONS[name])).fit(rows[:60], targets[:60])
    new, with_std = rows[60:], model.residuals is not None
    save(model, tmp_path / "model.kstonet")
    loaded = load(tmp_path / "model.kstonet")
    assert loaded.get_params() == model.get_params()
    to_onnx(model, tmp_path / "model.onnx", return_std=with_std)
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    outputs = dict(zip([output.name for output in session.get_outputs()], session.run(None, {"X": new}), strict=True))
    if with_std:
        mean, std = model.predict(new, return_std=True)
        np.testing.assert_array_equal(loaded.predict(new, return_std=True), (mean, std))
        np.testing.assert_array_equal(loaded.predict_interval(new), model.predict_interval(new))
        np.testing.assert_allclose(outputs["std"], std, rtol=1e-7)
    else:
        mean = model.predict(new)
        np.testing.assert_array_equal(loaded.predict(new), mean)
    np.testing.assert_allclose(outputs["mean"], mean, rtol=1e-7, atol=1e-7)


@pytest.mark.usefixtures("few_folds")
def test_classes_are_saved_and_exported_too(tmp_path):
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    rows, targets = two_targets()
    labels = np.digitize(targets[:, 0], [-0.4, 0.4])
    model = KStoNetClassifier(tuning="none", **FAST).fit(rows[:60], labels[:60])
    assert model.score(rows[60:], labels[60:]) > 0.6
    save(model, tmp_path / "model.kstonet")
    expected = model.predict_proba(rows[60:])
    np.testing.assert_array_equal(load(tmp_path / "model.kstonet").predict_proba(rows[60:]), expected)
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(["probabilities"], {"X": rows[60:]})[0], expected, rtol=1e-7, atol=1e-12)


@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize("residuals", ["crossfit", "training"])
def test_a_precomputed_kernel_predicts_as_the_kernel_does(residuals, tmp_path, monkeypatch):
    """From the same start, which otherwise holds a little of X."""
    start = numbers.initial_latents
    monkeypatch.setattr(numbers, "initial_latents", lambda rng, X, *rest: start(rng, np.zeros((len(X), 1)), *rest))
    rows, targets = two_targets()
    scaled = (rows - rows[:60].mean(axis=0)) / rows[:60].std(axis=0)
    values = laplacian_kernel(scaled, scaled[:60], gamma=0.5)
    by_kernel = KStoNetRegressor(tuning="none", **FAST, kernel="laplacian", gamma=0.5, residuals=residuals).fit(
        rows[:60], targets[:60]
    )
    given = KStoNetRegressor(tuning="none", **FAST, kernel="precomputed", residuals=residuals).fit(values[:60], targets[:60])
    expected = by_kernel.predict(rows[60:], return_std=True)
    np.testing.assert_allclose(given.predict(values[60:], return_std=True), expected, rtol=1e-6)
    save(given, tmp_path / "model.kstonet")
    again = load(tmp_path / "model.kstonet").predict(values[60:], return_std=True)
    np.testing.assert_array_equal(again, given.predict(values[60:], return_std=True))


@pytest.mark.usefixtures("few_folds")
@pytest.mark.parametrize("residuals", ["crossfit", "training"])
def test_rows_of_weight_zero_of_a_precomputed_kernel_are_not_kept(residuals):
    """They stay columns of the matrix, with neither a coefficient nor a part in the variance, whatever their targets."""
    rows, targets = two_targets(60)
    values, weights = rbf_kernel(rows), np.where(np.arange(60) % 6 == 1, 0.0, 1.0)
    absurd = np.where(weights[:, None] > 0, targets, 1e3)
    models = [
        KStoNetRegressor(tuning="none", **FAST, kernel="precomputed", residuals=residuals, noise_variance=0.01, alpha=0.1)
        .fit(values, each, sample_weight=weights)
        .trained_.uncertainty
        for each in (targets, absurd)
    ]
    for model in models:
        for part in model.expansion.parts:
            assert (weights[part.used] > 0).all()
    np.testing.assert_array_equal(*(model.first.columns for model in models))
    assert all(len(columns) == 50 for columns in models[0].first.columns)


@pytest.mark.usefixtures("few_folds")
def test_the_seed_decides_whatever_the_number_of_jobs(monkeypatch):
    """90 rows are imputed in three chunks."""
    monkeypatch.setattr("kstonet.iro.CHUNK", 40)
    rows, targets = two_targets()
    one, two, again = (KStoNetRegressor(tuning="none", **FAST, n_jobs=jobs).fit(rows, targets) for jobs in (1, 2, 1))
    other = KStoNetRegressor(tuning="none", **(FAST | {"random_state": 5})).fit(rows, targets)
    np.testing.assert_array_equal(one.predict(rows, return_std=True), two.predict(rows, return_std=True))
    np.testing.assert_array_equal(one.predict(rows, return_std=True), again.predict(rows, return_std=True))
    assert not np.array_equal(one.predict(rows), other.predict(rows))


def test_a_schedule_of_C_is_refused():
    with pytest.raises(ValueError, match="loss='squared' does not take"):
        KStoNetRegressor(tuning="none", **FAST, C=lambda t: 10.0 / (t + 1)).fit(*two_targets())


def test_intervals_cover():
    """Ten training sets of 100 rows, 200 new rows each.

    Were the coverage of every model 0.9, the share of all rows inside would lie outside the bounds in one of 1,000 runs at
    most: rows of the same model are dependent, which the bounds allow for by counting each model as 20 independent rows.
    """
    inside = []
    for seed in range(10):
        rows, targets = make_measurement_error(300, random_state=seed)
        model = KStoNetRegressor(tuning="none", loss="squared", C=2.0, max_iter=10, random_state=seed)
        low, high = model.fit(rows[:100], targets[:100]).predict_interval(rows[100:], coverage=0.9).T
        inside.append(np.mean((low <= targets[100:]) & (targets[100:] <= high)))
    lowest, highest = binom.ppf([0.0005, 0.9995], 200, 0.9) / 200
    assert lowest <= np.mean(inside) <= highest


def test_intervals_are_wider_where_rows_are_few():
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.uniform(-1, 1, 120), rng.uniform(2.5, 3, 6)])[:, None]
    targets = np.sin(3 * rows[:, 0]) + 0.1 * rng.normal(size=len(rows))
    model = KStoNetRegressor(tuning="none", loss="squared", C=10.0, gamma=5.0, max_iter=8, random_state=0).fit(rows, targets)
    _, std = model.predict(np.array([[0.0], [1.8]]), return_std=True)
    assert std[1] > 1.5 * std[0]
