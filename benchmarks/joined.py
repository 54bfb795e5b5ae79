"""First calls whose first layer several choices share, beside the choice from all rows alone.

    python benchmarks/joined.py --data DIR [--tables DIR] [--sizes 100 150 300 500 700 950] [--draws 1] [--jobs 2]

What is compared
    KStoNetRegressor with its defaults, whose choice is made again without parts of the rows, and the same with the kernels of
    the choice from all rows alone. Both learn from the parts by how much left-out residuals are too small, so that their
    intervals compare, and their times differ by the kernels only.

Data and measurement are those of resting.py.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from unittest import mock

from _comparison import Record, Results
from kstonet.tuning import fast
from resting import compared, measured, run

MODELS = ("kstonet", "kstonet, one choice")


def alone() -> AbstractContextManager[object]:
    """Within it, one choice has the first layer."""
    joining = fast.joining

    def one(*args: Any, **options: Any) -> tuple[int, int]:
        return joining(*args, **options)[0], 1

    return mock.patch.object(fast, "joining", one)


def measure(path: Path, part: Record) -> Record:
    """Fit one model on one draw."""
    return measured(path, part, {MODELS[1]: alone})


def page(results: Results) -> str:
    """The table of the results."""
    return compared(results, "Choices that share the first layer", MODELS, ("together", "of one choice"))


if __name__ == "__main__":
    run(__doc__, Path(__file__).resolve(), measure, MODELS, page, [100, 150, 300, 500, 700, 950])
