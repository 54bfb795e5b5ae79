"""Peaks within 20 % of the estimates that were made before: means, first call, search and classifier."""

import os
import sys

import pytest

from tests.reliability.peaks import in_process

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

SIZES = (2_000,) if os.environ.get("CI") else (2_000, 5_000, 10_000)


SLACK = 25e6  # bytes: what loaded libraries and freed blocks hold differs by so much between machines
ABOVE = {"default": 1.5}  # of few rows: fewer kernels may be chosen than are allowed, which is known only after the choice


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["means", "intervals", "kernels", "default", "search", "classifier"])
def test_the_peak_is_what_was_estimated(kind: str, n: int) -> None:
    peak, estimate = in_process(kind, n)
    above = ABOVE.get(kind, 1.2) if n <= 5_000 else 1.2
    said = f"peak {peak / 1e6:.0f} MB, estimate {estimate / 1e6:.0f} MB"
    assert peak / 1.2 - SLACK <= estimate <= peak * above + SLACK, said
