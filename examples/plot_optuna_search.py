"""
Searching with Optuna
=====================

`Optuna <https://optuna.org>`_ proposes settings one after another, based on the results of earlier ones. The callback reports
the validation loss after every iteration, so that Optuna can stop trials that are not promising.
"""

# %%
# This example needs ``pip install optuna``.
from importlib.util import find_spec

if find_spec("optuna") is None:
    print("Skipped: this example needs Optuna. Install it with: pip install optuna")
    raise SystemExit

import matplotlib.pyplot as plt
import numpy as np
import optuna

from kstonet import KStoNetRegressor
from kstonet.datasets import make_measurement_error

X, y = make_measurement_error(800, random_state=0)
X, y, X_val, y_val, X_test, y_test = X[:200], y[:200], X[200:400], y[200:400], X[400:], y[400:]

# %%
# A trial trains one network. While it trains, the estimator can already predict.


def objective(trial):
    """Validation error of one setting."""
    model = KStoNetRegressor(
        tuning="none",
        hidden_layer_sizes=(trial.suggest_int("units", 2, 12),),
        C=trial.suggest_float("C", 0.1, 100.0, log=True),
        gamma=trial.suggest_float("gamma", 0.02, 2.0, log=True),
        activation=trial.suggest_categorical("activation", ["softplus", "tanh"]),
        residuals=None,
        max_iter=10,
        n_average=4,
        random_state=0,
    )

    def report(state):
        trial.report(model.history_[-1]["validation_loss"], state.iteration)
        if trial.should_prune():
            raise optuna.TrialPruned

    model.set_params(callback=report).fit(X, y, X_val=X_val, y_val=y_val)
    return np.mean((model.predict(X_val) - y_val) ** 2)


optuna.logging.set_verbosity(optuna.logging.WARNING)
sampler, pruner = optuna.samplers.TPESampler(seed=0), optuna.pruners.SuccessiveHalvingPruner(min_resource=2, reduction_factor=2)
study = optuna.create_study(sampler=sampler, pruner=pruner)
study.optimize(objective, n_trials=20)
stopped = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
print(f"{len(study.trials)} trials, {stopped} of them stopped early")
print("best:", {name: value if isinstance(value, str) else round(value, 3) for name, value in study.best_params.items()})

# %%
# The best settings, trained on training and validation rows together.
best = dict(study.best_params)
best["hidden_layer_sizes"] = best.pop("units")
model = KStoNetRegressor(tuning="none", **best, max_iter=20, random_state=0)
model.fit(np.vstack([X, X_val]), np.concatenate([y, y_val]))
print(f"R² on 400 new rows: {model.score(X_test, y_test):.3f}")

# %%
# Every line is a trial; grey ones were stopped early.
figure, ax = plt.subplots(figsize=(8, 4.5), layout="constrained")
for trial in study.trials:
    values = trial.intermediate_values
    pruned = trial.state == optuna.trial.TrialState.PRUNED
    color = "#BBBBBB" if pruned else "#D55E00" if trial.number == study.best_trial.number else "#6FAAD4"
    ax.plot(list(values), list(values.values()), color=color, marker="x" if pruned else None, markevery=[-1])
ax.set(xlabel="iteration", ylabel="validation loss (standardised)", title="20 trials; the best in red, those given up in grey")
plt.show()
