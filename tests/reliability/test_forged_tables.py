"""Files of the command line whose metadata somebody has changed: refused by name, or a model of a table."""

import contextlib
from pathlib import Path
from random import Random

import pytest

from kstonet.cli.stored import StoredModel
from kstonet.persistence import ModelFileError
from kstonet.storage import container
from kstonet.tables import InputError, TableEncoder
from tests.reliability.forged_files import forge, written

FILE = Path(__file__).parents[1] / "data" / "command_line" / "v2_table.kstonet"
NAME = {"name": "a", "kind": "number", "categories": [], "fill": None, "indicated": False}


def test_forged_metadata(tmp_path: Path) -> None:
    description, tensors = container.read(FILE)
    opened = 0
    for number in range(250):
        forged, _ = forge(Random(number), {"metadata": description["metadata"]}, {"t": tensors["t0"]})
        path = tmp_path / "m.kstonet"
        if written(path, description | forged, tensors):
            with contextlib.suppress(ModelFileError, InputError):
                StoredModel.open(str(path))
                opened += 1
    assert 0 < opened < 250  # notes on the training may be anything


@pytest.mark.parametrize(
    "columns",
    [
        [],
        "a",
        [NAME, NAME],
        [NAME | {"categories": [["a"]]}],
        [NAME | {"kind": "date"}],
        [NAME | {"fill": [1]}],
        [NAME | {"indicated": 1}],
        [NAME | {"new": 1}],
        [{"name": "a"}],
        [3],
    ],
)
def test_damaged_encodings_are_refused(columns: object) -> None:
    with pytest.raises(InputError, match="the table encoding is damaged"):
        TableEncoder.from_dict({"version": 1, "impute": False, "columns": columns})
