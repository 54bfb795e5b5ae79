"""``python -m kstonet.demo``: five targets on one kernel matrix, beside five scikit-learn fits."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from sklearn.metrics import r2_score
from sklearn.svm import SVR

from kstonet import MultiTargetSVR


def embedded_data(n: int = 2000) -> tuple[np.ndarray, np.ndarray]:
    """Friedman's test functions (and two of our own) as five noisy targets of the same eight features."""
    rng = np.random.default_rng(0)
    U = rng.uniform(size=(n, 8))
    low, high = np.array([0, 40 * np.pi, 0, 1]), np.array([100, 560 * np.pi, 1, 11])
    Z = low + (high - low) * U[:, :4]
    series = Z[:, 1] * Z[:, 2] - 1 / (Z[:, 1] * Z[:, 3])
    Y = np.column_stack(
        [
            10 * np.sin(np.pi * U[:, 0] * U[:, 1]) + 20 * (U[:, 2] - 0.5) ** 2 + 10 * U[:, 3] + 5 * U[:, 4],
            np.sqrt(Z[:, 0] ** 2 + series**2),
            np.arctan(series / np.maximum(Z[:, 0], 1e-9)),
            np.sin(2 * np.pi * U[:, 5]) * U[:, 6],
            U.sum(axis=1) ** 2,
        ]
    )
    Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
    return U, Y + 0.1 * rng.normal(size=Y.shape)


def main() -> None:
    """Run the demonstration."""
    X, Y = embedded_data()
    train, test = slice(0, 1500), slice(1500, None)
    settings: dict[str, Any] = {"C": 10.0, "epsilon": 0.05}
    print(f"Five targets, {train.stop} training rows, {X.shape[1]} features, RBF kernel, C=10, epsilon=0.05\n")

    started = time.perf_counter()
    model = MultiTargetSVR(**settings).fit(X[train], Y[train])
    first = time.perf_counter() - started

    started = time.perf_counter()
    rivals = [SVR(cache_size=1000, **settings).fit(X[train], y) for y in Y[train].T]
    rival = time.perf_counter() - started

    ours = model.predict(X[test])
    theirs = np.column_stack([r.predict(X[test]) for r in rivals])
    print("target   test R²   scikit-learn   support vectors   certified gap")
    for j in range(Y.shape[1]):
        scores = r2_score(Y[test][:, j], ours[:, j]), r2_score(Y[test][:, j], theirs[:, j])
        support, gap = model.n_support_[j], model.duality_gap_[j]
        print(f"  {j}      {scores[0]:.4f}      {scores[1]:.4f}          {support:5d}             {gap:.1e}")

    fast = MultiTargetSVR(sparse=False, **settings).fit(X[train], Y[train])
    started = time.perf_counter()
    fast.refit(Y[train] + 0.05 * np.random.default_rng(1).normal(size=Y[train].shape))
    again = time.perf_counter() - started
    print(f"\nfive scikit-learn fits          {rival:6.2f} s")
    print(f"all five, with support vectors  {first:6.2f} s  ({rival / first:.0f} times faster)")
    print(f"new targets on the same rows    {again:6.2f} s  ({rival / again:.0f} times faster)")


if __name__ == "__main__":
    main()
