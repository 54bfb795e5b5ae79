"""
Intervals on a curve
====================

One feature, so that everything can be seen: what the network believes about the curve, what it believes about the next
observation, and where its doubt comes from. The training rows are dense in the middle and sparse outside.
"""

# %%
# Sixty noisy observations of a curve.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage

rng = np.random.default_rng(4)


def curve(x):
    """The mean of the observations."""
    return np.sin(2.0 * x) + 0.5 * x


def draw(n):
    """Rows of a distribution with long tails, and observations with noise of standard deviation 0.2."""
    x = np.clip(1.5 * rng.standard_t(3, size=n), -8.0, 8.0)
    return x[:, None], curve(x) + 0.2 * rng.normal(size=n)


X, y = draw(60)
model = KStoNetRegressor(gamma=2.0, max_iter=20, n_average=5, random_state=0).fit(X, y)

# %%
# Two kinds of interval. A *confidence* interval is about the curve: it opens where rows are rare. A *prediction* interval is
# about the next observation: it holds the noise as well, and is never narrower than that.
grid = np.linspace(-7.0, 7.0, 400)[:, None]
distribution = model.predict_dist(grid)

figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
ax.fill_between(grid[:, 0], *model.predict_interval(grid, 0.95).T, color="#BBD7EC", label="95 % for the next observation")
ax.fill_between(
    grid[:, 0], *model.predict_interval(grid, 0.95, kind="confidence").T, color="#6FAAD4", label="95 % for the curve"
)
ax.plot(grid, distribution.mean, color="#0072B2", label="prediction")
ax.plot(grid, curve(grid), color="#D55E00", linestyle="--", label="truth")
ax.plot(X, y, ".", color="#444444", label="training rows")
ax.set(xlabel="x", ylabel="y", xlim=(-7.0, 7.0), ylim=(-6.0, 8.0))
ax.legend(ncols=2, loc="upper left", frameon=False)

# %%
# The promise is checked on rows the network has not seen, drawn as the training rows were. Each level should hold its share.
X_new, y_new = draw(1000)
for level in (0.5, 0.8, 0.95):
    print(f"{level:.0%} intervals cover {coverage(y_new, model.predict_interval(X_new, level)):.1%} of 1,000 new rows")

# %%
# The variance has four sources, and they add up. In the middle nearly all of it is noise, which no further row will remove;
# outside it is the first layer, whose support vector regressions are not pinned down there.
#
# How much a missing row costs is learnt from training rows that were hidden for a while. Here some of them lie far from the
# others, so the model knows. If all rows were close to each other they would say nothing about places without rows, and the
# width out there should not be relied on.
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
sources = distribution.variance_by_source
ax.stackplot(grid[:, 0], *sources.values(), labels=sources, colors=["#BBBBBB", "#77AADD", "#EE8866", "#EEDD88"])
ax.plot(X, np.full(len(X), -0.015), "|", color="#444444", label="training rows")
ax.set(xlabel="x", ylabel="variance of the next observation", xlim=(-7.0, 7.0), ylim=(-0.03, 0.5))
ax.legend(loc="upper center", frameon=False)
plt.show()
