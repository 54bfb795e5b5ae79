"""What every Gram has to satisfy, against a dense NumPy matrix of the same kernel.

To put a Gram under the contract, subclass :class:`GramContract` in a test module and say how the Gram is made::

    class TestMyGram(GramContract):
        @classmethod
        def make(cls, X, kernel, **options):
            return make_gram(X, kernel, solver="mine", **options)
"""

import tracemalloc

import numpy as np
import pytest
from scipy.linalg import cholesky
from scipy.linalg.lapack import dpotri
from scipy.sparse.linalg import eigsh
from scipy.spatial.distance import cdist
from sklearn.svm import SVR

from kstonet._arrays import namespace, to_numpy
from kstonet.gram import DenseGram, Gram, GramTooLargeError, RegularisedGram, make_gram, make_kernel
from kstonet.gram.factored import factor_order
from kstonet.gram.kernels import Precomputed
from kstonet.solvers.svr import solve_svr

GAMMA, SHIFT, C, EPSILON = 0.3, 0.05, 2.0, 0.05


def rbf(A, B):
    """The kernel of all tests, written down a second time."""
    return np.exp(-GAMMA * cdist(A, B, "sqeuclidean"))


class GramContract:
    """The tests; class attributes say what kind of Gram they meet."""

    rows, features = 120, 3
    dtype = "float64"
    precomputed = False
    values = 1e-12  # accuracy of kernel values: rounding to the stored precision
    cross_values = 1e-12  # the same for new rows, whose kernel values need not be stored
    applied = 0.0  # accuracy of solutions that their users correct by products, where it is poor
    traced = True  # whether its memory is NumPy's, which Python can measure

    @classmethod
    def make(cls, X, kernel, **options):
        """The Gram of NumPy rows; ``options`` may hold ``max_memory``."""
        return make_gram(X, kernel, solver="dense", dtype=cls.dtype, **options)

    def bytes_needed(self):
        """The estimate that decides whether a Gram is refused."""
        return DenseGram.bytes_needed(self.rows, self.dtype)

    # -- the Gram, its rows, and the oracle; made once per class ------------------------------------------------------------

    @pytest.fixture(scope="class")
    @classmethod
    def X(cls):
        X = np.random.default_rng(0).normal(size=(cls.rows, cls.features))
        X[7] = X[3]  # a duplicate makes K singular
        return X

    @pytest.fixture(scope="class")
    @classmethod
    def K(cls, X):
        return rbf(X, X)

    @classmethod
    def new_gram(cls, X, **options):
        if cls.precomputed:
            return cls.make(rbf(X, X), Precomputed(), **options)
        return cls.make(X, make_kernel("rbf", X, gamma=GAMMA), **options)

    @pytest.fixture(scope="class")
    @classmethod
    def gram(cls, X):
        return cls.new_gram(X)

    @pytest.fixture(scope="class")
    @classmethod
    def new(cls, X):
        """New rows as the Gram takes them, and their kernel values."""
        new = np.random.default_rng(1).normal(size=(11, cls.features))
        values = rbf(new, X)
        return (values if cls.precomputed else new), values

    @pytest.fixture
    def vectors(self):
        return np.random.default_rng(2).normal(size=(3, self.rows))

    @pytest.fixture(scope="class")
    @classmethod
    def targets(cls, X):
        noise = 0.1 * np.random.default_rng(3).normal(size=(2, cls.rows))
        return np.stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]]) + noise

    # -- what it is ---------------------------------------------------------------------------------------------------------

    def test_it_is_a_gram(self, gram):
        assert isinstance(gram, Gram)
        assert gram.n == self.rows
        assert self.dtype in str(np.dtype(gram.dtype) if isinstance(gram.dtype, type) else gram.dtype)
        assert gram.kernel.precomputed == self.precomputed

    @pytest.mark.parametrize("given", [[[1, 2, 3]], np.ones((2, 4), dtype=np.float32), np.arange(6.0).reshape(2, 3).T])
    def test_arrays_are_float64_of_the_grams_own_kind(self, gram, given):
        made = gram.array(given)
        assert "float64" in str(made.dtype)
        assert namespace(made) is namespace(gram.diagonal())
        assert getattr(made, "device", None) == getattr(gram.diagonal(), "device", None)
        np.testing.assert_array_equal(to_numpy(made), given)
        assert gram.array(made).shape == made.shape

    # -- the matrix ---------------------------------------------------------------------------------------------------------

    def test_products(self, gram, K, vectors):
        image = gram.product(gram.array(vectors))
        assert "float64" in str(image.dtype)
        np.testing.assert_allclose(to_numpy(image), vectors @ K, atol=self.values * self.rows)

    def test_columns_are_numpy(self, gram, K):
        for members in (np.array([5, 0, 7, 3, self.rows - 1, 5]), np.array([], dtype=int), np.arange(self.rows)):
            columns = gram.columns(members)
            assert type(columns) is np.ndarray
            assert columns.dtype == np.float64
            np.testing.assert_allclose(columns, K[:, members], atol=self.values)

    def test_the_diagonal_is_exact(self, gram):
        np.testing.assert_array_equal(to_numpy(gram.diagonal()), np.ones(self.rows))

    def test_cross_comes_in_bounded_blocks(self, gram, new, monkeypatch):
        monkeypatch.setattr("kstonet.gram.blocks.BLOCK_BYTES", 8 * self.rows * 4)  # four rows at a time
        given, expected = new
        blocks = [(rows, to_numpy(values)) for rows, values in gram.cross(given)]
        assert max(len(values) for _, values in blocks) <= 4
        np.testing.assert_array_equal(np.concatenate([np.arange(11)[rows] for rows, _ in blocks]), np.arange(11))
        np.testing.assert_allclose(np.concatenate([values for _, values in blocks]), expected, atol=self.cross_values)

    def test_the_norm_is_bounded(self, gram, K):
        largest = eigsh(K, k=1, return_eigenvectors=False)[0]
        assert largest * (1 - 1e-6) <= gram.norm_bound <= self.rows * (1 + 1e-6)  # the trace bounds a useful bound

    # -- solves -------------------------------------------------------------------------------------------------------------

    def test_shifted_solves_are_corrected_by_products(self, gram, K, vectors):
        """A solver may be of low precision or rank: every correction with the true K must gain a digit at least."""
        solver = gram.shifted(SHIFT)
        rows = gram.array(vectors)
        x, errors = 0.0 * rows, []
        for _ in range(8):
            residual = rows - gram.product(x) - SHIFT * x
            errors.append(np.abs(to_numpy(residual)).max())
            x = x + gram.array(solver.solve(residual))
        assert errors[1] <= 0.5 * errors[0]
        assert errors[3] <= 1e-3 * errors[0]
        expected = np.linalg.solve(K + SHIFT * np.eye(self.rows), vectors.T).T
        np.testing.assert_allclose(to_numpy(x), expected, atol=1e3 * self.values + 1e-8)

    def test_factors_are_kept_and_counted(self, X):
        gram = self.new_gram(X)
        assert gram.held_shift is None
        assert gram.n_factorizations == 0
        assert gram.shifted(SHIFT).shift == gram.held_shift == SHIFT
        first = gram.n_factorizations
        assert first >= 1
        assert gram.shifted(SHIFT) is gram.shifted(SHIFT)
        assert gram.n_factorizations == first
        assert gram.shifted(2 * SHIFT).shift == gram.held_shift == 2 * SHIFT

    def test_solves_on_some_rows(self, gram, K, vectors):
        members = np.array([20, 3, 77, 11])
        rows = vectors[:, :4]
        indices = gram.array(members)
        indices = indices.long() if hasattr(indices, "long") else indices.astype(int)
        expected = np.linalg.solve(K[np.ix_(members, members)] + SHIFT * np.eye(4), rows.T).T
        np.testing.assert_allclose(to_numpy(gram.solve_on(indices, SHIFT, gram.array(rows))), expected, atol=1e2 * self.values)

    def test_singular_blocks_are_solved_in_their_range(self, gram, K):
        members = np.array([3, 7, 50])  # rows 3 and 7 are the same
        block = K[np.ix_(members, members)]
        rows = np.array([[1.0, 1.0, 2.0]]) @ block
        indices = gram.array(members)
        indices = indices.long() if hasattr(indices, "long") else indices.astype(int)
        solved = to_numpy(gram.solve_on(indices, 0.0, gram.array(rows)))  # by the smallest jitter that helps
        np.testing.assert_allclose(solved @ block, rows, atol=1e-5)

    @pytest.fixture(scope="class")
    @classmethod
    def inverse(cls, K):
        """A maker of the inverse of K plus ridges, zero where a ridge is infinite; by LAPACK, and each made once."""
        made = {}

        def inverse(ridges):
            if ridges.tobytes() not in made:
                seen = np.flatnonzero(np.isfinite(ridges))
                lower, info = dpotri(cholesky(K[np.ix_(seen, seen)] + np.diag(ridges[seen]), lower=True), lower=True)
                assert info == 0
                whole = np.zeros_like(K)
                whole[np.ix_(seen, seen)] = np.tril(lower) + np.tril(lower, -1).T
                made[ridges.tobytes()] = whole
            return made[ridges.tobytes()]

        return inverse

    @pytest.mark.parametrize("hidden", [0, 7])
    @pytest.mark.parametrize("large", [False, True])
    def test_ridge_regressions_by_its_own_solver(self, X, inverse, vectors, monkeypatch, hidden, large):
        """Inverse and its diagonal against LAPACK's; in float32 where a dense matrix counts as large."""
        monkeypatch.setattr("kstonet.gram.dense.MIXED_PRECISION_FROM", 10 if large else 10_000)
        gram = self.new_gram(X)
        if not isinstance(gram, RegularisedGram):
            pytest.skip("it has none")
        ridges = np.random.default_rng(4).uniform(0.1, 0.3, size=self.rows)
        ridges[5 : 5 + hidden] = np.inf
        accuracy = max(2e-4 if large else 1e-9, 1e3 * self.values, self.applied)
        for last in (0, 9):  # of those that are factored, too: a factor of all rows serves, if there is one
            ridges[factor_order(self.rows)[self.rows - last :]] = np.inf
            exact, solver = inverse(ridges), gram.regularised(ridges)
            some = factor_order(self.rows)[-20:]  # of a factor these are known before the others
            diagonal = np.diagonal(exact)
            np.testing.assert_allclose(solver.diagonal(some), diagonal[some], atol=accuracy * diagonal.max())
            for found, expected in ((solver.solve(vectors), vectors @ exact), (solver.diagonal(), diagonal)):
                np.testing.assert_allclose(found, expected, atol=accuracy * np.abs(expected).max())

    # -- the engine on it ---------------------------------------------------------------------------------------------------

    @staticmethod
    def primal(K, coef, intercept, target):
        """Objective of one ε-SVR."""
        image = coef @ K
        return 0.5 * coef @ image + C * np.maximum(np.abs(target - image - intercept) - EPSILON, 0.0).sum()

    @staticmethod
    def dual(K, coef, target):
        """Objective of its dual, never above the primal."""
        return target @ coef - EPSILON * np.abs(coef).sum() - 0.5 * coef @ (coef @ K)

    def test_support_vector_regressions_are_optimal(self, gram, K, targets):
        solution = solve_svr(gram, gram.array(targets), C, EPSILON, tol=1e-5, support=True).converted(to_numpy)
        assert solution.converged.all()
        for j, target in enumerate(targets):
            coef, intercept = solution.coef[j], solution.intercept[j]
            assert abs(coef.sum()) < 1e-8 * C * self.rows  # feasible, so that the dual value is a bound
            assert np.abs(coef).max() <= C * (1 + 1e-12)
            np.testing.assert_allclose(solution.fitted[j], coef @ K + intercept, atol=1e3 * self.values)
            ours = self.primal(K, coef, intercept, target)
            assert ours - self.dual(K, coef, target) <= (2e-5 + 10 * self.values) * ours
            theirs = SVR(kernel="precomputed", C=C, epsilon=EPSILON).fit(K, target)
            best = np.zeros(self.rows)
            best[theirs.support_] = theirs.dual_coef_[0]
            assert ours <= self.primal(K, best, theirs.intercept_[0], target) * (1 + 1e-5)

    def test_refits_start_warm_and_need_no_factor(self, X, K, targets):
        gram = self.new_gram(X)
        first = solve_svr(gram, gram.array(targets), C, EPSILON)
        again = solve_svr(gram, gram.array(targets + 0.01), C, EPSILON, warm_start=first)
        cold = solve_svr(gram, gram.array(targets + 0.01), C, EPSILON)
        assert again.converged.all()
        assert again.new_factors == ()
        for j, target in enumerate(targets + 0.01):
            warm, direct = (self.primal(K, to_numpy(s.coef)[j], float(s.intercept[j]), target) for s in (again, cold))
            assert warm == pytest.approx(direct, rel=2e-3)  # a gap of 1e-3 each

    def test_rows_of_weight_zero_are_absent(self, gram, K, targets):
        weights = np.ones(self.rows)
        weights[::10] = 0.0
        solution = solve_svr(gram, gram.array(targets), C, EPSILON, sample_weight=weights, tol=1e-4, support=True)
        coef, intercept = to_numpy(solution.coef), to_numpy(solution.intercept)
        assert (coef[:, ::10] == 0).all()
        kept = weights > 0
        for j, target in enumerate(targets[:, kept]):
            own = K[np.ix_(kept, kept)], coef[j, kept]
            value = self.primal(*own, intercept[j], target)
            assert value - self.dual(*own, target) <= 2e-4 * value

    # -- prediction ---------------------------------------------------------------------------------------------------------

    def test_expansions_predict_what_the_kernel_values_say(self, gram, new):
        coef = np.random.default_rng(4).normal(size=(2, 3, self.rows))
        coef[:, :, ::2] = 0.0
        part = gram.expansion(coef, np.array([4, 0, 1]))
        given, values = new
        features = part.features(given)
        assert type(features) is np.ndarray
        assert part.units.tolist() == [4, 0, 1]
        assert part.coef.shape == (2, 3, features.shape[1])
        predicted = part.values(given, features)
        np.testing.assert_allclose(predicted, np.einsum("rn,tun->tru", values, coef), atol=max(1e-9, 1e2 * self.values))

    def test_an_expansion_without_coefficients_is_empty(self, gram, new):
        part = gram.expansion(np.zeros((1, 2, self.rows)), np.arange(2))
        assert (part.values(new[0], part.features(new[0])) == np.zeros((1, 11, 2))).all()

    # -- memory -------------------------------------------------------------------------------------------------------------

    def test_memory_held_is_estimated_and_reported(self, X):
        gram = self.new_gram(X)
        without = gram.nbytes
        assert without > 0
        gram.shifted(SHIFT)
        assert without < gram.nbytes <= self.bytes_needed()

    def test_memory_reported_is_memory_held(self, X):
        if not self.traced:
            pytest.skip("its memory is not NumPy's")
        given = (rbf(X, X), Precomputed()) if self.precomputed else (X, make_kernel("rbf", X, gamma=GAMMA))
        tracemalloc.start()
        try:
            gram = self.make(*given)
            gram.shifted(SHIFT)
            held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert gram.nbytes <= held <= 1.01 * gram.nbytes + 2**16

    def test_what_does_not_fit_is_refused_before_it_is_allocated(self, X):
        kernel = Precomputed() if self.precomputed else make_kernel("rbf", X, gamma=GAMMA)
        given = rbf(X, X) if self.precomputed else X
        tracemalloc.start()
        try:
            with pytest.raises(GramTooLargeError, match=rf"n={self.rows:,} rows.*max_memory"):
                self.make(given, kernel, max_memory=self.bytes_needed() - 1)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert peak < max(0.05 * 8 * self.rows**2, 2**16) + X.nbytes
        assert self.make(given, kernel, max_memory=self.bytes_needed()).n == self.rows


class OnTorch:
    """Put before a contract: the same Gram on PyTorch tensors, on the CPU or on the ``device`` of a subclass."""

    device = "cpu"
    traced = False

    @pytest.fixture(scope="class", autouse=True)
    @classmethod
    def torch(cls):
        torch = pytest.importorskip("torch", reason="torch is an extra; make test-torch installs a CPU build")
        if cls.device == "cuda" and not torch.cuda.is_available():
            pytest.skip("no GPU that torch can use")
        return torch

    @classmethod
    def make(cls, X, kernel, **options):
        return super().make(X, kernel, device=cls.device, **options)
