"""100,000 forged model files (2,000 in CI): a ModelFileError or a model that answers."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "persistence"))
from forging import check_forgery, forge, stored

pytestmark = pytest.mark.long

FILES = 2_000 if os.environ.get("CI") else 100_000


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    return stored(tmp_path_factory.mktemp("fuzz"))


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("forged") / "m.kstonet"


@settings(max_examples=FILES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_forged_files(files, place, data):
    check_forgery(place, *forge(data.draw, *data.draw(st.sampled_from(files))))
