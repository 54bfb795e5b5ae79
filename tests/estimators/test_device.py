"""Training on a device: the numbers are those of NumPy (make test-torch; a GPU where there is one)."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

from extension import huber_layer, walk_sampler  # noqa: F401  # registered by their import
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.gram import GramTooLargeError, LowRank

torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
FAST = {"max_iter": 5, "n_average": 2, "n_imputation_steps": 10, "random_state": 0}
X, Y = make_measurement_error(150, random_state=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("residuals", ["crossfit", "training", None])
def test_same_model(device, residuals):
    here = KStoNetRegressor(tuning="none", **FAST, residuals=residuals).fit(X, Y)
    there = KStoNetRegressor(tuning="none", **FAST, residuals=residuals, device=device).fit(X, Y)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-6, atol=1e-6)
    if residuals is not None:
        np.testing.assert_allclose(there.predict_interval(X), here.predict_interval(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_several_kernels_precomputed_and_classes(device):
    several = {"kernel": ["rbf", "laplacian", "rbf"], "gamma": [0.1, 0.2, 0.3], "hidden_layer_sizes": (3,)}
    here = KStoNetClassifier(tuning="none", **FAST, **several).fit(X, Y.mean() < Y)
    there = KStoNetClassifier(tuning="none", **FAST, **several, device=device).fit(X, Y.mean() < Y)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-5)
    K = np.exp(-0.1 * ((X[:, None] - X[None]) ** 2).sum(axis=2))
    here = KStoNetRegressor(tuning="none", **FAST, kernel="precomputed").fit(K, Y)
    there = KStoNetRegressor(tuning="none", **FAST, kernel="precomputed", device=device).fit(K, Y)
    np.testing.assert_allclose(there.predict_interval(K), here.predict_interval(K), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", ["cuda:99", "abacus"])
def test_unusable_devices_are_named(device):
    with pytest.raises(ValueError, match=f"device='{device}' is not usable here"):
        KStoNetRegressor(tuning="none", **FAST, device=device).fit(X, Y)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("residuals", ["local", None])
def test_first_call(device, residuals):
    """The squared loss of the automatic choice, with weights and rows that do not count."""
    weights = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.0 + np.arange(len(X)) % 3)
    here = KStoNetRegressor(random_state=0, residuals=residuals).fit(X, Y, weights)
    there = KStoNetRegressor(random_state=0, residuals=residuals, device=device).fit(X, Y, weights)
    assert there.tuned_["loss"] == here.tuned_["loss"] == "squared"
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-4, atol=1e-4)
    if residuals is not None:
        np.testing.assert_allclose(there.predict_interval(X), here.predict_interval(X), rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("device", DEVICES)
def test_first_call_of_a_classifier(device):
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
    here = KStoNetClassifier(random_state=0).fit(X, labels)
    there = KStoNetClassifier(random_state=0, device=device).fit(X, labels)
    assert there.tuned_["loss"] == "squared"
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("leaf_rows", [0, 50])
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
def test_landmarks_and_leaves(device, leaf_rows, loss):
    """Rows that are too many for a matrix: with intervals, weights and rows that do not count."""
    options = {"tuning": "none", "solver": LowRank(rank=40, leaf_rows=leaf_rows), "loss": loss, **FAST}
    weights = np.where(np.arange(len(X)) % 5 == 0, 0.0, 1.0 + np.arange(len(X)) % 3)
    here = KStoNetRegressor(**options).fit(X, Y, weights)
    there = KStoNetRegressor(**options, device=device).fit(X, Y, weights)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(there.predict_interval(X), here.predict_interval(X), rtol=1e-3, atol=1e-3)
    labels = np.digitize(Y, np.quantile(Y, [0.3, 0.7]))
    here = KStoNetClassifier(**options).fit(X, labels)
    there = KStoNetClassifier(**options, device=device).fit(X, labels)
    np.testing.assert_allclose(there.predict_proba(X), here.predict_proba(X), atol=1e-3)


def test_a_device_that_cannot_hold_the_matrix_has_landmarks():
    many, target = make_measurement_error(1500, random_state=0)
    model = KStoNetRegressor(device="cpu", max_memory=4e7, random_state=0)
    assert "would take 42.1 MB of device='cpu'" in model.explain_plan(many).reason
    assert model.fit(many, target).plan_.solver == "low_rank"


def test_a_device_that_holds_a_factor_alone_gives_the_same_model(monkeypatch):
    many, target = make_measurement_error(2100, random_state=0)
    settings = {"tuning": "none", "loss": "squared", "max_iter": 3, "random_state": 0}
    here = KStoNetRegressor(**settings).fit(many, target)
    monkeypatch.setattr("kstonet.gram.torch.TorchGram._build", lambda self: None)
    there = KStoNetRegressor(**settings, device="cpu").fit(many, target)
    np.testing.assert_allclose(there.predict(many[:50]), here.predict(many[:50]), atol=1e-3 * target.std())
    np.testing.assert_allclose(there.predict_interval(many[:50]), here.predict_interval(many[:50]), rtol=0.01)


def test_memory_that_runs_out_in_the_middle(monkeypatch):
    """Others took it after the plan was made."""

    def full(self, rows):
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")

    monkeypatch.setattr("kstonet.gram.torch.TorchGram.product", full)
    with pytest.raises(GramTooLargeError, match=r"device='cpu' ran out of memory \(CUDA out of memory\).*max_memory"):
        KStoNetRegressor(tuning="none", **FAST, device="cpu").fit(X, Y)


@pytest.mark.skipif("cuda" not in DEVICES, reason="no GPU that torch can use")
def test_a_gpu_that_is_full():
    """The memory really runs out between the plan and the solver."""
    rows = np.random.default_rng(0).normal(size=(20_000, 3))
    plan = KStoNetRegressor(tuning="none", device="cuda", **FAST).explain_plan(rows)
    free = torch.cuda.mem_get_info()[0]
    ballast = torch.empty(int(free - 0.75 * plan.bytes), dtype=torch.uint8, device="cuda")
    with pytest.raises(GramTooLargeError, match="ran out of memory"):
        KStoNetRegressor(tuning="none", device="cuda", solver="dense", max_memory=1e12, **FAST).fit(rows, rows[:, 0])
    del ballast
    torch.cuda.empty_cache()
    assert KStoNetRegressor(tuning="none", device="cuda", **FAST).fit(rows[:2000], rows[:2000, 0]).score(rows, rows[:, 0]) > 0.9


PRECISE = {"rtol": 1e-9, "atol": 1e-9}


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [{}, {"solver": LowRank(rank=40, leaf_rows=50)}, {"kernel": "matern32", "loss": "squared"}])
def test_predictions_on_a_device_are_those_of_the_cpu(device, options, monkeypatch):
    """Also in many small blocks, for a model that was trained elsewhere, and after a calibration there."""
    model = KStoNetRegressor(tuning="none", **FAST, **options).fit(X, Y)
    new, observed = make_measurement_error(60, random_state=1)
    here = model.predict(new), model.predict_interval(new), model.transform(new)
    model.set_params(device=device)
    there = model.predict(new), model.predict_interval(new), model.transform(new)
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, **PRECISE)
    part = model._network.expansion.parts[0]
    assert part.coef.device.type == torch.device(device).type  # it was there
    monkeypatch.setattr("kstonet.gram.torch.DEVICE_BLOCK_BYTES", 8 * part.width * 7)  # seven rows at a time
    del model._placed
    assert len(list(model._network.expansion.blocks(new))) == 9
    np.testing.assert_allclose(model.predict(new), here[0], **PRECISE)
    calibrated = model.calibrate(new, observed).predict_interval(new)
    assert isinstance(model.trained_.expansion.parts[0].coef, np.ndarray)  # what is stored stays on the CPU
    np.testing.assert_allclose(model.set_params(device=None).predict_interval(new), calibrated, **PRECISE)


@pytest.mark.parametrize("device", DEVICES)
def test_probabilities_on_a_device_are_those_of_the_cpu(device):
    model = KStoNetClassifier(random_state=0).fit(X, np.digitize(Y, np.quantile(Y, [0.3, 0.7])))
    here = model.predict_proba(X), model.predict_proba_interval(X), model.predict_set(X)
    model.set_params(device=device)
    there = model.predict_proba(X), model.predict_proba_interval(X), model.predict_set(X)
    for one, other in zip(there, here, strict=True):
        np.testing.assert_allclose(one, other, **PRECISE)


def test_a_model_predicts_where_its_device_is_missing():
    model = KStoNetRegressor(tuning="none", **FAST, device="cpu").fit(X, Y)
    here = model.predict(X)
    model.set_params(device="cuda:99")
    with pytest.warns(UserWarning, match="device='cuda:99' is not usable here.*Predictions are made on the CPU"):
        there = model.predict(X)
    np.testing.assert_allclose(there, here, **PRECISE)
    assert "_placed" not in pickle.loads(pickle.dumps(model)).__dict__


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("loss", ["squared", "epsilon_insensitive"])
@pytest.mark.parametrize("sizes", [(5,), (5, 4)])
@pytest.mark.parametrize("classes", [None, 2, 3])
def test_every_step_of_a_training(classes, sizes, loss, device):
    """Regressions and classes, one hidden layer and two: the chain is the same, iteration by iteration."""
    options = {"tuning": "none", "hidden_layer_sizes": sizes, "loss": loss, "residuals": None, **FAST}
    kind = KStoNetRegressor if classes is None else KStoNetClassifier
    y = Y if classes is None else np.digitize(Y, np.quantile(Y, np.arange(1, classes) / classes))
    here, there = (kind(**options, device=where).fit(X, y) for where in (None, device))
    for ours, theirs in zip(there.history_, here.history_, strict=True):
        for name in ("loss", "noise", "step_size", "kinetic"):
            assert ours[name] == pytest.approx(theirs[name], rel=1e-6)
    ask = "predict" if classes is None else "predict_proba"
    np.testing.assert_allclose(getattr(there, ask)(X), getattr(here, ask)(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("options", [{"sampler": "gibbs"}, {"sampler": "walk"}, {"upper_layer": "huber"}, {"sampler": "hmc"}])
def test_samplers_and_layers_from_outside(options):
    here, there = (KStoNetRegressor(tuning="none", **FAST, **options, device=where).fit(X, Y) for where in (None, "cpu"))
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=1e-6, atol=1e-6)


def test_no_device_needs_no_torch():
    code = (
        "import sys, numpy as np\nfrom kstonet import KStoNetClassifier\n"
        "X = np.random.default_rng(0).normal(size=(60, 2))\n"
        "KStoNetClassifier(tuning='none', max_iter=2, n_average=1).fit(X, X[:, 0] > 0)\nprint('torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "False"
