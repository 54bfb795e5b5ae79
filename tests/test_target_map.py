"""Maps of targets: against their definition, finite differences and closed forms."""

import numpy as np
import pytest

from kstonet.target_map import MAPS, TargetMap

RNG = np.random.default_rng(0)
Y = np.concatenate([[0.0, 0.0], RNG.lognormal(1.0, 0.8, size=200)])
each_map = pytest.mark.parametrize("kind", MAPS)


@each_map
def test_numbers_come_back_and_keep_their_order(kind):
    own = TargetMap.of(kind, Y)
    beyond = np.sort(np.concatenate([Y, Y.max() * np.array([1.0, 2.0, 10.0])]))
    z = own.forward(beyond)
    assert (np.diff(z) >= 0).all()
    np.testing.assert_allclose(own.backward(z), beyond, rtol=1e-12, atol=1e-12)
    assert own.spread == pytest.approx(Y.std())


def test_the_definitions():
    root, logarithm = (TargetMap.of(kind, Y) for kind in ("sqrt", "log"))
    np.testing.assert_allclose(root.forward(Y), np.sqrt(Y))
    np.testing.assert_allclose(logarithm.forward(Y), np.log(Y + 0.1 * Y.mean()))


@each_map
def test_nothing_is_negative(kind):
    own = TargetMap.of(kind, Y)
    np.testing.assert_array_equal(own.backward(np.array([-np.inf, -100.0, own.forward(np.zeros(1))[0]])), 0.0)
    with pytest.raises(ValueError, match=f"target_transform='{kind}' is for targets that are never negative, and the smallest"):
        TargetMap.of(kind, Y - 1.0)


@each_map
def test_beyond_the_largest_target_the_inverse_is_its_tangent(kind):
    own = TargetMap.of(kind, Y)
    end = own.forward(np.array([Y.max()]))[0]
    z = end + np.array([0.0, 1.0, 2.0, 3.0])
    steps = np.diff(own.backward(z))
    np.testing.assert_allclose(steps, steps[0])
    before = own.backward(np.array([end - 1e-6]))
    assert (Y.max() - before) / 1e-6 == pytest.approx(steps[0], rel=1e-5)


@each_map
@pytest.mark.parametrize("error", [0.0, 0.4])
def test_slopes_are_those_of_finite_differences(kind, error):
    own = TargetMap.of(kind, Y).with_error(error)
    z = own.forward(np.array([0.3, 1.0, Y.max(), 2 * Y.max()])) + 0.01
    for value, slope in ((own.backward, own.slope), (own.mean, own.mean_slope)):
        numeric = (value(z + 1e-6) - value(z - 1e-6)) / 2e-6
        np.testing.assert_allclose(slope(z), numeric, rtol=1e-5, atol=1e-6)


def test_means_are_those_of_normal_errors():
    # z² + σ² and exp(z + σ²/2) less the offset, where neither zero nor the largest target is near
    z, error = np.array([1.5]), 0.2
    root = TargetMap("sqrt", 1.0, 1e6, 1.0, error)
    np.testing.assert_allclose(root.mean(z), z**2 + error**2, rtol=1e-7)
    logarithm = TargetMap("log", 0.1, 1e6, 1.0, error)
    np.testing.assert_allclose(logarithm.mean(z), np.exp(z + error**2 / 2) - 0.1, rtol=1e-3)


@each_map
@pytest.mark.parametrize("error", [0.0, 0.5])
def test_the_inverse_of_the_mean(kind, error):
    own = TargetMap.of(kind, Y).with_error(error)
    z = np.linspace(own.forward(np.ones(1))[0], own.forward(np.array([2 * Y.max()]))[0], 7)
    np.testing.assert_allclose(own.of_mean(own.mean(z)), z, rtol=1e-9)


def test_targets_that_are_all_zero_or_equal():
    for kind in MAPS:
        for constant in (0.0, 3.0):
            own = TargetMap.of(kind, np.full(5, constant))
            np.testing.assert_allclose(own.backward(own.forward(np.full(5, constant))), constant, atol=1e-12)
