"""Peaks within 20 % of the estimates that were made before: means, first call, search and classifier."""

import os
import sys

import pytest

from tests.reliability.peaks import in_process

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

SIZES = (2_000,) if os.environ.get("CI") else (2_000, 5_000, 10_000)
WITHIN = 1.2


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["means", "intervals", "kernels", "default", "search", "classifier"])
def test_the_peak_is_what_was_said(kind: str, n: int) -> None:
    """``explain_plan`` says a range where kernels are to be chosen; when they are, the fit says one number."""
    peak, least, most, said = in_process(kind, n)
    words = f"peak {peak / 1e6:.0f} MB, said {least / 1e6:.0f} to {most / 1e6:.0f}, then {said / 1e6:.0f} MB"
    assert peak / WITHIN <= said <= peak * WITHIN, words
    assert least <= said <= most, words
