"""
Searching with scikit-learn
===========================

``fit`` chooses kernel, C and size by itself, and :class:`~kstonet.KStoNetRegressorCV` searches over values of your own with
fewer trainings than a grid search. A grid search also chooses other settings, such as the preprocessing and the activation, by
any scorer: here by the quality of the predicted *distributions*.
"""

# %%
# Diabetes data: 442 patients, ten measurements, and the progress of the disease a year later.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, crps_gaussian

X, y = load_diabetes(return_X_y=True)
X, X_test, y, y_test = train_test_split(X, y, test_size=142, random_state=0)


def minus_crps(model, X, y):
    """Score of the predicted distributions, the larger the better."""
    mean, std = model.predict(X, return_std=True)
    return -crps_gaussian(y, mean, std)


# %%
# Eight settings and three folds. ``tuning="none"`` leaves every choice to the grid.
model = KStoNetRegressor(tuning="none", gamma=0.02, max_iter=10, n_average=5, random_state=0)
search = GridSearchCV(
    Pipeline([("features", StandardScaler()), ("model", model)]),
    {
        "features": [StandardScaler(), QuantileTransformer(n_quantiles=100, output_distribution="normal")],
        "model__activation": ["softplus", "tanh"],
        "model__C": [1.0, 10.0],
    },
    scoring=minus_crps,
    cv=3,
).fit(X, y)

# %%
# The best settings, with intervals from cross-fitted residuals, on test rows.
best = search.best_estimator_.set_params(model__residuals="crossfit").fit(X, y)
interval = best["model"].predict_interval(best["features"].transform(X_test), 0.9)
print(f"R² {best.score(X_test, y_test):.3f}, 90 % intervals cover {coverage(y_test, interval):.1%} of {len(y_test)} new rows")

# %%
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
table = search.cv_results_
order = np.argsort(-table["mean_test_score"])
names = [
    f"{type(p['features']).__name__}, {p['model__activation']}, C={p['model__C']:g}" for p in np.array(table["params"])[order]
]
folds = -np.column_stack([table[f"split{fold}_test_score"] for fold in range(3)])[order]
ax.plot(folds, np.arange(8), "o", color="#BBBBBB")
ax.plot(folds.mean(axis=1), np.arange(8), "D", color="#0072B2")
ax.set(yticks=range(8), yticklabels=names, xlabel="CRPS of the folds (grey) and their mean; the smaller the better")
ax.invert_yaxis()
plt.show()
