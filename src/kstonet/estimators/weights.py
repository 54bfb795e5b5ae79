"""Sample weights as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kstonet._checks import first_of

LARGEST = 1e30  # one over it is the smallest


def validated_weights(sample_weight: Any, rows: np.ndarray) -> np.ndarray | None:
    """Sample weights as float64, one per row, not negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero everywhere; at least one weight must be positive.")
    weights = np.asarray(_check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True))
    extreme = (weights > LARGEST) | ((weights > 0) & (weights < 1.0 / LARGEST))
    if extreme.any():
        raise ValueError(
            f"sample_weight holds {first_of(weights, extreme)}; positive weights must lie between {1.0 / LARGEST:g} and "
            f"{LARGEST:g}. Only their ratios matter, unless C is meant with them."
        )
    return weights
