"""Gradients of expansions against finite differences, and derivatives of profiles."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from kstonet.gram import make_kernel
from kstonet.gram.kernels import Stationary

RNG = np.random.default_rng(0)
BASIS, X = RNG.normal([0.0, 5.0, -2.0], size=(25, 3)), RNG.normal([0.0, 5.0, -2.0], size=(6, 3))
COEF = RNG.normal(size=(2, 25))
KERNELS = {
    "rbf": {},
    "matern12": {},
    "matern32": {},
    "matern52": {},
    "laplacian": {},
    "poly": {},
    "poly of degree 1": {"kernel": "poly", "degree": 1},
    "linear": {},
    "arccos0": {},
    "arccos1": {},
    "arccos2": {},
    "tanimoto": {},
    "tanimoto of power 1": {"kernel": "tanimoto", "exponent": 1},
    "exponential": {},
    "exponential like rbf": {"kernel": "exponential", "norm": 2, "exponent": 2.0},
    "exponential, rough": {"kernel": "exponential", "norm": 2, "exponent": 0.6},
    "exponential, absolute": {"kernel": "exponential", "norm": 1, "exponent": 1.0},
    "exponential, absolute and rough": {"kernel": "exponential", "norm": 1, "exponent": 0.7},
}


def kernel_of(name, **options):
    given = {"kernel": name, "gamma": 0.4} | KERNELS[name] | options
    return make_kernel(given.pop("kernel"), BASIS, **given)


def expansion(kernel, x, unit):
    return float((kernel(x[None], BASIS) @ COEF[unit])[0])


@pytest.mark.parametrize("length_scale", [None, (0.5, 2.0, 3.0)])
@pytest.mark.parametrize("name", KERNELS)
def test_gradients_are_those_of_finite_differences(name, length_scale, monkeypatch):
    monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * 4 * len(BASIS) * 4)  # four rows at a time
    kernel = kernel_of(name, length_scale=length_scale)
    gradients = kernel.gradient(X, BASIS, COEF)
    assert gradients.shape == (6, 2, 3)
    for i, x in enumerate(X):
        for unit in range(2):
            expected = approx_fprime(x, lambda at, unit=unit: expansion(kernel, at, unit), 1e-7)
            np.testing.assert_allclose(gradients[i, unit], expected, rtol=1e-4, atol=1e-5 * np.abs(gradients).max())


@pytest.mark.parametrize("name", KERNELS)
def test_a_basis_row_has_no_say_at_its_own_place_if_the_kernel_has_a_kink_there(name):
    kernel = kernel_of(name)
    at = BASIS[4:5]
    gradient = kernel.gradient(at, BASIS, COEF)
    assert np.isfinite(gradient).all()
    if isinstance(kernel, Stationary):  # smooth or not: the gradient of k(x, y) with respect to x is zero, or left out, at y
        others = np.arange(len(BASIS)) != 4
        np.testing.assert_allclose(gradient, kernel.gradient(at, BASIS[others], COEF[:, others]), atol=1e-12)


def test_gradients_survive_an_offset():
    kernel = kernel_of("matern32")
    expected = kernel.gradient(X, BASIS, COEF)
    np.testing.assert_allclose(kernel.gradient(X + 1e5, BASIS + 1e5, COEF), expected, atol=1e-8)


def test_an_empty_expansion_is_flat():
    assert (kernel_of("rbf").gradient(X, BASIS[:0], COEF[:, :0]) == np.zeros((6, 2, 3))).all()


def test_kernels_without_a_gradient_say_so():
    with pytest.raises(TypeError, match=r"the gradient of the kernel UserKernel.* is not known"):
        make_kernel(lambda X, Y: X @ Y.T, X).gradient(X, BASIS, COEF)
    with pytest.raises(TypeError, match="no features to differentiate by"):
        make_kernel("precomputed", X).gradient(X, BASIS, COEF)


@pytest.mark.parametrize("name", KERNELS)
def test_coefficients_may_differ_from_row_to_row(name, monkeypatch):
    monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * 4 * len(BASIS) * 4)
    kernel, coef = kernel_of(name), RNG.normal(size=(len(X), 2, len(BASIS)))
    expected = [kernel.gradient(X[i : i + 1], BASIS, coef[i])[0] for i in range(len(X))]
    np.testing.assert_allclose(kernel.gradient(X, BASIS, coef), expected, rtol=1e-10, atol=1e-12)


def test_the_origin_has_the_slope_halfway_between_its_sides():
    kernel = make_kernel("arccos1", X)
    origin, step = np.zeros((1, 3)), 1e-6 * np.eye(3)
    central = (kernel(step, BASIS) - kernel(-step, BASIS)) @ COEF.T / 2e-6
    np.testing.assert_allclose(kernel.gradient(origin, BASIS, COEF)[0], central.T, atol=1e-5)


@pytest.mark.parametrize("name", [name for name in KERNELS if isinstance(kernel_of(name), Stationary)])
def test_profiles_and_their_derivatives(name):
    kernel = kernel_of(name)
    s = np.array([0.0, 1e-3, 0.1, 1.0, 7.0])
    values, slopes = kernel.slopes(s.copy())
    np.testing.assert_allclose(values, kernel.profile(s.copy()), rtol=1e-14)
    step = 1e-6 * s[1:]
    differences = (kernel.profile(s[1:] + step) - kernel.profile(s[1:] - step)) / (2 * step)
    np.testing.assert_allclose(slopes[1:], differences, rtol=1e-5)
    assert np.isfinite(slopes).all()
    assert values[0] == 1.0
