"""Processes killed at random moments: nothing is lost, nothing is damaged, nothing differs."""

import os
from pathlib import Path

import pytest

from tests.reliability.dying import kill

pytestmark = [pytest.mark.long, pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that are forked")]

FEWEST = 20 if os.environ.get("CI") else 100


def test_kills_at_random_moments(tmp_path: Path) -> None:
    kills, fits = kill(FEWEST, tmp_path)
    assert kills >= FEWEST
    assert fits > 1
