"""``python -m kstonet.demo``: prices of flats, with intervals that are wide where prices scatter, beside an SVR."""

from __future__ import annotations

import argparse
import time
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from sklearn.svm import SVR

from kstonet import KStoNetRegressor
from kstonet._files import open_whole, write_whole
from kstonet.metrics import coverage, mean_width
from kstonet.tuning.summary import chosen_words

NAMES = ("area", "age", "distance", "floor", "balcony")
ROWS, TEST_ROWS, LEVEL = 400, 1000, 0.9
GROUPS = ("cheapest third", "middle third", "most expensive")


def flats(n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Flats and their prices, which scatter by a share of themselves.

    Examples
    --------
    >>> import numpy as np
    >>> X, y = flats(3, np.random.default_rng(0))
    >>> X.shape, bool((y > 0).all())
    ((3, 5), True)
    """
    area, age, distance = rng.gamma(12.0, 7.5, n), rng.uniform(0.0, 90.0, n), rng.uniform(0.0, 15.0, n)
    floor, balcony = rng.integers(0, 8, n), rng.random(n) < 0.5
    rate = 3.0 + 9.0 * np.exp(-distance / 5.0) + 1.5 * np.cos(age / 14.0)
    price = area * rate * (1.0 + 0.05 * balcony) + 6.0 * floor
    X = np.column_stack([area, age, distance, floor, balcony]).astype(np.float64)
    return X.round(2), (price * np.exp(0.15 * rng.normal(size=n))).round(1)


def plain_svr(X: np.ndarray, y: np.ndarray, X_test: np.ndarray) -> np.ndarray:
    """Predictions of scikit-learn's SVR on standardised data."""
    centre, spread = X.mean(axis=0), X.std(axis=0)
    svr = SVR(C=10.0, epsilon=0.05).fit((X - centre) / spread, (y - y.mean()) / y.std())
    return np.asarray(svr.predict((X_test - centre) / spread) * y.std() + y.mean())


def constant_intervals(mean: np.ndarray, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    """What one gets without a model of the uncertainty: the same width everywhere, from five-fold residuals of the SVR."""
    fold = np.arange(len(y)) % 5
    residuals = np.concatenate([y[fold == k] - plain_svr(X[fold != k], y[fold != k], X[fold == k]) for k in range(5)])
    half = np.quantile(np.abs(residuals), LEVEL)
    return np.column_stack([mean - half, mean + half])


def draw(path: Path, mean: np.ndarray, y: np.ndarray, bounds: dict[str, np.ndarray]) -> None:
    """Save a picture: prices against predictions with both kinds of intervals, and how often these cover."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11.0, 4.4), layout="constrained", width_ratios=[1.35, 1.0])
    order = np.argsort(mean)
    ours, theirs = bounds.values()
    left.fill_between(
        mean[order], ours[order, 0], ours[order, 1], color="#2a78d6", alpha=0.25, lw=0, label=f"{LEVEL:.0%} intervals"
    )
    shift = (theirs - theirs.mean(axis=1, keepdims=True))[order]
    for k in range(2):
        line = mean[order] + shift[:, k]
        left.plot(mean[order], line, color="#c2410c", lw=1.2, ls="--", label=None if k else "of constant width")
    left.plot(mean[order], y[order], ".", ms=2.5, color="#1f2937", label="flats not seen in training")
    left.plot(mean[order], mean[order], color="#2a78d6", lw=1.2)
    left.set(xlabel="predicted price", ylabel="price", title="Intervals are as wide as the prices scatter")
    left.legend(frameon=False, loc="upper left")
    places = np.arange(len(GROUPS))
    for k, (name, own) in enumerate(bounds.items()):
        shares = covered_by_group(mean, y, own)
        bars = right.bar(places + 0.4 * k - 0.2, shares, 0.38, color=("#2a78d6", "#c2410c")[k], label=name)
        right.bar_label(bars, [f"{share:.0%}" for share in shares], fontsize=9)
    right.axhline(LEVEL, color="#1f2937", lw=1.0, ls=":")
    right.set(ylim=(0.5, 1.12), title=f"How many flats the {LEVEL:.0%} intervals cover")
    right.set_xticks(places, GROUPS)
    right.set_yticks([0.5, 0.7, LEVEL, 1.0], ["50%", "70%", f"{LEVEL:.0%}", "100%"])
    right.legend(frameon=False, loc="upper center", ncols=2)
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    with open_whole(path) as file:
        figure.savefig(file, format=path.suffix[1:] or "png", dpi=120)
    plt.close(figure)


def covered_by_group(mean: np.ndarray, y: np.ndarray, bounds: np.ndarray) -> list[float]:
    """Coverage among the thirds of the predictions."""
    group = np.searchsorted(np.quantile(mean, [1 / 3, 2 / 3]), mean)
    return [float(coverage(y[group == k], bounds[group == k])) for k in range(len(GROUPS))]


def main(arguments: list[str] | None = None) -> None:
    """Run the demonstration.

    Parameters
    ----------
    arguments : list of str, optional
        Words of the command line; by default those of the process.
    """
    parser = argparse.ArgumentParser("kstonet demo", description="Train on embedded data, beside an SVR, and draw the result.")
    parser.add_argument("--folder", type=Path, default=Path(), help="where demo.csv and demo.png are written (default: here)")
    folder = parser.parse_args(arguments).folder
    if not folder.is_dir():
        parser.error(f"there is no folder {str(folder)!r}; create it first.")
    rng = np.random.default_rng(0)
    X, y = flats(ROWS, rng)
    X_test, y_test = flats(TEST_ROWS, rng)
    print(
        f"{ROWS} flats to train on, {TEST_ROWS:,} to test: {', '.join(NAMES)} and the price, which scatters by 15 % of itself."
    )
    started = time.perf_counter()
    model = KStoNetRegressor(random_state=0).fit(X, y)
    print(f"\nKStoNetRegressor().fit(X, y) took {time.perf_counter() - started:.1f} s. It chose from the training rows")
    for name, text in chosen_words(model.tuned_).items():
        print(f"   {name:20s}{text}")
    mean, rival = model.predict(X_test), plain_svr(X, y, X_test)
    errors = [float(np.sqrt(np.mean((y_test - each) ** 2))) for each in (mean, rival)]
    print(f"\nroot mean squared error   K-StoNet {errors[0]:.1f}, scikit-learn's SVR {errors[1]:.1f}")
    bounds = {"K-StoNet": model.predict_interval(X_test, LEVEL), "constant width": constant_intervals(rival, X, y)}
    print(f"\n{LEVEL:.0%} intervals   mean width   covered   " + "   ".join(GROUPS))
    for name, own in bounds.items():
        shares = zip(covered_by_group(mean, y_test, own), GROUPS, strict=True)
        groups = "   ".join(f"{share:>{len(group)}.0%}" for share, group in shares)
        print(f"{name:15s} {mean_width(own):10.0f}   {coverage(y_test, own):7.0%}   {groups}")
    _write_table(folder / "demo.csv", X, y)
    print("\nIntervals of constant width are too wide for cheap flats and too short for expensive ones; the model's suit both.")
    if find_spec("matplotlib"):
        draw(folder / "demo.png", mean, y_test, bounds)
        print(f"picture: {folder / 'demo.png'}")
    else:
        print("A picture needs matplotlib: pip install 'kstonet[plot]'.")
    print(f"\nNext, the same from a table:   kstonet fit {folder / 'demo.csv'} --target price --holdout 0.2")


def _write_table(path: Path, X: np.ndarray, y: np.ndarray) -> None:
    """The training rows, to go on with."""
    rows = ([*(f"{value:g}" for value in row), f"{price:g}"] for row, price in zip(X, y, strict=True))
    write_whole(path, "".join(",".join(row) + "\n" for row in [[*NAMES, "price"], *rows]))


if __name__ == "__main__":
    main()
