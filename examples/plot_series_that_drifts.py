"""
Intervals of a series that drifts
=================================

Intervals that were right when a model was trained are too narrow once the series has changed. ``update(X, y)`` shows the model
what came, row by row, and the next intervals adapt (adaptive conformal inference), without another training. `MAPIE
<https://mapie.readthedocs.io>`_ (1.5 or newer) has the same idea for any regressor, with a step that has to be chosen.
"""

# %%
# A periodic signal with noise that doubles abruptly after 600 rows and a slow trend. The first 300 rows are for the training.
import matplotlib.pyplot as plt
import numpy as np
from mapie.regression import TimeSeriesRegressor
from mapie.subsample import BlockBootstrap

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, mean_width

LEVEL, START, END = 0.9, 300, 1000
rng = np.random.default_rng(0)
time = np.arange(END)
X = np.column_stack([np.sin(2 * np.pi * time / 50), np.cos(2 * np.pi * time / 50), rng.normal(size=END)])
noise = np.where(time < 600, 0.3, 0.6) * rng.normal(size=END)
y = 2 * X[:, 0] + X[:, 1] * X[:, 2] + 0.0005 * np.maximum(time - START, 0) + noise
settings = {"tuning": "none", "max_iter": 10, "n_average": 5, "n_imputation_steps": 10, "random_state": 0}

# %%
# Predict the next row, then show what came. ``step="auto"``, the default, weighs eight speeds of adaptation by their success.
model = KStoNetRegressor(**settings).fit(X[:START], y[:START])
intervals = {"as fitted": model.predict_interval(X[START:], LEVEL)}
for step in ("auto", 0.01):
    found = []
    for t in range(START, END):
        found.append(model.predict_interval(X[[t]], LEVEL)[0])
        model.update(X[[t]], y[[t]], step=step)
    intervals[f"update, step {step}"] = np.array(found)
    model.calibrate()  # back to the intervals of fit

# %%
# MAPIE's intervals for the same network: residuals of five networks that were trained without blocks of rows. All rows have the
# same width at a time. ``adapt_conformal_inference`` moves the level after every row, ``update`` takes its residual in.
blocks = BlockBootstrap(n_resamplings=5, n_blocks=10, overlapping=False, random_state=0)
mapie = TimeSeriesRegressor(KStoNetRegressor(residuals=None, **settings), method="aci", cv=blocks, agg_function="mean")
mapie.fit(X[:START], y[:START])
found = []
for t in range(START, END):
    found.append(mapie.predict(X[[t]], confidence_level=LEVEL)[1][0, :, 0])
    mapie.adapt_conformal_inference(X[[t]], y[[t]], gamma=0.01, confidence_level=LEVEL)
    mapie.update(X[[t]], y[[t]])
intervals["MAPIE, step 0.01"] = np.array(found)

# %%
# All of them adapt; the intervals of ``fit`` do not.
late = time[START:] >= 600
print(f"{'90 % intervals':20s} covered  after the change   width")
for name, interval in intervals.items():
    truth = y[START:]
    print(
        f"{name:20s} {coverage(truth, interval):7.1%} {coverage(truth[late], interval[late]):17.1%} {mean_width(interval):7.2f}"
    )

# %%
figure, ax = plt.subplots(figsize=(9, 4), layout="constrained")
window = np.ones(100) / 100
for (name, interval), color in zip(intervals.items(), ("#D55E00", "#0072B2", "#009E73", "#CC79A7"), strict=True):
    covered = (interval[:, 0] <= y[START:]) & (y[START:] <= interval[:, 1])
    ax.plot(time[START + 99 :], np.convolve(covered, window, mode="valid"), color=color, label=name)
ax.axhline(LEVEL, color="#444444", linestyle=":")
ax.set(xlabel="time", ylabel="covered, of the last 100 rows", ylim=(0.5, 1.02))
ax.legend(frameon=False, ncols=2, loc="lower left")
plt.show()
