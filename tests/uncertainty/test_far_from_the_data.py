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
