"""Forged model files, each known by its number: ``python -m tests.reliability.forged_files FIRST LAST`` tries some.

A number gives the stored model and what is changed in it. A file is treated rightly if it is refused by a ``ModelFileError``,
or becomes a model that answers, within a second and ten times its own bytes. The memory is that of the process for every file,
which notices from a megabyte on, and for every fiftieth file that of all Python objects, to the byte.
"""

import sys
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from tests.reliability.peaks import forget, resident

sys.path.append(str(Path(__file__).parents[1] / "persistence"))
from forging import check_answers, forge, loaded, places, stored, written

TIMES = 10  # the bytes of a file
SLACK_OF_PROCESS = 2**20  # pages that the allocator takes in advance
SLACK_OF_OBJECTS = 2**17  # messages, parameters and the module's own work do not depend on the file
TRACED_EVERY = 50  # tracing makes a load four times slower
SAID_EVERY = 1_000


class Fuzz:
    """Forged files in a folder, with their counts.

    Parameters
    ----------
    folder : path
        Of the file that is forged again and again.
    """

    def __init__(self, folder: Path) -> None:
        self.files, self.path = stored(folder), folder / "forged.kstonet"
        self.shares = [1.0 / len(places(description)) for description, _ in self.files]  # small files are read sooner
        loaded(folder / "0.kstonet")  # what is imported with the first file belongs to none
        self.tried = self.refused = 0
        self.slowest = 0.0

    def failure(self, number: int) -> str | None:
        """What is wrong with the file of a number; None where nothing is."""
        random = Random(number)
        size = written(self.path, *forge(random, *random.choices(self.files, self.shares)[0]))
        if not size:
            return None
        self.tried += 1
        try:
            started = time.process_time()
            model, taken, slack = (self._traced if number % TRACED_EVERY == 0 else self._measured)()
            self.slowest = max(self.slowest, time.process_time() - started)
            if slack == SLACK_OF_PROCESS and taken > TIMES * size + slack:
                taken = self._measured()[1]  # an allocator takes pages in advance now and then, but not for the same file again
            self.refused += model is None
            if model is not None:
                check_answers(model)
        except Exception as error:
            return f"{number}: {type(error).__name__}: {error}"
        return f"{number}: {taken:,} bytes for a file of {size:,}" if taken > TIMES * size + slack else None

    def _measured(self) -> tuple[Any, int, int]:
        forget()
        before = resident("VmRSS")
        model = loaded(self.path)
        return model, resident("VmHWM") - before, SLACK_OF_PROCESS

    def _traced(self) -> tuple[Any, int, int]:
        tracemalloc.start()
        try:
            model = loaded(self.path)
            return model, tracemalloc.get_traced_memory()[1], SLACK_OF_OBJECTS
        finally:
            tracemalloc.stop()

    def failures(self, first: int, last: int) -> Iterator[str]:
        """What is wrong with the files of some numbers."""
        for number in range(first, last):
            if (found := self.failure(number)) is not None:
                yield found

    def __str__(self) -> str:
        """The counts in words."""
        return f"{self.tried:,} files, {self.refused:,} refused, the slowest in {self.slowest:.2f} s of processor time"


def main(first: int, last: int) -> int:
    """Try the files of some numbers; say what is wrong and how many."""
    wrong, started = 0, time.process_time()
    with tempfile.TemporaryDirectory() as folder:
        fuzz = Fuzz(Path(folder))
        for begin in range(first, last, SAID_EVERY):
            end = min(begin + SAID_EVERY, last)
            for found in fuzz.failures(begin, end):
                wrong += 1
                print(found, flush=True)
            print(f"{begin} to {end}: {wrong} wrong so far; {fuzz}; {time.process_time() - started:.0f} s", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])) > 0)
