"""Smooth kernels in few dimensions: a pivoted Cholesky factor of small rank serves K + shift·I almost exactly.

For such data (a handful of features is typical) the eigenvalues of K fall below the shift after a few hundred. Then
K + shift·I ≈ L Lᵀ + shift·I with an n×r factor costs n·r² to make and n·r to apply, instead of n³/3 and n². What is left
out is smaller than the shift, and the solver corrects for it with products by the true K: nothing is approximated.
"""

from __future__ import annotations

import numpy as np

from kstonet._arrays import Array, namespace, zeros

LEFT_OUT = 0.1  # trace of K - L Lᵀ allowed, in units of the shift: the solver's corrections then shrink tenfold or better
MOST = 8  # ranks above n / MOST do not pay
PROBE = 64  # columns between two checks of how fast the trace falls


class PivotedCholesky:
    """L with K ≈ L Lᵀ, grown greedily until the trace left out is at most ``tolerance``.

    ``factor`` is None where the rank needed would be too large to pay; that is noticed after a few probes.
    """

    def __init__(self, K: Array, tolerance: float) -> None:
        n = K.shape[0]
        most = n // MOST
        everyone = namespace(K).arange(n)
        remaining = K[everyone, everyone] * 1.0
        self.trace = float(remaining.sum())
        self.factor: Array | None = None
        if not self.trace > tolerance or most < PROBE:
            return
        rows = zeros(K, (most, n))  # Lᵀ, so that a new column is a contiguous row
        log_trace = np.log(self.trace)
        for rank in range(most):
            pivot = int(remaining.argmax())
            row = K[pivot] - rows[:rank, pivot] @ rows[:rank]
            row = row / float(remaining[pivot]) ** 0.5
            rows[rank] = row
            remaining = namespace(K).clip(remaining - row * row, 0.0, None)
            remaining[pivot] = 0.0
            self.trace = float(remaining.sum())
            if self.trace <= tolerance:
                self.factor = rows[: rank + 1] * 1.0
                return
            if (rank + 1) % PROBE == 0:
                fallen = log_trace - np.log(self.trace)
                missing = np.log(self.trace) - np.log(tolerance)
                # The decay slows down along the spectrum, so the last probe is an optimistic forecast.
                if missing > fallen * (most - rank - 1) / PROBE:
                    return
                log_trace = np.log(self.trace)


class LowRankSolver:
    """(L Lᵀ + shift·I)⁻¹ by Woodbury's identity, with L handed over as its transpose (r, n)."""

    def __init__(self, transposed: Array, shift: float) -> None:
        xp = namespace(transposed)
        small = transposed @ transposed.T
        ranks = xp.arange(small.shape[0])
        small[ranks, ranks] += shift
        self._transposed, self._shift = transposed, shift
        self._inverse = xp.linalg.inv(small)  # r×r, condition at most |K|/shift

    @property
    def nbytes(self) -> int:
        """Bytes held."""
        return int(self._transposed.nbytes + self._inverse.nbytes)

    def solve(self, rows: Array) -> Array:
        """Apply the inverse to every row."""
        weights = (rows @ self._transposed.T) @ self._inverse
        return (rows - weights @ self._transposed) / self._shift
