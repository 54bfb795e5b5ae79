"""Predictions do not drift: every kind of model predicts what it predicted when its answers were stored.

The model files in ``stored`` were written by an earlier version: they must load and give the same answers, too.
"""

from __future__ import annotations

import numpy as np
import pytest

import kstonet
from tests.reference.cases import CASES, answers, fitted, rows
from tests.reference.make import STORE

# Rounding differs between processors and numbers of threads, and a training carries it on.
TOLERANCE = {"rtol": 1e-6, "atol": 1e-8}


OF_FILE = "_of_file"  # answers of a stored file that differ from those of a new fit: its intervals were learnt in an older way


def compare(found: dict[str, np.ndarray], name: str, *, of_file: bool = False) -> None:
    with np.load(STORE / f"{name}.npz") as file:
        stored = {key: file[key] for key in file.files}
    older = {key.removesuffix(OF_FILE): stored.pop(key) for key in list(stored) if key.endswith(OF_FILE)}
    stored |= older if of_file else {}
    assert found.keys() == stored.keys()
    for key in stored:
        np.testing.assert_allclose(found[key], stored[key], **TOLERANCE, err_msg=f"{name}: {key}")


@pytest.mark.parametrize("name", CASES)
def test_a_new_fit_predicts_what_was_stored(name):
    compare(answers(*fitted(CASES[name])), name)


@pytest.mark.parametrize("name", CASES)
def test_a_file_of_an_earlier_version_predicts_what_it_predicted(name):
    compare(answers(kstonet.load(STORE / f"{name}.kstonet"), rows(CASES[name].data)[3]), name, of_file=True)
