"""The simulated examples of the paper's Section 3, drawn anew for every seed.

Every draw comes from one :class:`numpy.random.Generator` in a fixed order, so a seed names a data set. The inputs of all three
examples are standard Gaussian with mutual correlation 0.5.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from kstonet._checks import whole_number
from kstonet.estimators.multi_target_svr import MultiTargetSVR


def _generator(random_state: Any) -> np.random.Generator:
    """The generator that ``random_state`` names; an int is the seed of :func:`numpy.random.default_rng`."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(np.iinfo(np.int32).max))
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"random_state={random_state!r} is not valid ({error}); give None, a non-negative int, "
            "a numpy Generator or a RandomState."
        ) from error


def _correlated_inputs(rng: np.random.Generator, n: int, p: int) -> np.ndarray:
    """x_i = (e + z_i)/√2 with e shared by the features of one row: variance 1, correlation 0.5."""
    return np.asarray((rng.normal(size=(n, 1)) + rng.normal(size=(n, p))) / np.sqrt(2))


def make_measurement_error(n_samples: int = 500, *, random_state: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """Nonlinear regression on five correlated inputs that are observed with error (Section 3.2 of the paper).

    The response is 5·X₂/(1 + X₁²) + 5·sin(X₃·X₄) + 2·X₅ + N(0, 1); the inputs that are returned carry a further error of
    standard deviation 0.5 each (the paper writes N(0, 0.5), its code uses 0.5 as the standard deviation). The paper trains
    on 500 rows and tests on 500: draw 1,000 and split.

    Parameters
    ----------
    n_samples : int, default=500
        Number of rows.
    random_state : int, Generator, RandomState or None
        Source of random numbers. An int gives the same rows in every call.

    Returns
    -------
    X : ndarray of shape (n_samples, 5)
        The inputs as observed, with their error.
    y : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from kstonet.datasets import make_measurement_error
    >>> X, y = make_measurement_error(1000, random_state=0)
    >>> X_train, X_test, y_train, y_test = X[:500], X[500:], y[:500], y[500:]
    >>> X_train.shape
    (500, 5)
    """
    n = whole_number("n_samples", n_samples, 1)
    rng = _generator(random_state)
    Z = _correlated_inputs(rng, n, 5)
    y = 5 * Z[:, 1] / (1 + Z[:, 0] ** 2) + 5 * np.sin(Z[:, 2] * Z[:, 3]) + 2 * Z[:, 4] + rng.normal(size=n)
    return Z + 0.5 * rng.normal(size=Z.shape), y


def make_full_row_rank(
    n_samples: int = 1000, *, n_features: int = 1000, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of a two-hidden-layer network p-5-5-1 (Section 3.1 of the paper, eq. (roweq)).

    y = w₃ tanh(w₂ tanh(w₁ x)) + N(0, 1), every weight drawn from {-2, -1, 1, 2}. With 1,000 features the matrix of 1,000
    training rows has full row rank, so that gradient descent on the true network has no local traps. The paper trains on
    1,000 rows and tests on 1,000 more from the same weights: draw 2,000 in one call and split.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    n_features : int, default=1000
        Number of features.
    random_state : int, Generator, RandomState or None
        Source of random numbers. An int gives the same weights and rows in every call; the weights depend on it and on
        ``n_features`` only.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)

    Examples
    --------
    >>> from kstonet.datasets import make_full_row_rank
    >>> X, y = make_full_row_rank(2000, random_state=0)
    >>> X_train, X_test, y_train, y_test = X[:1000], X[1000:], y[:1000], y[1000:]
    >>> X_train.shape
    (1000, 1000)
    """
    n = whole_number("n_samples", n_samples, 1)
    p = whole_number("n_features", n_features, 1)
    rng = _generator(random_state)
    w1, w2, w3 = (rng.choice([-2.0, -1.0, 1.0, 2.0], size=shape) for shape in [(5, p), (5, 5), (5,)])
    X = _correlated_inputs(rng, n, p)
    return X, np.tanh(np.tanh(X @ w1.T) @ w2.T) @ w3 + rng.normal(size=n)


def make_kernel_network(
    n_samples: int = 5000, n_test: int = 5000, *, tanh: bool = True, random_state: Any = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a kernel-expanded network with five hidden units (the simulated KNN data of Section 3.1 of the paper).

    y = w₂ tanh(w₁ k(x) + b₁) + b₂ + N(0, 1), where k(x) holds the RBF kernel values of x against the training rows with
    γ = 1/(p·Var x), w₁ and b₁ are the dual parameters of five support vector regressions (C = 5, ε = 0.01) of N(0, 1)
    responses on the training rows, and w₂ and b₂ are N(0, 1). The network is made of its training rows, so the function
    returns the training and the test rows separately.

    Parameters
    ----------
    n_samples : int, default=5000
        Number of training rows, at least 2.
    n_test : int, default=5000
        Number of test rows of the same network. The training rows do not depend on it.
    tanh : bool, default=True
        Whether the network has the activation of the paper. The generator in the authors' published code has none, so that its
        response is linear in the outputs of the regressions; False reproduces it.
    random_state : int, Generator, RandomState or None
        Source of random numbers. An int gives the same rows in every call.

    Returns
    -------
    X_train : ndarray of shape (n_samples, 5)
    y_train : ndarray of shape (n_samples,)
    X_test : ndarray of shape (n_test, 5)
    y_test : ndarray of shape (n_test,)

    Notes ----- The five regressions are solved together to a relative duality gap of 1e-5, which takes some seconds for 5,000
    rows. The remaining error in y is two orders of magnitude smaller than the noise. Regressions of that many random responses
    are nearly constant: at 5,000 rows the signal of this network is small compared with the noise, as in the paper, where a
    training error of 1 is the goal.

    Examples
    --------
    >>> from kstonet.datasets import make_kernel_network
    >>> X_train, y_train, X_test, y_test = make_kernel_network(200, 100, random_state=0)
    >>> X_train.shape, y_test.shape
    ((200, 5), (100,))
    """
    n = whole_number("n_samples", n_samples, 2)
    m = whole_number("n_test", n_test, 1)
    rng = _generator(random_state)
    w2, b2 = rng.normal(size=5), rng.normal()
    X_train = _correlated_inputs(rng, n, 5)
    responses = rng.normal(size=(n, 5))
    noise_train = rng.normal(size=n)  # drawn before the test rows, on which the training rows must not depend
    X_test = _correlated_inputs(rng, m, 5)
    noise_test = rng.normal(size=m)
    # The gap of 1e-5 instead of the default 1e-3: the data should not depend on where a solver happens to stop.
    units = MultiTargetSVR(C=5.0, epsilon=0.01, gamma="scale", tol=1e-5, sparse=False).fit(X_train, responses)

    def response(X: np.ndarray) -> np.ndarray:
        hidden = units.predict(X)
        return np.asarray((np.tanh(hidden) if tanh else hidden) @ w2 + b2)

    return X_train, response(X_train) + noise_train, X_test, response(X_test) + noise_test
