"""
A sparse network
================

The layers above the first are penalised regressions. Lasso, SCAD and MCP set weights to exactly zero, so a network with more
units than it needs drops some of them. The pictures show which connections remain. SCAD and MCP do not shrink large weights;
the lasso shrinks all weights.
"""

# %%
# The paper's measurement-error data, and two hidden layers that are wider than necessary.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error

X, y = make_measurement_error(600, random_state=0)
X, y, X_test, y_test = X[:300], y[:300], X[300:], y[300:]

# %%
# ``callback`` receives the network after every iteration; the last one is kept to show its weights.
last = {}
for penalty in ("none", "lasso", "scad"):
    model = KStoNetRegressor(
        tuning="none",
        hidden_layer_sizes=(12, 6),
        penalty=penalty,
        alpha=0.01,
        C=1.0,
        max_iter=15,
        n_average=5,
        residuals=None,
        callback=lambda state, penalty=penalty: last.update({penalty: state.network.layers[1:]}),
        random_state=0,
    ).fit(X, y)
    weights = np.concatenate([layer.weights.ravel() for layer in last[penalty]])
    print(
        f"{penalty:5s}  {np.mean(weights == 0):4.0%} of {weights.size} weights are zero, "
        f"test R² {model.score(X_test, y_test):.3f}, largest weight {np.abs(weights).max():.2f}"
    )

# %%
# Each row of a picture is a unit of the second layer, each column one of the first; white is an exact zero.
figure, axes = plt.subplots(1, 3, figsize=(11, 2.8), layout="constrained")
for ax, (penalty, (upper, _)) in zip(axes, last.items(), strict=True):
    bound = np.abs(upper.weights).max()
    shown = np.ma.masked_equal(upper.weights, 0.0)
    picture = ax.imshow(shown, cmap="PuOr", vmin=-bound, vmax=bound)
    figure.colorbar(picture, ax=ax, shrink=0.7)
    ax.set(title=penalty, xlabel="unit of the first layer", xticks=[], yticks=[])
axes[0].set_ylabel("unit of the second")
plt.show()
