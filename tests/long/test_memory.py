"""Peaks within 20 % of the estimates that were made before: means, first call, search and classifier."""

import os
import sys

import pytest

from tests.reliability.peaks import in_process

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

SIZES = (2_000,) if os.environ.get("CI") else (2_000, 5_000, 10_000)


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["means", "intervals", "kernels", "default", "search", "classifier"])
def test_the_peak_is_what_was_estimated(kind: str, n: int) -> None:
    peak, estimate = in_process(kind, n)
    assert peak / 1.2 <= estimate <= peak * 1.2, f"peak {peak / 1e6:.0f} MB, estimate {estimate / 1e6:.0f} MB"
