"""``python -m kstonet.demo``: train a K-StoNet on embedded data, beside a plain SVR, and draw its path."""

from __future__ import annotations

import time
from importlib.util import find_spec
from typing import Any

import numpy as np
from sklearn.svm import SVR

from kstonet import KStoNetRegressor


def measurement_error_data(n: int = 500, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Section 3.2 of the paper: a nonlinear regression on five correlated inputs that are observed with error."""
    rng = np.random.default_rng(seed)
    Z = (rng.normal(size=(n, 1)) + rng.normal(size=(n, 5))) / np.sqrt(2)
    y = 5 * Z[:, 1] / (1 + Z[:, 0] ** 2) + 5 * np.sin(Z[:, 2] * Z[:, 3]) + 2 * Z[:, 4] + rng.normal(size=n)
    return Z + 0.5 * rng.normal(size=Z.shape), y


def draw(path: str, train: list[float], test: list[float], svr: tuple[float, float]) -> None:
    """Save the training path as a picture."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
    iterations = np.arange(1, len(train) + 1)
    axes.plot(iterations, train, label="K-StoNet, training", color="tab:blue")
    axes.plot(iterations, test, label="K-StoNet, test", color="tab:orange")
    axes.axhline(svr[0], color="tab:blue", linestyle=":", label="SVR, training")
    axes.axhline(svr[1], color="tab:orange", linestyle=":", label="SVR, test")
    axes.set(xlabel="iteration of Algorithm 1", ylabel="mean squared error", ylim=(0, None), title="Measurement-error data")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    plt.close(figure)


def main() -> None:
    """Run the demonstration."""
    X, y = measurement_error_data(1000)
    train, test = slice(0, 500), slice(500, 1000)
    C, epsilon = 1.0, 0.05  # the paper's C for these data, for both models
    path: list[float] = []
    model = KStoNetRegressor((5,), C=C, epsilon=epsilon, n_average=1, max_iter=40, random_state=0)

    def watch(state: Any) -> None:
        """Test error of every iterate, as a user would see it after stopping there."""
        path.append(float(np.mean((y[test] - model.predict(X[test])) ** 2)))

    print("Measurement-error data (Section 3.2 of the paper): 500 training and 500 test rows, 5 features")
    print(f"K-StoNet with one hidden layer of 5 support vector regressions, C={C:g}, epsilon={epsilon:g}\n")
    started = time.perf_counter()
    model.set_params(callback=watch).fit(X[train], y[train])
    seconds = time.perf_counter() - started
    losses = [record["loss"] * float(y[train].var()) for record in model.history_]
    print("iteration   training MSE   test MSE")
    for i in (0, 1, 2, 4, 9, 19, 29, 39):
        print(f"   {i + 1:4d}       {losses[i]:8.3f}     {path[i]:8.3f}")

    averaged = KStoNetRegressor((5,), C=C, epsilon=epsilon, random_state=0).fit(X[train], y[train])
    scale = float(y[train].std())
    standard = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    svr = SVR(C=C, epsilon=epsilon).fit(standard[train], (y[train] - y[train].mean()) / scale)
    svr_errors = tuple(
        float(np.mean((y[part] - y[train].mean() - scale * svr.predict(standard[part])) ** 2)) for part in (train, test)
    )
    print(f"\ntest MSE: K-StoNet {path[-1]:.3f} at the last iterate, ", end="")
    print(f"{np.mean((y[test] - averaged.predict(X[test])) ** 2):.3f} averaged over the last 10; plain SVR {svr_errors[1]:.3f}")
    parts = {part: sum(r[f"seconds_{part}"] for r in model.history_) for part in ("impute", "first_layer", "regressions")}
    print(f"trained in {seconds:.1f} s: " + ", ".join(f"{name} {spent:.2f} s" for name, spent in parts.items()))
    if find_spec("matplotlib"):
        draw("demo.png", losses, path, (svr_errors[0], svr_errors[1]))
        print("picture: demo.png")


if __name__ == "__main__":
    main()
