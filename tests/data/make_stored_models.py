"""Make the stored models of the current format version and their reference answers.

Run it once for every new format version, before its release, and never again for that version: the files show that what users
saved then can be loaded now. ``python tests/data/make_stored_models.py``
"""

import json
from pathlib import Path

import numpy as np

from kstonet import KStoNetClassifier, KStoNetRegressor, MultiTargetSVR, StoNetClassifier, StoNetRegressor, save
from kstonet.storage.container import VERSION

HERE = Path(__file__).parent
INTERVALS = ("predict", "predict_interval", "predict_quantiles", "transform")
PROBABILITIES = ("predict", "predict_proba", "predict_proba_interval", "transform")


def main() -> None:
    """Write one file per estimator."""
    rng = np.random.default_rng(0)
    X, new = rng.normal(size=(40, 2)), rng.normal(size=(5, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] ** 2]) + 0.1 * rng.normal(size=(40, 2))
    labels = np.array(["low", "middle", "high"])[np.digitize(X[:, 0], [-0.5, 0.5])]
    short = {"max_iter": 4, "n_average": 2, "random_state": 0}
    kernels = {"kernel": ["rbf", "matern52", "rbf"], "gamma": [0.3, 0.3, 1.0]}
    models = [
        (KStoNetRegressor((3, 2), tuning="none", **kernels, **short).fit(X, Y).calibrate(), INTERVALS),
        (KStoNetClassifier((3,), "tanh", tuning="none", **short).fit(X, labels).calibrate(), PROBABILITIES),
        (StoNetRegressor((3,), kernel="laplacian", residuals="crossfit", **short).fit(X, Y[:, 0]), INTERVALS),
        (StoNetClassifier((3,), **short).fit(X, X[:, 0] > 0), PROBABILITIES),
        (MultiTargetSVR(C=[1.0, 2.0], length_scale=[1.0, 2.0]).fit(X, Y), ("predict",)),
    ]
    for model, methods in models:
        path = HERE / f"v{VERSION}_{type(model).__name__}.kstonet"
        save(model, path)
        answers = {method: getattr(model, method)(new).tolist() for method in methods}
        path.with_suffix(".json").write_text(json.dumps({"X": new.tolist()} | answers) + "\n")


if __name__ == "__main__":
    main()
