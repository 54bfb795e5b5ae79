"""A Gram without any cleverness: the whole matrix, and a dense solver for every system. An oracle for small problems."""

import numpy as np

from kstonet.gram import register_gram
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import ExpansionPart
from kstonet.gram.memory import require_memory


class DirectSolver:
    """(K + shift·I)⁻¹ by Gaussian elimination."""

    def __init__(self, matrix, shift):
        self.shift = shift
        self._system = matrix + shift * np.eye(len(matrix))

    def solve(self, rows):
        return np.linalg.solve(self._system, rows.T).T


class DirectGram:
    """A matrix in memory, in float64 on the CPU."""

    def __init__(self, X, kernel, *, device=None, dtype="float64", max_memory=None):
        if device is not None or dtype != "float64":
            raise ValueError(f"device={device!r}, dtype={dtype!r}: solver='direct' is float64 on the CPU only.")
        self.n, self.kernel, self.dtype = len(X), kernel, np.float64
        if max_memory is not None:
            require_memory(self.n, 16 * self.n**2, max_memory, "matrix and system in float64", given=True)
        self._X = X
        self._K = np.array(kernel(X, X))
        np.fill_diagonal(self._K, kernel.diagonal(X))  # without the rounding of distances
        self._solver = None
        self.n_factorizations = 0

    def array(self, values):
        return np.asarray(values, dtype=np.float64)

    def product(self, rows):
        return rows @ self._K

    def shifted(self, shift):
        if self.held_shift != shift:
            self._solver = DirectSolver(self._K, shift)
            self.n_factorizations += 1
        return self._solver

    def solve_on(self, indices, shift, rows):
        block = self._K[np.ix_(indices, indices)] + shift * np.eye(len(indices))
        return np.linalg.lstsq(block, rows.T, rcond=None)[0].T  # duplicate rows make a block singular

    def columns(self, indices):
        return self._K[:, indices]

    def diagonal(self):
        return np.diagonal(self._K).copy()

    def cross(self, X):
        for rows in row_blocks(len(X), self.n):
            yield rows, self.kernel(X[rows], self._X)

    def expansion(self, coef, units):
        return ExpansionPart.of(self.kernel, self._X, coef, units)

    @property
    def held_shift(self):
        return None if self._solver is None else self._solver.shift

    @property
    def norm_bound(self):
        return float(np.abs(self._K).sum(axis=1).max())

    @property
    def nbytes(self):
        return self._K.nbytes * (1 if self._solver is None else 2)


register_gram("direct", DirectGram)
