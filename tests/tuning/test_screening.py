import numpy as np
import pytest
from sklearn.svm import SVR

from kstonet.gram import DenseGram, make_kernel
from kstonet.tuning import screening
from kstonet.tuning.screening import svr_errors

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]]) + 0.2 * RNG.normal(size=(120, 2))
Y = (Y - Y.mean(axis=0)) / Y.std(axis=0)
FIT, LOOK = slice(0, 80), slice(80, 120)
C = (0.5, 5.0, 50.0)
EPSILON = 0.05
KERNEL = make_kernel("rbf", X, gamma=0.3)


def oracle(weights=None, look_weights=None):
    """Mean squared errors of scikit-learn's SVR for every C."""
    errors = []
    for value in C:
        predicted = np.column_stack(
            [
                SVR(gamma=0.3, C=value, epsilon=EPSILON, tol=1e-8).fit(X[FIT], y, sample_weight=weights).predict(X[LOOK])
                for y in Y[FIT].T
            ]
        )
        errors.append(np.average(((predicted - Y[LOOK]) ** 2).mean(axis=1), weights=look_weights))
    return np.array(errors)


def ours(weights=None, look_weights=None):
    return svr_errors(DenseGram(X[FIT], KERNEL), (Y[FIT], weights), (X[LOOK], Y[LOOK], look_weights), C, EPSILON)


@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_scikit_learn(weighted, monkeypatch):
    """A relative gap g of a problem of value P leaves |f - f*|² <= 2gP in the kernel's norm: f differs by √(2gP) at most."""
    weights = RNG.uniform(0.2, 2.0, size=80) if weighted else None
    look_weights = RNG.uniform(0.0, 2.0, size=40) if weighted else None
    expected = oracle(weights, look_weights)
    monkeypatch.setattr(screening, "TOLERANCE", 1e-9)  # that of a ranking is too loose for a comparison
    monkeypatch.setattr(screening, "MAX_ITER", 5000)
    # P <= C·Σw|y|: the value of the constant zero; tenfold for scikit-learn's own tolerance
    value = np.array(C) * (np.abs(Y[FIT]) * (1.0 if weights is None else weights[:, None])).sum(axis=0).max()
    apart = np.sqrt(2 * 1e-9 * value)
    bound = 2 * np.sqrt(expected) * apart + apart**2
    assert (np.abs(ours(weights, look_weights) - expected) < 10 * bound).all()


def test_the_default_tolerance_ranks():
    errors, expected = ours(), oracle()
    assert errors.argmin() == expected.argmin()
    np.testing.assert_allclose(errors, expected, rtol=0.05)


def test_several_targets_are_averaged():
    each = [
        svr_errors(DenseGram(X[FIT], KERNEL), (Y[FIT, j : j + 1], None), (X[LOOK], Y[LOOK, j : j + 1], None), C, EPSILON)
        for j in (0, 1)
    ]
    np.testing.assert_allclose(ours(), np.mean(each, axis=0), rtol=0.02)


def test_a_hard_c_is_ranked_without_a_warning(recwarn, monkeypatch):
    monkeypatch.setattr(screening, "MAX_ITER", 5)  # the solver is too good for data of a test's size
    assert np.isfinite(ours()).all()
    assert not recwarn.list
