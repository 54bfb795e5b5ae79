"""Training paths: in the user's units, of the whole training, thinned; and the models' own figures at their end."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments import figures, paths
from experiments.baselines import DNNClassifier, DNNRegressor, KernelNetworkRegressor
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet.datasets import make_measurement_error

X, Y = make_measurement_error(120, random_state=0)
TRAIN, TEST = (X[:80], 3.0 + 2.0 * Y[:80]), (X[80:], 3.0 + 2.0 * Y[80:])
LABELS = (TRAIN[0], TRAIN[1] > 3.0), (TEST[0], TEST[1] > 3.0)


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize(
    "model",
    [
        KStoNetRegressor((3,), tuning="none", max_iter=4, n_average=1, residuals=None, random_state=0),
        DNNRegressor((3,), max_epochs=4, random_state=0),
        KernelNetworkRegressor((3,), max_epochs=4, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_errors_are_those_of_the_model_at_its_end(model, standardize):
    path = paths.training_path(model.set_params(standardize=standardize), *TRAIN, *TEST)
    assert path["epoch"] == [1, 2, 3, 4]
    for which, (rows, truth) in {"train": TRAIN, "test": TEST}.items():
        error = np.mean((truth - model.predict(rows)) ** 2)
        assert path[f"final_{which}"] == pytest.approx(error, rel=1e-6)
        assert path[which][-1] == pytest.approx(error, rel=1e-5)
        assert path[f"best_{which}"] == pytest.approx(min(path[which]), rel=1e-5)
    assert 0 < path["elapsed"][0] < path["elapsed"][-1]


@pytest.mark.parametrize(
    "model",
    [
        KStoNetClassifier((3,), tuning="none", max_iter=3, n_average=1, residuals=None, random_state=0),
        DNNClassifier((3,), max_epochs=3, random_state=0),
    ],
    ids=lambda model: type(model).__name__,
)
def test_classifiers_give_accuracies(model):
    path = paths.training_path(model, *LABELS[0], *LABELS[1])
    assert path["final_test"] == pytest.approx(model.score(*LABELS[1]))
    assert path["best_train"] == max(path["train"])


def test_long_paths_are_thinned_but_their_best_is_not():
    model = DNNRegressor((3,), max_epochs=400, learning_rate=0.05, random_state=0)
    seen = []
    path = paths.training_path(model, *TRAIN, *TEST, points=20, look=seen.append)
    assert len(seen) == 400
    assert path["epoch"][:50] == list(range(1, 51))
    assert path["epoch"][-1] == 400
    assert len(path["epoch"]) <= 70
    assert path["best_test"] == min(record["val_mse"] for record in model.history_)


def test_parts_are_found_by_the_beginning_of_their_keys():
    parts = {"a|0": {"x": 1}, "a|1": {"x": 2}, "ab|0": {"x": 3}}
    assert paths.parts_of(parts, "a") == [{"x": 1}, {"x": 2}]
    assert paths.parts_of(parts, "a", "1") == [{"x": 2}]


def test_every_model_has_a_look_of_its_own():
    assert all(len(figures.look(name)) == 2 for name in figures.LOOKS)
    with pytest.raises(KeyError):
        figures.look("a model nobody drew")
