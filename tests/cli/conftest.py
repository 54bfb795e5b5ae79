"""A small table with every kind of column, models fitted on it once, and a way to run commands."""

from importlib.util import find_spec

import numpy as np
import pandas as pd
import pytest

from kstonet.cli import NEEDED

collect_ignore_glob = [] if all(map(find_spec, NEEDED)) else ["test_*.py"]


def invoke(words, stdin=None):
    from typer.testing import CliRunner

    from kstonet.cli.app import app

    return CliRunner().invoke(app, [str(word) for word in words], input=stdin)


def make_flats(n=80, seed=0):
    rng = np.random.default_rng(seed)
    city = rng.choice(["Bern", "Genève", "Zürich"], n)
    area = rng.uniform(20, 150, n).round(1)
    balcony = rng.random(n) < 0.5
    price = area * np.select([city == "Bern", city == "Genève"], [6.0, 9.0], 10.0) + 30.0 * balcony + rng.normal(0, 20, n)
    heat = np.where(price > np.quantile(price, 0.6), "gas", np.where(area > 60, "oil", "wood"))
    return pd.DataFrame({"area": area, "city": city, "balcony": balcony, "price": price.round(1), "heat": heat})


@pytest.fixture
def flats():
    return make_flats()


@pytest.fixture
def run(monkeypatch):
    """Run a command in this process; the terminal is wide, so that messages are not broken."""
    monkeypatch.setenv("COLUMNS", "400")

    def run(*words, code=0, stdin=None):
        result = invoke(words, stdin)
        assert result.exit_code == code, result.output
        return result

    return run


@pytest.fixture(scope="session")
def regression(tmp_path_factory):
    """A table and the model of ``kstonet fit``."""
    return _fitted(tmp_path_factory.mktemp("regression"), "price")


@pytest.fixture(scope="session")
def classification(tmp_path_factory):
    return _fitted(tmp_path_factory.mktemp("classification"), "heat")


def _fitted(folder, target):
    table, model = folder / "flats.csv", folder / "flats.kstonet"
    make_flats().to_csv(table, index=False)
    result = invoke(["fit", table, "--target", target, "--out", model, "--max-iter", 4])
    assert result.exit_code == 0, result.output
    return table, model
