"""Peaks within 20 % of the estimates that were made before: means, first call, search and classifier.

How far candidates that run side by side overlap differs from run to run (the classifier's peak at 2,000 rows from 119 to
166 MB), so an estimate is compared with the highest of a few runs. Memory that the libraries took and freed before the fit is
taken again without being seen: an estimate may be higher by that much, which only small fits notice. It may never be lower.
"""

import os
import sys

import pytest

from tests.reliability.peaks import in_process

pytestmark = [pytest.mark.long, pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")]

SIZES = (2_000,) if os.environ.get("CI") else (2_000, 5_000, 10_000)
WITHIN, RUNS, UNSEEN = 1.2, 3, 25e6


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("kind", ["means", "squared", "intervals", "kernels", "default", "search", "classifier"])
def test_the_peak_is_what_was_said(kind: str, n: int) -> None:
    """``explain_plan`` says a range where kernels are to be chosen; when they are, the fit says one number."""
    highest = 0
    for _ in range(RUNS):
        peak, least, most, said = in_process(kind, n)
        highest = max(highest, peak)
        words = f"peak {highest / 1e6:.0f} MB, said {least / 1e6:.0f} to {most / 1e6:.0f}, then {said / 1e6:.0f} MB"
        assert highest / WITHIN <= said, words
        assert least <= said <= most, words
        if said <= highest * WITHIN:
            break
    assert said <= highest * WITHIN + UNSEEN, words
