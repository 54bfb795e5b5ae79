"""Training with the Gram matrix on a device: the numbers are those of NumPy (make test-torch; a GPU where there is one)."""

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error

torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
DEVICES = ["cpu"] + (["cuda"] if torch.cuda.is_available() else [])
FAST = {"max_iter": 5, "n_average": 2, "n_imputation_steps": 10, "random_state": 0}
X, Y = make_measurement_error(150, random_state=0)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("residuals", ["crossfit", "loo", "training", None])
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
@pytest.mark.parametrize("residuals", ["local", "loo", None])
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
