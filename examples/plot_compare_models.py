"""
Comparison with other models with intervals
===========================================

A Gaussian process, gradient boosting of quantiles, bagged trees and a K-StoNet on the same rows, compared by the error of
the mean and by the coverage of their 90 % intervals. ``kstonet.metrics`` takes plain arrays of any model.
"""

# %%
# The paper's measurement-error data: five correlated inputs, observed with error.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage, mean_width, winkler_score
from kstonet.plotting import CoverageDisplay

X, y = make_measurement_error(1300, random_state=0)
X, y, X_test, y_test = X[:300], y[:300], X[300:], y[300:]

# %%
# Every model gives a mean and an interval.
network = KStoNetRegressor(random_state=0).fit(X, y)
kernel = ConstantKernel() * RBF(np.ones(5)) + WhiteKernel()
process = make_pipeline(StandardScaler(), GaussianProcessRegressor(kernel, normalize_y=True, random_state=0)).fit(X, y)
quantiles = [
    GradientBoostingRegressor(loss="quantile", alpha=q, n_estimators=60, random_state=0).fit(X, y) for q in (0.05, 0.5, 0.95)
]
forest = RandomForestRegressor(100, min_samples_leaf=3, oob_score=True, random_state=0).fit(X, y)

spread = 1.645 * np.std(y - forest.oob_prediction_)
mean, std = process.predict(X_test, return_std=True)
predictions = {
    "K-StoNet": (network.predict(X_test), network.predict_interval(X_test, 0.9)),
    "Gaussian process": (mean, np.column_stack([mean - 1.645 * std, mean + 1.645 * std])),
    "boosted quantiles": (
        quantiles[1].predict(X_test),
        np.column_stack([quantiles[0].predict(X_test), quantiles[2].predict(X_test)]),
    ),
    "forest, out-of-bag errors": (forest.predict(X_test), forest.predict(X_test)[:, None] + np.array([-spread, spread])),
}

# %%
# The interval score of Winkler is the width plus a penalty for every observation outside: it is best for intervals that are
# neither too wide nor too narrow.
print(f"{'on 1,000 new rows':27s} {'RMSE':>6s} {'covered':>8s} {'width':>7s} {'Winkler':>8s}")
for name, (mean, interval) in predictions.items():
    error = np.sqrt(np.mean((y_test - mean) ** 2))
    share, width = coverage(y_test, interval), mean_width(interval)
    print(f"{name:27s} {error:6.2f} {share:8.1%} {width:7.2f} {winkler_score(y_test, interval, 0.9):8.2f}")

# %%
# Nominal and observed coverage at all levels, for the two models that predict a distribution.
figure, ax = plt.subplots(figsize=(5, 4.8), layout="constrained")
CoverageDisplay.from_estimator(network, X_test, y_test, name="K-StoNet", ax=ax)
CoverageDisplay.from_estimator(process, X_test, y_test, name="Gaussian process", ax=ax)
plt.show()
