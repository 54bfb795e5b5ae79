"""Which attributes a stored model is made of, and what must hold between them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kstonet.estimators import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor
from kstonet.gram.kernels import Kernel
from kstonet.persistence import consistency
from kstonet.solvers.svr_solution import SVRSolution
from kstonet.storage.errors import ModelFileError
from kstonet.storage.records import expect
from kstonet.tables import TableEncoding
from kstonet.trained import TrainedNetwork


@dataclass(frozen=True)
class Layout:
    """The attributes of a fitted model, with their types: those it always has, and those it may have."""

    estimator: type[Any]
    always: dict[str, Any]
    maybe: dict[str, Any]
    check: Callable[[Any], None]


def _check_network(model: Any) -> None:
    _check_names(model)
    consistency.check_trained(model.trained_, model._n_encoded)


def _check_svr(model: MultiTargetSVR) -> None:
    _check_names(model)
    consistency.check_kernel(model.kernel_, model._n_encoded)
    targets, rows = model.solution_.coef.shape
    expect(model._X_fit.shape == (rows, model._n_encoded), "the training rows have another shape than the solution")
    expect(model.solution_.problem.targets.shape == (targets, rows), "problem and solution have different shapes")
    expect(consistency.within(model._kept_rows, rows), "support vectors are not training rows")
    expect(model.dual_coef_.shape == (targets, len(model._kept_rows)), "coefficients and support vectors differ in number")
    for name in ("intercept_", "duality_gap_", "n_iter_"):
        expect(getattr(model, name).shape == (targets,), f"{name} has not one value per target")
    expect(targets == 1 or not model._single_target, "a single target has several columns")


def _check_names(model: Any) -> None:
    names = getattr(model, "feature_names_in_", None)
    expect(names is None or names.shape == (model.n_features_in_,), "there is not one name per feature")
    encoding = getattr(model, "encoding_", None)
    if encoding is not None:
        consistency.check_encoding(encoding, model.n_features_in_)


INPUTS = {"n_features_in_": int}
NAMES = {"feature_names_in_": np.ndarray, "encoding_": TableEncoding}
NETWORK = INPUTS | {"trained_": TrainedNetwork}
NETWORK_MAYBE = NAMES | {"_sklearn_output_config": dict[str, Any]}
SVR = INPUTS | {
    "kernel_": Kernel,
    "solution_": SVRSolution,
    "_single_target": bool,
    **dict.fromkeys(("_X_fit", "_kept_rows", "dual_coef_", "intercept_", "duality_gap_", "n_iter_"), np.ndarray),
}

NETWORKS = (KStoNetRegressor, KStoNetClassifier, StoNetRegressor, StoNetClassifier)

PIPELINE = "Pipeline"  # the class of a file whose model is the last step of one

#: The estimators a file may name.
LAYOUTS = {
    **{estimator.__name__: Layout(estimator, NETWORK, NETWORK_MAYBE, _check_network) for estimator in NETWORKS},
    "MultiTargetSVR": Layout(MultiTargetSVR, SVR, NAMES | {"_gram": None}, _check_svr),
}


def layout_of(description: dict[str, Any]) -> Layout:
    """The layout of the class that a description names."""
    name = description.get("model" if description.get("class") == PIPELINE else "class")
    layout = LAYOUTS.get(str(name))
    if layout is None:
        raise ModelFileError(f"the model is a {name!r:.80}, which is none of {', '.join(LAYOUTS)}.")
    return layout
