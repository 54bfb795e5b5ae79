"""MNIST, all 60,000 training rows, on a GPU: the first call of the classifier, with probabilities calibrated.

    python benchmarks/mnist_gpu.py [--data DIR] [--device cuda]

The data are ``<DIR>/mnist/data.npz`` (DIR is ``--data`` or the environment variable KSTONET_DATA). Pixels lie in [0, 1], once
as they are (``standardize=False``) and once standardised. Everything is chosen on training rows; test rows are used once, by
the finished model. The results are written after every model.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from sklearn.metrics import accuracy_score, log_loss

from kstonet import KStoNetClassifier
from kstonet._files import write_whole

RESULTS = Path(__file__).parent / "results" / "mnist_gpu.json"
VIEWS = {"pixels in [0, 1]": {"standardize": False}, "standardised pixels": {}}


def main() -> None:
    """Fit, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("KSTONET_DATA"), help="folder of the data sets")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    data = np.load(Path(given.data) / "mnist" / "data.npz")
    X, y = data["X"] / 255.0, data["y"]
    train, test = data["train_idx"][0], data["test_idx"][0]
    results = []
    for name, options in VIEWS.items():
        begin = time.perf_counter()
        model = KStoNetClassifier(device=given.device, random_state=0, **options).fit(X[train], y[train])
        fitted = time.perf_counter()
        proba = model.predict_proba(X[test])
        results.append(
            {
                "pixels": name,
                "accuracy": accuracy_score(y[test], model.classes_[proba.argmax(axis=1)]),
                "log_loss": log_loss(y[test], proba, labels=model.classes_),
                "fit_seconds": fitted - begin,
                "predict_seconds": time.perf_counter() - fitted,
                "gpu_gigabytes": torch.cuda.max_memory_allocated() / 1e9 if given.device.startswith("cuda") else 0.0,
                "reason": model.tuning_["reason"],
            }
        )
        print(results[-1], flush=True)
        write_whole(given.out, json.dumps(results, indent=1) + "\n")
        del model


if __name__ == "__main__":
    main()
