"""Helpers of all metrics: validation of arrays, sample weights, averages over outputs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
Score = float | Floats  # one number, or one per output


def check_numbers(name: str, values: ArrayLike, *, infinite: bool = False) -> Floats:
    """Return ``values`` as float64 without NaN, and without infinities unless these are allowed."""
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} must be an array of real numbers: {error}.") from error
    bad = np.isnan(array) if infinite else ~np.isfinite(array)
    if bad.any():
        raise ValueError(f"{name} holds {first_of(array, bad)}; remove such rows or impute them first.")
    return array


def first_of(array: NDArray[Any], chosen: NDArray[np.bool_]) -> str:
    """Describe the first chosen entry for an error message: its value, its place and how many there are."""
    place = ", ".join(str(i) for i in np.argwhere(chosen)[0])
    return f"{array[chosen][0]} at [{place}] ({int(chosen.sum())} of {array.size} entries are like this)"


def check_targets(y_true: ArrayLike) -> Floats:
    """Return the observations, (n,) or (n, k)."""
    y = check_numbers("y_true", y_true)
    if y.ndim not in (1, 2) or y.size == 0:
        raise ValueError(f"y_true has shape {y.shape}; it must be (n,) or (n, k) with at least one row and one column.")
    return y


def check_like(name: str, values: Floats, shape: tuple[int, ...]) -> Floats:
    """Return ``values`` in exactly this shape. A single number is broadcast; (n, 1) against (n,) is an error."""
    if values.ndim and values.shape != shape:
        raise ValueError(f"{name} has shape {values.shape}, y_true needs {shape}; reshape {name}, or give a single number.")
    return np.broadcast_to(values, shape)


def check_level(name: str, level: ArrayLike) -> Floats:
    """Return probabilities strictly between 0 and 1."""
    levels = check_numbers(name, level)
    if not ((levels > 0) & (levels < 1)).all():
        raise ValueError(f"{name}={level!r} must lie strictly between 0 and 1; 95 % is 0.95.")
    return levels


def check_choice(name: str, value: object, choices: tuple[str | None, ...]) -> None:
    """Raise unless ``value`` is one of the choices."""
    if not any(value is choice or (isinstance(value, str) and value == choice) for choice in choices):
        raise ValueError(f"{name}={value!r} must be one of {', '.join(map(repr, choices))}.")


def check_weights(sample_weight: ArrayLike | None, n: int) -> Floats | None:
    """Return the weights of the rows, the largest of them 1 so that their sum cannot overflow."""
    if sample_weight is None:
        return None
    w = check_numbers("sample_weight", sample_weight)
    if w.shape != (n,):
        raise ValueError(f"sample_weight has shape {w.shape}; it must be ({n},), one weight per row of the data.")
    if (w < 0).any():
        raise ValueError(f"sample_weight holds {first_of(w, w < 0)}; weights cannot be negative.")
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
