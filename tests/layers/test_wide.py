"""The uncertainty of a regression on very many features is that of the usual form, wherever both can be had."""

from pathlib import Path

import numpy as np
import pytest

from kstonet import StoNetRegressor
from kstonet.layers import linear
from kstonet.layers.activations import get_activation
from kstonet.layers.dense import DenseLayer
from kstonet.layers.wide import WideRegression
from kstonet.onnx_export import to_onnx

RNG = np.random.default_rng(0)
X, NEW = RNG.normal(size=(40, 6)) + 1.0, RNG.normal(size=(9, 6))
Y = np.column_stack([X[:, 0] - X[:, 1], X[:, 2]]) + 0.3 * RNG.normal(size=(40, 2))


@pytest.mark.parametrize("penalty", ["lasso", "ridge", "mcp", "none"])
@pytest.mark.parametrize("weights", [None, RNG.uniform(0.2, 2.0, 40)], ids=["", "weights"])
def test_covariances_agree(penalty: str, weights: np.ndarray | None) -> None:
    layer = DenseLayer(np.zeros((2, 6)), np.zeros(2), 1.0, get_activation("identity"), penalty, 0.1)
    layer = layer.refit(X, Y, weights)
    usual = layer.uncertainty(X, Y, weights)
    wide = WideRegression.of(layer.coefficients(), X, Y, weights, penalty, layer.alpha)
    np.testing.assert_allclose(wide.own_covariance(NEW), usual.own_covariance(NEW), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wide.noise, usual.noise, rtol=1e-9)


@pytest.mark.parametrize("penalty", ["lasso", "ridge"])
def test_intervals_agree(penalty: str, monkeypatch: pytest.MonkeyPatch) -> None:
    model = StoNetRegressor(penalty=penalty, hidden_layer_sizes=3, max_iter=3, n_average=2, random_state=0)
    usual = model.fit(X, Y[:, 0]).predict_interval(NEW)
    monkeypatch.setattr(linear, "LARGEST_COVARIANCE", 1)
    model.fit(X, Y[:, 0])
    assert isinstance(model.trained_.uncertainty.first.regression, WideRegression)
    np.testing.assert_allclose(model.predict_interval(NEW), usual, rtol=1e-7)


def test_the_graph_agrees(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    onnxruntime = pytest.importorskip("onnxruntime")
    monkeypatch.setattr(linear, "LARGEST_COVARIANCE", 1)
    model = StoNetRegressor(hidden_layer_sizes=3, max_iter=3, n_average=2, random_state=0).fit(X, Y[:, 0])
    to_onnx(model, tmp_path / "m.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "m.onnx", providers=["CPUExecutionProvider"])
    (std,) = session.run(["std"], {"X": NEW})
    np.testing.assert_allclose(std, model.predict(NEW, return_std=True)[1], rtol=1e-6)
