"""What a training on a Dask cluster moves in an iteration, against the number of partitions and workers.

    python benchmarks/cluster.py [--rows 4000] [--rank 200] [--units 20] [--out benchmarks/results/cluster.json]

A cluster of worker processes on this machine; Gaussian rows of ten features. Counted are the bytes, pickled, of what the client
sends for its tasks to share, of the results it receives, and of what workers receive from each other, from one iteration to the
next (the mean over four).
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster

from _measure import machine
from kstonet._files import write_whole
from kstonet.dask import DaskKStoNetRegressor
from kstonet.dask.dask_rows import ClusterRows
from kstonet.dask.training import ClusterTraining
from kstonet.gram import LowRank

ITERATIONS = 4


def received(dask_worker: Any) -> int:
    """Bytes that a worker has received from others."""
    return int(sum(entry["total"] for entry in dask_worker.transfer_incoming_log))


class Traffic:
    """Counts what passes through the client, and what the workers have received at the end of every iteration."""

    def __init__(self, client: Client) -> None:
        self.client, self.sent, self.results = client, 0, 0
        self.ends: list[tuple[float, ...]] = []
        self._before = ClusterRows.shared, ClusterRows.result, ClusterTraining._record

    def __enter__(self) -> Traffic:
        own_shared, own_result, own_record = self._before

        def shared(rows: ClusterRows, value: Any) -> Any:
            self.sent += len(pickle.dumps(value))
            return own_shared(rows, value)

        def result(rows: ClusterRows, future: Any) -> Any:
            found = own_result(rows, future)
            self.results += len(pickle.dumps(found))
            return found

        def record(training: ClusterTraining, *given: Any) -> None:
            own_record(training, *given)
            between = sum(self.client.run(received).values())
            self.ends.append((self.sent, self.results, between, time.perf_counter()))

        ClusterRows.shared, ClusterRows.result, ClusterTraining._record = shared, result, record  # type: ignore[method-assign]
        return self

    def __exit__(self, *_: object) -> None:
        ClusterRows.shared, ClusterRows.result, ClusterTraining._record = self._before  # type: ignore[method-assign]


def measure(client: Client, given: argparse.Namespace, partitions: int) -> dict[str, float]:
    """One training without intervals."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(given.rows, 10))
    y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=given.rows)
    size = -(-given.rows // partitions)
    model = DaskKStoNetRegressor(
        (given.units,), tuning="none", loss="squared", C=30.0, solver=LowRank(given.rank, leaf_rows=0, tolerance=0.0),
        max_iter=1 + ITERATIONS, n_average=1, residuals=None, random_state=0,
    )  # fmt: skip
    with Traffic(client) as traffic:
        model.fit(da.from_array(X, chunks=(size, 10)), da.from_array(y, chunks=size))
    grown = (np.array(traffic.ends[-1]) - np.array(traffic.ends[0])) / ITERATIONS
    return dict(zip(("sent", "results", "between", "seconds"), grown.tolist(), strict=True))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--rank", type=int, default=200)
    parser.add_argument("--units", type=int, default=20)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/cluster.json"))
    given = parser.parse_args()
    rows = []
    for workers, partitions in ((2, 4), (2, 16), (2, 64)):
        options = {"n_workers": workers, "threads_per_worker": 1, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster) as client:
            rows.append({"workers": workers, "partitions": partitions, "per_iteration": measure(client, given, partitions)})
        print(rows[-1], flush=True)
    shape = {name: getattr(given, name) for name in ("rows", "rank", "units")}
    record = {"command": "python benchmarks/cluster.py", "machine": machine(), **shape, "results": rows}
    write_whole(given.out, json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
