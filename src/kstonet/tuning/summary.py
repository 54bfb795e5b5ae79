"""What was chosen, in words that fit a line: values that units share are named once, length scales by their range."""

from __future__ import annotations

from collections import Counter
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

FIRST = ("target_transform", "kernel", "gamma", "length_scale", "C", "loss", "epsilon")
ORDER = (*FIRST, "hidden_layer_sizes", "max_iter", "n_average")


def chosen_words(chosen: dict[str, Any]) -> dict[str, str]:
    """Every chosen value as text.

    Parameters
    ----------
    chosen : dict
        ``tuned_`` of an estimator.

    Returns
    -------
    dict of str to str
        Kernel and C first. What has no effect is left out: no transform of the target, ``epsilon`` of a squared loss, ``gamma``
        and ``length_scale`` beside kernel objects, which have their own.

    Examples
    --------
    >>> chosen_words({"loss": "squared", "C": [2.0, 3.0, 2.0, 3.0], "epsilon": 0.01, "length_scale": (1.0, 20.0)})
    {'length_scale': '1 to 20', 'C': '2 and 3 in turn', 'loss': 'squared'}
    """
    kernel = chosen.get("kernel")
    idle = {"epsilon"} if chosen.get("loss") == "squared" else set()
    idle |= {"target_transform"} if chosen.get("target_transform") == "none" else set()
    if kernel is not None and not isinstance(kernel, str):
        idle |= {"gamma", "length_scale"}
    names = [name for name in (*ORDER, *(name for name in chosen if name not in ORDER)) if name in chosen and name not in idle]
    return {name: _length_scales(chosen[name]) if name == "length_scale" else value_words(chosen[name]) for name in names}


def value_words(value: Any) -> str:
    """One value as text; of a list with one item per unit, the different ones.

    Examples
    --------
    >>> from kstonet.gram.kernels import RBF
    >>> value_words([RBF(gamma=0.5), RBF(gamma=2.0), RBF(gamma=0.5), RBF(gamma=2.0)])
    'RBF (gamma 0.5) and RBF (gamma 2) in turn'
    >>> value_words([2.0, 3.0, 2.0, 2.0])
    '2 for 3 units and 3 for 1'
    >>> value_words((10, 5)), value_words(0.123456), value_words("rbf")
    ('(10, 5)', '0.1235', 'rbf')
    """
    if isinstance(value, list):
        times = Counter(map(value_words, value))
        if max(times.values()) <= 1 + min(times.values()):
            return " and ".join(times) + (" in turn" if len(times) > 1 else "")
        (first, own), *others = times.most_common()
        return " and ".join([f"{first} for {own} units", *(f"{other} for {units}" for other, units in others)])
    if isinstance(value, float | np.floating):
        return f"{value:.4g}"
    if is_dataclass(value) and not isinstance(value, type):  # a kernel
        parts = {each.name: getattr(value, each.name) for each in fields(value)}
        scales, squash, projection = (parts.pop(name, None) for name in ("length_scale", "squash", "projection"))
        said = [f"{name} {value_words(part)}" for name, part in parts.items() if part is not None]
        said += [] if scales is None else [f"length scales {_length_scales(scales)}"]
        heavy = sum(bool(np.isfinite(spread)) for _, spread in squash or ())
        said += [f"{heavy} of {len(squash)} features drawn in"] if heavy else []
        said += [] if projection is None else [f"of {len(projection[0])} directions of {len(projection)} features"]
        return f"{type(value).__name__} ({', '.join(said)})"
    return str(value)


def _length_scales(value: Any) -> str:
    if value is None:
        return "the same for all features"
    low, high = np.min(value), np.max(value)
    return f"{low:.3g} to {high:.3g}" if high > low else f"{low:.3g}"
