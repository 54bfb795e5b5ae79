"""Intervals grow with the distance from the training rows, in gaps and outside their range, for every kernel."""

from __future__ import annotations

import numpy as np
import pytest

from kstonet import KStoNetRegressor
from kstonet.gram.kernels import kernel_names

STATIONARY = ("rbf", "laplacian", "matern12", "matern32", "matern52", "exponential")  # they know a distance from the rows
FAST_GROWING = (*STATIONARY, "poly")
GROWING = (*FAST_GROWING, "arccos1", "arccos2")  # the others know, of one feature, a direction or a sign
KERNELS = sorted(set(kernel_names()) - {"precomputed", "cosine"})  # "cosine": of tests of extensions
FAST = {"tuning": "none", "C": 10.0, "max_iter": 8, "n_average": 4, "random_state": 0}
EDGE, END = 0.8, 2.0


def rows():
    """One feature, with a gap in the middle."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-END, -EDGE, size=60), rng.uniform(EDGE, END, size=60)])[:, None]
    return x, np.sin(2 * x[:, 0]) + 0.1 * rng.normal(size=120)


def widths(model, start, stop):
    found = np.diff(model.predict_interval(np.linspace(start, stop, 12)[:, None], 0.9))[:, 0]
    return found / found[0]


@pytest.mark.parametrize("kernel", KERNELS)
def test_intervals_grow_with_the_distance(kernel):
    """From the last training row outwards, and from either edge of the gap to its middle.

    The middle of the gap is the origin, where functions of products are known best: they need not grow there.
    """
    model = KStoNetRegressor(kernel=kernel, residuals="crossfit", **FAST).fit(*rows())
    for end in (END, -END):
        found = widths(model, end, 2.5 * end)
        assert (np.diff(found) > (-0.005 if kernel in (*FAST_GROWING, "linear") else -0.02)).all()
        assert found[-1] > (1.1 if kernel in GROWING else 0.95)
        assert kernel not in FAST_GROWING or widths(model, end, 3 * end)[-1] > 1.5
    for edge in (EDGE, -EDGE) if kernel in STATIONARY else ():
        found = widths(model, edge, 0.0)
        assert (np.diff(found) > -0.03).all()  # the widest place is near the middle
        assert found[-1] > 1.02


@pytest.mark.usefixtures("few_folds")  # the growth is that of the variance, however well the noise is known
@pytest.mark.parametrize("kernel", GROWING)
def test_local_noise_grows_with_the_distance_too(kernel):
    model = KStoNetRegressor(kernel=kernel, residuals="local", **FAST).fit(*rows())
    for end in (END, -END):
        assert widths(model, end, 2.5 * end)[-1] > 1.1


def test_the_first_call_grows_too():
    model = KStoNetRegressor(random_state=0).fit(*rows())
    for end in (END, -END):
        found = widths(model, end, 2 * end)
        assert (np.diff(found) > -0.04).all()  # several kernels together dip a little here or there
        assert found[-1] > 1.5


def test_noise_that_depends_on_x_does_not_shrink_intervals_outside():
    """Noise that falls towards the end of the data: beyond it the distance counts."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(2 * x[:, 0]) + np.exp(-1.5 - 0.8 * x[:, 0]) * rng.normal(size=400)
    model = KStoNetRegressor(residuals="local", random_state=0).fit(x, y)
    assert model.trained_.calibration.local is not None
    inside = np.diff(model.predict_interval([[-1.9], [1.9]], 0.9))[:, 0]
    assert inside[0] > 5 * inside[1]
    assert widths(model, 2.0, 5.0)[-1] > 1.2


def test_predictions_far_away_stay_near_the_range_of_the_targets():
    """Kernels of a distance learn nothing there; those of products go on, which is what they are taken for."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    y = X[:, 0] ** 3 + X[:, 1]
    low, high = y.min() - 0.25 * np.ptp(y), y.max() + 0.25 * np.ptp(y)
    far = np.array([[8.0, 8.0], [-9.0, 9.0]])
    wide = {"gamma": 1e-3, "C": 1e6, "loss": "squared", "residuals": "crossfit", "hidden_layer_sizes": (4,)}
    model = KStoNetRegressor(kernel="rbf", **FAST | wide).fit(X, y)
    np.testing.assert_allclose(model.predict(far), [high, low])
    np.testing.assert_allclose(model.predict_dist(far).mean, [high, low])
    np.testing.assert_array_equal(model.predict_gradient(far), 0.0)
    assert (np.diff(model.predict_interval(far)) > np.diff(model.predict_interval(X)).max()).all()
    assert np.abs(KStoNetRegressor(kernel="linear", **FAST).fit(X, X[:, 0]).predict(far) - far[:, 0]).max() < 1.5
