"""Random numbers for chunks of observations that are drawn together, on a device.

Every chunk has a stream of its own. The numbers are drawn on the CPU, in threads, and then placed: a device gets those that the
CPU would use, however many chunks it draws at once and however many threads there are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from kstonet._arrays import Array, filled
from kstonet.threads import in_threads


class ChunkStreams:
    """What a sampler asks of a random generator, from one generator for every chunk.

    Parameters
    ----------
    generators : sequence of Generator
        One for every chunk.
    chunks : sequence of slice
        The rows of every chunk, from zero on.
    reference : array
        The numbers are placed beside it.
    n_jobs : int, optional
        Number of threads.

    Examples
    --------
    >>> import numpy as np
    >>> chunks = [slice(0, 2), slice(2, 3)]
    >>> both = ChunkStreams([np.random.default_rng(seed) for seed in (0, 1)], chunks, np.empty(0)).standard_normal((3, 4))
    >>> bool((both[2] == np.random.default_rng(1).standard_normal(4)).all())
    True
    """

    def __init__(
        self,
        generators: Sequence[np.random.Generator],
        chunks: Sequence[slice],
        reference: Array,
        n_jobs: int | None = None,
    ) -> None:
        self._pairs, self._reference, self._n_jobs = list(zip(generators, chunks, strict=True)), reference, n_jobs

    def standard_normal(self, size: tuple[int, ...]) -> Array:
        """Standard normal numbers, one row for every observation."""
        return self._drawn(size, lambda generator, shape: generator.standard_normal(shape))

    def uniform(self, low: float = 0.0, high: float = 1.0, size: int | tuple[int, ...] = ()) -> Array:
        """Uniform numbers between ``low`` and ``high``, one row for every observation."""
        shape = size if isinstance(size, tuple) else (size,)
        return self._drawn(shape, lambda generator, shape: generator.uniform(low, high, shape))

    def _drawn(self, size: tuple[int, ...], draw: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray]) -> Array:
        def fill(values: np.ndarray) -> None:
            def one(pair: tuple[np.random.Generator, slice]) -> None:
                generator, rows = pair
                values[rows] = draw(generator, values[rows].shape)

            in_threads(one, self._pairs, self._n_jobs)

        return filled(self._reference, size, fill)
