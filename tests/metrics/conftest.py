"""Predictions in every form."""

from __future__ import annotations

import numpy as np
import pytest
from metric_data import (
    LEVELS,
)
from scipy import stats


@pytest.fixture
def data():
    """Two outputs of 40 rows, predicted in every form there is."""
    rng = np.random.default_rng(0)
    y, mean, std = rng.normal(size=(40, 2)), rng.normal(size=(40, 2)), rng.uniform(0.3, 2.0, size=(40, 2))
    proba = rng.dirichlet(np.ones(3), size=40)
    return {
        "y": y,
        "mean": mean,
        "std": std,
        "interval": np.stack([mean - std, mean + 0.7 * std], axis=-1),
        "quantiles": mean[..., None] + std[..., None] * stats.norm.ppf(LEVELS),
        "samples": mean[..., None] + std[..., None] * rng.normal(size=(40, 2, 9)),
        "weights": rng.integers(0, 4, size=40),
        "proba": proba,
        "classes": np.array(["ant", "bee", "cow"])[[rng.choice(3, p=p) for p in proba]],
    }
