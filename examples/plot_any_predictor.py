"""
Intervals for any predictor
===========================

A fitted network or a boosted ensemble has features of its own: its last hidden layer, or the leaves of its trees. A K-StoNet on
these fixed features is a head that gives the predictor calibrated intervals, which follow the noise (the idea of post-StoNet
modelling, arXiv:2508.01217). The usual alternative, split conformal prediction, has one width for all rows.
Both use the same rows: one half trains the predictor, the other half the head, or the conformal scores.
"""

# %%
# A curve in five features, whose noise grows with one of them.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import TruncatedSVD
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, mean_width, winkler_score, worst_slab_coverage

LEVEL = 0.9


def draw(n, seed):
    """Friedman's function without its irrelevant features, and noise that depends on the last one."""
    X = np.random.default_rng(seed).uniform(size=(n, 5))
    mean = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 10 * X[:, 3]
    return X, mean + (0.3 + 3 * X[:, 4] ** 2) * np.random.default_rng(seed + 1).normal(size=n)


X, y = draw(1000, seed=0)
X_test, y_test = draw(2000, seed=10)
first, second = slice(0, 500), slice(500, 1000)

# %%
# Two predictors, trained on the first half.
network = make_pipeline(StandardScaler(), MLPRegressor(hidden_layer_sizes=(64, 16), alpha=1e-2, max_iter=2000, random_state=0))
network.fit(X[first], y[first])
boosting = GradientBoostingRegressor(random_state=0).fit(X[first], y[first])


# %%
# Their features. The last hidden layer of the network: the forward pass without its last step. The leaves of the trees: which
# leaf of every tree a row falls into, as a few directions of these indicators. Predictions and the original features are
# beside them: the noise may depend on what the predictor has forgotten, as the mean does not.
def last_layer(rows):
    """The prediction, the last hidden layer and the features."""
    values = network[0].transform(rows)
    for weights, intercept in zip(network[1].coefs_[:-1], network[1].intercepts_[:-1], strict=True):
        values = np.maximum(values @ weights + intercept, 0.0)
    return np.column_stack([network.predict(rows), values, rows])


leaves = make_pipeline(OneHotEncoder(handle_unknown="ignore"), TruncatedSVD(10, random_state=0))
leaves.fit(boosting.apply(X[first]))


def tree_leaves(rows):
    """The prediction, directions of the leaves and the features."""
    return np.column_stack([boosting.predict(rows), leaves.transform(boosting.apply(rows)), rows])


# %%
# Heads on the second half. Their out-of-sample residuals are those of rows that the features have not seen, so that no further
# rows have to be set aside. Split conformal prediction takes the quantile of the predictor's errors on the same rows.
intervals = {}
for name, predictor, features in (("network", network, last_layer), ("boosting", boosting, tree_leaves)):
    scores = np.sort(np.abs(y[second] - predictor.predict(X[second])))
    half = scores[int(np.ceil(501 * LEVEL)) - 1]
    mean = predictor.predict(X_test)
    intervals[f"{name}, split conformal"] = np.column_stack([mean - half, mean + half])
    head = KStoNetRegressor(random_state=0).fit(features(X[second]), y[second])
    intervals[f"{name}, K-StoNet head"] = head.predict_interval(features(X_test), LEVEL)

# %%
# The intervals of the head are a quarter narrower, because it corrects the predictor, and because they are narrow where the
# noise is small. Those on the boosted trees cover as much as split conformal intervals, those on the network somewhat less.
# Both cover more in the slab of the feature space where intervals of one width cover least.
print(f"{'90 % intervals':26s} covered   width   score  worst slab")
for name, interval in intervals.items():
    slab = worst_slab_coverage(y_test, interval, X_test, random_state=0)
    score = winkler_score(y_test, interval, LEVEL)
    print(f"{name:26s} {coverage(y_test, interval):7.1%} {mean_width(interval):7.2f} {score:7.2f} {slab:11.1%}")

# %%
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, name in zip(axes, ("network", "boosting"), strict=True):
    for kind, color in (("split conformal", "#D55E00"), ("K-StoNet head", "#0072B2")):
        width = np.diff(intervals[f"{name}, {kind}"])[:, 0]
        ax.plot(X_test[:, 4], width, ".", color=color, markersize=3, label=kind)
    ideal = np.sort(X_test[:, 4])
    ax.plot(ideal, 2 * 1.645 * (0.3 + 3 * ideal**2), color="#444444", label="noise alone")
    ax.set(title=name, xlabel="feature that the noise depends on", ylim=(0, None))
axes[0].set_ylabel("width of 90 % intervals")
axes[1].legend(frameon=False)
plt.show()
