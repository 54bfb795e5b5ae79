"""
Conformal intervals with MAPIE
==============================

Conformal prediction gives intervals with the nominal coverage for any distribution of the errors. A K-StoNet has its own method
(``calibrate``); `MAPIE <https://mapie.readthedocs.io>`_ (1.5 or newer) accepts the estimator and has further methods.
All intervals below come from the same 299 rows.
"""

# %%
# Rows that are dense in the middle and sparse outside, with noise that has heavier tails than a normal distribution.
from dataclasses import replace

import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, mean_width

LEVEL = 0.9
# short, for a quick example
SETTINGS = {
    "tuning": "none",
    "max_iter": 10,
    "n_average": 5,
    "n_imputation_steps": 10,
    "random_state": 0,
}


def draw(n, seed):
    """Two features with long tails, Laplace noise."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.laplace(size=n)


X, y = draw(299, seed=0)
X_test, y_test = draw(1000, seed=1)
intervals = {}

# %%
# Without rows set aside: the intervals of ``fit``, from out-of-sample residuals of the training rows; the quantiles of the
# model's Student's t; and MAPIE's cross-conformal prediction, which trains five more networks. The score ``"std_normalized"``
# is abs(y - mean)/std of rows outside the fold of the network.
model = KStoNetRegressor(**SETTINGS).fit(X, y)
intervals["fit"] = model.predict_interval(X_test, LEVEL)
intervals["fit, Student's t"] = replace(model.predict_dist(X_test), factor=None).interval(LEVEL)
cross = CrossConformalRegressor(KStoNetRegressor(**SETTINGS), confidence_level=LEVEL, conformity_score="std_normalized", cv=5)
cross.fit_conformalize(X, y)
intervals["MAPIE, cross"] = cross.predict_interval(X_test)[1][:, :, 0]

# %%
# With 99 of the rows set aside: split conformal prediction. ``"absolute"`` gives every row the same width, ``"std_normalized"``
# follows the standard deviation of the model. The latter is what ``calibrate(X, y)`` does, so the intervals are the same.
model = KStoNetRegressor(**SETTINGS).fit(X[:200], y[:200])
for score in ("absolute", "std_normalized"):
    split = SplitConformalRegressor(model, confidence_level=LEVEL, conformity_score=score)
    split.conformalize(X[200:], y[200:])
    intervals[f"MAPIE, split, {score}"] = split.predict_interval(X_test)[1][:, :, 0]
intervals["calibrate(X, y)"] = model.calibrate(X[200:], y[200:]).predict_interval(X_test, LEVEL)

# %%
# Intervals should have the nominal coverage near the middle and far from it. The last two columns split the new
# rows by their distance from the centre.
far = np.linalg.norm(X_test, axis=1) > 3
print(f"{'90 % intervals':29s} covered   width   near    far")
for name, interval in intervals.items():
    near, out = coverage(y_test[~far], interval[~far]), coverage(y_test[far], interval[far])
    print(f"{name:29s} {coverage(y_test, interval):7.1%} {mean_width(interval):7.2f} {near:6.1%} {out:6.1%}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, name in zip(axes, ("MAPIE, split, absolute", "MAPIE, split, std_normalized"), strict=True):
    half = (intervals[name][:, 1] - intervals[name][:, 0]) / 2
    missed = np.abs(y_test - intervals[name].mean(axis=1)) > half
    distance = np.linalg.norm(X_test, axis=1)
    error = np.abs(y_test - intervals[name].mean(axis=1))
    ax.plot(distance[~missed], error[~missed], ".", color="#0072B2", markersize=4, label="inside")
    ax.plot(distance[missed], error[missed], ".", color="#D55E00", markersize=6, label="outside")
    order = np.argsort(distance)
    ax.plot(distance[order], half[order], ".", color="#444444", markersize=2, label="half width")
    ax.set(title=name, xlabel="distance from the centre", xlim=(0, 9), ylim=(0, 6))
axes[0].set_ylabel("error of the mean")
axes[1].legend(frameon=False)
plt.show()
