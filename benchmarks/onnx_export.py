"""Exported models in onnxruntime beside predict, in one run.

    python benchmarks/onnx_export.py [--out benchmarks/results/onnx.md] [--quick]

Trains K-StoNets on Gaussian rows with a smooth target, exports them, and predicts batches of new rows with both, turn by turn;
the least CPU seconds of several turns count, on one thread each, so that other work on the machine matters little. Writes a
table with the ratios, the largest relative difference of all outputs, and the memory a batch takes in onnxruntime.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ["OPENBLAS_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
import onnx
import onnxruntime

sys.path.insert(0, str(Path(__file__).parents[1] / "src"))

import kstonet
from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole
from kstonet.onnx_export import to_onnx

FEATURES = 8
CASES: dict[str, tuple[int, dict[str, Any]]] = {  # rows, settings
    "rbf, 5 units": (1000, {}),
    "rbf, 5 units, many rows": (4000, {}),
    "laplacian, 5 units": (1000, {"kernel": "laplacian"}),
    "arccos1, 5 units": (1000, {"kernel": "arccos1"}),
    "rbf, 20-10-5 units": (1000, {"hidden_layer_sizes": (20, 10, 5)}),
}
BATCHES = (1, 100, 1000)
NOTES = """\
- **onnx**, **predict**: CPU milliseconds for the batch on one thread, least of the turns taken alternately. **×**: predict over
  onnx; above 1 the exported model is faster.
- **std**: means and standard deviations, `predict(return_std=True)`. **mean**: means alone, `return_std=False`. **proba**:
  labels and probabilities of three classes, beside `predict_proba`.
- **difference**: largest difference of any output from predict's, relative to it (means: to mean and standard deviation).
- **MiB**: growth of the resident memory of a fresh process with onnxruntime by the first run of that batch.
"""

PEAK = """
import sys, numpy, onnxruntime, psutil
path, rows, features = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
X = numpy.zeros((rows, features))
before = psutil.Process().memory_info().rss
session.run(None, {"X": X})  # the session keeps what it took
print((psutil.Process().memory_info().rss - before) / 2**20)
"""


def data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, FEATURES))
    return X, np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] / 2 + 0.1 * rng.normal(size=n)


def least_seconds(ways: list[Callable[[], Any]], turns: int) -> list[float]:
    """CPU seconds of every way, least of the turns; the first turn is not counted."""
    best = [np.inf] * len(ways)
    for turn in range(turns + 1):
        for k, way in enumerate(ways):
            started = time.process_time()
            way()
            if turn:
                best[k] = min(best[k], time.process_time() - started)
    return best


def difference(model: Any, outputs: dict[str, np.ndarray], X: np.ndarray) -> float:
    if "probabilities" in outputs:
        assert (outputs["label"] == model.predict(X)).all()
        return float(np.abs(outputs["probabilities"] / model.predict_proba(X) - 1.0).max())
    mean, std = model.predict(X, return_std=True)
    relative = [np.abs(outputs["mean"] - mean) / (np.abs(mean) + std)]
    relative += [np.abs(outputs["std"] / std - 1.0)] if "std" in outputs else []
    return float(np.max(relative))


def measure(name: str, kind: str, model: Any, ask: Callable[[np.ndarray], Any], path: Path, turns: int) -> list[str]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    started = time.perf_counter()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    loaded = time.perf_counter() - started
    names = [output.name for output in session.get_outputs()]
    rows = []
    for batch in BATCHES:
        X, _ = data(batch, seed=1)
        repeat = max(1, 100 // batch)  # one row is over too soon for the clock

        def exported(X: np.ndarray = X, repeat: int = repeat) -> None:
            for _ in range(repeat):
                session.run(None, {"X": X})

        def own(X: np.ndarray = X, repeat: int = repeat) -> None:
            for _ in range(repeat):
                ask(X)

        theirs, ours = (1000.0 * seconds / repeat for seconds in least_seconds([exported, own], turns))
        unlike = difference(model, dict(zip(names, session.run(None, {"X": X}), strict=True)), X)
        peak = subprocess.run([sys.executable, "-c", PEAK, str(path), str(batch), str(FEATURES)], capture_output=True,
                              text=True, check=True).stdout  # fmt: skip
        cells = [name, str(model.n_support_), kind, f"{path.stat().st_size / 1e6:.1f}", f"{loaded:.2f}", f"{batch:,}",
                 f"{theirs:.3g}", f"{ours:.3g}", f"{ours / theirs:.2g}", f"{unlike:.0e}", f"{float(peak):.0f}"]  # fmt: skip
        rows.append("| " + " | ".join(cells) + " |")
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/onnx.md"))
    parser.add_argument("--quick", action="store_true", help="the first case only, few turns")
    arguments = parser.parse_args()
    turns = 2 if arguments.quick else 7
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        for name, (n, settings) in list(CASES.items())[: 1 if arguments.quick else None]:
            X, y = data(n, seed=0)
            model = KStoNetRegressor(tuning="none", random_state=0, max_iter=10, **settings).fit(X, y)
            to_onnx(model, path)
            lines += measure(name, "std", model, lambda X, m=model: m.predict(X, return_std=True), path, turns)
            to_onnx(model, path, return_std=False)
            lines += measure(name, "mean", model, model.predict, path, turns)
        X, y = data(1000, seed=0)
        model = KStoNetClassifier(tuning="none", random_state=0, max_iter=10).fit(X, np.digitize(y, [-0.5, 0.5]))
        to_onnx(model, path)
        lines += measure("rbf, 5 units", "proba", model, model.predict_proba, path, turns)
    head = ["case", "support rows", "outputs", "file MB", "load s", "batch", "onnx ms", "predict ms", "×", "difference", "MiB"]
    versions = (
        f"kstonet {kstonet.__version__}, numpy {np.__version__}, onnx {onnx.__version__}, onnxruntime "
        + onnxruntime.__version__
    )
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    write_whole(
        arguments.out,
        "# Exported models in onnxruntime beside predict\n\nMade by `python benchmarks/onnx_export.py`. Machine: "
        f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores; python {platform.python_version()}, {versions}. "
        f"{FEATURES} features, 10 averaged iterations.\n\n{NOTES}\n| "
        + " | ".join(head) + " |\n" + "|---" * len(head) + "|\n" + "\n".join(lines) + "\n",
    )  # fmt: skip


if __name__ == "__main__":
    main()
