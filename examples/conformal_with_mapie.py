"""Conformal prediction intervals for a K-StoNet: its own, calibrated, and by MAPIE (1.5 or newer).

All intervals come from the same 299 rows. Split conformal prediction sets 99 of them aside to calibrate on;
``model.calibrate()`` and cross-conformal prediction learn from all of them.

Run it as ``python examples/conformal_with_mapie.py``.
"""

from __future__ import annotations

import numpy as np
from mapie.regression import CrossConformalRegressor, SplitConformalRegressor

from kstonet import KStoNetRegressor
from kstonet.metrics import coverage, mean_width

LEVEL = 0.9
SETTINGS = {"max_iter": 10, "n_average": 5, "n_imputation_steps": 10, "random_state": 0}  # short, for a quick example


def make_data(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows that are dense in the middle and sparse outside, with noise of longer tails than a normal distribution has."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(4, size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + np.abs(X[:, 1]) + 0.3 * rng.laplace(size=n)


def main() -> None:
    """Print coverage and mean width of 90 % intervals on 1000 new rows."""
    X, y = make_data(299, seed=0)
    X_test, y_test = make_data(1000, seed=1)
    fit, calibration = slice(0, 200), slice(200, 299)

    def show(name: str, interval: np.ndarray) -> None:
        print(f"{name:46s} {coverage(y_test, interval):8.3f} {mean_width(interval):7.2f}")

    print(f"{'299 rows to learn from':46s} {'coverage':>8s} {'width':>7s}")
    model = KStoNetRegressor(**SETTINGS).fit(X, y)
    show("normal quantiles", model.predict_interval(X_test, LEVEL))
    show("model.calibrate()", model.calibrate().predict_interval(X_test, LEVEL))
    # |y - mean|/std of rows that their fold's network has not seen; the scores set the scale, so quick residuals will do inside
    quick = KStoNetRegressor(residuals="loo", **SETTINGS)
    cross = CrossConformalRegressor(quick, confidence_level=LEVEL, conformity_score="std_normalized", cv=5)
    cross.fit_conformalize(X, y)
    show("MAPIE, cross-conformal, std_normalized", cross.predict_interval(X_test)[1][:, :, 0])

    print("\n200 rows to learn from, 99 to calibrate on")
    model = KStoNetRegressor(**SETTINGS).fit(X[fit], y[fit])
    show("normal quantiles", model.predict_interval(X_test, LEVEL))
    for score in ("absolute", "std_normalized"):  # intervals of one width; intervals as wide as predict(return_std=True) says
        split = SplitConformalRegressor(model, confidence_level=LEVEL, conformity_score=score)
        split.conformalize(X[calibration], y[calibration])
        show(f"MAPIE, split, {score}", split.predict_interval(X_test)[1][:, :, 0])
    model.calibrate(X[calibration], y[calibration])  # the same score: the same intervals as the line before
    show("model.calibrate(X_calibration, y_calibration)", model.predict_interval(X_test, LEVEL))


if __name__ == "__main__":
    main()
