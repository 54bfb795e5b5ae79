import numpy as np
import pytest
from scipy.linalg import solve
from scipy.linalg.lapack import dpotri

from kstonet._words import readable_bytes
from kstonet.gram import DenseGram, Gram, GramTooLargeError, make_kernel
from kstonet.gram.cholesky import BLOCK, BlockedCholesky, NotPositiveDefiniteError
from kstonet.gram.memory import available_memory
from kstonet.gram.pivoted import LowRankSolver, PivotedCholesky

RNG = np.random.default_rng(3)


def rbf_gram(n, p, **options):
    X = np.random.default_rng(n).normal(size=(n, p))
    return DenseGram(X, make_kernel("rbf", X), **options)


@pytest.mark.parametrize("n", [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 7])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocked_cholesky_solves(n, dtype):
    A = RNG.normal(size=(n, n))
    A = (A @ A.T / n + np.eye(n)).astype(dtype)
    rows = RNG.normal(size=(3, n))
    factor, accuracy = BlockedCholesky(A.copy()), 1e-4 if dtype == np.float32 else 1e-10
    assert np.abs(factor.solve(rows) @ A.astype(np.float64) - rows).max() < accuracy
    for size in {n, n - n // 3, n // BLOCK * BLOCK or n}:
        part, corner = factor.leading(size), A[:size, :size].astype(np.float64)
        assert np.abs(part.solve(rows[:, :size]) @ corner - rows[:, :size]).max() < accuracy
        inverse, failed = dpotri(np.linalg.cholesky(corner).T)
        assert not failed
        for last in {size, size - size // 4, min(size, BLOCK), 1}:
            np.testing.assert_allclose(part.inverse_diagonal(last), np.diagonal(inverse)[-last:], rtol=accuracy)


@pytest.mark.parametrize(("n", "bad"), [(4, 0), (4, 3), (2 * BLOCK, BLOCK + 5), (5 * BLOCK, 5 * BLOCK - 1)])
def test_blocked_cholesky_names_the_first_bad_pivot(n, bad):
    A = np.eye(n)
    A[bad, bad] = -1.0
    with pytest.raises(NotPositiveDefiniteError, match=f"pivot {bad + 1} of {n} "):
        BlockedCholesky(A)


def test_sub_solves_of_a_singular_matrix():
    X = np.repeat(RNG.normal(size=(20, 2)), 10, axis=0)
    gram = DenseGram(X, make_kernel("rbf", X))
    rows = gram.product(RNG.normal(size=(2, 200)))  # in the range of K
    solution = gram.solve_on(np.arange(200), 0.0, rows)
    assert np.abs(gram.product(solution) - rows).max() < 1e-6 * np.abs(rows).max()


@pytest.mark.parametrize(("n", "p", "low_rank"), [(300, 3, False), (2100, 2, True), (2100, 30, False)])
def test_shifted_solver_against_the_direct_inverse(n, p, low_rank):
    gram = rbf_gram(n, p)
    K = gram.product(np.eye(n))
    rows = RNG.normal(size=(3, n))
    solver = gram.shifted(0.05)
    assert isinstance(solver.factor, LowRankSolver) == low_rank
    # low precision or low rank: one correction with the true K must already bring a tenfold gain, three nearly all
    x = solver.solve(rows).astype(float)
    errors = []
    for _ in range(4):
        residual = rows - gram.product(x) - 0.05 * x
        errors.append(np.abs(residual).max())
        x = x + solver.solve(residual)
    assert errors[0] < 0.5
    assert errors[-1] < 1e-6
    np.testing.assert_allclose(x, solve(K + 0.05 * np.eye(n), rows.T, assume_a="pos").T, atol=1e-5)


def test_pivoted_cholesky_knows_what_it_left_out_and_gives_up_on_rough_kernels():
    smooth = rbf_gram(1000, 2)
    K = smooth.product(np.eye(1000))
    pivoted = PivotedCholesky(K, 1e-3)
    left_out = K - pivoted.factor.T @ pivoted.factor
    assert np.trace(left_out) == pytest.approx(pivoted.trace, abs=1e-9)
    assert pivoted.trace <= 1e-3
    assert np.linalg.eigvalsh(left_out).max() <= 1e-3
    rough = rbf_gram(1000, 40)
    assert PivotedCholesky(rough.product(np.eye(1000)), 1e-3).factor is None


def test_cross_comes_in_blocks(monkeypatch):
    monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * 100 * 7)
    X = RNG.normal(size=(100, 3))
    kernel = make_kernel("rbf", X)
    gram = DenseGram(X, kernel)
    np.testing.assert_allclose(gram.product(np.eye(100)), kernel(X, X), atol=1e-12)
    blocks = list(gram.cross(X[:20]))
    assert [rows.stop - rows.start for rows, _ in blocks] == [7, 7, 6]
    np.testing.assert_allclose(np.vstack([values for _, values in blocks]), kernel(X[:20], X))


@pytest.mark.parametrize(
    "X",
    [np.zeros((1, 2)), np.ones((50, 3)), np.repeat(RNG.normal(size=(5, 2)), 20, axis=0)],
    ids=["one row", "constant", "duplicates"],
)
def test_degenerate_data(X):
    gram = DenseGram(X, make_kernel("rbf", X))
    assert isinstance(gram, Gram)
    rows = RNG.normal(size=(2, len(X)))
    x = gram.shifted(0.1).solve(rows)
    np.testing.assert_allclose(gram.product(x) + 0.1 * x, rows, atol=1e-8)


def test_memory_is_estimated_before_it_is_taken():
    X = np.zeros((200_000, 1))
    with pytest.raises(GramTooLargeError, match=r"n=200,000 rows needs 480\.4 GB.*float32.*limit.*max_memory"):
        DenseGram(X, make_kernel("rbf", X))
    with pytest.raises(GramTooLargeError, match=r"limit is 1\.0 MB \(max_memory\)"):
        DenseGram(X[:500], make_kernel("rbf", X), max_memory=1e6)
    assert issubclass(GramTooLargeError, MemoryError)
    assert 0 < available_memory() < 2**50
    assert readable_bytes(12) == "12 bytes"


@pytest.mark.parametrize(("n", "p"), [(500, 4), (2500, 2), (2500, 30)])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_bytes_held_stay_within_the_estimate(n, p, dtype):
    gram = rbf_gram(n, p, dtype=dtype)
    gram.shifted(0.1)
    assert gram.nbytes <= DenseGram.bytes_needed(n, dtype)


def test_precomputed_matrices_are_checked():
    kernel = make_kernel("precomputed", np.eye(3))
    with pytest.raises(ValueError, match="not symmetric"):
        DenseGram(np.triu(np.ones((3, 3))), kernel)
    with pytest.raises(ValueError, match="square"):
        DenseGram(np.ones((3, 2)), kernel)
    indefinite = np.eye(30) - 0.2 * np.ones((30, 30))
    with pytest.raises(ValueError, match=r"not positive semi-definite \(smallest eigenvalue about -5\)"):
        DenseGram(indefinite, kernel)
    with pytest.raises(ValueError, match="not finite"):
        DenseGram(np.full((3, 1), 1e200), make_kernel("poly", np.ones((3, 1)), gamma=1.0))
    singular = np.ones((20, 20))
    assert DenseGram(singular, kernel).n == 20


def test_callable_indefinite_kernel_is_refused():
    X = RNG.normal(size=(30, 2))
    with pytest.raises(ValueError, match="not positive semi-definite"):
        DenseGram(X, make_kernel(lambda A, B: -np.exp(-((A[:, None] - B[None]) ** 2).sum(-1)), X))


def test_dtype_is_checked():
    with pytest.raises(ValueError, match="dtype='float16'"):
        DenseGram(np.zeros((2, 1)), make_kernel("rbf", np.zeros((2, 1))), dtype="float16")
