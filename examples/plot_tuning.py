"""
Tuning of parameters
====================

Parameters that are left out are chosen from the training rows by leave-one-out errors in closed form. ``"tune"`` in place of a
value chooses it by validation instead. That search goes from cheap to expensive: many kernels and values of C are screened by
the first layer alone, which costs a fraction of an iteration each; the best few are trained for some iterations, and the best
of those for more.
"""

# %%
# Two of six features are relevant, on different scales.
import matplotlib.pyplot as plt
import numpy as np

from kstonet import KStoNetRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-2, 2, size=(400, 6))
y = np.sin(3 * X[:, 0]) + 0.5 * X[:, 1] + 0.2 * rng.normal(size=400)
X, y, X_test, y_test = X[:120], y[:120], X[120:], y[120:]
short = {"max_iter": 8, "n_average": 4, "residuals": None, "random_state": 0}

# %%
# Fixed values; the automatic choice, which learns a length scale for every feature; ``C`` and ``gamma`` by validation; and the
# length scales as well.
settings = {
    "fixed values": {"tuning": "none"},
    "automatic": {},
    "C and gamma": {"C": "tune", "gamma": "tune"},
    "and length scales": {"C": "tune", "gamma": "tune", "length_scale": "tune"},
}
models = {}
for name, parameters in settings.items():
    models[name] = KStoNetRegressor(**parameters, **short).fit(X, y)
    print(f"{name:18s} R² on 280 new rows: {models[name].score(X_test, y_test):.3f}")

# %%
# The chosen values and the reason.
print(models["automatic"].tuning_["reason"])
model = models["and length scales"]
print(model.tuning_["reason"])
scales = np.array(model.tuned_["length_scale"])
print("length scales, the shorter the more a feature matters:", scales.round(1))

# %%
# ``tuning_["table"]`` holds every candidate with its validation loss. Those screened by the first layer alone are drawn over C,
# one line per kernel; those that were trained are listed.
table = model.tuning_["table"]
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
screened = [row for row in table if row["iterations"] == 0]
parts = max(len(row["scores"]) for row in screened)
for gamma, scale in dict.fromkeys((row["gamma"], row["length_scale"]) for row in screened):
    line = [row for row in screened if (row["gamma"], row["length_scale"]) == (gamma, scale)]
    learned = scale is not None
    ax.plot(
        [row["C"] for row in line],
        [row["score"] for row in line],
        marker="o",
        markersize=4,
        color="#0072B2" if learned else "#D55E00",
        alpha=1.0 if len(line[0]["scores"]) == parts else 0.3,
        label=f"{'learned' if learned else 'equal'} length scales",
    )
handles = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
ax.legend(handles.values(), handles.keys(), frameon=False, title="one line per gamma; pale ones were dropped early")
ax.set(xscale="log", yscale="log", xlabel="C", ylabel="validation error of the first layer alone")
for row in table:
    if row["iterations"]:
        print(
            f"{row['iterations']:3d} iterations: loss {row['score']:.4f} with C {row['C']}, gamma {np.round(row['gamma'], 3)}"
        )
plt.show()
