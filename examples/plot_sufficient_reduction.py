"""
Sufficient dimension reduction
==============================

Given the last hidden layer, the output is independent of the features: ``transform`` returns a *sufficient reduction* of X.
Here twelve features become two, which can be plotted or passed to another model.
"""

# %%
# Two targets that depend on six of twelve features, one through a sine and the other through a square.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from kstonet import KStoNetRegressor

rng = np.random.default_rng(0)


def draw(n):
    """Rows of twelve features, and both targets."""
    X = rng.normal(size=(n, 12))
    Y = np.column_stack([np.sin(X[:, :3].sum(axis=1)), 0.3 * X[:, 3:6].sum(axis=1) ** 2])
    return X, Y + 0.1 * rng.normal(size=(n, 2))


X, Y = draw(600)
X_test, Y_test = draw(500)

# %%
# The last hidden layer has two units. The first has more: the reduction may be a curved function of the features.
settings = {"tuning": "none", "C": 3.0, "residuals": None, "max_iter": 20}
reduction = KStoNetRegressor(hidden_layer_sizes=(12, 2), random_state=0, **settings).fit(X, Y)
few = reduction.transform(X_test)
print(f"from {X.shape[1]} features to {few.shape[1]}: {reduction.get_feature_names_out().tolist()}")

# %%
# Nearest neighbours predict badly with many features. The network is a transformer and can be a step before them.
ways = {"all features": KNeighborsRegressor(20)}
ways["2 principal components"] = make_pipeline(PCA(2), KNeighborsRegressor(20))
ways["2 hidden units"] = make_pipeline(reduction, KNeighborsRegressor(20))
for name, way in ways.items():
    print(f"20 nearest neighbours on {name:23s} R² {way.fit(X, Y).score(X_test, Y_test):.3f}")

# %%
# The same test rows in both planes, coloured by one target and by the other. In the plane of the hidden units each target has
# its own direction.
figure, axes = plt.subplots(2, 2, figsize=(9, 7.5), layout="constrained")
planes = {"two principal components": PCA(2).fit(X).transform(X_test), "the last hidden layer": few}
for row, (title, plane) in zip(axes, planes.items(), strict=True):
    for ax, target, name in zip(row, Y_test.T, ("first target", "second target"), strict=True):
        points = ax.scatter(*plane.T, c=target, cmap="viridis", s=12, vmax=np.quantile(target, 0.98))
        ax.set(title=title, xticks=[], yticks=[])
        figure.colorbar(points, ax=ax, label=name)
plt.show()
