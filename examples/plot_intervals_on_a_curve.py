"""
Intervals on a curve
====================

With one feature, the prediction, its intervals and the sources of its variance can be drawn. The training rows are dense in the
middle and sparse outside.
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
model = KStoNetRegressor(tuning="none", gamma=2.0, max_iter=20, n_average=5, random_state=0).fit(X, y)

# %%
# A *confidence* interval is for the curve: it is wide where rows are rare. A *prediction* interval is for the next observation:
# it includes the noise.
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
# Check the coverage at three levels on new rows from the same distribution.
X_new, y_new = draw(1000)
for level in (0.5, 0.8, 0.95):
    print(f"{level:.0%} intervals cover {coverage(y_new, model.predict_interval(X_new, level)):.1%} of 1,000 new rows")

# %%
# The variance is the sum of four sources. In the middle nearly all of it is noise, which more rows do not reduce. Outside it is
# the first layer, whose support vector regressions are not determined there.
#
# The scale of the first layer's variance is learned from out-of-sample residuals. Here some training rows lie far from the
# others and determine it. If all rows were close to each other, the width outside the data would not be reliable.
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
sources = distribution.variance_by_source
ax.stackplot(grid[:, 0], *sources.values(), labels=sources, colors=["#BBBBBB", "#77AADD", "#EE8866", "#EEDD88"])
ax.plot(X, np.full(len(X), -0.015), "|", color="#444444", label="training rows")
ax.set(xlabel="x", ylabel="variance of the next observation", xlim=(-7.0, 7.0), ylim=(-0.03, 0.5))
ax.legend(loc="upper center", frameon=False)
plt.show()
