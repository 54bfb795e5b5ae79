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


def test_features_of_two_values_are_like_others():
    """The sums of absolute differences, by brute force, and what a matrix of slopes makes of them."""
    rng = np.random.default_rng(0)
    colours = np.eye(4)[rng.integers(0, 4, 300)]
    X = np.column_stack([rng.normal(size=300), colours - colours.mean(axis=0), np.ones(300), rng.normal(size=300)])
    scales, family = rng.uniform(0.1, 3.0, size=7), FAMILIES["laplacian"]
    each = np.abs((X * scales)[:, None] - X * scales)
    np.testing.assert_allclose(family.distances(X, scales), each.sum(axis=2), atol=1e-12)
    G = rng.normal(size=(300, 300))
    G += G.T
    np.testing.assert_allclose(family.pull(np.triu(G), X * scales), np.einsum("ij,ijf->f", G, each), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(family.pull(np.triu(G), X[:, 1:5]), np.einsum("ij,ijf->f", G, each[:, :, 1:5] / scales[1:5]))
