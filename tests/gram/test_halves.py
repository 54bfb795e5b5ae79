"""Cholesky factors and inverses by halves, against NumPy's."""

import numpy as np
import pytest

from kstonet.gram.halves import CholeskyFactor, mirrored, upper_blocks


@pytest.mark.parametrize(("dtype", "atol"), [(np.float64, 1e-9), (np.float32, 1e-4)])
@pytest.mark.parametrize("n", [1, 5, 64, 129, 300])
def test_inverse_determinant_and_solutions(n, dtype, atol):
    A = np.random.default_rng(0).normal(size=(n, n))
    K, B = (A @ A.T / n).astype(dtype), A[:, :2].astype(dtype)
    inverse = np.linalg.inv(K.astype(float) + 0.5 * np.eye(n))
    factor = CholeskyFactor.of(K, 0.5)
    np.testing.assert_allclose(factor.log_det(), -np.linalg.slogdet(inverse)[1], rtol=1e-4)
    np.testing.assert_allclose(factor.solve(B), inverse @ B, atol=10 * atol)
    found = factor.inverse()
    assert found.dtype == dtype
    np.testing.assert_allclose(mirrored(found), inverse, atol=atol)
    np.testing.assert_allclose(CholeskyFactor.of(K, 0.5).inverse_diagonal(), np.diagonal(inverse), atol=atol)


def test_a_singular_matrix_has_no_factor():
    assert CholeskyFactor.of(np.ones((4, 4)), 0.0) is None


@pytest.mark.parametrize("n", [3, 128, 260])
def test_blocks_cover_the_upper_half_once(n):
    counts = np.zeros((n, n))
    for rows, columns in upper_blocks(n):
        counts[rows, columns] += 1
    assert (np.triu(counts) == np.triu(np.ones((n, n)))).all()
