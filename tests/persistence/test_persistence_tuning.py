"""What a search chose, and its table, are stored with the model."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from kstonet import KStoNetClassifier, KStoNetRegressor, KStoNetRegressorCV
from kstonet.gram.kernels import RBF, Matern
from kstonet.persistence import load, save
from kstonet.tuning import candidates, parts, relevance

pytest.importorskip("safetensors")

DATA = Path(__file__).parents[1] / "data"
SHORT = {"max_iter": 2, "n_average": 1, "n_imputation_steps": 2, "residuals": None, "random_state": 0}
ALL = dict.fromkeys(candidates.TUNABLE, "tune")
RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
y = np.sin(X[:, 0]) + 0.1 * RNG.normal(size=30)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    for name, values in {"GAMMA_MULTIPLES": (0.5, 2.0), "CS": (1.0, 10.0), "SIZES": ((3,),), "NOISES": ("auto", 0.1)}.items():
        monkeypatch.setattr(candidates, name, values)
    monkeypatch.setattr(parts, "default_repeats", lambda n: 2)
    monkeypatch.setattr(relevance, "MAX_ITER", 3)


def stored(model, path):
    save(model, path / "m.kstonet")
    return load(path / "m.kstonet")


@pytest.mark.parametrize("kind", [KStoNetRegressor, KStoNetClassifier])
def test_choice_and_table_survive(kind, tmp_path, recwarn):
    model = kind(**SHORT, **ALL).fit(X, y if kind is KStoNetRegressor else y > 0)
    loaded = stored(model, tmp_path)
    assert not recwarn.list
    assert loaded.tuned_ == model.tuned_
    assert [type(value) for value in loaded.tuned_.values()] == [type(value) for value in model.tuned_.values()]
    assert loaded.tuning_ == model.tuning_
    assert loaded.history_[0]["tuning"] == model.tuning_["reason"]
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    save(loaded, tmp_path / "again.kstonet")
    assert (tmp_path / "again.kstonet").read_bytes() == (tmp_path / "m.kstonet").read_bytes()
    assert loaded.fit(X, model.predict(X)).tuned_.keys() >= set(ALL)  # it can be tuned anew


def test_kernels_that_share_a_layer_survive(tmp_path):
    """With length scales of their own they are objects."""
    model = KStoNetRegressor(**SHORT, kernel="tune").fit(X, y)
    kernels = [RBF((1.0, 2.0, 3.0), 0.1), Matern(None, 0.2, 1.5)]
    chosen = {"kernel": kernels, "gamma": "scale", "length_scale": None, "C": [1.0, 10.0]}
    model.trained_ = replace(model.trained_, chosen=chosen)
    model.tuning_["table"].append({"kernel": ["rbf", kernels[1]], "score": np.float64(0.5), "scores": [float("inf")]})
    loaded = stored(model, tmp_path)
    assert loaded.tuned_ == model.tuned_ == chosen
    assert loaded.tuning_ == model.tuning_


def test_functions_are_left_out(tmp_path):
    model = KStoNetRegressor(**SHORT, gamma="tune", C=lambda iteration: 5.0).fit(X, y)
    with pytest.warns(UserWarning, match="C=<function"), pytest.warns(UserWarning, match=r"not stored: tuning_\."):
        loaded = stored(model, tmp_path)
    assert loaded.tuned_ == model.tuned_
    assert not hasattr(loaded, "tuning_")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_models_without_a_search_hold_none(tmp_path):
    assert not hasattr(stored(KStoNetRegressor(tuning="none", **SHORT).fit(X, y), tmp_path), "tuned_")


@pytest.mark.parametrize("kind", [KStoNetRegressor, KStoNetClassifier])
def test_files_from_before_still_load(kind):
    loaded = load(DATA / f"v1_{kind.__name__}.kstonet")
    expected = json.loads((DATA / f"v1_{kind.__name__}.json").read_text())
    assert not hasattr(loaded, "tuned_")
    assert loaded.length_scale is None
    got = loaded.predict(expected["X"])
    if kind is KStoNetRegressor:
        np.testing.assert_allclose(got, expected["predict"], rtol=1e-9)
    else:
        assert got.tolist() == expected["predict"]


def test_the_best_of_a_search_is_stored(tmp_path):
    few = {"kernel": ["rbf", "matern52"], "length_scale": [None, "evidence"], "hidden_layer_sizes": [(3,)]}
    search = KStoNetRegressorCV(KStoNetRegressor(tuning="none", **SHORT), gamma=["scale"], C=[1, 10], **few).fit(X, y)
    np.testing.assert_array_equal(stored(search.best_estimator_, tmp_path).predict(X), search.predict(X))
    np.testing.assert_array_equal(stored(search, tmp_path).predict(X), search.predict(X))
