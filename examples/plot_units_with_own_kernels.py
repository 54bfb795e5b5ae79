"""
A kernel for every unit
=======================

The units of the first layer are support vector regressions, which may have different kernels. Here some of them use the hour of
the day only and the others the weather only; the regression layer above adds them. Kernels that reflect the structure of the
problem need fewer rows.
"""

# %%
# Simulated demand for electricity: a daily course with two sharp peaks, and on top of it an effect of the weather. An hour is a
# place on a circle, so it is given as cosine and sine.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics.pairwise import rbf_kernel

from kstonet import KStoNetRegressor

rng = np.random.default_rng(0)


def course(hour):
    """Of a day with average weather."""
    return 3 * np.exp(-(((hour - 8) / 1.2) ** 2)) + 2 * np.exp(-(((hour - 19) / 1.5) ** 2))


def features(hour, weather):
    """Two columns for the hour, three for the weather."""
    angle = 2 * np.pi * hour / 24
    return np.column_stack([np.cos(angle), np.sin(angle), weather])


def draw(n):
    """Rows at random hours in random weather."""
    hour, weather = rng.uniform(0, 24, size=n), rng.normal(size=(n, 3))
    effect = np.tanh(2 * weather[:, 0] * weather[:, 1]) + 0.5 * weather[:, 2]
    return features(hour, weather), course(hour) + effect + 0.3 * rng.normal(size=n)


X, y = draw(200)
X_test, y_test = draw(2000)

# %%
# A kernel may be a function ``k(X, Y)`` that returns the matrix of values (of standardised features). ``kernel``, like
# ``gamma``, ``C`` and ``epsilon``, takes a list with one entry per unit. Units with the same kernel share one kernel matrix:
# two kernels cost two matrices, however many units there are.


def hour_only(X, Y):
    """Alike if the hours are close."""
    return rbf_kernel(X[:, :2], Y[:, :2], gamma=5.0)


def weather_only(X, Y):
    """Alike if the weather is."""
    return rbf_kernel(X[:, 2:], Y[:, 2:], gamma=0.33)


networks = {
    "one kernel for all units": "rbf",
    "three units for the hour, three for the weather": [hour_only] * 3 + [weather_only] * 3,
}
for name, kernel in networks.items():
    short = {"tuning": "none", "max_iter": 15, "n_average": 5, "random_state": 0}
    networks[name] = KStoNetRegressor(hidden_layer_sizes=6, kernel=kernel, **short).fit(X, y)
    print(f"{name}: R² {networks[name].score(X_test, y_test):.3f} on 2,000 new rows")

# %%
# The course of a day with average weather, as predicted by both networks.
hours = np.linspace(0, 24, 200)
day = features(hours, np.zeros((200, 3)))
figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, (name, network) in zip(axes, networks.items(), strict=True):
    ax.fill_between(
        hours, *network.predict_interval(day, 0.95, kind="confidence").T, color="#BBD7EC", label="95 % for the mean"
    )
    ax.plot(hours, network.predict(day), color="#0072B2", label="prediction")
    ax.plot(hours, course(hours), color="#D55E00", linestyle="--", label="truth")
    ax.set(title=name, xlabel="hour", xticks=range(0, 25, 6), ylim=(-1.5, 4))
axes[0].legend(frameon=False)
axes[0].set_ylabel("demand")
plt.show()
