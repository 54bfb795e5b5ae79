"""100,000 forged model files (2,000 in CI): refused, or a model that answers, within a second and ten times the file."""

import os
import sys
from pathlib import Path

import pytest

from tests.reliability.forged_files import Fuzz

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

FILES = 2_000 if os.environ.get("CI") else 100_000


def test_forged_files(tmp_path: Path) -> None:
    fuzz = Fuzz(tmp_path)
    failures = list(fuzz.failures(0, FILES))
    assert not failures, "\n".join(failures)
    assert fuzz.tried > 0.95 * FILES  # some changes cannot be said in a file
    print(fuzz)
