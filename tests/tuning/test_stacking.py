"""Greedy selection against brute force, and the units that it gives to kernels."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

from kstonet import KStoNetRegressor, load, save, to_onnx
from kstonet.gram.kernels import RBF, Laplacian, Matern
from kstonet.tuning.choice import Choice
from kstonet.tuning.judging import Rows
from kstonet.tuning.stacking import greedy_stack
from kstonet.tuning.stationary import FAMILIES

X = np.random.default_rng(0).normal(size=(80, 2))
ROWS = Rows(X, np.column_stack([np.sin(2 * X[:, 0]) + np.abs(X[:, 1]), X[:, 0] ** 2]), np.linspace(0.2, 2.0, 80))
CANDIDATES = [ROWS.best_width(family) for family in FAMILIES.values()]


def loss(members):
    errors = np.mean([one.fit.errors for one in members], axis=0)
    return float(np.average((errors**2).mean(axis=1), weights=ROWS.weights))


def spread(stack):
    return [one for one, times in stack for _ in range(times)]


def test_the_first_pick_is_the_best_alone():
    ((one, times),) = greedy_stack(CANDIDATES, ROWS, 1, 5)
    assert (one.score, times) == (min(each.score for each in CANDIDATES), 1)


def test_every_pick_is_the_best_next_one():
    for picks in range(2, 8):
        before = spread(greedy_stack(CANDIDATES, ROWS, picks - 1, 5))
        after = spread(greedy_stack(CANDIDATES, ROWS, picks, 5))
        assert loss(after) == pytest.approx(min(loss([*before, one]) for one in CANDIDATES))


def test_it_is_nearly_the_best_of_all_selections():
    found = loss(spread(greedy_stack(CANDIDATES, ROWS, 6, 5)))
    best = min(loss(members) for members in combinations_with_replacement(CANDIDATES, 6))
    assert (1.0 - 1e-9) * best <= found <= 1.02 * best


def test_no_more_kernels_than_allowed():
    assert [len(greedy_stack(CANDIDATES, ROWS, 20, most)) for most in (1, 2)] == [1, 2]


def test_units_follow_the_shares():
    kernels = (RBF((1.0, 1.0)), Laplacian((1.0, 2.0)), Matern((3.0, 1.0), nu=0.5))
    choice = Choice(kernels, (0.1, 0.2, 0.3), (1.0,) * 3, (0.1, 0.3, 0.9), True, [], shares=(0.6, 0.25, 0.15))
    settings = choice.settings("squared", 20)
    assert [settings["kernel"].count(kernel) for kernel in kernels] == [12, 5, 3]
    assert settings["C"] == [1.0 / choice.ridges[kernels.index(kernel)] for kernel in settings["kernel"]]
    few = choice.settings("squared", 2)["kernel"]
    assert few == [kernels[0], kernels[1]]
    assert choice.settings("squared", 20, 1)["kernel"] == kernels[0]


def test_a_network_of_several_kernels_predicts_like_their_stack():
    rows, new = (np.random.default_rng(seed).normal(size=(200, 2)) for seed in (1, 2))
    y = np.sin(2 * rows[:, 0]) + np.abs(rows[:, 1])
    y = (y - y.mean()) / y.std()
    kernels, ridge, shares = (RBF((1.0, 1.0)), Laplacian((3.0, 3.0)), Matern((2.0, 2.0), nu=1.5)), 0.02, (0.4, 0.3, 0.3)
    given = Choice(kernels, (ridge,) * 3, (1.0,) * 3, (0.1,) * 3, True, [], shares=shares).settings("squared", 20)
    given |= {"loss": "squared", "tuning": "none", "standardize": False, "residuals": None, "max_iter": 4, "n_average": 2}
    model = KStoNetRegressor((20,), random_state=0, **given).fit(rows, y)
    solved = [np.linalg.solve(kernel(rows, rows) + ridge * np.eye(200), y) for kernel in kernels]
    stack = sum(share * kernel(new, rows) @ coef for share, kernel, coef in zip(shares, kernels, solved, strict=True))
    assert np.sqrt(np.mean((model.predict(new) - stack) ** 2)) < 0.05


@pytest.fixture(scope="module")
def model():
    """A first call on a wave along one direction, with weights."""
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(220, 5))
    y = np.sin(rows @ [1.0, -1.0, 0.8, 0.0, 0.5]) + 0.05 * rng.normal(size=220)
    return KStoNetRegressor(max_iter=4, random_state=0).fit(rows, y, sample_weight=rng.uniform(0.5, 2.0, 220))


def test_the_first_call_uses_directions_and_several_kernels(model):
    kernels = model.tuned_["kernel"]
    assert len(kernels) == 40
    assert 3 < len(set(kernels)) <= 8  # of the choices from all rows and without a part of them
    assert any(kernel.projection is not None for kernel in kernels)
    assert "directions" in model.tuning_["reason"]


def test_several_kernels_are_stored_exported_and_trained_again(model, tmp_path):
    new = np.random.default_rng(4).normal(size=(50, 5))
    save(model, tmp_path / "model.kstonet")
    np.testing.assert_array_equal(load(tmp_path / "model.kstonet").predict_interval(new), model.predict_interval(new))
    pytest.importorskip("onnx")
    onnxruntime = pytest.importorskip("onnxruntime")
    to_onnx(model, tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(tmp_path / "model.onnx", providers=["CPUExecutionProvider"])
    (predicted, *_) = session.run(None, {session.get_inputs()[0].name: new})
    np.testing.assert_allclose(np.ravel(predicted), model.predict(new), rtol=1e-6, atol=1e-8)


def test_their_intervals_cover_new_observations(model):
    rng = np.random.default_rng(5)
    new = rng.normal(size=(500, 5))
    y = np.sin(new @ [1.0, -1.0, 0.8, 0.0, 0.5]) + 0.05 * rng.normal(size=500)
    bounds = model.predict_interval(new, 0.9)
    assert 0.8 < np.mean((bounds[:, 0] <= y) & (y <= bounds[:, 1])) < 0.98
