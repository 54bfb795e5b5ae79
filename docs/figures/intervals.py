"""Draw the picture of the README: ``python docs/figures/intervals.py`` writes docs/images/intervals.png.

Sixty observations of a curve, dense in the middle and rare outside, with both kinds of interval. The gallery tells the same
story with more detail (examples/plot_intervals_on_a_curve.py).
"""

from __future__ import annotations

from pathlib import Path

import matplotlib
import numpy as np

from kstonet import KStoNetRegressor

IMAGE = Path(__file__).parents[1] / "images" / "intervals.png"


def curve(x: np.ndarray) -> np.ndarray:
    """Return the mean of the observations."""
    return np.sin(2.0 * x) + 0.5 * x


def main() -> None:
    """Fit the model and save the picture."""
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    rng = np.random.default_rng(4)
    x = np.clip(1.5 * rng.standard_t(3, size=60), -8.0, 8.0)
    y = curve(x) + 0.2 * rng.normal(size=60)
    model = KStoNetRegressor(tuning="none", gamma=2.0, max_iter=20, n_average=5, random_state=0).fit(x[:, None], y)

    grid = np.linspace(-6.5, 6.5, 600)
    prediction = model.predict_interval(grid[:, None], 0.95)
    confidence = model.predict_interval(grid[:, None], 0.95, kind="confidence")
    figure, ax = plt.subplots(figsize=(8.0, 3.8), layout="constrained")
    ax.fill_between(grid, *prediction.T, color="#BBD7EC", linewidth=0, label="95 % prediction interval")
    ax.fill_between(grid, *confidence.T, color="#6FAAD4", linewidth=0, label="95 % confidence interval")
    ax.plot(grid, model.predict(grid[:, None]), color="#0072B2", label="prediction")
    ax.plot(grid, curve(grid), color="#D55E00", linestyle="--", label="true curve")
    ax.plot(x, y, "o", color="#333333", markersize=3, label="60 training rows")
    ax.set(xlabel="x", ylabel="y", xlim=(-6.5, 6.5), ylim=(-5.0, 6.5))
    ax.spines[["top", "right"]].set_visible(False)
    ax.legend(ncols=2, loc="upper left", frameon=False)
    figure.savefig(IMAGE, dpi=150)


if __name__ == "__main__":
    main()
