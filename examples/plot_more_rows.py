"""
Would more rows help?
=====================

Some sources of the variance of a prediction shrink with more rows; the noise does not. Their shares tell whether collecting
more data would help.
"""

# %%
# The same kind of data, with 50 to 800 training rows; the same 500 new rows to predict.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage

rng = np.random.default_rng(0)


def draw(n):
    """Three features and noise of variance 0.25."""
    X = rng.normal(size=(n, 3))
    return X, 2 * np.sin(X[:, 0]) * X[:, 1] + X[:, 2] + 0.5 * rng.normal(size=n)


X, y = draw(800)
X_test, y_test = draw(500)

# %%
# The noise stays the same; the other sources shrink with more rows.
sizes, parts = [50, 100, 200, 400, 800], []
for n in sizes:
    model = KStoNetRegressor(tuning="none", max_iter=12, n_average=5, random_state=0).fit(X[:n], y[:n])
    sources = {source: part.mean() for source, part in model.predict_dist(X_test).variance_by_source.items()}
    error = np.mean((y_test - model.predict(X_test)) ** 2)
    covered = coverage(y_test, model.predict_interval(X_test, 0.9))
    parts.append(sources)
    print(f"{n:4d} rows: squared error {error:.2f}, predicted {sum(sources.values()):.2f}; 90 % intervals cover {covered:.1%}")

# %%
figure, ax = plt.subplots(figsize=(8, 4.2), layout="constrained")
bottom = np.zeros(len(sizes))
for source, color in zip(parts[0], ("#BBBBBB", "#77AADD", "#EE8866", "#EEDD88"), strict=True):
    height = np.array([part[source] for part in parts])
    ax.bar(range(len(sizes)), height, bottom=bottom, color=color, label=source)
    bottom += height
ax.axhline(0.25, color="#444444", linestyle=":", label="variance of the noise, in truth")
ax.set(xticks=range(len(sizes)), xticklabels=sizes, xlabel="training rows", ylabel="mean variance of a prediction")
ax.legend(frameon=False)
plt.show()
