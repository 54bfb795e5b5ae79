"""The Gram matrix in memory, with one cached factor of K + shift·I."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse.linalg import ArpackError, eigsh

from kstonet._arrays import Array, astype, contiguous, like, low_precision, machine_epsilon, namespace, to_numpy, widened, zeros
from kstonet.gram.base import EVERY_ROW
from kstonet.gram.blocks import row_blocks
from kstonet.gram.cholesky import BLOCK, BlockedCholesky, NotPositiveDefiniteError, with_jitter
from kstonet.gram.expansion import ExpansionPart
from kstonet.gram.factored import FactoredSolver, factor_order
from kstonet.gram.inverted import INVALID, JITTERS, InvertedSolver
from kstonet.gram.kernels import Kernel
from kstonet.gram.memory import DEFAULT_FRACTION, available_memory, require_memory
from kstonet.gram.pivoted import LEFT_OUT, LowRankSolver, PivotedCholesky
from kstonet.threads import in_threads

MIXED_PRECISION_FROM = 2000  # rows; below it a float64 factor costs milliseconds
BLOCKS_AT_ONCE = 4  # which bounds their memory
LARGEST_INVERSE = 2_400  # rows up to which a ridge regression inverts the matrix; more are factored
PRECISE = 0.05  # of a right-hand side: what float32 may leave over; the inverse's diagonal is right to 0.3 % then


@dataclass(frozen=True)
class _Shifted:
    shift: float
    factor: Any

    def solve(self, rows: Array) -> Array:
        return self.factor.solve(rows)


def cross_blocks(kernel: Kernel, X: Array, X_train: Array) -> Iterator[tuple[slice, Array]]:
    """Yield ``(rows, k(X[rows], X_train))`` in blocks of bounded memory, for prediction."""
    for rows in row_blocks(X.shape[0], X_train.shape[0]):
        yield rows, kernel(like(X_train, X[rows]), X_train)


class DenseGram:
    """A dense kernel matrix and its shifted factor.

    Kernel values are computed in float64 and rounded once to ``dtype``, so that a float32 Gram is the rounding of the
    exact one. For large n the factor of K + shift·I is kept in float32, where the shift dominates float32 rounding: half
    the work and half the traffic, and the solver refines with products by the true K.

    Parameters
    ----------
    X : array of shape (n, p)
        Training rows; the matrix itself for a precomputed kernel.
    kernel : Kernel
        From :func:`kstonet.gram.make_kernel`.
    dtype : {"float64", "float32"}
        Precision of the stored matrix.
    max_memory : float, optional
        Bytes that matrix and factor may take together; default 80 % of the available memory.

    Raises
    ------
    GramTooLargeError
        Before anything is allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import DenseGram, make_kernel
    >>> X = np.linspace(0, 1, 4)[:, None]
    >>> gram = DenseGram(X, make_kernel("rbf", X, gamma=1.0))
    >>> gram.product(np.ones((1, 4))).round(3)
    array([[2.904, 3.431, 3.431, 2.904]])
    """

    largest_inverse = LARGEST_INVERSE
    block = BLOCK // 2  # rows that a thread takes at a time

    def __init__(self, X: Array, kernel: Kernel, *, dtype: str = "float64", max_memory: float | None = None) -> None:
        if dtype not in ("float64", "float32"):
            raise ValueError(f"dtype={dtype!r} must be 'float64' or 'float32'.")
        xp = namespace(X)
        self.n = int(X.shape[0])
        self.kernel = kernel
        self.dtype = getattr(xp, dtype)
        self._mixed = dtype == "float64" and self.n > MIXED_PRECISION_FROM
        held = f"matrix in float64, factor in {'float32' if self._mixed else 'float64'}" if dtype == "float64" else "in float32"
        limit = DEFAULT_FRACTION * self._available_memory(X) if max_memory is None else max_memory
        require_memory(self.n, self._least_bytes(dtype), limit, held, given=max_memory is not None)
        self._limit = limit
        X = astype(X, xp.float64)
        if kernel.precomputed:
            self._X = X[:, :0]  # prediction needs the number of training rows only
            self._matrix = self._from_user(X)
        else:
            self._X = X
            self._matrix = self._build()
        self._norm_bound = max(
            (float(abs(self._values(rows)).sum(1).max()) for rows in row_blocks(self.n, self.n)), default=0.0
        )
        self._shifted: _Shifted | None = None
        self._low_rank: PivotedCholesky | None = None
        self._low_rank_tried = 0.0
        self._n_factorizations = 0
        if not kernel.positive_semidefinite:
            self._check_positive_semidefinite()

    @staticmethod
    def bytes_needed(n: int, dtype: str = "float64") -> int:
        """Bytes of matrix and factor for n rows.

        Examples
        --------
        >>> DenseGram.bytes_needed(10_000)
        1220480000
        """
        matrix = 4 if dtype == "float32" else 8
        factor = 4 if dtype == "float32" or n > MIXED_PRECISION_FROM else 8
        return n * n * (matrix + factor) + n * min(n, BLOCK) * factor  # the factor keeps inverted diagonal blocks

    def _least_bytes(self, dtype: str) -> int:
        """Bytes without which there is no such Gram."""
        return self.bytes_needed(self.n, dtype)

    @staticmethod
    def _available_memory(X: Array) -> int:
        """Bytes free where ``X`` lives."""
        return available_memory()

    def _from_user(self, K: Array) -> Array:
        if K.shape[0] != K.shape[1]:
            raise ValueError(f"kernel='precomputed' needs a square matrix for training; got shape {tuple(K.shape)}.")
        matrix = zeros(K, (self.n, self.n), self.dtype)
        largest = asymmetry = 0.0
        for rows in row_blocks(self.n, self.n):
            block, mirrored = K[rows], K[:, rows].T
            largest = max(largest, float(abs(block).max()))
            asymmetry = max(asymmetry, float(abs(block - mirrored).max()))
            matrix[rows] = astype((block + mirrored) / 2, self.dtype)
        if asymmetry > 1e-6 * largest:
            raise ValueError(
                f"the precomputed Gram matrix is not symmetric: the largest |K - Kᵀ| is {asymmetry:.3g} beside a largest "
                f"entry of {largest:.3g}. Pass (K + K.T) / 2 if that is what you mean."
            )
        return matrix

    def _build(self) -> Array:
        """Fill the lower triangle block by block and mirror it: half the exponentials, exact symmetry."""
        X, xp = self._X, namespace(self._X)
        K = zeros(X, (self.n, self.n), self.dtype)

        def fill(rows: slice) -> None:
            with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
                block = self.kernel(X[rows], X[: rows.stop])
            if not xp.isfinite(block).all():
                raise ValueError(f"the kernel {type(self.kernel).__name__} gave values that are not finite; check X and gamma.")
            K[rows, : rows.stop] = astype(block, self.dtype)
            K[: rows.start, rows] = K[rows, : rows.start].T
            square = K[rows, rows]
            K[rows, rows] = xp.tril(square) + xp.tril(square, -1).T

        self._each(fill, row_blocks(self.n, self.n, most=self.block))
        everyone = xp.arange(self.n)
        K[everyone, everyone] = astype(self.kernel.diagonal(X), self.dtype)
        return K

    def _check_positive_semidefinite(self) -> None:
        """Matrices that come from outside are tested once; a solver's certificate would be void on others."""
        tolerance = self._norm_bound * (1e-8 if machine_epsilon(self.dtype) < 1e-10 else 1e-6)
        try:
            self._cholesky(self._work_copy(namespace(self._X).float64, tolerance or 1e-300))
        except NotPositiveDefiniteError:
            raise ValueError(
                f"the Gram matrix is not positive semi-definite{self._smallest_eigenvalue()}, so the SVR problem is not "
                "convex. Use a valid kernel, or clip the negative eigenvalues of the matrix to zero before passing it."
            ) from None

    def _smallest_eigenvalue(self) -> str:
        matrix = to_numpy(self._matrix).astype(np.float64)
        try:
            value = eigsh(matrix, k=1, which="SA", maxiter=200, tol=1e-3, return_eigenvectors=False)[0]
        except (ArpackError, TypeError, ValueError):  # no convergence, or too few rows for Lanczos
            return ""
        return f" (smallest eigenvalue about {value:.3g})"

    def _work_copy(self, precision: Any, shift: float | np.ndarray, chosen: np.ndarray | None = None) -> Array:
        """K + shift·I or K + diag(shift), of all rows or of chosen ones, in its own memory: a factorisation overwrites it."""
        xp, size = namespace(self._X), self.n if chosen is None else len(chosen)
        work = zeros(self._X, (size, size), precision)
        indices: Any = EVERY_ROW if chosen is None else xp.asarray(chosen)

        def fill(rows: slice) -> None:
            work[rows] = self._values(rows if chosen is None else indices[rows], indices)

        self._each(fill, row_blocks(size, self.n, most=self.block))
        everyone = xp.arange(size)
        work[everyone, everyone] += like(work, shift)
        return work

    def _values(self, rows: Any, columns: Any = EVERY_ROW) -> Array:
        """The rows and columns of K with these numbers."""
        return self._matrix[rows][:, columns]

    @staticmethod
    def _each(work: Callable[[slice], None], blocks: Iterable[slice]) -> None:
        in_threads(work, blocks, most=BLOCKS_AT_ONCE)

    def _cholesky(self, work: Array) -> Any:
        return BlockedCholesky(work)

    def array(self, values: Any) -> Array:
        """``values`` as a float64 array of the kind, and on the device, that products with this matrix take."""
        return like(self._X, values)

    def product(self, rows: Array) -> Array:
        """K applied to every row of ``rows`` (m, n)."""
        # A float32 matrix is widened block by block: the product is exact for the stored matrix, at bounded memory.
        out = zeros(rows, tuple(rows.shape))

        def fill(block: slice) -> None:
            out[:, block] = rows @ astype(self._matrix[:, block], rows.dtype)

        self._each(fill, row_blocks(self.n, self.n, most=self.block))
        return out

    def shifted(self, shift: float) -> _Shifted:
        """Return the solver for K + shift·I; factor anew only when the shift changed."""
        if self._shifted is None or self._shifted.shift != shift:
            self._shifted = None  # release the old factor before the new one is made
            self._shifted = _Shifted(shift, self._low_rank_solver(shift) or self._factorise(shift))
        return self._shifted

    def _low_rank_solver(self, shift: float) -> LowRankSolver | None:
        """A solver of small rank where K has one; a rank once found serves every larger shift too."""
        if not self._mixed or self._matrix is None:
            return None
        held = self._low_rank
        if (
            held is None
            or (held.factor is None and shift > self._low_rank_tried)
            or (held.factor is not None and held.trace > LEFT_OUT * shift)
        ):
            self._low_rank_tried = shift
            self._low_rank = held = PivotedCholesky(self._matrix, LEFT_OUT * shift)
            self._n_factorizations += held.factor is not None
        return None if held.factor is None or held.trace > LEFT_OUT * shift else LowRankSolver(held.factor, shift)

    def _factorise(self, shift: float) -> Any:
        low = low_precision(self._X)
        # A float32 factor of a matrix of norm |K| is exact for a shift off by about eps·|K|.
        low_is_enough = shift > 4 * machine_epsilon(low) * self._norm_bound
        precisions = [namespace(self._X).float64]
        if low_is_enough and (self._mixed or self.dtype == low):
            precisions.insert(0, low)
        for precision in precisions:
            self._n_factorizations += 1
            try:
                return self._cholesky(self._work_copy(precision, shift))
            except NotPositiveDefiniteError:
                continue
        raise np.linalg.LinAlgError(f"K + {shift:.3g}·I is not positive definite: the Gram matrix is not valid.")

    def regularised(self, ridges: np.ndarray) -> FactoredSolver | InvertedSolver:
        """A new solver of K + diag(ridges); rows with an infinite ridge take no part.

        Where the matrix is small enough to be inverted, any rows can be left out of it afterwards; of a factor the last ones.
        """
        self._n_factorizations += 1
        if self.n <= self.largest_inverse:
            return self._inverted(ridges)
        order = factor_order(self.n)
        return self._factored(ridges, order[np.isfinite(ridges[order])])

    def _inverted(self, ridges: np.ndarray) -> InvertedSolver:
        """In float64: to correct a float32 inverse in every regression takes longer than it saves."""
        scale = float(self.diagonal().mean())
        return InvertedSolver.of(ridges, scale, lambda chosen, own: self._work_copy(np.float64, own, chosen))

    def _factored(self, ridges: np.ndarray, chosen: np.ndarray) -> FactoredSolver:
        """By a factor in float32 where the matrix is large and that solves its equations well enough to be corrected.

        With a jitter where rounding makes K singular. Ridge and norm would say when float32 is safe, but many kernels have no
        small eigenvalues even without a ridge.
        """
        xp = namespace(self._X)

        def single() -> Any:
            with contextlib.suppress(NotPositiveDefiniteError):
                factor = self._cholesky(self._work_copy(xp.float32, ridges[chosen], chosen))
                return factor if self._left_by(factor, ridges, chosen) < PRECISE else None

        def double(jitter: float) -> Any:
            return self._cholesky(self._work_copy(xp.float64, ridges[chosen] + jitter, chosen))

        factor = (single() if self._mixed else None) or with_jitter(double, float(self.diagonal().mean()), JITTERS, INVALID)
        return FactoredSolver(ridges, chosen, factor, self.array)

    def _left_by(self, factor: Any, ridges: np.ndarray, chosen: np.ndarray) -> float:
        """The share of a random right-hand side that a factor's solution leaves over, by a product with the true matrix."""
        right = self.array(np.random.default_rng(0).normal(size=(1, len(chosen))))
        solved = widened(factor.solve(right))
        indices = namespace(self._X).asarray(chosen)
        everywhere = zeros(right, (1, self.n))
        everywhere[:, indices] = solved
        left = right - self.product(everywhere)[:, indices] - like(right, ridges[chosen]) * solved
        return float(((left**2).sum() / (right**2).sum()) ** 0.5)

    def solve_on(self, indices: Array, shift: float, rows: Array) -> Array:
        """(K[indices, indices] + shift·I)⁻¹ applied to every row, in float64; with a jitter where K is singular otherwise."""
        xp = namespace(self._X)
        everyone = xp.arange(len(indices))
        rounding = machine_epsilon(xp.float64) * self._norm_bound

        def factored(jitter: float) -> Any:
            sub = astype(contiguous(self._values(indices, indices)), xp.float64)
            sub[everyone, everyone] += shift + jitter
            return self._cholesky(sub)

        invalid = "a block of the Gram matrix is not positive semi-definite, whatever the jitter"
        return with_jitter(factored, rounding, range(9), invalid).solve(rows)

    def columns(self, indices: np.ndarray) -> np.ndarray:
        """Kernel values of all training rows against some of them, as a float64 NumPy array of shape (n, q)."""
        return to_numpy(self._values(indices).T).astype(np.float64, copy=False)  # K is symmetric, and its rows are contiguous

    def diagonal(self) -> Array:
        """k(x, x) for every training row."""
        everyone = namespace(self._matrix).arange(self.n)
        return self._matrix[everyone, everyone]

    def cross(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Yield ``(rows, k(X[rows], training rows))`` in blocks of bounded memory."""
        return cross_blocks(self.kernel, X, self._X)

    def expansion(self, coef: np.ndarray, units: np.ndarray) -> ExpansionPart:
        """What prediction at new rows needs: the training rows that have a coefficient, and the coefficients.

        Parameters
        ----------
        coef : ndarray of shape (iterates, units, n)
            Dual coefficients.
        units : ndarray of int
            Which units of a layer these are.
        """
        return ExpansionPart.of(self.kernel, to_numpy(self._X), coef, units)

    @property
    def held_shift(self) -> float | None:
        """Shift of the factor in the cache, if there is one."""
        return None if self._shifted is None else self._shifted.shift

    @property
    def trail(self) -> tuple[float, float]:
        """The shifts that the factors held were made for: that of small rank, and that of the cache; zero for none."""
        return self._low_rank_tried, self.held_shift or 0.0

    def retrace(self, trail: tuple[float, float]) -> None:
        """Hold the same factors as a Gram with this trail."""
        self._shifted, self._low_rank, self._low_rank_tried = None, None, 0.0
        tried, held = trail
        if tried:
            self._low_rank_solver(tried)
        if held:
            self.shifted(held)

    @property
    def norm_bound(self) -> float:
        """Largest absolute row sum, a bound of the largest eigenvalue."""
        return self._norm_bound

    @property
    def n_factorizations(self) -> int:
        """How many factorisations have been paid for so far."""
        return self._n_factorizations

    @property
    def nbytes(self) -> int:
        """Bytes held by the matrix, or the rows that its values are computed from, and by its factor."""
        values = self._X if self._matrix is None else self._matrix
        return int(values.nbytes + (self._shifted.factor.nbytes if self._shifted else 0))
