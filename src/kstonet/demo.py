"""``python -m kstonet.demo``: train a K-StoNet with intervals on embedded data, beside an SVR, and draw the result."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.svm import SVR

from kstonet import KStoNetRegressor
from kstonet._files import open_whole
from kstonet.datasets import make_measurement_error
from kstonet.metrics import coverage, mean_width
from kstonet.tuning.summary import chosen_words

C, EPSILON = 1.0, 0.05  # of the SVR: the paper's for these data


def plain_svr(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Predictions of scikit-learn's SVR on standardised data."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    svr = SVR(C=C, epsilon=EPSILON).fit((X - centre) / spread, (y - y.mean()) / y.std())
    return np.asarray(svr.predict((X_test - centre) / spread) * y.std() + y.mean())


def draw(path: str, model: KStoNetRegressor, X: np.ndarray, y: np.ndarray) -> None:
    """Save the training path and twenty intervals as a picture."""
    import matplotlib.pyplot as plt

    from kstonet.plotting import IntervalDisplay, TrainingPathDisplay

    figure, axes = plt.subplots(1, 2, figsize=(11.0, 4.2), layout="constrained")
    TrainingPathDisplay.from_estimator(model, ax=axes[0])
    axes[0].set_title("Training path (loss in units of Var y)")
    IntervalDisplay.from_estimator(model, X, y, ax=axes[1])
    axes[1].set_title("95 % prediction intervals at 20 test points")
    with open_whole(path) as file:
        figure.savefig(file, format=Path(path).suffix[1:] or "png", dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the demonstration."""
    X, y = make_measurement_error(1000, random_state=0)
    X, y, X_test, y_test = X[:400], y[:400], X[400:], y[400:]
    print("Measurement-error data (Section 3.2 of the paper): 400 training and 600 test rows, 5 features")
    print("KStoNetRegressor() beside scikit-learn's SVR\n")
    started = time.perf_counter()
    model = KStoNetRegressor(random_state=0).fit(X, y, X_val=X_test, y_val=y_test)
    seconds = time.perf_counter() - started

    print("chosen from the training rows")
    for name, text in chosen_words(model.tuned_).items():
        print(f"   {name:20s}{text}")
    print(f"because {model.tuning_['reason']}\n")
    print("iteration   training MSE   test MSE")
    records: list[dict[str, Any]] = model.history_
    for record in records[:3] + records[3:-1:4] + records[-1:]:
        errors = [record[name] * y.var() for name in ("loss", "validation_loss")]
        print(f"   {record['iteration']:4d}       {errors[0]:8.3f}     {errors[1]:8.3f}")
    error = float(np.mean((y_test - model.predict(X_test)) ** 2))
    rival = float(np.mean((y_test - plain_svr(X, y, X_test)) ** 2))
    averaged = len(model.trained_.uppers)
    print(f"\ntest MSE: K-StoNet {error:.3f} (mean of the last {averaged} iterations), SVR with C={C:g} {rival:.3f}")

    print("\nprediction intervals   covered   mean width")
    for level in (0.8, 0.9, 0.95):
        interval = model.predict_interval(X_test, level)
        print(f"       {level:.0%}              {coverage(y_test, interval):6.1%}   {mean_width(interval):8.2f}")
    sources = model.predict_dist(X_test).variance_by_source
    print("mean variance by source: " + ", ".join(f"{name} {part.mean():.2f}" for name, part in sources.items()))

    parts = {part: sum(r[f"seconds_{part}"] for r in model.history_) for part in ("impute", "first_layer", "regressions")}
    spent = ", ".join(f"{name.replace('_', ' ')} {value:.2f} s" for name, value in parts.items())
    print(f"\ntrained in {seconds:.1f} s ({spent}, choice and intervals {seconds - sum(parts.values()):.2f} s)")
    if find_spec("matplotlib"):
        draw("demo.png", model, X_test, y_test)
        print("picture: demo.png")


if __name__ == "__main__":
    main()
