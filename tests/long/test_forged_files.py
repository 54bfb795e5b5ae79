"""100,000 forged model files (2,000 in CI): a ModelFileError or a model that answers."""

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

sys.path.append(str(Path(__file__).parents[1] / "persistence"))
from forging import check_forgery, forge

pytestmark = pytest.mark.long

FILES = 2_000 if os.environ.get("CI") else 100_000


@settings(max_examples=FILES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(random=st.randoms(use_true_random=True))
def test_forged_files(forgeable_files, forged_file, random):
    check_forgery(forged_file, *forge(random, *random.choice(forgeable_files)))
