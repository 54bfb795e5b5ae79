"""A Gram for many rows: the kernel of some landmarks everywhere, the kernel itself within leaves of neighbouring rows.

With r landmarks S and φ(x) = L⁻¹k(S, x), L Lᵀ = K_SS, the matrix held is

    K̂ = FFᵀ + blockdiag over leaves of (K - FFᵀ),      F = φ(training rows), n×r,

which is the matrix of a kernel itself (Snelson & Ghahramani 2007, "Local and global sparse Gaussian process approximations"):
what holds for kernels holds for it, conformal intervals included. Wide structure is in F; narrow structure, which has no low
rank, is in the leaves. Memory and work grow like n: 4n(r + leaf) bytes, O(n r (r + leaf)) to set up, O(n (r + leaf)) a
product. Without leaves it is Nyström's method, K̂ = FFᵀ, and K - K̂ is positive semi-definite.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from kstonet._arrays import Array, astype, like, low_precision, namespace, to_numpy, widened, zeros
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import ExpansionPart, passing_product
from kstonet.gram.kernels import Kernel
from kstonet.gram.landmarks import Landmarks
from kstonet.gram.leaves import LeafPart, LeafTree
from kstonet.gram.low_rank_solver import Piece, RegularisedSolver, as_it_is
from kstonet.gram.scratch import Scratch

CHUNK = 2048  # rows that are widened together where there are no leaves


class LowRankGram:
    """The matrix K̂ of this module, in float32, with systems solved by Woodbury's identity.

    Parameters
    ----------
    X : ndarray of shape (n, p)
        Training rows.
    kernel : Kernel
        From :func:`kstonet.gram.make_kernel`.
    rank, leaf_rows, tolerance, seed
        As in :class:`~kstonet.gram.LowRank`.
    place : callable, optional
        Puts NumPy arrays where the Gram is to live; by default they stay. Landmarks and leaves are chosen on the CPU.
    scratch : Scratch, optional
        Holds F, the blocks and their inverses in files; by default they are in memory.

    Examples
    --------
    >>> import numpy as np
    >>> from kstonet.gram import make_kernel
    >>> X = np.linspace(0, 1, 400)[:, None]
    >>> gram = LowRankGram(X, make_kernel("rbf", X, gamma=1.0), rank=20, leaf_rows=0, tolerance=1e-6, seed=0)
    >>> gram.rank < 20, gram.trace_left_out < 1e-6
    (True, True)
    """

    def __init__(
        self,
        X: np.ndarray,
        kernel: Kernel,
        *,
        rank: int,
        leaf_rows: int,
        tolerance: float,
        seed: int,
        place: Callable[[np.ndarray], Array] = np.asarray,
        scratch: Scratch | None = None,
    ) -> None:
        self.n, self.kernel, self._place = len(X), kernel, place
        self._X = np.asarray(X, dtype=np.float64)
        self._chosen = Landmarks.choose(self._X, kernel, rank, tolerance, seed)
        self._landmarks = self._chosen.placed(place)
        self._tree: LeafTree | None = None
        if leaf_rows:
            self._tree, leaves = LeafTree.grow(self._X, kernel, leaf_rows, seed)
        else:
            leaves = [np.arange(self.n)[rows] for rows in row_blocks(self.n, 1, most=CHUNK)]
        self._order = np.concatenate(leaves)
        self._starts = np.cumsum([0, *(len(rows) for rows in leaves)])
        self.dtype = low_precision(self._landmarks.basis)
        self._keep: Callable[[Array], Array] = as_it_is if scratch is None else scratch.keep
        shape = self.n, self.rank
        self._factor = zeros(self._landmarks.basis, shape, self.dtype) if scratch is None else scratch.empty(shape, self.dtype)
        self._pieces = [self._piece(slice(*span)) for span in zip(self._starts[:-1], self._starts[1:], strict=True)]
        trace = float(np.sum(kernel.diagonal(self._X)))
        kept = sum(float((widened(piece.factor) ** 2).sum()) for piece in self._pieces)
        self.trace_left_out = max(0.0, 1.0 - kept / trace) if trace else 0.0
        self._solver: RegularisedSolver | None = None
        self._n_factorizations = 0

    def _piece(self, place: slice) -> Piece:
        rows = self._rows(place)
        factor, xp = self._factor[place], namespace(rows)
        for part in row_blocks(len(rows), self.rank):
            values = self._landmarks.features(self.kernel, rows[part])
            if not xp.isfinite(values).all():
                raise ValueError(f"the kernel {type(self.kernel).__name__} gave values that are not finite; check X and gamma.")
            factor[part] = astype(values, self.dtype)
        if self._tree is None:
            return Piece(place, factor, None)
        wide, everyone = widened(factor), xp.arange(len(rows))
        block = self.kernel(rows, rows) - wide @ wide.T
        block[everyone, everyone] = self.kernel.diagonal(rows) - (wide**2).sum(1)
        return Piece(place, factor, self._keep(astype(0.5 * (block + block.T), self.dtype)))

    def _rows(self, place: slice) -> Array:
        """Some training rows, in the order of the leaves."""
        return self._place(self._X[self._order[place]])

    # -- what it is ----------------------------------------------------------------------------------------------------------

    @property
    def rank(self) -> int:
        """Number of landmarks."""
        return self._chosen.rank

    @property
    def leaf_rows(self) -> int:
        """Rows of the largest leaf; 0 without leaves."""
        return 0 if self._tree is None else int(np.diff(self._starts).max())

    @property
    def n_leaves(self) -> int:
        """Number of leaves."""
        return 0 if self._tree is None else len(self._pieces)

    @property
    def landmarks(self) -> np.ndarray:
        """The training rows that are landmarks, ascending."""
        return self._chosen.indices

    def array(self, values: Any) -> Array:
        """``values`` as a float64 array, where the Gram lives."""
        return like(self._landmarks.basis, values)

    # -- the matrix ----------------------------------------------------------------------------------------------------------

    def project(self, rows: Array) -> Array:
        """Every row times F: the functions with these coefficients, in the space of the landmarks; shape (m, r)."""
        ordered = rows[:, self._order]
        return sum(ordered[:, piece.place] @ widened(piece.factor) for piece in self._pieces)

    def product(self, rows: Array) -> Array:
        """K̂ applied to every row, in float64."""
        ordered = rows[:, self._order]
        projected = self.project(rows)
        image = zeros(rows, tuple(rows.shape))
        for piece in self._pieces:
            own = projected @ widened(piece.factor).T
            if piece.block is not None:
                own += ordered[:, piece.place] @ widened(piece.block)
            image[:, self._order[piece.place]] = own
        return image

    @property
    def below(self) -> bool:
        """Whether K - K̂ is positive semi-definite: it is where there are no leaves."""
        return self._tree is None

    def exact_product(self, rows: np.ndarray) -> np.ndarray:
        """K applied to every row: n² kernel values, computed and forgotten."""
        return to_numpy(passing_product(self.kernel, self._place(self._X), self.array(rows)))

    def column_blocks(self, indices: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield ``(rows, K̂[rows, indices])`` in blocks of bounded memory."""
        places = self._places(indices)
        chosen = widened(self._factor[places])
        for piece in self._pieces:
            values = widened(piece.factor) @ chosen.T
            if piece.block is not None:
                inside = np.flatnonzero((places >= piece.place.start) & (places < piece.place.stop))
                values[:, inside] += piece.block[:, places[inside] - piece.place.start]
            yield self._order[piece.place], to_numpy(values)

    def _places(self, indices: np.ndarray) -> np.ndarray:
        """Where training rows stand in the order of the leaves."""
        place_of = np.empty(self.n, dtype=int)
        place_of[self._order] = np.arange(self.n)
        return np.asarray(place_of[indices])

    def columns(self, indices: np.ndarray) -> np.ndarray:
        """K̂ of all training rows against some of them, shape (n, q)."""
        columns = np.empty((self.n, len(indices)))
        for rows, values in self.column_blocks(indices):
            columns[rows] = values
        return columns

    def diagonal(self) -> Array:
        """K̂ᵢᵢ: k(x, x) where there are leaves."""
        if self._tree is not None:
            return self.array(self.kernel.diagonal(self._X))
        values = np.empty(self.n)
        for piece in self._pieces:
            values[self._order[piece.place]] = to_numpy((widened(piece.factor) ** 2).sum(1))
        return self.array(values)

    @cached_property
    def norm_bound(self) -> float:
        """The largest eigenvalue of FFᵀ plus the largest row sum of a block, a bound of the largest eigenvalue."""
        gram = zeros(self._landmarks.basis, (self.rank, self.rank))
        largest = 0.0
        for piece in self._pieces:
            wide = widened(piece.factor)
            gram += wide.T @ wide
            if piece.block is not None:
                largest = max(largest, float(abs(piece.block).sum(1).max()))
        return min(float(np.linalg.eigvalsh(to_numpy(gram))[-1]) + largest, float(self.diagonal().sum()))

    # -- systems -------------------------------------------------------------------------------------------------------------

    def regularised(self, ridges: np.ndarray) -> RegularisedSolver:
        """The solver of K̂ + diag(ridges); rows with an infinite ridge take no part."""
        self._n_factorizations += 1
        return RegularisedSolver(self._pieces, ridges[self._order], self._order, keep=self._keep)

    def shifted(self, shift: float) -> RegularisedSolver:
        """The solver of K̂ + shift·I; made anew only when the shift changed."""
        if self._solver is None or self._solver.shift != shift:
            self._solver = None  # release the old one before the new one is made
            self._solver = self.regularised(np.full(self.n, float(shift)))
        return self._solver

    def solve_on(self, indices: Array, shift: float, rows: Array) -> Array:
        """(K̂[indices, indices] + shift·I)⁻¹ applied to every row, in float64."""
        places = self._places(to_numpy(indices))
        order = np.argsort(places, kind="stable")
        pieces, begin = [], 0
        for piece in self._pieces:
            inside = places[order]
            inside = inside[(inside >= piece.place.start) & (inside < piece.place.stop)] - piece.place.start
            if len(inside):
                block = None if piece.block is None else self._keep(piece.block[np.ix_(inside, inside)])
                pieces.append(Piece(slice(begin, begin + len(inside)), self._keep(piece.factor[inside]), block))
                begin += len(inside)
        # Without a shift nothing but rounding pins down what F does not reach: the smallest ridge that float32 values bear.
        ridges = np.full(len(indices), max(shift, 1e-7 * float(self.diagonal().mean())))
        solver = RegularisedSolver(pieces, ridges, order, exact=True, keep=self._keep)
        return solver.solve(rows)

    # -- other rows ----------------------------------------------------------------------------------------------------------

    def _local(self, X: np.ndarray, features: Array) -> Iterator[tuple[np.ndarray, slice, Array]]:
        """Yield ``(new rows, place of their leaf, kernel values beyond those of the landmarks)``."""
        if self._tree is None:
            return
        leaf_of = self._tree.leaves(X)
        for leaf in np.unique(leaf_of):
            new, piece = np.flatnonzero(leaf_of == leaf), self._pieces[leaf]
            values = self.kernel(self._place(X[new]), self._rows(piece.place))
            yield new, piece.place, values - features[new] @ widened(piece.factor).T

    def cross(self, X: Array) -> Iterator[tuple[slice, Array]]:
        """Blocks of the kernel of this Gram between new rows and all training rows."""
        for rows in row_blocks(len(X), self.n):
            own = to_numpy(X[rows])
            features = self._landmarks.features(self.kernel, self._place(own))
            values = zeros(features, (len(own), self.n))
            for piece in self._pieces:
                values[:, self._order[piece.place]] = features @ widened(piece.factor).T
            for new, place, local in self._local(own, features):
                values[np.ix_(new, self._order[place])] += local
            yield rows, values

    def at(self, X: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """A function that takes coefficients (m, n) to values (rows, m) at new rows; their kernel values are computed once."""
        features = self._landmarks.features(self.kernel, self._place(X))
        local = list(self._local(X, features))

        def values(coef: np.ndarray) -> np.ndarray:
            there = self.array(coef)
            out = features @ self.project(there).T
            for new, place, own in local:
                out[new] += own @ there[:, self._order[place]].T
            return to_numpy(out)

        return values

    def expansion(self, coef: np.ndarray, units: np.ndarray) -> ExpansionPart:
        """What prediction at new rows needs: the landmarks, and with leaves the training rows, with their coefficients."""
        iterates, own, _ = coef.shape
        flat = coef.reshape(iterates * own, self.n)[:, self._order]
        there, back = self.array(flat), self._landmarks.whitening.T
        parts = [to_numpy(there[:, piece.place] @ widened(piece.factor) @ back) for piece in self._pieces]
        basis, used = self._chosen.basis, self._chosen.indices
        of_landmarks = np.sum(parts, axis=0).reshape(iterates, own, self.rank)
        if self._tree is None:
            return ExpansionPart(self.kernel, basis, used, of_landmarks, units)
        return LeafPart(
            self.kernel,
            basis,
            used,
            of_landmarks,
            units,
            tree=self._tree,
            rows=self._X[self._order],
            starts=self._starts,
            leaf_coef=flat.reshape(coef.shape),
            corrections=-np.stack(parts).reshape(len(parts), iterates, own, self.rank),
        )

    @property
    def held_shift(self) -> float | None:
        """Shift of the solver in the cache, if there is one."""
        return None if self._solver is None else self._solver.shift

    @property
    def n_factorizations(self) -> int:
        """How many solvers have been made so far."""
        return self._n_factorizations

    @property
    def nbytes(self) -> int:
        """Bytes held, solver included."""
        blocks = sum(piece.block.nbytes for piece in self._pieces if piece.block is not None)
        own = self._factor.nbytes + self._order.nbytes + self._landmarks.whitening.nbytes + self._landmarks.basis.nbytes
        return int(own + blocks + (self._solver.nbytes if self._solver else 0))
