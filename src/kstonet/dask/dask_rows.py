"""Rows on a Dask cluster: partitions in, sums out, by plain task graphs that the scheduler can compute again."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import dask
import dask.array
import dask.base
import numpy as np
from distributed import Client, Future, KilledWorker
from distributed.client import ClosedClientError, FutureCancelledError
from distributed.comm import CommClosedError

FAN_IN = 8  # results that one task adds
POLL = 1.0  # seconds after which the state of the cluster is examined while a result is awaited


class ClusterLostError(ConnectionError):
    """Raised where the cluster went away, or has no workers, for longer than the time-out."""


def is_collection(values: Any) -> bool:
    """Whether these are a Dask array, data frame or series."""
    return bool(dask.base.is_dask_collection(values))


def partitions(X: Any, *others: Any) -> list[tuple[Any, ...]]:
    """One tuple of delayed parts for every partition of X; the other collections, or None, are divided in the same way."""
    if not is_collection(X) or not all(other is None or is_collection(other) for other in others):
        raise TypeError(
            "X, y and sample_weight must be Dask arrays or data frames; kstonet's other estimators take local data."
        )
    pieces = _delayed(X)
    columns = []
    for name, other in zip(("y", "sample_weight"), others, strict=False):
        if other is None:
            columns.append([None] * len(pieces))
            continue
        own = _delayed(_aligned(X, other))
        if len(own) != len(pieces):
            raise ValueError(
                f"X has {len(pieces)} partitions and {name} has {len(own)}; divide them alike, "
                f"for example by {name}.rechunk or {name}.repartition."
            )
        columns.append(own)
    return list(zip(pieces, *columns, strict=True))


def _aligned(X: Any, other: Any) -> Any:
    """Arrays of known chunks are divided as X is; what has unknown chunks has to be divided so already."""
    known = isinstance(X, dask.array.Array) and isinstance(other, dask.array.Array)
    if known and not np.isnan(X.chunks[0]).any() and not np.isnan(other.chunks[0]).any():
        return other.rechunk({0: X.chunks[0]})
    return other


def _delayed(values: Any) -> list[Any]:
    if isinstance(values, dask.array.Array):
        if values.ndim == 2:
            values = values.rechunk({1: -1})
        return list(values.to_delayed().ravel())
    return list(values.to_delayed())


def added(results: Sequence[Any]) -> Any:
    """The sum of nested tuples of arrays, in their order."""
    first = results[0]
    if isinstance(first, tuple):
        return tuple(added(parts) for parts in zip(*results, strict=True))
    total = first
    for other in results[1:]:
        total = total + other
    return total


def joined(results: Sequence[Any]) -> Any:
    """Tuples of arrays, or tables, one below the other."""
    if isinstance(results[0], tuple):
        return tuple(joined(parts) for parts in zip(*results, strict=True))
    if hasattr(results[0], "iloc"):
        import pandas

        return pandas.concat(results)
    return None if results[0] is None else np.concatenate(results)


def _same(value: Any) -> Any:
    return value


class ClusterRows:
    """Submits functions of partitions and waits for what they return.

    Parameters
    ----------
    client : distributed.Client
    timeout : float
        Seconds without a usable cluster after which a result is given up.
    """

    def __init__(self, client: Client, timeout: float) -> None:
        self.client, self.timeout = client, timeout
        self._token = uuid.uuid4().hex[:8]  # concurrent trainings share a cluster
        self._count = 0

    def loaded(self, parts: Sequence[tuple[Any, ...]], load: Callable[..., Any]) -> list[Future]:
        """The partitions, made by ``load`` from their delayed parts; they stay on the workers."""
        made = [dask.delayed(load, pure=False)(*part) for part in parts]
        with self._lost():
            return list(self.client.compute(made))

    def shared(self, value: Any) -> Future:
        """A value that all tasks of a pass take: part of the graph, so that no worker is the only one to have it."""
        return self._submit("shared", _same, value)

    def each(self, name: str, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Future]:
        """One task for every partition; ``columns`` hold one argument per partition."""
        return [self._submit(name, function, *row) for row in zip(*columns, strict=True)]

    def combined(self, futures: Sequence[Future], combine: Callable[[Sequence[Any]], Any] = added) -> Any:
        """The results, combined by a tree in the order of the partitions; only the last one comes to the client."""
        level = list(futures)
        while True:
            level = [self._submit("sum", combine, level[i : i + FAN_IN]) for i in range(0, len(level), FAN_IN)]
            if len(level) == 1:
                return self.result(level[0])

    def results(self, futures: Sequence[Future]) -> list[Any]:
        """The results of all, which have to be small."""
        return [self.result(future) for future in futures]

    def result(self, future: Future) -> Any:
        """Wait for a result, as long as there is a cluster that works on it."""
        healthy = time.monotonic()
        while True:
            lost = False
            try:
                return future.result(timeout=POLL)
            except KilledWorker as error:
                raise ClusterLostError(
                    f"workers died again and again at the same task ({error}); they may have too little memory: use more or "
                    "smaller partitions, or a smaller rank: solver=LowRank(rank=...)."
                ) from error
            except (FutureCancelledError, CommClosedError):
                lost = True
            except TimeoutError:
                if future.status == "error":
                    raise  # the task itself
                lost = future.status in ("cancelled", "lost")
            if not lost and self._usable():
                healthy = time.monotonic()
            elif lost or time.monotonic() - healthy > self.timeout:
                raise self._gone()

    @contextmanager
    def _lost(self) -> Iterator[None]:
        """A client that cannot submit has lost its cluster."""
        try:
            yield
        except (ClosedClientError, CommClosedError) as error:
            raise self._gone() from error

    def _submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Future:
        self._count += 1
        with self._lost():
            return self.client.submit(function, *arguments, key=f"kstonet-{name}-{self._token}-{self._count}", pure=False)

    def _gone(self) -> ClusterLostError:
        address = getattr(getattr(self.client, "scheduler", None), "address", "an unknown address")
        return ClusterLostError(
            f"the Dask cluster at {address} has gone, or has had no workers for {self.timeout:g} s. Nothing of this training "
            "is kept; start a cluster and call fit again."
        )

    def _usable(self) -> bool:
        """Whether the scheduler answers and has workers."""
        if self.client.status != "running":
            return False
        try:
            return bool(self.client.nthreads())
        except (OSError, TimeoutError, ValueError, RuntimeError):
            return False


def current_client(client: Any) -> Client:
    """The client given, or the active one; an error that says how to start one where there is none."""
    if client is not None:
        return client
    try:
        return Client.current()
    except ValueError as error:
        raise ValueError(
            "there is no Dask client: start one with distributed.Client(), or set the client attribute."
        ) from error


def lazily(function: Callable[[Any], Any], X: Any, width: tuple[int, ...]) -> Any:
    """A function of rows, for every partition when it is computed; ``width`` are the axes of a result after the first."""
    if isinstance(X, dask.array.Array):
        X = X.rechunk({1: -1})
        chunks = (X.chunks[0], *((size,) for size in width))
        options: dict[str, Any] = {"drop_axis": 1} if not width else {}
        if len(width) > 1:
            options["new_axis"] = list(range(2, 1 + len(width)))
        return X.map_blocks(function, chunks=chunks, meta=np.empty((0,) * (1 + len(width))), **options)
    return dask.array.concatenate(
        [
            dask.array.from_delayed(dask.delayed(function)(part), (np.nan, *width), meta=np.empty((0,) * (1 + len(width))))
            for part in X.to_delayed()
        ],
        allow_unknown_chunksizes=True,
    )
