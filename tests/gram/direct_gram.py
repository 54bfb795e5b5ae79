"""A Gram as somebody outside the package would write it: nothing of kstonet but the kernel's values and what expansions are."""

from dataclasses import dataclass

import numpy as np

from kstonet.gram import GramTooLargeError
from kstonet.gram.blocks import row_blocks
from kstonet.gram.expansion import ExpansionPart


@dataclass(frozen=True)
class Inverse:
    shift: float
    matrix: np.ndarray

    def solve(self, rows):
        return rows @ self.matrix


class DirectGram:
    """The matrix and the inverse of K + shift·I, both explicit."""

    def __init__(self, X, kernel, *, device=None, dtype="float64", max_memory=None):
        if device is not None or dtype != "float64":
            raise ValueError(f"device={device!r}, dtype={dtype!r}: this Gram is NumPy in float64 only.")
        if max_memory is not None and max_memory < self.bytes_needed(len(X)):
            raise GramTooLargeError(f"n={len(X):,} rows need more than max_memory={max_memory:.3g} bytes.")
        self.n, self.dtype, self.kernel = len(X), np.float64, kernel
        self.X, self.K = X, kernel(X, X)
        self.inverse, self.n_factorizations = None, 0
        np.fill_diagonal(self.K, kernel.diagonal(X))

    @staticmethod
    def bytes_needed(n):
        return 2 * 8 * n * n

    def array(self, values):
        return np.asarray(values, dtype=np.float64)

    def product(self, rows):
        return rows @ self.K

    def shifted(self, shift):
        if shift != self.held_shift:
            self.inverse = Inverse(shift, np.linalg.inv(self.K + shift * np.eye(self.n)))
            self.n_factorizations += 1
        return self.inverse

    def solve_on(self, indices, shift, rows):
        return rows @ np.linalg.pinv(self.K[np.ix_(indices, indices)] + shift * np.eye(len(indices)), hermitian=True)

    def columns(self, indices):
        return self.K[:, indices]

    def diagonal(self):
        return np.diagonal(self.K)

    def cross(self, X):
        for rows in row_blocks(len(X), self.n):
            yield rows, self.kernel(X[rows], self.X)

    def expansion(self, coef, units):
        everyone = np.arange(self.n)
        return ExpansionPart(self.kernel, self.X, everyone, coef, units)  # a simple one keeps all rows

    @property
    def held_shift(self):
        return None if self.inverse is None else self.inverse.shift

    @property
    def norm_bound(self):
        return float(np.abs(self.K).sum(axis=1).max())

    @property
    def nbytes(self):
        return self.K.nbytes + (0 if self.inverse is None else self.inverse.matrix.nbytes)
