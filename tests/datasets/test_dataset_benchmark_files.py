"""The benchmark's files themselves: run with KSTONET_DATA naming their folder, skipped without."""

import hashlib
import os
from pathlib import Path

import dataset_samples as samples
import numpy as np
import pytest

from kstonet.datasets import load
from kstonet.datasets._registry import DATASETS
from kstonet.datasets._verify import original_splits, verify

FOLDER = os.environ.get("KSTONET_DATA")
pytestmark = pytest.mark.skipif(not FOLDER, reason="KSTONET_DATA is not set")
KEPT = [info for info in DATASETS if info.sha256]


@pytest.mark.parametrize("info", KEPT, ids=lambda info: info.name)
def test_the_benchmark_s_file(info):
    path = Path(FOLDER) / info.name / "data.npz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    assert hashlib.sha256(path.read_bytes()).hexdigest() == info.sha256
    bunch = load(info.name, data_home=FOLDER)
    assert bunch.filename == str(path)
    assert bunch.data.shape == (info.n, info.p)
    assert bunch.target.shape == (info.n,)
    assert bunch.data.dtype == info.dtype
    assert verify(info, bunch.data, bunch.target)  # the fingerprints are of this file
    with np.load(path, allow_pickle=False) as arrays:
        stored = [arrays[name] if name in arrays.files else None for name in ("train_idx", "test_idx")]
    for ours, theirs, made in zip((bunch.train_idx, bunch.test_idx), stored, original_splits(info), strict=True):
        if theirs is None:
            assert ours is None
        else:
            np.testing.assert_array_equal(ours, theirs)
            np.testing.assert_array_equal(made, theirs)


WRITTEN_OUT = [info for info in KEPT if info.name not in ("mnist", "qsar-androgen-receptor")]  # whose samples are invented


@pytest.mark.parametrize("info", WRITTEN_OUT, ids=lambda info: info.name)
def test_the_samples_are_its_first_rows(info):
    path = Path(FOLDER) / info.name / "data.npz"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    X, y = samples.expected(info.name)
    with np.load(path, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["X"][: len(y)], X)
        np.testing.assert_array_equal(arrays["y"][: len(y)], y)
