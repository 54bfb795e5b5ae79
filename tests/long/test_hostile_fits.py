"""10,000 whole fits on hostile problems (200 in CI): finite, certified, consistent and soon done, or refused by name.

And the table of tests/reliability/test_hostile.py with as many folds and steps as users have.
"""

import os

import pytest

from tests.reliability.hostile_fits import failure
from tests.reliability.test_hostile import TABLE, check_problem

pytestmark = pytest.mark.long

FITS = int(os.environ.get("KSTONET_HOSTILE_FITS", 200 if os.environ.get("CI") else 10_000))


def test_hostile_fits() -> None:
    failures = [found for number in range(FITS) if (found := failure(number)) is not None]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize("name", TABLE)
def test_the_table_of_hostile_problems(name: str) -> None:
    check_problem(name)
