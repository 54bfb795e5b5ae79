"""The experiment on known structures: its rivals find what they can, and a part has all figures of the table."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2]))

from experiments import structure

RNG = np.random.default_rng(0)
X = RNG.normal(size=(1500, 10))
NOISE = 0.1 * RNG.normal(size=1500)
TRUTH = structure.MIXED[:, :1]


@pytest.mark.parametrize("rival", [structure.sir, structure.opg])
def test_rivals_find_a_monotone_index(rival):
    y = np.tanh(X @ TRUTH[:, 0]) + NOISE
    assert (
        structure.degrees(TRUTH, rival(X * np.arange(1, 11), y, 1) * np.arange(1, 11)[:, None]) < 15 or rival is structure.opg
    )
    assert structure.degrees(TRUTH, rival(X, y, 1)) < 15


def test_slices_without_means_need_their_variances():
    y = (X @ TRUTH[:, 0]) ** 2 + NOISE
    assert structure.degrees(TRUTH, structure.save(X, y, 1)) < 15
    assert structure.degrees(TRUTH, structure.sir(X, y, 1)) > 30  # symmetric: all slices have the same mean


def test_angles_are_those_of_spaces():
    assert structure.degrees(np.eye(3)[:, :2], np.array([[1.0, 1.0], [1.0, -1.0], [0.0, 0.0]])) == pytest.approx(0.0, abs=1e-5)
    assert structure.degrees(np.eye(3)[:, :1], np.array([[1.0], [1.0], [0.0]])) == pytest.approx(45.0)


@pytest.mark.parametrize("name", structure.STRUCTURES)
def test_truths_have_unit_variance_and_no_other_directions(name):
    truth, directions = structure.STRUCTURES[name]
    _, f, _ = structure.draw(name, 20_000, 0)
    assert f.std() == pytest.approx(1.0, abs=0.05)
    across = np.linalg.svd(directions)[0][:, directions.shape[1] :]
    np.testing.assert_allclose(truth(X + X @ across @ across.T), truth(X), atol=1e-9)


def test_a_part_makes_a_row_of_the_table(monkeypatch):
    monkeypatch.setattr(structure, "SVR_GRID", {"C": [10.0], "gamma": [0.1]})
    part = structure.one("single index", 0, n=200)
    assert part["risk"]["oracle"] < part["risk"]["K-StoNet"] < part["risk"]["SVR"]
    row = structure.table({"single index|0": part}).splitlines()[-1]
    assert row.startswith("| single index | ")
    assert row.count("|") == 14
    assert "single index: 0." in structure.summary({"single index|0": part})[0].defaults
    assert structure.summary({}) == []
