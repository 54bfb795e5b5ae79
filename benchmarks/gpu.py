"""The SVR engine on a CUDA GPU: the torch tests on the device, then timings beside the same engine on the CPU.

    python benchmarks/gpu.py --out benchmarks/results

Synthetic first-layer targets on Gaussian rows (p = 54, C = 10, epsilon = 0.01), as in benchmarks/svr.py. The GPU side keeps the
matrix in float64 and its factor in float32, exactly as the CPU side does.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

from kstonet._files import write_whole
from kstonet.gram import DenseGram, make_kernel
from kstonet.gram.torch import TorchGram
from kstonet.solvers.svr import solve_svr


def rows_and_targets(n: int, m: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 54))
    Y = np.tanh(X @ rng.normal(size=(54, m)) / np.sqrt(54)) + (np.sin(X[:, :1]) + X[:, 1:2] * X[:, 2:3] / 2) * rng.normal(
        size=m
    )
    return X, np.ascontiguousarray((Y / Y.std(axis=0)).T) + 0.1 * rng.normal(size=(m, n))


def measure(n: int, m: int, *, gpu: bool) -> dict[str, float | int | str]:
    X, Y = rows_and_targets(n, m)
    rng = np.random.default_rng(1)
    moved = [Y + 0.1 * rng.normal(size=Y.shape) for _ in range(4)]
    if gpu:
        X, Y, moved = (torch.as_tensor(X, device="cuda"), torch.as_tensor(Y, device="cuda"),
                       [torch.as_tensor(y, device="cuda") for y in moved])  # fmt: skip
        torch.cuda.reset_peak_memory_stats()
        torch.cuda.synchronize()
    started = time.perf_counter()
    gram = (TorchGram if gpu else DenseGram)(X, make_kernel("rbf", X))
    if gpu:
        torch.cuda.synchronize()
    built = time.perf_counter() - started
    solution = first = solve_svr(gram, Y, 10.0, 0.01)
    later, iterations, gaps = [], [], []
    for targets in moved:
        solution = solve_svr(gram, targets, 10.0, 0.01, warm_start=solution)
        later.append(solution.seconds)
        iterations.append(int(solution.n_iter.max()))
        gaps.append(float(solution.gap.max()))
    return {
        "n": n,
        "m": m,
        "where": torch.cuda.get_device_name() if gpu else f"CPU, {torch.get_num_threads()} threads",
        "gram_s": built,
        "first_solve_s": first.seconds,
        "later_solve_s": float(np.median(later)),
        "iterations": int(np.median(iterations)),
        "worst_gap": max(gaps),
        "peak_n2x8": (torch.cuda.max_memory_allocated() if gpu else gram.nbytes) / (8 * n * n),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    parser.add_argument("--sizes", type=int, nargs="*", default=[5000, 10000, 30000, 60000])
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    measure(2500, 5, gpu=True)  # warm up: handles, kernels
    rows = []
    for n in arguments.sizes:
        for m in (5, 20):
            rows.append(measure(n, m, gpu=True))
            print(rows[-1], flush=True)
            torch.cuda.empty_cache()
        if n <= 10000:
            rows.append(measure(n, 5, gpu=False))
            print(rows[-1], flush=True)
        record = {"torch": torch.__version__, "python": platform.python_version(), "rows": rows}
        write_whole(arguments.out / "gpu.json", json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
