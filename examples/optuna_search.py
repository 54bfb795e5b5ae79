"""Optuna over a K-StoNet: values of C and gamma between those of any grid, and trainings stopped early.

Every trial reports its validation loss after every iteration; the pruner ends those that lag behind. Run it with
``python examples/optuna_search.py``; it needs ``pip install optuna``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.model_selection import train_test_split

from kstonet import KStoNetRegressor

TRIALS = 20


def main() -> None:
    """Print the best values, and their score beside that of the defaults on rows that the search has not seen."""
    try:
        import optuna
    except ImportError:
        print("Skipped: this example needs Optuna. Install it with: pip install optuna")
        return

    X, y = load_diabetes(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=142, random_state=0)
    X_fit, X_look, y_fit, y_look = train_test_split(X, y, test_size=75, random_state=0)

    def objective(trial: Any) -> float:
        losses: list[float] = []

        def watch(state: Any) -> None:
            losses.append(float(np.mean((model.predict(X_look) - y_look) ** 2) / y_fit.var()))
            trial.report(losses[-1], state.iteration)
            if trial.should_prune():
                raise optuna.TrialPruned

        model = KStoNetRegressor(
            kernel=trial.suggest_categorical("kernel", ["rbf", "matern32", "laplacian"]),
            gamma=trial.suggest_float("gamma", 1e-3, 1.0, log=True),
            C=trial.suggest_float("C", 0.3, 100.0, log=True),
            hidden_layer_sizes=(trial.suggest_int("units", 3, 20),),
            max_iter=10,
            residuals=None,
            callback=watch,  # the model can predict meanwhile
            random_state=0,
        )
        model.fit(X_fit, y_fit)
        return losses[-1]

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    study = optuna.create_study(
        sampler=optuna.samplers.TPESampler(seed=0), pruner=optuna.pruners.MedianPruner(n_warmup_steps=3)
    )
    study.optimize(objective, n_trials=TRIALS)
    pruned = sum(trial.state == optuna.trial.TrialState.PRUNED for trial in study.trials)
    best = dict(study.best_params)
    print(f"{TRIALS} trials, {pruned} of them stopped early; smallest validation loss {study.best_value:.3f} with")
    for name, value in best.items():
        print(f"    {name} = {value if not isinstance(value, float) else round(value, 4)}")

    tuned = {"hidden_layer_sizes": (best.pop("units"),), **best}
    for name, parameters in (("defaults", {}), ("best", tuned)):
        model = KStoNetRegressor(max_iter=20, residuals=None, random_state=0, **parameters).fit(X, y)
        print(f"R² on {len(y_test)} new rows, {name:9s}{model.score(X_test, y_test):.3f}")


if __name__ == "__main__":
    main()
