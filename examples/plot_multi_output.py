"""
Several targets at once
=======================

One network predicts two targets. They share the hidden layers, and their noise may be correlated. The prediction at a row is a
mean and a *covariance matrix*, and a region for both targets is an ellipse rather than a box.
"""

# %%
# Two responses of the same rows, whose noise has the correlation 0.8.
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.stats import chi2
from sklearn.metrics import r2_score

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage

rng = np.random.default_rng(0)
noise = np.array([[0.09, 0.072], [0.072, 0.09]])


def draw(n):
    """Rows of three features, and two targets."""
    X = rng.normal(size=(n, 3))
    means = np.column_stack([np.sin(2 * X[:, 0]) + X[:, 1], np.cos(2 * X[:, 0]) * X[:, 2]])
    return X, means + rng.multivariate_normal(np.zeros(2), noise, size=n)


X, Y = draw(300)
X_test, Y_test = draw(500)
model = KStoNetRegressor(hidden_layer_sizes=(8,), max_iter=20, random_state=0).fit(X, Y)

# %%
# All results have one more axis: means are (n, 2), intervals (n, 2, 2), covariances (n, 2, 2).
mean, covariance = model.predict(X_test, return_cov=True)
correlation = covariance[:, 0, 1] / np.sqrt(covariance[:, 0, 0] * covariance[:, 1, 1])
print("R² of the two targets:", r2_score(Y_test, mean, multioutput="raw_values").round(3))
interval = model.predict_interval(X_test, 0.9)
print("90 % intervals cover", [coverage(Y_test[:, j], interval[:, j]) for j in (0, 1)], "of the rows, one target at a time")
print(f"predicted correlation of the targets at a new row: {correlation.mean():.2f} on average")

# %%
# A region for both: the ellipse of the joint normal distribution. Two 90 % intervals contain both
# targets less often than 90 times in 100; the 90 % ellipse does not have this problem.
error = Y_test - mean
distance = np.einsum("ni,nij,nj->n", error, np.linalg.inv(covariance), error)
inside = distance <= chi2.ppf(0.9, df=2)
print(f"90 % ellipses hold both targets at {inside.mean():.1%} of the rows")

figure, ax = plt.subplots(figsize=(7, 5.5), layout="constrained")
for i in range(12):
    values, vectors = np.linalg.eigh(covariance[i])
    width, height = 2 * np.sqrt(chi2.ppf(0.9, df=2) * values)
    angle = np.degrees(np.arctan2(vectors[1, 0], vectors[0, 0]))
    ax.add_patch(Ellipse(mean[i], width, height, angle=angle, facecolor="#BBD7EC", edgecolor="#0072B2", alpha=0.6))
    ax.plot(*np.array([mean[i], Y_test[i]]).T, color="#888888", linewidth=0.8)
ax.plot(*Y_test[:12][inside[:12]].T, "o", color="#0072B2", label="observed, inside")
ax.plot(*Y_test[:12][~inside[:12]].T, "o", color="#D55E00", label="observed, outside")
ax.set(xlabel="first target", ylabel="second target", title="90 % regions for both targets at twelve new rows", aspect="equal")
ax.legend(frameon=False)
plt.show()
