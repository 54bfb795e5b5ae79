"""Sample weights as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight


def validated_weights(sample_weight: Any, rows: np.ndarray) -> np.ndarray | None:
    """Sample weights as float64, one per row, not negative and not all zero; None stays None."""
    if sample_weight is None:
        return None
    if not np.asarray(sample_weight).any():
        raise ValueError("sample_weight is zero everywhere; at least one weight must be positive.")
    return np.asarray(_check_sample_weight(sample_weight, rows, dtype=np.float64, ensure_non_negative=True))
