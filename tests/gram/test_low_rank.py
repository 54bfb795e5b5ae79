"""The Gram of low rank with leaves: under the contract against its own definition, and what is special about it."""

import tempfile
from dataclasses import replace

import numpy as np
import pytest
from contract import GAMMA, GramContract, OnTorch, rbf
from sklearn.svm import SVR

from kstonet._arrays import to_numpy
from kstonet.gram import GramTooLargeError, LowRank, LowRankGram, StructuredGram, make_gram, make_kernel, scratch
from kstonet.gram.footprint import Workload
from kstonet.gram.landmarks import Landmarks
from kstonet.gram.leaves import LeafPart, LeafTree
from kstonet.gram.low_rank_options import Sizes
from kstonet.gram.planning import LARGEST_FACTOR, LARGEST_PASSING, choose_solver, plan_training
from kstonet.solvers.svr import solve_svr
from kstonet.solvers.svr_certificate import kernel_gap


def nystrom(gram, A, B, X):
    """k(A, S) K_SS⁻¹ k(S, B) by an eigendecomposition: the definition, without any factor of the Gram's."""
    S = X[gram.landmarks]
    values, vectors = np.linalg.eigh(rbf(S, S))
    kept = values > 1e-12 * values.max()
    half = vectors[:, kept] / np.sqrt(values[kept])
    return (rbf(A, S) @ half) @ (rbf(B, S) @ half).T


class LowRankContract(GramContract):
    """The oracle is the matrix of this Gram's own kernel, from its landmarks and leaves."""

    dtype = "float32"
    values = 2e-6
    cross_values = 2e-6
    rank, leaf_rows = 40, 30

    @classmethod
    def make(cls, X, kernel, **options):
        return make_gram(X, kernel, solver=LowRank(cls.rank, cls.leaf_rows, tolerance=0.0), **options)

    def bytes_needed(self):
        return Sizes(self.rows, self.rank, self.leaf_rows).bytes

    @pytest.fixture(scope="class")
    @classmethod
    def K(cls, X, gram):
        Q = nystrom(gram, X, X, X)
        if not cls.leaf_rows:
            return Q
        _, leaves = LeafTree.grow(X, gram.kernel, cls.leaf_rows, 0)
        leaf_of = np.empty(len(X), dtype=int)
        for k, rows in enumerate(leaves):
            leaf_of[rows] = k
        return np.where(leaf_of[:, None] == leaf_of, rbf(X, X), Q)

    @pytest.fixture(scope="class")
    @classmethod
    def new(cls, X, gram):
        new = np.random.default_rng(1).normal(size=(11, cls.features))
        Q = nystrom(gram, new, X, X)
        if not cls.leaf_rows:
            return new, Q
        tree, leaves = LeafTree.grow(X, gram.kernel, cls.leaf_rows, 0)
        leaf_of = np.empty(len(X), dtype=int)
        for k, rows in enumerate(leaves):
            leaf_of[rows] = k
        return new, np.where(tree.leaves(new)[:, None] == leaf_of, rbf(new, X), Q)

    def test_a_solver_leaves_further_rows_out(self, gram):
        """By the inverses that it has; the same as a solver that never saw them."""
        rng = np.random.default_rng(3)
        ridges, targets = rng.uniform(0.5, 1.0, size=self.rows), rng.normal(size=(2, self.rows))
        ridges[:5] = np.inf
        whole = gram.regularised(ridges)
        before = whole.solve(targets), whole.diagonal()
        fewer = np.where(rng.uniform(size=self.rows) < 0.2, np.inf, ridges)
        ours, theirs = whole.without(fewer), gram.regularised(fewer)
        np.testing.assert_allclose(ours.solve(targets), theirs.solve(targets), atol=1e-5)
        np.testing.assert_allclose(ours.diagonal(), theirs.diagonal(), atol=1e-5)
        assert ours.nbytes <= whole.nbytes
        np.testing.assert_array_equal(whole.solve(targets), before[0])
        np.testing.assert_array_equal(whole.diagonal(), before[1])
        assert whole.without(2.0 * ridges) is None
        assert whole.without(np.where(rng.uniform(size=self.rows) < 0.8, np.inf, ridges)) is None


class TestLandmarksAndLeaves(LowRankContract):
    def test_it_is_structured(self, gram):
        assert isinstance(gram, StructuredGram)
        assert gram.rank == 40
        assert gram.n_leaves == 4
        assert gram.leaf_rows == 30


class TestLandmarksAlone(LowRankContract):
    leaf_rows = 0

    def test_the_diagonal_is_exact(self, gram, K):
        """The diagonal of FFᵀ, which is below that of the kernel."""
        np.testing.assert_allclose(to_numpy(gram.diagonal()), np.diagonal(K), atol=self.values)

    def test_what_is_left_out_is_positive_semidefinite(self, gram, X, K):
        assert np.linalg.eigvalsh(rbf(X, X) - K).min() > -1e-6
        assert gram.trace_left_out == pytest.approx(1 - np.trace(K) / len(K), abs=1e-6)


class TestOneLeafIsTheMatrix(LowRankContract):
    rank, leaf_rows = 5, 120

    @pytest.fixture(scope="class")
    @classmethod
    def K(cls, X):
        return rbf(X, X)

    @pytest.fixture(scope="class")
    @classmethod
    def new(cls, X):
        new = np.random.default_rng(1).normal(size=(11, cls.features))
        return new, rbf(new, X)


class TestAllRowsAreTheMatrix(TestOneLeafIsTheMatrix):
    rank, leaf_rows = 120, 0

    def test_the_diagonal_is_exact(self, gram):
        np.testing.assert_allclose(gram.diagonal(), 1.0, atol=self.values)


class TestInFiles(TestLandmarksAndLeaves):
    traced = False  # files are not memory

    @pytest.fixture(autouse=True, scope="class")
    @classmethod
    def everything_is_filed(cls):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(scratch, "SMALL", 0)
            patch.setattr(scratch, "TOGETHER", 2**14)
            yield

    @classmethod
    def make(cls, X, kernel, max_memory=None):
        filed = replace(Sizes(cls.rows, cls.rank, cls.leaf_rows), filed=True).bytes
        solver = LowRank(cls.rank, cls.leaf_rows, tolerance=0.0, scratch=tempfile.gettempdir())
        return make_gram(X, kernel, solver=solver, max_memory=filed if max_memory is None else max_memory)

    def test_it_is_filed(self, gram):
        assert all(in_file(piece.factor) and in_file(piece.block) for piece in gram._pieces)
        assert all(in_file(part.values) for part in gram.shifted(1.0)._parts)

    def test_what_does_not_fit_is_refused_before_it_is_allocated(self, X):
        with pytest.raises(GramTooLargeError, match=r"n=120 rows.*max_memory"):
            self.new_gram(X, max_memory=1000)


def in_file(values):
    while isinstance(values, np.ndarray):
        if isinstance(values, np.memmap):
            return True
        values = values.base
    return False


class TestOnTorch(OnTorch, TestLandmarksAndLeaves):
    """The same on PyTorch tensors."""

    def test_it_is_on_the_device(self, gram, torch):
        assert isinstance(gram.diagonal(), torch.Tensor)
        assert gram.array([1.0]).device.type == self.device


class TestLandmarksAloneOnTorch(TestOnTorch):
    leaf_rows = 0
    test_it_is_structured = None
    test_the_diagonal_is_exact = TestLandmarksAlone.test_the_diagonal_is_exact


class TestOnCuda(TestOnTorch):
    device = "cuda"


class TestLandmarksAloneOnCuda(TestLandmarksAloneOnTorch):
    device = "cuda"


# -- landmarks ---------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(600, 2))
KERNEL = make_kernel("rbf", ROWS, gamma=GAMMA)


def left_out(X, indices):
    S = X[indices]
    values, vectors = np.linalg.eigh(rbf(S, S))
    kept = values > 1e-12
    half = rbf(X, S) @ (vectors[:, kept] / np.sqrt(values[kept]))
    return 1 - (half**2).sum() / len(X)


def test_landmarks_are_nearly_as_good_as_eigenvectors():
    """The trace error of the best rank-k approximation bounds what k landmarks can reach."""
    values = np.sort(np.linalg.eigvalsh(rbf(ROWS, ROWS)))[::-1]
    for rank, gain in ((10, 0.9), (30, 0.7)):
        error = np.mean([left_out(ROWS, Landmarks.choose(ROWS, KERNEL, rank, 0.0, seed).indices) for seed in range(20)])
        best = values[rank:].sum() / len(ROWS)
        uniform = np.mean([left_out(ROWS, RNG.choice(600, rank, replace=False)) for _ in range(20)])
        assert best <= error < 8 * best
        assert error < gain * uniform


def test_pivots_are_drawn_like_single_ones():
    """Blocks thinned by rejection: every pair of pivots is as likely as when they are drawn one after the other."""
    X = np.array([[0.0], [0.3], [1.0], [4.0]])
    kernel = make_kernel("rbf", X, gamma=1.0)
    K = np.asarray(kernel(X, X))
    expected = np.zeros((4, 4))
    for first in range(4):
        left = 1.0 - K[first] ** 2
        for second in np.flatnonzero(left > 1e-12):
            expected[tuple(sorted((first, second)))] += 0.25 * left[second] / left.sum()
    found = np.zeros((4, 4))
    for seed in range(1000):
        found[tuple(Landmarks.choose(X, kernel, 2, 0.0, seed).indices)] += 1 / 1000
    np.testing.assert_allclose(found, expected, atol=4 * np.sqrt(0.25 / 1000))


def test_the_tolerance_decides_how_many():
    few, more = (Landmarks.choose(ROWS, KERNEL, 600, tolerance, 0).rank for tolerance in (1e-2, 1e-5))
    assert few < more < 300
    assert left_out(ROWS, Landmarks.choose(ROWS, KERNEL, 600, 1e-2, 0).indices) < 1e-2


def test_landmarks_follow_from_the_seed():
    same = [Landmarks.choose(ROWS, KERNEL, 20, 0.0, 3).indices for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(same[0], Landmarks.choose(ROWS, KERNEL, 20, 0.0, 4).indices)


def test_duplicates_are_landmarks_once():
    X = np.repeat(ROWS[:5], 40, axis=0)
    chosen = Landmarks.choose(X, make_kernel("rbf", X, gamma=GAMMA), 50, 0.0, 0)
    assert chosen.rank == 5
    assert len(np.unique(X[chosen.indices], axis=0)) == 5


# -- leaves ------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 7, 64, 600])
def test_leaves_are_of_equal_size_and_new_rows_find_theirs(n):
    X = ROWS[:n]
    tree, leaves = LeafTree.grow(X, KERNEL, 50, 0)
    assert sorted(np.concatenate(leaves)) == list(range(n))
    sizes = [len(rows) for rows in leaves]
    assert max(sizes) <= 50
    assert max(sizes) - min(sizes) <= 1
    assert tree.n_leaves == len(leaves)
    for leaf, rows in enumerate(leaves):
        assert (tree.leaves(X[rows]) == leaf).all()


def test_equal_rows_are_parted():
    _, leaves = LeafTree.grow(np.zeros((100, 3)), KERNEL, 30, 0)
    assert [len(rows) for rows in leaves] == [25] * 4


def test_features_without_relevance_do_not_part():
    X = np.column_stack([RNG.normal(size=400), 100 * RNG.normal(size=400)])
    tree, _ = LeafTree.grow(X, make_kernel("rbf", X, gamma=1.0, length_scale=(1.0, 1e6)), 200, 0)
    assert abs(tree.directions[0, 1]) < 1e-3 * abs(tree.directions[0, 0])


# -- what is asked of it beside the contract ---------------------------------------------------------------------------------


@pytest.mark.parametrize("leaf_rows", [0, 100])
def test_systems_with_a_ridge_for_every_row(leaf_rows):
    gram = LowRankGram(ROWS, KERNEL, rank=60, leaf_rows=leaf_rows, tolerance=0.0, seed=0)
    K = gram.columns(np.arange(600))
    ridges = RNG.uniform(0.1, 1.0, size=600)
    ridges[::7] = np.inf
    ridges[LeafTree.grow(ROWS, KERNEL, 100, 0)[1][2]] = np.inf  # a whole leaf, if there are any
    seen = np.isfinite(ridges)
    expected = np.linalg.inv(K[np.ix_(seen, seen)] + np.diag(ridges[seen]))
    solver = gram.regularised(ridges)
    rows = RNG.normal(size=(3, 600))
    solved = solver.solve(rows)
    assert (solved[:, ~seen] == 0).all()
    np.testing.assert_allclose(solved[:, seen], rows[:, seen] @ expected, atol=2e-4)
    np.testing.assert_allclose(solver.diagonal(seen), np.diagonal(expected), rtol=1e-4)


@pytest.mark.parametrize("leaf_rows", [0, 100])
def test_functions_at_new_rows_are_those_of_the_expansion(leaf_rows):
    gram = LowRankGram(ROWS, KERNEL, rank=60, leaf_rows=leaf_rows, tolerance=0.0, seed=0)
    coef, new = RNG.normal(size=(1, 4, 600)), RNG.normal(size=(30, 2))
    part = gram.expansion(coef, np.arange(4))
    assert isinstance(part, LeafPart) == bool(leaf_rows)
    np.testing.assert_allclose(gram.at(new)(coef[0]), part.values(new, part.features(new))[0], atol=1e-6)
    np.testing.assert_allclose(gram.at(ROWS)(coef[0]).T, gram.product(coef[0]), atol=1e-4)


def test_what_it_cannot_do_is_refused():
    with pytest.raises(ValueError, match="needs features"):
        make_gram(np.eye(4), make_kernel("precomputed", np.eye(4)), solver="low_rank")
    with pytest.raises(GramTooLargeError, match="smaller rank"):
        make_gram(ROWS, KERNEL, solver="low_rank", max_memory=1e5)
    for wrong in ({"rank": 0}, {"rank": 1.5}, {"leaf_rows": -1}, {"tolerance": 2.0}):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            LowRank(**wrong)


def test_a_kernel_that_is_none_is_refused():
    kernel = make_kernel(lambda X, Y: -np.exp(-((X[:, :1] - Y[:, 0]) ** 2)) + 2.0 * (np.abs(X[:, :1] - Y[:, 0]) < 1e-12), ROWS)
    with pytest.raises(ValueError, match="positive semi-definite"):
        LowRankGram(ROWS, kernel, rank=50, leaf_rows=0, tolerance=0.0, seed=0)


@pytest.mark.parametrize("leaf_rows", [0, 40])
@pytest.mark.parametrize("rank", [4, 15])
def test_the_gap_to_the_kernel_itself_is_bounded(rank, leaf_rows):
    """By brute force: the optimum with the kernel itself, from scikit-learn at a tiny tolerance."""
    X, C, epsilon = ROWS[:120], 3.0, 0.05
    kernel = make_kernel("rbf", X, gamma=GAMMA)
    K = rbf(X, X)
    targets = np.stack([np.sin(2 * X[:, 0]), X[:, 0] * X[:, 1]])
    gram = LowRankGram(X, kernel, rank=rank, leaf_rows=leaf_rows, tolerance=0.0, seed=0)
    solution = solve_svr(gram, targets, C, epsilon)
    bounds = kernel_gap(gram, solution)
    feasible = solution.problem.balance(solution.dual_state)
    for target, x, own, bound in zip(targets, solution.coef, feasible, bounds, strict=True):
        best = SVR(kernel="precomputed", C=C, epsilon=epsilon, tol=1e-10).fit(K, target)
        dual = np.zeros(120)
        dual[best.support_] = best.dual_coef_[0]
        optimum, reached = (target @ a - epsilon * np.abs(a).sum() - 0.5 * a @ K @ a for a in (dual, own))
        residual = target - x @ K
        losses = [np.maximum(np.abs(residual - b) - epsilon, 0).sum() for b in np.linspace(-1, 1, 2001)]
        primal = 0.5 * x @ K @ x + C * min(losses)
        assert 0 <= optimum - reached <= bound * primal * (1 + 1e-3)
        assert rank == 4 or bound < 0.9


# -- the choice --------------------------------------------------------------------------------------------------------------


def test_auto_is_dense_until_it_does_not_fit():
    assert choose_solver(20_000, max_memory=1e10)[0] == "dense"
    assert choose_solver(20_000, max_memory=1e9)[0] == "low_rank"
    assert choose_solver(LARGEST_FACTOR, squared=True, max_memory=1e10)[0] == "dense"
    assert choose_solver(LARGEST_FACTOR, squared=True, max_memory=1e9)[0] == "low_rank"
    assert choose_solver(LARGEST_FACTOR + 1, squared=True, max_memory=1e12)[0] == "low_rank"
    assert choose_solver(10**6, pairwise=True, squared=True)[0] == "dense"
    assert choose_solver(50_000, device="cuda", squared=True, max_memory=1e11)[0] == "dense"
    assert choose_solver(100_000, device="cuda", squared=True, max_memory=1e11)[0] == "iterative"
    assert choose_solver(LARGEST_PASSING + 1, device="cuda", squared=True, max_memory=1e11)[0] == "low_rank"
    assert choose_solver(100_000, device="cuda", max_memory=1e11)[0] == "low_rank"
    assert choose_solver(100_000, device="cpu", squared=True, max_memory=1e10)[0] == "low_rank"
    assert LowRank().sizes(290_000, 1e11, "cuda").leaf_rows > LowRank().sizes(290_000, 1e11).leaf_rows


def test_less_memory_means_smaller_leaves_first():
    sizes = [LowRank().sizes(200_000, limit) for limit in (1e12, 3e9, 1.2e9, 1e6)]
    assert sizes[0].rank == sizes[1].rank == 1000
    leaves = [size.leaf_rows for size in sizes]
    assert leaves[0] > leaves[1] > leaves[2] >= leaves[3] == 300
    assert sizes[3].rank == 100
    assert LowRank(rank=700, leaf_rows=0).sizes(200_000, 1.0) == Sizes(200_000, 700, 0)


def test_plans_say_what_and_why():
    plan = plan_training(100_000, 10, Workload(squared=True, units=20, averages=6), iterations=12, max_memory=8e9)
    assert plan.approximate
    assert "landmarks" in str(plan)
    assert "100,000 rows" in str(plan)
    dense = plan_training(1_000, 10, Workload(squared=True, units=20, averages=6), iterations=12, max_memory=8e9)
    assert not dense.approximate
    assert dense.bytes < plan.bytes
    assert dense.seconds < plan.seconds
