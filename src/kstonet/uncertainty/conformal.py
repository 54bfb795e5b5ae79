"""How many standard deviations an interval takes: a quantile of a distribution, or of scores (conformal prediction)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import chi2, f, norm, t

from kstonet._records import storable


class Symmetric:
    """A factor that is the same below and above the mean."""

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width, in standard deviations, of a central interval."""
        raise NotImplementedError

    def tails(self, coverage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far an interval reaches below and above the mean, in standard deviations."""
        factor = self(coverage)
        return factor, factor


@storable()
@dataclass(frozen=True)
class NormalFactor(Symmetric):
    """The normal quantile."""

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width, in standard deviations, of a central interval."""
        return np.asarray(norm.ppf(0.5 + 0.5 * np.asarray(coverage)))


@storable(df="extended")
@dataclass(frozen=True)
class StudentFactor(Symmetric):
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


def student_radius(coverage: np.ndarray, df: float, dimension: int) -> np.ndarray:
    """The Mahalanobis distance within which Student's t of some dimensions, and of unit covariance, has this probability.

    Examples
    --------
    >>> import numpy as np
    >>> float(student_radius(0.95, np.inf, 1).round(2)), float(student_radius(0.95, np.inf, 2).round(2))
    (1.96, 2.45)
    """
    if np.isinf(df):
        return np.asarray(np.sqrt(chi2.ppf(coverage, dimension)))
    return np.asarray(np.sqrt(dimension * f.ppf(coverage, dimension, df)) * unit_scale(df))


@storable(scores="nonnegative n | nonnegative n k", df="extended", weights="nonnegative n | nonnegative n k")
@dataclass(frozen=True)
class ConformalFactor(Symmetric):
    """Quantiles of the scores |y - mean|/std of rows the model was not fitted on (split conformal prediction).

    For exchangeable rows an interval of mean ± factor·std covers a new observation with probability at least ``coverage``
    (and at most 1/(n + 1) more), whatever the distribution: the factor is the ⌈(n + 1)·coverage⌉-th smallest of n scores, and
    infinite where n is too small for the coverage asked. With ``df`` Student's t goes on there, where it is beyond the scores:
    a finite interval, without the guarantee, of at most n - 1 degrees of freedom, as the deviation is estimated from n rows.

    Parameters
    ----------
    scores : ndarray of shape (n,) or (n, k)
        Sorted along the first axis.
    df : float, optional
        Degrees of freedom of the distribution that the scores were standardised for.
    weights : ndarray like ``scores``, optional
        How much more often a row like this one occurs among new rows than among these (weighted conformal prediction,
        Tibshirani et al. 2019). A new row is taken to weigh Σw²/Σw, the mean weight of new rows.
    dimension : int, default=1
        Number of targets that a score is the distance of: more than one for joint regions.

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
    weights: np.ndarray | None = None
    dimension: int = 1

    @classmethod
    def of(
        cls,
        residuals: np.ndarray,
        std: np.ndarray,
        df: float | None = None,
        weight: np.ndarray | None = None,
        dimension: int = 1,
    ) -> ConformalFactor:
        """From residuals, the standard deviations predicted for them, and weights (n,) of the rows."""
        scores = np.abs(residuals) / np.maximum(std, 1e-300)
        if weight is None:
            return cls(np.sort(scores, axis=0), df, dimension=dimension)
        order = np.argsort(scores, axis=0, kind="stable")
        return cls(np.take_along_axis(scores, order, axis=0), df, np.asarray(weight[order] / weight.mean()), dimension)

    def __call__(self, coverage: np.ndarray) -> np.ndarray:
        """Half-width in standard deviations; shape of ``coverage``, with one more axis (k,) for several outputs."""
        n, coverage = len(self.scores), np.asarray(coverage)
        padded = np.concatenate([np.zeros_like(self.scores[:1]), self.scores, np.full_like(self.scores[:1], np.inf)])
        if self.weights is None:
            rank = np.ceil((n + 1) * coverage - 1e-9).astype(int)
            factor = np.asarray(padded[np.clip(rank, 0, n + 1)])
        else:
            weights = self.weights.reshape(n, -1)
            shares = np.cumsum(weights, axis=0) / (n + (weights**2).mean(axis=0))  # the weights have mean one
            columns = zip(padded.reshape(n + 2, -1).T, shares.T, strict=True)
            found = [column[1 + np.searchsorted(share, coverage - 1e-9)] for column, share in columns]
            factor = np.stack(found, axis=-1).reshape((*coverage.shape, *self.scores.shape[1:]))
        if self.df is None:
            return factor
        further = beyond(coverage, self.df, n, self.dimension).reshape(*coverage.shape, *(1,) * (self.scores.ndim - 1))
        return np.where(np.isfinite(factor), factor, np.maximum(further, padded[n]))


def beyond(coverage: np.ndarray, df: float, n: int, dimension: int = 1) -> np.ndarray:
    """Student's t where n scores end: of the residuals, or of a deviation estimated from so many rows, whichever is wider."""
    if dimension > 1:
        both = (student_radius(coverage, freedom, dimension) for freedom in (df, max(n - 1.0, 3.0)))
        return np.asarray(np.maximum(*both))
    return np.asarray(np.maximum(StudentFactor(df)(coverage), t.ppf(0.5 + 0.5 * coverage, max(n - 1, 1))))


@storable(scores="float n k", df="extended")
@dataclass(frozen=True)
class SkewedFactor:
    """Quantiles of the signed scores (y - mean)/std of rows the model was not fitted on: intervals with two tails of their own.

    Below and above an interval lies at most half of what it may miss, each with the guarantee of :class:`ConformalFactor`; this
    costs a little width where errors are symmetric. With ``df`` Student's t goes on beyond the scores.

    Parameters
    ----------
    scores : ndarray of shape (n, k)
        Sorted along the first axis.
    df : float, optional
        Degrees of freedom of the distribution that the scores were standardised for.

    Examples
    --------
    >>> import numpy as np
    >>> below, above = SkewedFactor(np.linspace(-1.0, 3.0, 39)[:, None]).tails(np.array([0.9]))
    >>> below.round(2), above.round(2)
    (array([[0.89]]), array([[2.89]]))
    """

    scores: np.ndarray
    df: float | None = None

    @classmethod
    def of(cls, residuals: np.ndarray, std: np.ndarray, df: float | None = None) -> SkewedFactor:
        """From residuals and the standard deviations predicted for them."""
        return cls(np.sort(residuals / np.maximum(std, 1e-300), axis=0), df)

    def tails(self, coverage: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far an interval reaches below and above the mean, in standard deviations, shape (levels, k) each."""
        return self._reach(-self.scores[::-1], coverage), self._reach(self.scores, coverage)

    def _reach(self, scores: np.ndarray, coverage: np.ndarray) -> np.ndarray:
        n, coverage = len(scores), np.asarray(coverage)
        rank = np.ceil((n + 1) * (0.5 + 0.5 * coverage) - 1e-9).astype(int)
        padded = np.concatenate([scores, np.full_like(scores[:1], np.inf)])
        reach = np.asarray(padded[np.clip(rank - 1, 0, n)])
        if self.df is None:
            return reach
        return np.where(np.isfinite(reach), reach, np.maximum(beyond(coverage, self.df, n)[..., None], scores[-1]))


Factor = NormalFactor | StudentFactor | ConformalFactor | SkewedFactor

JUDGED_AT = 0.9  # the coverage at which intervals are compared
CERTAIN = 2.0  # standard errors by which they must be better


def conformal_factor(residuals: np.ndarray, std: np.ndarray, df: float | None = None) -> ConformalFactor | SkewedFactor:
    """One factor for both sides, or two where errors are skewed: where the interval score of other rows says so.

    Quantiles of either half of the rows are judged on the other half, all outputs together.

    Examples
    --------
    >>> import numpy as np
    >>> errors = np.random.default_rng(0).normal(size=(2000, 1))
    >>> type(conformal_factor(errors, np.ones((2000, 1)))).__name__, type(conformal_factor(np.exp(errors), 1.0)).__name__
    ('ConformalFactor', 'SkewedFactor')
    """
    std = np.broadcast_to(std, residuals.shape)
    half = np.random.default_rng(0).permutation(len(residuals)) % 2 == 0
    gains = np.zeros(residuals.shape)
    for part in (half, ~half):
        losses = []
        for kind in (ConformalFactor, SkewedFactor):
            below, above = kind.of(residuals[part], std[part], df or np.inf).tails(np.array([JUDGED_AT]))
            reach, missed = below + above, np.maximum(-residuals / std - below, 0.0) + np.maximum(residuals / std - above, 0.0)
            losses.append(reach + 2.0 / (1.0 - JUDGED_AT) * missed)
        gains[~part] = (losses[0] - losses[1])[~part]
    gain = gains.mean(axis=1)
    skewed = len(gain) > 3 and gain.mean() > CERTAIN * gain.std() / np.sqrt(len(gain))
    return (SkewedFactor if skewed else ConformalFactor).of(residuals, std, df)
