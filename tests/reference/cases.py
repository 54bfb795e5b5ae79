"""Models whose predictions are stored: one of every kind, with every parameter that matters given explicitly."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from inspect import signature
from typing import Any

import numpy as np

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor

ROWS, NEW_ROWS = 90, 15


@dataclass(frozen=True)
class Case:
    """A model and the kind of data it is fitted on."""

    estimator: Callable[..., Any]
    parameters: dict[str, Any]
    data: str = "regression"
    weighted: bool = False
    fit: dict[str, Any] = field(default_factory=dict)


COMMON = {"max_iter": 6, "n_average": 3, "random_state": 3}
UNITS = {"kernel": ["rbf", "rbf", "laplacian", "matern32"], "gamma": [0.2, 0.5, 0.2, 0.2], "C": [10.0, 10.0, 5.0, 20.0]}

CASES = {
    "regressor": Case(KStoNetRegressor, COMMON),
    "regressor_weighted": Case(KStoNetRegressor, COMMON | {"C": 3.0, "epsilon": 0.05}, weighted=True),
    # Few steps of the sampler: with 25, rounding grows until a proposal is accepted on one processor and rejected on another.
    "regressor_deep": Case(
        KStoNetRegressor,
        COMMON
        | {"hidden_layer_sizes": (6, 4), "activation": "tanh", "penalty": "ridge", "sampler": "hmc", "n_imputation_steps": 5},
    ),
    "regressor_units": Case(KStoNetRegressor, COMMON | UNITS | {"hidden_layer_sizes": (4,)}),
    "regressor_scales": Case(
        KStoNetRegressor, COMMON | {"kernel": "matern52", "length_scale": [1.0, 2.0, 5.0], "gamma": 0.3, "n_chains": 2}
    ),
    "regressor_training": Case(KStoNetRegressor, COMMON | {"residuals": "training", "sampler": "mala", "penalty": "scad"}),
    "regressor_means": Case(KStoNetRegressor, COMMON | {"residuals": None, "C": lambda t: 5.0 + t}),
    "regressor_targets": Case(KStoNetRegressor, COMMON, data="targets"),
    "regressor_precomputed": Case(KStoNetRegressor, COMMON | {"kernel": "precomputed"}, data="precomputed"),
    "regressor_tuned": Case(KStoNetRegressor, COMMON | {"gamma": "tune", "C": "tune"}),
    "classifier": Case(KStoNetClassifier, COMMON, data="two classes"),
    "classifier_three": Case(KStoNetClassifier, COMMON | {"hidden_layer_sizes": (6,)}, data="three classes"),
    # The files of these two and of "regressor_units" were written with residuals="loo", which is gone.
    "classifier_loo": Case(KStoNetClassifier, COMMON, data="two classes", weighted=True),
    "stonet": Case(StoNetRegressor, COMMON),
    "stonet_kernel": Case(StoNetRegressor, COMMON | {"kernel": "rbf", "penalty": "mcp"}),
    "stonet_loo": Case(StoNetRegressor, COMMON | {"hidden_layer_sizes": (4, 3)}),
    "stonet_classifier": Case(StoNetClassifier, COMMON, data="three classes"),
    "svr": Case(MultiTargetSVR, {"C": 10.0, "epsilon": 0.05}, data="targets"),
}


def rows(kind: str) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Training rows, targets, weights, and new rows."""
    rng = np.random.default_rng(11)
    X, X_new = rng.normal(size=(ROWS, 3)), rng.normal(size=(NEW_ROWS, 3))
    signal = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.5 * X[:, 2]
    y = signal + 0.2 * rng.normal(size=ROWS)
    weights = rng.integers(0, 3, size=ROWS).astype(float) + 0.5
    if kind == "targets":
        y = np.column_stack([y, np.cos(X[:, 0]) + 0.1 * rng.normal(size=ROWS)])
    elif kind == "two classes":
        y = np.where(y > 0, "yes", "no")
    elif kind == "three classes":
        y = np.digitize(y, [-0.4, 0.4])
    elif kind == "precomputed":
        X, X_new = _rbf(X, X), _rbf(X_new, X)
    return X, y, weights, X_new


def _rbf(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return np.exp(-0.3 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


def fitted(case: Case) -> tuple[Any, np.ndarray]:
    """The fitted model of a case, and the rows to predict."""
    X, y, weights, X_new = rows(case.data)
    fixed = {"tuning": "none"} if "tuning" in signature(case.estimator).parameters else {}
    model = case.estimator(**fixed, **case.parameters)
    return model.fit(X, y, weights if case.weighted else None), X_new


def answers(model: Any, X: np.ndarray) -> dict[str, np.ndarray]:
    """Everything a model says of some rows."""
    out = {"predict": np.asarray(model.predict(X))}
    if hasattr(model, "predict_proba"):
        out["proba"] = model.predict_proba(X)
        out["proba_interval"] = model.predict_proba_interval(X, 0.9)
        out["predict"] = np.searchsorted(model.classes_, out["predict"])
    elif hasattr(model, "predict_dist") and model.get_params()["residuals"] is not None:
        out["std"] = model.predict(X, return_std=True)[1]
        out["interval"] = model.predict_interval(X, [0.5, 0.9])
        out["confidence"] = model.predict_interval(X, 0.9, kind="confidence")
        out["second_order"] = model.predict_dist(X, order=2).std
    if hasattr(model, "transform"):
        out["transform"] = model.transform(X)
    return out
