"""Metadata travel in the model file and change nothing else."""

from pathlib import Path

import numpy as np
import pytest

import kstonet
from kstonet.persistence import ModelFileError, read_metadata
from kstonet.storage import container

X = np.linspace(0, 6, 30)[:, None]
MODEL = kstonet.MultiTargetSVR().fit(X, np.sin(X[:, 0]))
STORED = Path(__file__).parents[1] / "data"


@pytest.mark.parametrize("metadata", [{}, {"a": [1, 2.5, None, True, {"ü": '"sha256":""'}]}, None])
def test_come_back(tmp_path, metadata):
    path = tmp_path / "m.kstonet"
    kstonet.save(MODEL, path, metadata=metadata)
    assert read_metadata(path) == metadata
    assert np.array_equal(kstonet.load(path).predict(X), MODEL.predict(X))


@pytest.mark.parametrize(
    "metadata", [[1], "text", {"a": (1, 2)}, {1: "a"}, {"a": np.float64}, {"a": float("nan")}, {"a": {1, 2}}]
)
def test_what_json_cannot_hold_is_refused(tmp_path, metadata):
    with pytest.raises(TypeError, match="must be a dict of what JSON can hold"):
        kstonet.save(MODEL, tmp_path / "m.kstonet", metadata=metadata)
    assert not list(tmp_path.iterdir())


def test_are_part_of_the_checksum(tmp_path):
    path = tmp_path / "m.kstonet"
    kstonet.save(MODEL, path, metadata={"unit": "metre"})
    path.write_bytes(path.read_bytes().replace(b"metre", b"miles"))
    with pytest.raises(ModelFileError, match="checksum"):
        read_metadata(path)


def test_must_be_a_dict(tmp_path):
    path = tmp_path / "m.kstonet"
    kstonet.save(MODEL, path)
    description, tensors = container.read(path)
    container.write(path, description | {"metadata": [1]}, tensors)
    with pytest.raises(ModelFileError, match="its metadata is"):
        read_metadata(path)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.kstonet")), ids=lambda path: path.name)
def test_older_files_have_none(path):
    assert read_metadata(path) is None
