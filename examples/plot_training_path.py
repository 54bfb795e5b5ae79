"""
Following the training
======================

Training repeats two steps: it draws the hidden values and refits every layer. ``history_`` has a record of every iteration,
also for validation rows, a callback receives each state, and ``warm_start`` continues a training.
"""

# %%
# A product of two effects. ``tuning="none"`` gives support vector regressions and 40 iterations, which show more of a path than
# the few that are chosen otherwise. Rows given as ``X_val`` are evaluated after every iteration and are not used for training.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor
from kstonet.plotting import TrainingPathDisplay

rng = np.random.default_rng(0)
X = rng.uniform(-3, 3, size=(700, 3))
y = np.sin(X[:, 0]) * X[:, 1] + 0.1 * rng.normal(size=700)
X, y, X_val, y_val = X[:300], y[:300], X[300:], y[300:]

model = KStoNetRegressor(tuning="none", max_iter=40, residuals=None, warm_start=True, random_state=0)
model.fit(X, y, X_val=X_val, y_val=y_val)

# %%
# Training starts from hidden values that are mixtures of the targets, so the first iteration is as good as plain support vector
# regressions. The path fluctuates, because hidden values are drawn at random; predictions average the last iterations. The
# second panel shows the time of every part.
display = TrainingPathDisplay.from_estimator(model, parts=True)
display.figure_.set_size_inches(8, 5)

# %%
# The record of an iteration. ``svr_gap`` is a certificate: all support vector regressions are solved to this relative gap.
for name, value in model.history_[-1].items():
    if not name.startswith("seconds"):
        print(f"{name:18s} {value:.4g}")

# %%
# With ``warm_start`` another ``fit`` on the same rows adds iterations to those done, on the same kernel matrix.
model.set_params(max_iter=10).fit(X, y, X_val=X_val, y_val=y_val)
print(f"{model.n_iter_} iterations, {len(model.history_)} records, validation loss {model.history_[-1]['validation_loss']:.4f}")

# %%
# ``tol`` stops when the loss (of the validation rows, if there are any) has not fallen by that fraction for
# ``n_iter_no_change`` iterations. A callback can implement other rules.
losses = []
stopped = KStoNetRegressor(tuning="none", max_iter=100, tol=0.01, n_iter_no_change=15, residuals=None, random_state=0)
stopped.set_params(callback=lambda state: losses.append(state.record.loss)).fit(X, y, X_val=X_val, y_val=y_val)
print(f"stopped after {stopped.n_iter_} of 100 iterations; the callback saw {len(losses)} losses, the last {losses[-1]:.4f}")
plt.show()
