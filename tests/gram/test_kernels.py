import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.gaussian_process.kernels import Matern as SklearnMatern
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel

from kstonet.gram import KERNEL_NAMES, DenseGram, make_kernel
from kstonet.gram.kernels import squared_distances

RNG = np.random.default_rng(0)
X = RNG.normal(size=(30, 4))
Y = RNG.normal(size=(20, 4))
GAMMA = 0.3


@pytest.mark.parametrize(
    ("name", "oracle"),
    [
        ("rbf", lambda A, B: rbf_kernel(A, B, gamma=GAMMA)),
        ("laplacian", lambda A, B: laplacian_kernel(A, B, gamma=GAMMA)),
        ("matern12", lambda A, B: SklearnMatern(1 / np.sqrt(2 * GAMMA), nu=0.5)(A, B)),
        ("matern32", lambda A, B: SklearnMatern(1 / np.sqrt(2 * GAMMA), nu=1.5)(A, B)),
        ("matern52", lambda A, B: SklearnMatern(1 / np.sqrt(2 * GAMMA), nu=2.5)(A, B)),
        ("poly", lambda A, B: polynomial_kernel(A, B, degree=3, gamma=GAMMA, coef0=1.0)),
        ("linear", lambda A, B: A @ B.T),
    ],
)
def test_against_scikit_learn(name, oracle):
    kernel = make_kernel(name, X, gamma=GAMMA)
    np.testing.assert_allclose(kernel(X, Y), oracle(X, Y), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    ("norm", "exponent", "same"),
    [
        (2, 2.0, lambda A, B: rbf_kernel(A, B, gamma=GAMMA)),
        (2, 1.0, lambda A, B: SklearnMatern(1 / np.sqrt(GAMMA), nu=0.5)(A, B)),
        (1, 1.0, lambda A, B: laplacian_kernel(A, B, gamma=np.sqrt(GAMMA))),
        (2, 0.7, lambda A, B: np.exp(-((np.sqrt(GAMMA) * cdist(A, B)) ** 0.7))),
        (1, 0.4, lambda A, B: np.exp(-((np.sqrt(GAMMA) * cdist(A, B, "cityblock")) ** 0.4))),
    ],
)
def test_the_exponential_family(norm, exponent, same):
    kernel = make_kernel("exponential", X, gamma=GAMMA, norm=norm, exponent=exponent)
    np.testing.assert_allclose(kernel(X, Y), same(X, Y), rtol=1e-12)
    assert DenseGram(X, kernel).diagonal().tolist() == [1.0] * len(X)
    assert np.linalg.eigvalsh(kernel(X, X)).min() > -1e-7


@pytest.mark.parametrize(("norm", "exponent"), [(1, 1.5), (2, 2.1), (2, 0.0), (3, 1.0), (2, np.nan)])
def test_exponential_kernels_that_are_not_positive_are_refused(norm, exponent):
    with pytest.raises(ValueError, match=rf"norm={norm}, exponent={exponent}: the exponential kernel needs norm 1 or 2"):
        make_kernel("exponential", X, norm=norm, exponent=exponent)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_arc_cosine_is_the_expectation_over_random_features(degree):
    """k_n(x, y) = 2 E[(w·x)^n (w·y)^n 1(w·x > 0) 1(w·y > 0)], w ~ N(0, I) (Cho & Saul)."""
    kernel = make_kernel(f"arccos{degree}", X)
    W = np.random.default_rng(1).normal(size=(4, 400_000))
    A, B = X[:2] @ W, Y[:2] @ W
    a, b = np.where(A > 0, A**degree, 0.0), np.where(B > 0, B**degree, 0.0)
    draws = 2 * a[:, None, :] * b[None, :, :]
    error = draws.std(axis=-1) / np.sqrt(W.shape[1])
    # 4 entries at 5 standard errors: a false alarm in fewer than 3e-6 of runs, and the seed is fixed
    assert (np.abs(kernel(X[:2], Y[:2]) - draws.mean(axis=-1)) < 5 * error + 1e-9).all()


def test_one_length_scale_per_feature():
    lengths = np.array([0.5, 1.0, 2.0, 10.0])
    kernel = make_kernel("rbf", X, gamma=1.0, length_scale=lengths)
    expected = np.exp(-(((X[:, None] - Y[None]) / lengths) ** 2).sum(-1))
    np.testing.assert_allclose(kernel(X, Y), expected, rtol=1e-11)


@pytest.mark.parametrize("name", [name for name in KERNEL_NAMES if name != "precomputed"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_gram_is_symmetric_positive_with_exact_diagonal(name, dtype):
    data = np.vstack([X, X[:5], np.zeros((2, 4))])  # duplicates and the origin
    kernel = make_kernel(name, data)
    gram = DenseGram(data, kernel, dtype=dtype)
    K = gram.product(np.eye(len(data)))
    assert (K == K.T).all()
    np.testing.assert_array_equal(gram.diagonal(), kernel.diagonal(data).astype(dtype))
    tolerance = 1e-6 if dtype == "float32" else 1e-7  # arccos of a rounded cosine near 1 is good to 1e-8
    assert np.linalg.eigvalsh(K).min() > -tolerance * np.abs(K).sum(0).max()


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e6])
def test_distances_are_never_negative_and_survive_an_offset(offset):
    data = np.vstack([X, X]) + offset
    D = squared_distances(data, data)
    assert (D >= 0).all()
    exact = ((data[:, None] - data[None]) ** 2).sum(-1)
    np.testing.assert_allclose(D, exact, atol=1e-9)


def test_gamma_rules():
    n, p = X.shape
    assert make_kernel("rbf", X, gamma="scale").gamma == pytest.approx(1 / (p * X.var()))
    assert make_kernel("rbf", X, gamma="auto").gamma == 1 / p
    pairs = ((X[:, None] - X[None]) ** 2).sum(-1)[np.triu_indices(n, 1)]
    assert make_kernel("rbf", X, gamma="median").gamma == pytest.approx(1 / np.median(pairs))
    assert make_kernel("rbf", np.ones((5, 2)), gamma="scale").gamma == 1.0
    assert make_kernel("rbf", np.ones((5, 2)), gamma="median").gamma == 1.0
    assert make_kernel("rbf", X[:1], gamma="median").gamma == 1.0


def test_weights_in_gamma_are_repetitions():
    weights = np.tile([1.0, 2.0, 0.0], 10)
    repeated = np.repeat(X, weights.astype(int), axis=0)
    weighted = make_kernel("rbf", X, sample_weight=weights)
    assert weighted.gamma == pytest.approx(make_kernel("rbf", repeated).gamma)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"kernel": "rfb"}, "kernel='rfb' is unknown"),
        ({"kernel": "rbf", "gamma": -1.0}, "gamma=-1.0"),
        ({"kernel": "rbf", "gamma": "wide"}, "gamma='wide'"),
        ({"kernel": "rbf", "gamma": np.nan}, "gamma=nan"),
        ({"kernel": "poly", "coef0": -1.0}, "coef0=-1.0"),
        ({"kernel": "rbf", "length_scale": [1.0]}, "length_scale must hold 4"),
        ({"kernel": "rbf", "length_scale": [1.0, 0.0, 1.0, 1.0]}, "length_scale must hold 4"),
    ],
)
def test_bad_arguments_are_named(arguments, message):
    kernel = arguments.pop("kernel")
    with pytest.raises(ValueError, match=message):
        make_kernel(kernel, X, **arguments)


def test_callable_kernels_are_checked():
    good = make_kernel(lambda A, B: A @ B.T + 1.0, X)
    np.testing.assert_allclose(good.diagonal(X), (X * X).sum(1) + 1.0)
    with pytest.raises(ValueError, match="must return k"):
        make_kernel(lambda A, B: A[:1] @ B.T, X)(X, Y)


@pytest.mark.parametrize("rows", [slice(None), slice(2), slice(0)])
def test_features_of_two_values_have_the_same_distances(rows):
    """They are a matrix product in the 1-norm; here mixed with others, constant ones, and ones of two values on one side."""
    rng = np.random.default_rng(0)
    A = np.column_stack([np.eye(3)[rng.integers(0, 3, 30)] - 0.3, rng.normal(size=30), np.ones(30)])
    B = np.column_stack([np.eye(3)[rng.integers(0, 3, 20)] - 0.3, rng.normal(size=20), np.ones(20)])
    B[3:5, 1] = 7.0, -2.0
    expected = np.exp(-GAMMA * cdist(A, B[rows], "cityblock"))
    np.testing.assert_allclose(make_kernel("laplacian", A, gamma=GAMMA)(A, B[rows]), expected, rtol=1e-13, atol=1e-15)
    np.testing.assert_allclose(
        make_kernel("laplacian", A, gamma=GAMMA)(A, A[:5]), np.exp(-GAMMA * cdist(A, A[:5], "cityblock"))
    )
