"""scikit-learn's GridSearchCV over a K-StoNet in a pipeline.

For kernel, C, sizes and noise, ``KStoNetRegressor(C="tune", ...)`` and ``KStoNetRegressorCV`` do with a few trainings what a
grid does with all of them. A grid also chooses what they leave alone: here the preprocessing, and the activation.

Run it with ``python examples/grid_search.py``.
"""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from kstonet import KStoNetRegressor

GRID = {
    "features": [StandardScaler(), QuantileTransformer(n_quantiles=100, output_distribution="normal")],
    "model__activation": ["softplus", "tanh"],
    "model__C": [1.0, 10.0],
}


def main() -> None:
    """Print the grid with its scores, and the score of the best on rows that the search has not seen."""
    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=142, random_state=0)
    # residuals=None: the search wants means only. The intervals come with the last training.
    model = KStoNetRegressor(gamma=0.02, max_iter=10, residuals=None, random_state=0)
    search = GridSearchCV(Pipeline([("features", StandardScaler()), ("model", model)]), GRID, cv=3)
    search.fit(X, y)

    print(f"{'features':22s} {'activation':10s} {'C':>5s} {'mean R²':>8s}")
    table = search.cv_results_
    for row in np.argsort(table["rank_test_score"]):
        params = table["params"][row]
        name = type(params["features"]).__name__
        print(f"{name:22s} {params['model__activation']:10s} {params['model__C']:5g} {table['mean_test_score'][row]:8.3f}")

    best = search.best_estimator_.set_params(model__residuals="crossfit").fit(X, y)
    interval = best["model"].predict_interval(best["features"].transform(X_test), 0.9)
    inside = np.mean((interval[:, 0] <= y_test) & (y_test <= interval[:, 1]))
    print(f"\nbest, on {len(y_test)} new rows: R² {best.score(X_test, y_test):.3f}, 90 % intervals cover {inside:.3f}")


if __name__ == "__main__":
    main()
