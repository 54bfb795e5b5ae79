"""Few rows: how much better than the mean a kernel has to be before it is believed.

    python benchmarks/weak_signals.py [--data DIR] [--seeds 8] [--rows 60 120 250] [--jobs 2]

First calls on a few rows of stored sets, with and without 20 features of noise, and of simulated sets with a weak signal and
with none. For classes, targets are cut into thirds. Errors (root mean squared, or log loss) of 1,500 other rows are relative to
those of the mean, or of the frequencies; with so many standard errors asked for as the columns say. The figures are in
benchmarks/results/weak_signals.md.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import log_loss, root_mean_squared_error

from kstonet import KStoNetClassifier, KStoNetRegressor
from kstonet._files import write_whole
from kstonet.tuning import verdict

STORED = ("skillcraft", "wine-quality-red", "protein-tertiary-structure", "elevators", "kin8nm")
NAMES = ("no signal", "no signal, heavy tails", "weak signal", *STORED, *(f"{name} + noise" for name in STORED))
NEEDED = (2.0, 1.0, 0.0)
MOST_ROWS, NEW_ROWS, NOISE_FEATURES = 20_000, 1500, 20
RESULTS = Path(__file__).parent / "results" / "weak_signals.md"


def load(folder: str | None, name: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Features and numeric targets."""
    if name in NAMES[:3]:
        X = rng.normal(size=(3000, 5))
        signal = 0.3 * np.sin(1.5 * X[:, 0]) + 0.3 * X[:, 1] * X[:, 2] if name == "weak signal" else 0.0
        return X, signal + (rng.standard_t(3, size=3000) if "heavy" in name else rng.normal(size=3000))
    if folder is None:
        raise ValueError(f"{name} is a stored set; name its folder by --data or the environment variable KSTONET_DATA.")
    with np.load(Path(folder) / name.removesuffix(" + noise") / "data.npz", allow_pickle=False) as stored:
        X, y = stored["X"][:MOST_ROWS].astype(float), stored["y"][:MOST_ROWS].ravel()
    return np.hstack([X, rng.normal(size=(len(X), NOISE_FEATURES))]) if name.endswith("noise") else X, y


@contextmanager
def asked(needed: float) -> Iterator[None]:
    """So many standard errors are asked for."""
    before = verdict.SIGNAL, verdict.SIGNAL_FOR_CLASSES
    verdict.SIGNAL = verdict.SIGNAL_FOR_CLASSES = needed
    try:
        yield
    finally:
        verdict.SIGNAL, verdict.SIGNAL_FOR_CLASSES = before


def errors(folder: str | None, name: str, n: int, seed: int, classes: bool) -> list[float]:
    """Relative to the mean, for every number of standard errors."""
    rng = np.random.default_rng(seed)
    X, y = load(folder, name, rng)
    if classes:
        y = np.searchsorted(np.quantile(y, [1 / 3, 2 / 3]), y)
    order = rng.permutation(len(X))
    train, new = order[:n], order[n : n + NEW_ROWS]
    found: list[float] = []
    for needed in NEEDED:
        with asked(needed):
            model = (KStoNetClassifier if classes else KStoNetRegressor)(random_state=seed).fit(X[train], y[train])
        if classes:
            frequencies = np.tile(np.bincount(y[train], minlength=3) / n, (len(new), 1))
            loss, mean = (log_loss(y[new], p, labels=range(3)) for p in (model.predict_proba(X[new]), frequencies))
        else:
            predictions = model.predict(X[new]), np.full(len(new), y[train].mean())
            loss, mean = (root_mean_squared_error(y[new], one) for one in predictions)
        found.append(float(loss / mean))
        if "better than the mean" not in model.tuning_["reason"]:  # believed, and so it would be with less
            break
    return found + found[-1:] * (len(NEEDED) - len(found))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default=os.environ.get("KSTONET_DATA"))
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--rows", type=int, nargs="+", default=[60, 120, 250], metavar="N")
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    cases = [(name, n, classes) for classes in (False, True) for name in NAMES for n in given.rows]
    calls = [delayed(errors)(given.data, name, n, seed, classes) for name, n, classes in cases for seed in range(given.seeds)]
    found = np.reshape(Parallel(given.jobs)(calls), (len(cases), given.seeds, len(NEEDED)))
    text = (
        "# How much better than the mean a kernel has to be\n\nMade by `python benchmarks/weak_signals.py`, which says what is "
    )
    text += f"measured; means of {given.seeds} draws.\n\n| set | rows | targets |"
    text += "".join(f" by {needed:g} s.e. |" for needed in NEEDED) + "\n" + "|---" * (3 + len(NEEDED)) + "|\n"
    for (name, n, classes), own in zip(cases, found.mean(axis=1), strict=True):
        kind = "thirds" if classes else "numbers"
        text += f"| {name} | {n} | {kind} | " + " | ".join(f"{error:.3f}" for error in own) + " |\n"
    write_whole(RESULTS, text)
    print(text)


if __name__ == "__main__":
    main()
