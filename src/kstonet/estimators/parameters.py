"""What the parameters that all networks share may be."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np

from kstonet._checks import whole
from kstonet.imputation import SAMPLERS
from kstonet.iro import scheduled
from kstonet.layers import UPPER_LAYERS

SMALLEST_NOISE = 1e-30  # variance; one over it is the largest


def parameter_rules(model: Any) -> dict[str, tuple[Callable[[Any], Any], str]]:
    """For every parameter of an estimator, whether a value is valid, and what a valid one is."""
    return {
        "hidden_layer_sizes": (
            lambda v: (sizes := np.atleast_1d(v).tolist()) and all(map(whole, sizes)),
            "a positive whole number of units, or a tuple of them",
        ),
        **dict.fromkeys(
            ("n_imputation_steps", "max_iter", "n_average", "n_chains", "n_iter_no_change"), (whole, "a whole number >= 1")
        ),
        "friction": (lambda v: 0 < v <= 1, "in (0, 1]; 1 is Langevin Monte Carlo"),
        "sampler": (lambda v: v in SAMPLERS, f"one of {', '.join(SAMPLERS)}"),
        "upper_layer": (lambda v: v in UPPER_LAYERS, f"one of {', '.join(UPPER_LAYERS)}"),
        "residuals": (lambda v: v in model._residuals_known, f"one of {', '.join(map(repr, model._residuals_known))}"),
        "temperature": (
            lambda v: v == "auto" if isinstance(v, str) else 0 < v < np.inf or (v == 0 and model.sampler == "sghmc"),
            "'auto' or positive (0, which follows the gradient only, needs sampler='sghmc')",
        ),
        **dict.fromkeys(("standardize", "warm_start"), (lambda v: isinstance(v, bool | np.bool_), "True or False")),
        "n_jobs": (lambda v: v is None or v == -1 or whole(v), "a positive number of threads, -1 for all cores, or None"),
        "tol": (lambda v: v is None or v >= 0, "a non-negative number, or None to do all max_iter iterations"),
        "max_memory": (lambda v: v is None or v > 0, "a positive number of bytes, or None for what the machine has"),
        "callback": (lambda v: v is None or callable(v), "a function of the state of an iteration, or None"),
        "checkpoint": (
            lambda v: v is None or (isinstance(v, str | os.PathLike) and not model.warm_start),
            "a folder, or None; warm_start=True excludes it",
        ),
        "verbose": (lambda v: v >= 0, "0, 1 or 2"),
        "step_size": (
            lambda v: (first := scheduled(v, 0)) == "auto" or 0 < first < np.inf,
            "'auto', a positive number, or a schedule of them",
        ),
        "noise_variance": (
            lambda v: _is_noise(model, v),
            "'auto', a positive number, a schedule of them, or a schedule of tuples with a positive number for every layer "
            "above the first, such as [(0.001, 0.01)] for two hidden layers",
        ),
        "alpha": (
            lambda v: (first := scheduled(v, 0)) == "auto" or 0 <= first < np.inf,
            "'auto', a non-negative number, or a schedule of them",
        ),
    }


def _is_noise(model: Any, value: Any) -> bool:
    first = scheduled(value, 0)
    if isinstance(first, tuple):
        return len(first) == len(np.atleast_1d(model._given("hidden_layer_sizes"))) and 0 < min(first) <= max(first) < np.inf
    return bool(first == "auto" or SMALLEST_NOISE <= first <= 1.0 / SMALLEST_NOISE)
