"""What tests of several parts share."""

import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture(scope="session")
def make_flats():
    """A maker of small tables with every kind of column."""
    pandas = pytest.importorskip("pandas")

    def make(n=80, seed=0):
        rng = np.random.default_rng(seed)
        city = rng.choice(["Bern", "Genève", "Zürich"], n)
        area = rng.uniform(20, 150, n).round(1)
        balcony = rng.random(n) < 0.5
        rent = np.select([city == "Bern", city == "Genève"], [6.0, 9.0], 10.0)
        price = area * rent + 30.0 * balcony + rng.normal(0, 20, n)
        heat = np.where(price > np.quantile(price, 0.6), "gas", np.where(area > 60, "oil", "wood"))
        return pandas.DataFrame({"area": area, "city": city, "balcony": balcony, "price": price.round(1), "heat": heat})

    return make


@pytest.fixture
def flats(make_flats):
    return make_flats()


@pytest.fixture(scope="module")
def forgeable_files(tmp_path_factory):
    """Descriptions and tensors of stored models, with every class of record."""
    sys.path.append(str(Path(__file__).parent / "persistence"))
    from forging import stored

    return stored(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(scope="module")
def forged_file(tmp_path_factory):
    """Where forged files are written, one over the other."""
    return tmp_path_factory.mktemp("forged") / "m.kstonet"


@contextmanager
def _few_folds():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("kstonet.uncertainty.cross_fitting.FOLDS_OF_FEW", 2)
        patch.setattr("kstonet.uncertainty.cross_fitting.ITERATIONS", 2)
        patch.setattr("kstonet.uncertainty.noise_model.FOLDS_OF_FEW", 2)
        patch.setattr("kstonet.uncertainty.logits.REPLICATES", 1)
        patch.setattr("kstonet.uncertainty.logits.ITERATIONS", 2)
        patch.setattr("kstonet.uncertainty.ridge_scale.MOST_DRAWN", 1)
        patch.setattr("kstonet.tuning.joined.FEW_PARTS", 2)
        yield


@pytest.fixture
def few_folds():
    """Left-out predictions and noise by two folds, two iterations, one replicate: for tests that any number would do for.

    Every fit with intervals takes all of its steps, several times sooner; its intervals are rougher.
    """
    with _few_folds():
        yield


@pytest.fixture(scope="session")
def within_few_folds():
    """The same as a context, for fixtures that fit models which many tests share."""
    return _few_folds


@contextmanager
def _few_steps():
    with pytest.MonkeyPatch.context() as patch:
        for name in (
            "opening.FIRST_STEPS",
            "contest.NEXT_STEPS",
            "contest.PLENTY_STEPS",
            "directions.STEPS",
            "warping.STEPS",
        ):
            patch.setattr(f"kstonet.tuning.{name}", 2)
        patch.setattr("kstonet.tuning.sparse.ROUNDS", 1)
        patch.setattr("kstonet.tuning.directions.ROUNDS", 1)
        yield


@pytest.fixture
def few_steps():
    """A choice whose candidates climb two steps each: for tests that any choice would do for.

    Every kind of candidate is still made, judged and told; what is chosen is rougher.
    """
    with _few_steps():
        yield


@pytest.fixture(scope="session")
def within_few_steps():
    """The same as a context, for fixtures that fit models which many tests share."""
    return _few_steps
