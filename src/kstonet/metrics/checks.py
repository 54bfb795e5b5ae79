"""What all metrics share: weighing rows, averaging outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from kstonet._checks import Floats, check_choice, check_not_negative, check_numbers

Score = float | Floats  # one number, or one per output


def check_weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """Return the weights of the rows, the largest of them 1 so that their sum cannot overflow."""
    if sample_weight is None:
        return None
    w = check_numbers("sample_weight", sample_weight)
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must be ({n},), one weight per row of the data.")
    check_not_negative("sample_weight", w, "weights cannot be negative")
    if not w.any():
        raise ValueError("sample_weight is zero everywhere; at least one weight must be positive.")
    return np.asarray(w / w.max())


def weighted_mean(values: NDArray[Any], weights: Floats | None) -> Floats:
    """Mean over the first axis. A row of weight zero has no influence, even where its value is infinite."""
    if weights is None:
        return np.asarray(values.mean(axis=0))
    kept = weights > 0
    return np.asarray(np.average(values[kept], axis=0, weights=weights[kept]))


def combine_outputs(per_output: Floats, multioutput: str) -> Score:
    """One value per output, or their mean."""
    check_choice("multioutput", multioutput, ("uniform_average", "raw_values"))
    return per_output if multioutput == "raw_values" else float(per_output.mean())


def mean_score(values: NDArray[Any], sample_weight: ArrayLike | None, multioutput: str) -> Score:
    """Average (n,) or (n, k) values over rows, then over outputs according to ``multioutput``."""
    weights = check_weights(sample_weight, len(values))
    return combine_outputs(weighted_mean(values.reshape(len(values), -1), weights), multioutput)


def norm_of_gaps(gaps: Floats, norm: str, weights: Floats | None = None) -> Floats:
    """Norm of the differences between nominal and observed values, over the first axis."""
    check_choice("norm", norm, ("l1", "l2", "max"))
    if norm == "max":
        return np.asarray(np.abs(gaps).max(axis=0))
    return weighted_mean(np.abs(gaps), weights) if norm == "l1" else np.asarray(np.sqrt(weighted_mean(gaps**2, weights)))
