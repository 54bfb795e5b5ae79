"""The table of a search, as scikit-learn's searches have it."""

from __future__ import annotations

from typing import Any

import numpy as np

from kstonet.tuning.candidates import TUNABLE


def results_table(table: list[dict[str, Any]]) -> dict[str, Any]:
    """The table of a search as ``cv_results_`` of GridSearchCV has it."""
    fitted = np.array([row["rows"] for row in table])
    larger = fitted > fitted[0]  # the part with more rows comes last, as a part of its own
    parts = max(len(row["scores"]) for row in table)
    splits = np.full((len(table), parts + larger.any()), np.nan)
    for row, on_larger, losses in zip(table, larger, splits, strict=True):
        losses[slice(-1, None) if on_larger else slice(len(row["scores"]))] = row["scores"]
    splits = -splits
    iterations, mean = np.array([row["iterations"] for row in table]), np.nanmean(splits, axis=1)
    results: dict[str, Any] = {}
    for name in TUNABLE:
        results[f"param_{name}"] = column = np.empty(len(table), dtype=object)
        column[:] = [row[name] for row in table]
    rank = np.empty(len(table), dtype=int)
    rank[np.lexsort((-mean, -iterations, -fitted))] = np.arange(1, len(table) + 1)
    return results | {
        "params": [{name: row[name] for name in TUNABLE} for row in table],
        "iterations": iterations,
        "rows": fitted,
        **{f"split{i}_test_score": splits[:, i] for i in range(splits.shape[1])},
        "mean_test_score": mean,
        "std_test_score": np.nanstd(splits, axis=1),
        "rank_test_score": rank,
    }
