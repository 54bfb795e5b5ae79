"""
Residuals for the intervals
===========================

An interval depends on the size of the noise. The paper takes it from training residuals, which are too small for a network that
nearly interpolates. The parameter ``residuals`` selects which residuals are used.
"""

# %%
# The paper's measurement-error data, with a C that lets the network follow its training rows closely.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error
from kstonet.plotting import CoverageDisplay

X, y = make_measurement_error(1250, random_state=0)
X, y, X_test, y_test = X[:250], y[:250], X[250:], y[250:]

models = {
    kind: KStoNetRegressor(tuning="none", C=100.0, residuals=kind, max_iter=15, n_average=5, random_state=0).fit(X, y)
    for kind in ("training", "crossfit", "local")
}

# %%
# The three networks and their means are the same. Only their intervals differ.
error = np.sqrt(np.mean((y_test - models["crossfit"].predict(X_test)) ** 2))
print(f"error on the training rows {np.sqrt(np.mean((y - models['crossfit'].predict(X)) ** 2)):.2f}, on new rows {error:.2f}")
for kind, model in models.items():
    print(f"{kind:9s} believes in errors of {np.sqrt(np.mean(model.predict_var(X_test))):.2f}")

# %%
# Intervals with ``"training"`` are far too narrow. ``"crossfit"`` continues training without each fold in turn.
# ``"local"``, the choice of the first call, also learns where the errors are large; here they are the same everywhere.
figure, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for kind, model in models.items():
    CoverageDisplay.from_estimator(model, X_test, y_test, name=f'residuals="{kind}"', ax=ax)
plt.show()
