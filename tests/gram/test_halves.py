"""Cholesky factors and inverses by halves, against NumPy's."""

import numpy as np
import pytest

from kstonet.gram.halves import (
    CholeskyFactor,
    half_of_square,
    half_times,
    mirrored,
    upper_blocks,
    with_products,
    with_squares,
)


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


@pytest.mark.parametrize(("dtype", "rtol"), [(np.float64, 1e-12), (np.float32, 1e-4)])
def test_products_of_halves_are_those_of_the_whole_matrices(dtype, rtol):
    rng = np.random.default_rng(0)
    A, B, C = (rng.normal(size=shape).astype(dtype) for shape in ((150, 150), (150, 3), (150, 3)))
    S = (A + A.T).astype(dtype)

    def upper():
        return np.triu(S)  # what is below must not matter

    def same(found, expected):
        np.testing.assert_allclose(np.triu(found), np.triu(expected), rtol=rtol, atol=10 * rtol)
        assert found.dtype == dtype

    np.testing.assert_allclose(half_times(upper(), B), S @ B, rtol=rtol, atol=10 * rtol)
    same(half_of_square(A), A @ A.T)
    same(with_squares(upper(), B, times=0.5, squares=-2.0), 0.5 * S - 2.0 * B @ B.T)
    same(with_products(upper(), B, C, products=-0.5), S - 0.5 * (B @ C.T + C @ B.T))
    overwritten = upper()
    assert np.shares_memory(with_squares(overwritten, B), overwritten)
