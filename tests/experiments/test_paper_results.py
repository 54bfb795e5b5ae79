"""The paper's results at tiny sizes: they run, resume, choose without test rows, and write tables, pictures and summaries."""

import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.kernel_ridge import KernelRidge

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments import full_row_rank, large_classification, machines, measurement_error, qsar, simulated_knn
from experiments.common import Results

PNG = b"\x89PNG"


def check_outputs(module, results):
    """The picture is one, and no cell of the summary is empty or not a number."""
    pytest.importorskip("matplotlib")
    module.picture(results.parts, results.path)
    assert results.path.with_suffix(".png").read_bytes()[:4] == PNG
    for row in module.summary(results.parts):
        for cell in (row.result, row.paper, row.paper_settings, row.defaults, row.note):
            assert cell
            assert "nan" not in cell
            assert "|" not in cell  # it would end the cell of a Markdown table


def refuse(*_):
    pytest.fail("a finished part ran again")


def test_full_row_rank(tmp_path, monkeypatch):
    results = Results(tmp_path / "r.json")
    size = full_row_rank.Size(rows=60, features=20, epochs=60, lasso_epochs=20, iterations=5, restarts=2)
    full_row_rank.run(results, size)
    assert len(results.parts) == 1 + 2 + 5 * 2
    text = full_row_rank.table(results.parts)
    assert "| DNN with Lasso | 2 |" in text
    assert "| K-StoNet, defaults, ten chains | 2 | – | – | – |" in text  # no path, but a model
    assert text.count("\n") == 8
    check_outputs(full_row_rank, results)
    monkeypatch.setattr(full_row_rank, "one_run", refuse)
    full_row_rank.run(Results(tmp_path / "r.json"), size)


def test_spread_is_relative():
    values = np.array([1.0, 3.0])
    assert full_row_rank.spread(values) == pytest.approx(np.sqrt(2) / 2)
    assert full_row_rank.spread(values, 10.0) == pytest.approx(np.sqrt(2) / 10)
    assert full_row_rank.percent(full_row_rank.spread(values[:1])) == "–"
    path = {"epoch": [1, 2, 5], "train": [3.0, 0.5, 2.0]}
    assert full_row_rank.first_below(path, 1.0) == "2"
    assert full_row_rank.first_below(path, 0.1) == "–"


def test_simulated_knn(tmp_path):
    results = Results(tmp_path / "r.json")
    simulated_knn.run(results, simulated_knn.Size(rows=60, epochs=3, iterations=3))
    assert len(results.parts) == 8
    text = simulated_knn.table(results.parts)
    assert "| K-StoNet, defaults, 10 units | 3 |" in text
    assert "| the mean of y |" in text
    check_outputs(simulated_knn, results)


def test_measurement_error(tmp_path, monkeypatch):
    monkeypatch.setitem(measurement_error.NETWORKS, "three layers", (3, 3, 3))
    results = Results(tmp_path / "r.json")
    size = measurement_error.Size(rows=50, epochs=3)
    measurement_error.run(results, size, epsilons=(0.01, 0.05, 0.1))
    assert len(results.parts) == 2 * (5 + 2)  # the table's row of the picture's epsilon is the picture's path
    part = results.parts["one layer|K-StoNet, paper's settings|0.1"]
    assert 0 < part["support"] < results.parts["one layer|K-StoNet, paper's settings|0.01"]["support"] <= 50
    text = measurement_error.epsilon_table(results.parts)
    assert text.count("\n") == 1 + 6
    assert "| 473.6 | 6.68 | 9.09 |" in text  # the paper's figures beside ours
    assert measurement_error.path_table(results.parts).count("\n") == 1 + 10
    check_outputs(measurement_error, results)


def labelled(n, seed=0):
    rng = np.random.default_rng(seed)
    X = (rng.random((n, 12)) < 0.4).astype(float)
    return X, (X[:, 0] + X[:, 1] + X[:, 2] > 1.5).astype(int)


def test_qsar(tmp_path):
    results = Results(tmp_path / "r.json")
    grid = {"C": (1.0, 10.0), "shape": (1.0,)}
    size = qsar.Size(2, epochs=15, iterations=4, validation_parts=1, validation_iterations=2, kstonet_grid=grid, svm_grid=grid)
    qsar.run(results, *labelled(80), size)
    assert len(results.parts) == 2 * len(qsar.MODELS)
    text = qsar.table(results.parts)
    assert text.splitlines()[1].count("---") == text.splitlines()[0].count("|") - 1
    assert "90.98" in text
    assert qsar.choices(results.parts).count("C = ") == 4
    check_outputs(qsar, results)


def test_the_choice_is_the_best_on_validation_rows_and_sees_training_rows_only():
    X, y = labelled(60)
    seen = []

    class Model:
        def __init__(self, C, gamma):
            self.value = -abs(np.log10(C) - 1.0) - abs(gamma * 12 - 2.0)

        def fit(self, X, y):
            seen.append(X)
            return self

    def score(model, X, y):
        seen.append(X)
        return model.value

    chosen, table = qsar.choose(Model, score, (X[:40], y[:40]), {"C": (1.0, 10.0, 100.0), "shape": (1.0, 2.0)}, 2)
    assert chosen == {"C": 10.0, "gamma": 2.0 / 12}
    assert len(table) == 6
    assert {len(rows) for rows in seen} == {32, 8}
    training_rows = {row.tobytes() for row in X[:40]}
    assert all(row.tobytes() in training_rows for rows in seen for row in rows)


def test_final_figures_do_not_depend_on_the_test_rows_beside():
    """Watching test rows changes nothing: the same model scores the same on some of them, whatever the others are."""
    (X, y), (X_test, y_test) = labelled(60), labelled(30, seed=1)
    make = lambda: qsar.kstonet(3)  # noqa: E731
    model, other = make(), make()
    qsar.final(model, (X, y), (X_test, y_test))
    qsar.final(other, (X, y), (X_test[::-1] * 0, 1 - y_test))
    np.testing.assert_array_equal(model.predict_proba(X_test), other.predict_proba(X_test))


@pytest.mark.parametrize("name", large_classification.SETS)
def test_large_classification(tmp_path, monkeypatch, name):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=90)
    X = rng.normal(size=(90, 12)) + 2.0 * y[:, None]
    split = (X[:60], y[:60], X[60:], y[60:])
    monkeypatch.setitem(large_classification.PAPER_SETTINGS["covertype"], "gamma", [0.5, 0.5, 0.1, 0.1])
    results = Results(tmp_path / "r.json")
    size = large_classification.Size(units=4, iterations=2, default_iterations=2, layers=(6, 4), epochs=10)
    large_classification.run(results, name, 60, lambda: split, size)
    assert f"| {name} | 60 / 30 | K-StoNet, defaults | 2 |" in large_classification.table(results.parts)
    assert results.parts[f"{name}|60|K-StoNet, defaults"]["model_test"] > 0.5
    check_outputs(large_classification, results)


def test_machines_are_searched_on_some_rows_and_fitted_to_all(monkeypatch):
    """Kernel ridge regressions agree with scikit-learn's; the settings are those of the best folds of the rows searched."""
    monkeypatch.setattr(machines, "SEARCHED_ROWS", 60)
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=150)
    X = rng.normal(size=(150, 4)) + y[:, None]
    model, settings = machines.searched("ridge", X, y)
    assert set(settings) == {"ridge", "gamma"}
    rival = KernelRidge(alpha=settings["ridge"], kernel="rbf", gamma=settings["gamma"])
    level = np.bincount(y) / 150
    fitted = rival.fit(X, np.eye(3)[y] - level)
    new = rng.normal(size=(40, 4)) + 1.0
    np.testing.assert_array_equal(model.predict(new), (fitted.predict(new) + level).argmax(axis=1))
    machine, settings = machines.searched("C", X, y)
    assert settings["C"] in machines.GRIDS["C"]
    assert machine.shape_fit_ == X.shape


def test_rows_of_mnist_and_covertype():
    rng = np.random.default_rng(0)
    pixels, digits = rng.integers(256, size=(70_000, 2), dtype=np.uint8), rng.integers(10, size=70_000)
    X, y, X_test, _ = large_classification.prepare("mnist", pixels, digits, 100)
    assert X.shape == X_test.shape == (100, 2)
    raw = np.round((X * 0.3081 + 0.1307) * 255).astype(int)
    known = {(*row, digit) for row, digit in zip(pixels[:60_000].tolist(), digits[:60_000].tolist(), strict=True)}
    assert all((*row, digit) in known for row, digit in zip(raw.tolist(), y.tolist(), strict=True))  # of the official part
    assert len(large_classification.prepare("mnist", pixels, digits, 0)[2]) == 10_000
    cover, kinds = rng.normal(3.0, 2.0, size=(400, 54)).astype(np.float32), rng.integers(1, 4, size=400)
    X, y, X_test, y_test = large_classification.prepare("covertype", cover, kinds, 0)
    assert len(X) == len(X_test) == 200
    np.testing.assert_allclose(X[:, :10].std(axis=0), 1.0)
    np.testing.assert_allclose(X[:, 10:].mean(), 3.0, atol=0.1)  # indicators stay as they are
    np.testing.assert_allclose(np.bincount(y), np.bincount(y_test), atol=1)  # stratified
