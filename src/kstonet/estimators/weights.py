"""Sample weights and class weights as users give them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from kstonet._checks import first_of, require

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


def class_weighted(class_weight: Any, y: np.ndarray, weights: np.ndarray | None) -> np.ndarray | None:
    """The weights of the rows times those of their classes.

    Parameters
    ----------
    class_weight : dict, "balanced" or None
        Weight of every class by its label (those that are left out have the weight one); or n/(classes·rows of the class),
        where rows count by their weights, so that all classes have the same say.
    y : ndarray of shape (n,)
        Labels.
    weights : ndarray of shape (n,), optional
        Validated sample weights.

    Returns
    -------
    ndarray of shape (n,) or None

    Examples
    --------
    >>> import numpy as np
    >>> class_weighted("balanced", np.array(["a", "a", "a", "b"]), None).round(3).tolist()
    [0.667, 0.667, 0.667, 2.0]
    >>> class_weighted({"b": 5}, np.array(["a", "b"]), np.array([2.0, 3.0])).tolist()
    [2.0, 15.0]
    """
    if class_weight is None:
        return weights
    demand = "None, 'balanced' or a dict from labels to positive numbers"
    require("class_weight", class_weight, lambda v: v == "balanced" if isinstance(v, str) else isinstance(v, dict), demand)
    classes, codes = np.unique(y, return_inverse=True)
    labels = classes.tolist()
    if isinstance(class_weight, str):
        sizes = np.bincount(codes, weights=weights, minlength=len(classes))
        present = sizes > 0  # all rows of a class may have the weight zero
        of_class = np.divide(sizes.sum(), present.sum() * sizes, out=np.ones(len(classes)), where=present)
    else:
        unknown = [key for key in class_weight if key not in labels]
        if unknown:
            raise ValueError(
                f"class_weight has the key {unknown[0]!r}, which is no label of y; the labels are {_few(labels)}. "
                "Keys must be labels, of their type."
            )
        of_class = np.array([_positive(label, class_weight.get(label, 1.0)) for label in labels])
    own = of_class[codes.ravel()]
    return np.asarray(own if weights is None else own * weights)


def _positive(label: Any, weight: Any) -> float:
    try:
        value = float(weight)
    except (TypeError, ValueError):
        value = np.nan
    if not (np.isfinite(value) and value > 0):
        raise ValueError(
            f"class_weight[{label!r}]={weight!r} must be a positive number; to do without a class, leave its rows out."
        )
    return value


def _few(labels: list[Any]) -> str:
    return repr(labels) if len(labels) <= 10 else f"{', '.join(map(repr, labels[:10]))}, ..."
