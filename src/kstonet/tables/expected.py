"""What is expected of missing numbers, given the values that are there: conditional means of a normal distribution.

Its mean and covariance are estimated by the EM algorithm (Dempster, Laird & Rubin 1977), which needs no complete rows. What the
other numbers of a row tell about a missing one, its median does not know: with one value in ten missing at random, first calls
on twelve real tables err by 0.93 of what they do with medians (benchmarks/missing_values.py).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from kstonet._records import storable

MOST_COLUMNS = 100  # more take seconds
FEWEST_ROWS, ROWS_PER_COLUMN = 1000, 10  # more do not change the distribution; of many columns more are needed
MOST_ITERATIONS, SETTLED = 50, 0.003  # of EM; change of the expected values, in standard deviations, that ends it
PRIOR_OF_ROWS, PRIOR_OF_COLUMNS = 0.005, 0.2  # rows that the prior of the covariance, independence, counts for
STEPS = 30  # of conjugate gradients: exact for so many missing values of a row
BLOCK = 10_000  # rows that are filled at a time: what it takes besides the matrix is a few times their size
TINY = 1e-300  # in place of zero


@storable(mean="float q", scale="positive q", partial="float q q", columns="int q")
@dataclass(frozen=True)
class ExpectedValues:
    """A normal distribution of columns, by what it says of each given the others.

    Parameters
    ----------
    columns : ndarray of int of shape (q,)
        Which columns of a matrix it is about.
    mean : ndarray of shape (q,)
    scale : ndarray of shape (q,)
        Standard deviations given all the others.
    partial : ndarray of shape (q, q)
        Inverse of the covariance, times both scales: ones on the diagonal, minus the partial correlations beside it.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.random.default_rng(0).normal(size=(500, 1)) + np.array([3.0, 5.0])  # two columns that differ by a constant
    >>> missing = np.zeros((500, 2), dtype=bool)
    >>> missing[:50, 1] = True
    >>> expected = ExpectedValues.of(np.where(missing, 0.0, x), missing, np.arange(2))
    >>> filled = expected.fill(np.array([[4.0, 0.0], [4.0, 7.0]]), np.array([[False, True], [False, False]]))
    >>> filled.round(1)
    array([[4., 6.],
           [4., 7.]])
    """

    columns: np.ndarray
    mean: np.ndarray
    scale: np.ndarray
    partial: np.ndarray

    @classmethod
    def of(
        cls, values: np.ndarray, missing: np.ndarray, columns: np.ndarray, weights: np.ndarray | None = None
    ) -> ExpectedValues:
        """Learn from training rows.

        Parameters
        ----------
        values, missing : ndarray of shape (n, q)
            Values, and where there are none; every column has some.
        columns : ndarray of int of shape (q,)
            Their places.
        weights : ndarray of shape (n,), optional
            Sample weights.

        Returns
        -------
        ExpectedValues
        """
        n, q = values.shape
        w = np.ones(n) if weights is None else weights
        there = w[:, None] * ~missing
        middle = (there * values).sum(axis=0) / there.sum(axis=0)
        spread = np.sqrt((there * (values - middle) ** 2).sum(axis=0) / there.sum(axis=0))
        spread[spread <= 1e-12 * np.abs(middle)] = 1.0  # constant columns
        z = np.where(missing, 0.0, (values - middle) / spread)
        prior = PRIOR_OF_ROWS * w.sum() + PRIOR_OF_COLUMNS * q
        patterns, which = np.unique(missing, axis=0, return_inverse=True)
        groups = [(pattern, np.flatnonzero(which.ravel() == k)) for k, pattern in enumerate(patterns) if pattern.any()]
        unknown = np.zeros((q, q))
        mean, covariance = _moments(z, w, unknown, prior)
        for _ in range(MOST_ITERATIONS if groups else 0):
            inverse = np.linalg.inv(covariance)
            before, unknown = z.copy(), np.zeros((q, q))
            for gone, rows in groups:
                own = np.linalg.inv(inverse[np.ix_(gone, gone)])
                z[np.ix_(rows, gone)] = mean[gone] - (z[np.ix_(rows, ~gone)] - mean[~gone]) @ inverse[np.ix_(~gone, gone)] @ own
                unknown[np.ix_(gone, gone)] += w[rows].sum() * own
            mean, covariance = _moments(z, w, unknown, prior)
            if np.sqrt(np.mean((z - before)[missing] ** 2)) < SETTLED:
                break
        inverse = np.linalg.inv(covariance)
        size = 1.0 / np.sqrt(np.diagonal(inverse))
        return cls(columns, middle + spread * mean, spread * size, inverse * np.outer(size, size))

    def fill(self, matrix: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """Put the expected values in place of missing ones, into the matrix itself, where these have any number.

        The inverse covariance of what is missing in a row, times the expected values, is minus that of missing and known ones,
        times the latter. Many rows are solved together, by conjugate gradients that stay among what is missing.

        Parameters
        ----------
        matrix : ndarray of shape (n, p)
            With the ``columns`` among its columns.
        missing : ndarray of shape (n, q)

        Returns
        -------
        ndarray of shape (n, p)
        """
        rows = np.flatnonzero(missing.any(axis=1))
        for start in range(0, len(rows), BLOCK):
            block = rows[start : start + BLOCK]
            places = np.ix_(block, self.columns)
            matrix[places] = self._filled(matrix[places], missing[block])
        return matrix

    def _filled(self, values: np.ndarray, missing: np.ndarray) -> np.ndarray:
        """The same for the values of these columns alone."""
        u = np.where(missing, 0.0, (values - self.mean) / self.scale)
        residual = -(u @ self.partial) * missing
        direction, square = residual, (residual**2).sum(axis=1, keepdims=True)
        for _ in range(min(STEPS, int(missing.sum(axis=1).max()))):
            image = (direction @ self.partial) * missing
            step = square / np.maximum((direction * image).sum(axis=1, keepdims=True), TINY)
            u += step * direction
            residual = residual - step * image
            last, square = square, (residual**2).sum(axis=1, keepdims=True)
            direction = residual + square / np.maximum(last, TINY) * direction
        return np.where(missing, self.mean + self.scale * u, values)


def _moments(z: np.ndarray, w: np.ndarray, unknown: np.ndarray, prior: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of rows whose missing values have the means in ``z`` and covariances that add up to ``unknown``."""
    mean = w @ z / w.sum()
    centred = z - mean
    covariance = (centred * w[:, None]).T @ centred + unknown
    covariance[np.diag_indices_from(covariance)] += prior
    return mean, covariance / (w.sum() + prior)
