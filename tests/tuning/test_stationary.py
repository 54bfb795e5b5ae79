import numpy as np
import pytest

from kstonet.gram import make_kernel
from kstonet.tuning.stationary import FAMILIES


@pytest.mark.parametrize("name", FAMILIES)
def test_the_kernel_object_has_the_same_values(name):
    X = np.random.default_rng(0).normal(size=(20, 3))
    scales = np.array([0.5, 1.0, 2.0])
    family = FAMILIES[name]
    np.testing.assert_allclose(family.kernel(scales)(X, X), family.matrix(X, scales), atol=1e-7)
    assert type(family.kernel(scales)) is type(make_kernel(name, X))


@pytest.mark.parametrize("name", FAMILIES)
def test_slopes_are_those_of_finite_differences(name):
    d = np.array([0.1, 0.5, 2.0])
    value, step = FAMILIES[name].value_and_slope, 1e-6
    numeric = (value(d + step)[0] - value(d - step)[0]) / (2 * step)
    np.testing.assert_allclose(value(d)[1], numeric, rtol=1e-6)
    assert np.isfinite(value(np.zeros(1))[1]).all()


@pytest.mark.parametrize("name", FAMILIES)
def test_widths_scale_with_the_features(name):
    X = np.random.default_rng(0).normal(size=(50, 4))
    family = FAMILIES[name]
    np.testing.assert_allclose(family.width(X, np.full(4, 3.0)), 3.0 * family.width(X, np.ones(4)))
    assert family.width(np.zeros((10, 2)), np.ones(2)) == 1.0
