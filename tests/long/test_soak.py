"""Many fits and many rows in one process: its memory does not grow."""

import os
import sys

import pytest

from tests.reliability.soak import in_process

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

FITS = 150 if os.environ.get("CI") else 1_000
ROWS = 10**6 if os.environ.get("CI") else 10**7


def test_memory_does_not_grow_with_the_number_of_fits() -> None:
    assert in_process("fits", FITS) < 5.0


def test_rows_are_predicted_in_constant_memory() -> None:
    assert in_process("rows", ROWS) < 20.0
