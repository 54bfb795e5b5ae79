"""MNIST, all 60,000 training rows, on a GPU: the first call of the classifier, and one with a kernel that is given.

    python benchmarks/mnist_gpu.py [--data DIR] [--device cuda] [--views 1 2 3]

The data are ``<DIR>/mnist/data.npz`` (DIR is ``--data`` or the environment variable KSTONET_DATA). Pixels lie in [0, 1], as
they are (``standardize=False``) or standardised. Probabilities are calibrated. What is not given is chosen on training rows;
test rows are used by the finished model only. Times are those of this process on a machine that may have other work;
predictions of 10,000 rows are timed twice, the first time with the transfer of the model to the device. Results are written
after every model.
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
GIVEN = {"tuning": "none", "loss": "squared", "kernel": "rbf", "hidden_layer_sizes": (10,), "max_iter": 6, "n_average": 3}
VIEWS = {
    "pixels in [0, 1]": {"standardize": False},
    "pixels in [0, 1], gamma = 0.02 and C = 1000 given": {"standardize": False, "gamma": 0.02, "C": 1000.0, **GIVEN},
    "standardised pixels": {},
}


def main() -> None:
    """Fit, judge, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("KSTONET_DATA"), help="folder of the data sets")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--views", nargs="+", type=int, choices=range(1, len(VIEWS) + 1), default=range(1, len(VIEWS) + 1))
    parser.add_argument("--out", type=Path, default=RESULTS)
    given = parser.parse_args()
    data = np.load(Path(given.data) / "mnist" / "data.npz")
    X, y = data["X"] / 255.0, data["y"]
    train, test = data["train_idx"][0], data["test_idx"][0]
    results = []
    for name, options in [list(VIEWS.items())[view - 1] for view in given.views]:
        begin = time.perf_counter()
        model = KStoNetClassifier(device=given.device, random_state=0, **options).fit(X[train], y[train])
        fitted = time.perf_counter()
        proba = model.predict_proba(X[test])
        predicted = time.perf_counter()
        model.predict_proba(X[test])
        again = time.perf_counter()
        model.predict_proba_interval(X[test])
        parts = ("seconds_impute", "seconds_first_layer", "seconds_regressions")
        results.append(
            {
                "pixels": name,
                "accuracy": accuracy_score(y[test], model.classes_[proba.argmax(axis=1)]),
                "log_loss": log_loss(y[test], proba, labels=model.classes_),
                "fit_seconds": fitted - begin,
                "choice_seconds": model.history_[0].get("seconds_choice", 0.0),
                **{part: sum(record[part] for record in model.history_) for part in parts},
                "intervals_seconds": model.history_[-1]["seconds_intervals"],
                "first_predict_seconds": predicted - fitted,
                "predict_seconds": again - predicted,
                "predict_interval_seconds": time.perf_counter() - again,
                "gpu_gigabytes": torch.cuda.max_memory_allocated() / 1e9 if given.device.startswith("cuda") else 0.0,
                "reason": model.trained_.choice.get("reason", "given"),
            }
        )
        print(results[-1], flush=True)
        write_whole(given.out, json.dumps(results, indent=1) + "\n")
        del model


if __name__ == "__main__":
    main()
