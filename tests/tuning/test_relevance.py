import numpy as np
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.stats import multivariate_normal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.metrics.pairwise import laplacian_kernel

from kstonet.gram import KERNEL_NAMES, make_kernel
from kstonet.tuning import relevance
from kstonet.tuning.relevance import PRIOR, Pairs, evidence_kernels, evidence_length_scales, negative_evidence, reference_kernel

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1]]) + 0.1 * RNG.normal(size=(30, 2))
PARAMETERS = np.array([0.3, -0.2, 1.1, 0.4, -2.0])  # logarithms: three scales, amplitude, noise
START = 0.5
KERNELS = [name for name in KERNEL_NAMES if name in evidence_kernels()]


def pairs(kernel):
    return Pairs.of(X, reference_kernel(kernel).power)


@pytest.mark.parametrize("kernel", KERNELS)
def test_gradient_is_that_of_finite_differences(kernel):
    def value(parameters):
        return negative_evidence(parameters, pairs(kernel), Y, reference_kernel(kernel), START)[0]

    gradient = negative_evidence(PARAMETERS, pairs(kernel), Y, reference_kernel(kernel), START)[1]
    np.testing.assert_allclose(gradient, approx_fprime(PARAMETERS, value, 1e-6), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    ("kernel", "oracle"),
    [("rbf", RBF), ("matern32", lambda scales: Matern(scales, nu=1.5)), ("matern52", lambda scales: Matern(scales, nu=2.5))],
)
def test_value_is_that_of_scikit_learn(kernel, oracle):
    scales, amplitude, noise = np.exp(PARAMETERS[:3]), *np.exp(PARAMETERS[3:])
    process = GaussianProcessRegressor(ConstantKernel(amplitude) * oracle(scales) + WhiteKernel(noise), alpha=0, optimizer=None)
    expected = process.fit(X, Y).log_marginal_likelihood()
    assert evidence(kernel) == pytest.approx(expected, rel=1e-9)


def test_value_of_the_laplacian_kernel_is_the_normal_density():
    scales, amplitude, noise = np.exp(PARAMETERS[:3]), *np.exp(PARAMETERS[3:])
    covariance = amplitude * laplacian_kernel(X / scales, gamma=1.0) + noise * np.eye(len(X))
    expected = multivariate_normal(cov=covariance).logpdf(Y.T).sum()
    assert evidence("laplacian") == pytest.approx(expected, rel=1e-9)


def evidence(kernel):
    """Without the prior and with the constant of the normal density."""
    value = -negative_evidence(PARAMETERS, pairs(kernel), Y, reference_kernel(kernel), START)[0]
    return value + 0.5 * PRIOR**2 * ((PARAMETERS[:3] - START) ** 2).sum() - 0.5 * Y.size * np.log(2 * np.pi)


@pytest.mark.parametrize("kernel", KERNELS)
def test_irrelevant_features_get_long_scales(kernel):
    X = np.random.default_rng(1).normal(size=(150, 5))
    X[:, 4] = 0.0  # a constant feature does no harm
    target = np.sin(2 * X[:, 1]) * X[:, 3]
    scales = evidence_length_scales(X, target[:, None], kernel)
    assert scales[[0, 2]].min() > 3 * scales[[1, 3]].max()
    assert np.isfinite(scales).all()


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_given_gamma_is_the_optimum(kernel):
    """The kernel of a gamma and its scales is the same for every gamma, and no multiple of it has more evidence."""
    one, other = (evidence_length_scales(X, Y, kernel, gamma) for gamma in (1.0, 0.1))
    K = make_kernel(kernel, X, gamma=1.0, length_scale=one)(X, X)
    np.testing.assert_allclose(make_kernel(kernel, X, gamma=0.1, length_scale=other)(X, X), K, rtol=1e-10, atol=1e-8)

    def profiled(factor):
        """Evidence with the prior, over amplitude and noise, of all scales multiplied by a factor."""
        gamma = 1.0 if kernel == "laplacian" else 0.5
        scales = np.log(evidence_length_scales(X, Y, kernel, gamma) * factor)  # gamma of exp(-s) and exp(-s/2)
        start = np.log(3) * (1.0 if kernel == "laplacian" else 0.5)

        def rest(parameters):
            value, gradient = negative_evidence(
                np.append(scales, parameters), pairs(kernel), Y, reference_kernel(kernel), start
            )
            return value, gradient[3:]

        return minimize(rest, [0.0, -2.0], jac=True, bounds=relevance.BOUNDS[1:]).fun

    here = profiled(1.0)
    assert here < min(profiled(0.7), profiled(1.4))


def rows_that_matter(**options):
    """Rows whose features the learned scales depend on."""
    plain = evidence_length_scales(X, Y, "rbf", **options)
    moved = [X + 0.5 * np.outer(np.arange(len(X)) == i, [1.0, 0.0, 0.0]) for i in range(len(X))]
    return [i for i, other in enumerate(moved) if not np.array_equal(evidence_length_scales(other, Y, "rbf", **options), plain)]


def test_many_rows_and_many_features_are_cut(monkeypatch):
    """The limits, 1,000 rows and a quarter of a gigabyte of differences, are lowered to what a test can move row by row."""
    monkeypatch.setattr(relevance, "MOST_ROWS", 20)
    assert len(rows_that_matter()) == 20
    monkeypatch.setattr(relevance, "MOST_DIFFERENCES", 3 * 15**2 // 2 + 1)
    one, same, other = (rows_that_matter(seed=seed) for seed in (3, 3, 4))
    assert one == same != other
    assert len(one) == len(other) == 15
