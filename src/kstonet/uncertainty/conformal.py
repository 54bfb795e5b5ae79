"""How many standard deviations an interval takes: a quantile of a distribution, or of scores (conformal prediction)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import norm, t

from kstonet._records import storable


@storable()
@dataclass(frozen=True)
class NormalFactor:
    """The normal quantile."""

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width, in standard deviations, of a central interval."""
        return np.asarray(norm.ppf(0.5 + 0.5 * np.asarray(coverage)))


@storable(df="extended")
@dataclass(frozen=True)
class StudentFactor:
    """The quantile of Student's t of variance one; of the normal distribution for infinite ``df``.

    Examples
    --------
    >>> import numpy as np
    >>> float(StudentFactor(3.0)(0.8).round(3)), float(StudentFactor(np.inf)(0.8).round(3))
    (0.946, 1.282)
    """

    df: float

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width, in standard deviations, of a central interval."""
        return np.asarray(t.ppf(0.5 + 0.5 * np.asarray(coverage), self.df) * unit_scale(self.df))


def unit_scale(df: float) -> float:
    """What t of ``df`` > 2 degrees of freedom is multiplied with to have variance one."""
    return 1.0 if np.isinf(df) else float(np.sqrt((df - 2.0) / df))


@storable(scores="nonnegative n | nonnegative n k", df="extended")
@dataclass(frozen=True)
class ConformalFactor:
    """Quantiles of the scores |y - mean|/std of rows the model was not fitted on (split conformal prediction).

    For exchangeable rows an interval of mean ± factor·std covers a new observation with probability at least ``coverage``
    (and at most 1/(n + 1) more), whatever the distribution: the factor is the ⌈(n + 1)·coverage⌉-th smallest of n scores, and
    infinite where n is too small for the coverage asked. With ``df`` Student's t goes on there, where it is beyond the scores:
    a finite interval, without the guarantee.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, k)
        Sorted along the first axis.
    df : float, optional
        Degrees of freedom of the distribution that the scores were standardised for.

    Examples
    --------
    >>> import numpy as np
    >>> scores = np.linspace(0.1, 1.9, 19)
    >>> ConformalFactor(scores)(np.array([0.9, 0.95, 0.99])).round(2)
    array([1.8, 1.9, inf])
    >>> ConformalFactor(scores, df=5.0)(np.array([0.9, 0.95, 0.99])).round(2)
    array([1.8 , 1.9 , 3.12])
    """

    scores: np.ndarray
    df: float | None = None

    @classmethod
    def of(cls, residuals: np.ndarray, std: np.ndarray, df: float | None = None) -> ConformalFactor:
        """From residuals and the standard deviations predicted for them."""
        return cls(np.sort(np.abs(residuals) / np.maximum(std, 1e-300), axis=0), df)

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width in standard deviations; shape of ``coverage``, with one more axis (k,) for several outputs."""
        n, coverage = len(self.scores), np.asarray(coverage)
        rank = np.ceil((n + 1) * coverage - 1e-9).astype(int)
        padded = np.concatenate([np.zeros_like(self.scores[:1]), self.scores, np.full_like(self.scores[:1], np.inf)])
        factor = np.asarray(padded[np.clip(rank, 0, n + 1)])
        if self.df is None:
            return factor
        beyond = StudentFactor(self.df)(coverage).reshape(*coverage.shape, *(1,) * (self.scores.ndim - 1))
        return np.where(np.isfinite(factor), factor, np.maximum(beyond, padded[n]))
