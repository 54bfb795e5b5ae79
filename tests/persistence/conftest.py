"""Fitted models and stored ones."""

import warnings

import pytest
from model_files import CASES, NO, ROWS

from kstonet.persistence import save

pytest.importorskip("safetensors")


@pytest.fixture(scope="session")
def fitted(within_few_folds):
    """Every case, fitted once."""
    made = {}

    def get(name):
        if name not in made:
            model, A, y, new, calibration = CASES[name]
            with within_few_folds():  # files hold intervals of any quality
                model.fit(A, y)
            if calibration != NO:
                model.calibrate(*((A[:20] + 0.01, y[:20]) if calibration == ROWS else ()))
            made[name] = model, new
        return made[name]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield get


@pytest.fixture
def stored(fitted, tmp_path):
    path = tmp_path / "m.kstonet"
    save(fitted("gamma per unit")[0], path)
    return path
