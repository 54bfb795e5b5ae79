"""
Class probabilities with intervals
==================================

A probability of one half may mean that the classes are mixed at this place, or that there are no training rows near it. The
interval of the probability tells the two apart. It comes from the same recursion as the intervals of a regressor.
"""

# %%
# Two interleaved moons, with 200 training rows.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_moons

from kstonet import KStoNetClassifier
from kstonet.metrics import brier_score, expected_calibration_error
from kstonet.plotting import ReliabilityDisplay

X, y = make_moons(200, noise=0.25, random_state=0)
X_test, y_test = make_moons(2000, noise=0.25, random_state=1)
model = KStoNetClassifier(random_state=0).fit(X, y)
print(f"accuracy on 2,000 new rows: {model.score(X_test, y_test):.3f}")

# %%
# Left, the probability of the second class. Right, the width of its 95 % interval: narrow where the training rows decide, wide
# along the border between the classes and away from the rows.
a, b = np.meshgrid(np.linspace(-2.5, 3.5, 90), np.linspace(-2.0, 2.5, 70))
grid = np.column_stack([a.ravel(), b.ravel()])
probability = model.predict_proba(grid)[:, 1]
low, high = model.predict_proba_interval(grid, 0.95)[:, 1].T

figure, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
for ax, values, title, colors in (
    (axes[0], probability, "probability", "RdBu_r"),
    (axes[1], high - low, "width of its 95 % interval", "cividis"),
):
    filled = ax.contourf(a, b, values.reshape(a.shape), levels=np.linspace(0, 1, 11), cmap=colors)
    ax.scatter(*X.T, c=y, cmap="RdBu_r", edgecolor="white", s=18, linewidth=0.6)
    ax.set(title=title, xlabel="first feature")
    figure.colorbar(filled, ax=ax)
axes[0].set_ylabel("second feature")

# %%
# Reliability of the probabilities. ``fit`` has learned one temperature from out-of-sample predictions of the training rows. The
# second model has none, as in the paper.
plain = KStoNetClassifier(residuals="training", random_state=0).fit(X, y)
figure, ax = plt.subplots(figsize=(5, 4.6), layout="constrained")
for name, each in (("without temperature", plain), ("with temperature", model)):
    ReliabilityDisplay.from_estimator(each, X_test, y_test, label=1, n_bins=10, name=name, ax=ax)
    p = each.predict_proba(X_test)
    print(f"{name}: Brier score {brier_score(y_test, p):.4f}, calibration error {expected_calibration_error(y_test, p):.4f}")
print(f"temperature: {model.calibration_temperature_:.2f}")
plt.show()
