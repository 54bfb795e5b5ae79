"""What the recursion cannot know: the noise of the data, its growth and tails, and the scale of the first layer's variance.

Eq. (finalvar) takes the noise from *training* residuals. Where the network nearly interpolates these say little about new
rows, and the first layer's variance has the scale of the kernel's prior whatever the data. Out-of-sample residuals (left out,
or cross-fitted) with the variances that belong to them tell both. For every output

    residual_i / sqrt(V_i) ~ Student's t of variance one,   V_i = noise · exp(growth · mean_i) + scale · first_i + other_i,

and noise, growth, scale and the degrees of freedom, shared by the outputs, maximise that likelihood. ``first`` is the first
layer's part of the variance, ``other`` the rest of it.
Many targets scatter more where they are large; the mean is held inside the range that the growth was learned on, and the noise
below the largest residual. Errors of real data have heavier tails than the normal distribution: with it, 80 % intervals are too
wide where 95 % ones are too short.

Three weak priors decide where the data do not, and count as about one row. The degrees of freedom have Gamma(2, rate 0.1)
(Juárez & Steel 2010). The growth is standard normal. The scale has a lognormal about one, the recursion as it stands, with a
factor of ten as its deviation: where no training row is far from the others, any scale up to some size fits as well, and zero
would promise too much in gaps.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from kstonet._records import storable
from kstonet.layers.moments import FIRST_LAYER

EXACT = 1e-10  # a residual of standardised targets that is none
SMALLEST, LARGEST = 1e-10, 1e2  # noise over the mean squared residual, and scale over what would explain all of it
FEWEST_DF, MOST_DF = 2.5, 300.0  # a variance, and more than is needed to be normal
SCALE_DEVIATION = np.log(10.0)  # of the prior of log(scale)
FEW_ROWS, FOLDS_OF_FEW, FEWEST_LEFT = 1000, 10, 3  # rows of which each is judged by a model fitted without it
MOST_GROWTH = 4.0  # in a standard deviation of the targets: a factor of 55
MOST_EXPONENT = 100.0  # e to its power and one over it are numbers whose squares are in the floating-point range


@storable(covariance="float k k", scale="nonnegative k", df="extended", growth="float k", span="float 2 k")
@dataclass(frozen=True)
class NoiseModel:
    """Noise covariance of the outputs, the factor of the first layer's variance, the tails, and the growth of the noise.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
        Where the mean is zero.
    scale : ndarray of shape (k,)
    df : float
        Degrees of freedom of Student's t; infinite for the normal distribution.
    growth : ndarray of shape (k,), optional
        Slope of the log-variance of the noise in the mean; without it all rows have the same noise.
    span : ndarray of shape (2, k), optional
        The means between which it grows, to at most the size of the largest residual.
    """

    covariance: np.ndarray
    scale: np.ndarray
    df: float = np.inf
    growth: np.ndarray | None = None
    span: np.ndarray | None = None

    @classmethod
    def of_training(cls, residuals: np.ndarray, sample_weight: np.ndarray | None = None) -> NoiseModel:
        """The paper's: the mean square of the training residuals, and the recursion as it stands."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        return cls((residuals * weights[:, None]).T @ residuals / weights.sum(), np.ones(residuals.shape[1]))

    @classmethod
    def of_residuals(
        cls,
        residuals: np.ndarray,
        means: np.ndarray,
        first: np.ndarray,
        other: np.ndarray,
        sample_weight: np.ndarray | None = None,
        df: float | None = None,
    ) -> NoiseModel:
        """From out-of-sample residuals (n, k), means and variances of the same rows, all (n, k); ``df`` if it is known."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        outputs = [_Output.of(*columns, weights) for columns in zip(residuals.T, means.T, first.T, other.T, strict=True)]
        rows = weights.sum() ** 2 / (weights**2).sum()  # Kish's effective number

        def loss(log_df: float) -> float:
            df = np.exp(log_df)
            return float(sum(output.fitted(df, rows)[0] for output in outputs) - (log_df - 0.1 * df) / rows)

        if df is None:
            bounds = np.log([FEWEST_DF, MOST_DF])
            df = float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02}).x))
        noise, scale, growth = np.array([output.fitted(df, rows)[1] for output in outputs]).reshape(len(outputs), 3).T
        span = _supported_span(residuals[weights > 0], means, noise, growth)
        same = cls(np.diag(noise), scale, df, growth, span)
        standard = residuals / np.sqrt(np.maximum(same.variances(means, first, other), 1e-300))
        moment = (standard * weights[:, None]).T @ standard / weights.sum()
        some = noise > 0.0  # residuals that are exactly zero have no noise, and nothing to correlate
        size = np.sqrt(np.maximum(np.diagonal(moment), 1e-300) / np.where(some, noise, 1.0))
        covariance = np.where(np.outer(some, some), moment / np.outer(size, size), np.diag(np.full(len(some), 1e-300)))
        return replace(same, covariance=covariance)

    def noise(self, means: np.ndarray) -> np.ndarray:
        """Noise covariance (n, k, k) where the means (n, k) are."""
        if self.growth is None or self.span is None:
            return np.broadcast_to(self.covariance, (len(means), *self.covariance.shape))
        root = _exp(0.5 * self.growth * np.clip(means, *self.span))
        return np.asarray(root[:, :, None] * self.covariance * root[:, None, :])

    def variances(self, means: np.ndarray, first: np.ndarray, other: np.ndarray) -> np.ndarray:
        """Of the outputs (n, k), from the means and the variances of the recursion."""
        return np.asarray(np.diagonal(self.noise(means), axis1=1, axis2=2) + self.scale * first + other)

    def left_out(
        self,
        residuals: np.ndarray,
        means: np.ndarray,
        first: np.ndarray,
        other: np.ndarray,
        sample_weight: np.ndarray | None = None,
    ) -> list[tuple[np.ndarray, NoiseModel]]:
        """Parts of the rows this model was fitted on, each with a model that was fitted without it.

        Noise, scale and growth that are fitted to few residuals make just these look small beside their variances; new rows
        have no such luck. From ``FEW_ROWS`` on that makes no difference, and all rows have this model.
        """
        n = len(residuals)
        everything = [(np.ones(n, dtype=bool), self)]
        if not FEWEST_LEFT < n < FEW_ROWS:
            return everything
        found = []
        for fold in range(FOLDS_OF_FEW):
            hidden = np.arange(n) % FOLDS_OF_FEW == fold
            kept = ~hidden
            weights = None if sample_weight is None else sample_weight[kept]
            if weights is not None and not weights.any():
                return everything
            without = NoiseModel.of_residuals(residuals[kept], means[kept], first[kept], other[kept], weights, self.df)
            found.append((hidden, without))
        return found

    def covariances(self, means: np.ndarray, parts: dict[str, np.ndarray]) -> np.ndarray:
        """Of the outputs (n, k, k), from the means and the covariances of the recursion by source."""
        return np.asarray(self.noise(means) + sum(self.scaled(parts).values()))

    def scaled(self, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The covariances (n, k, k) by source, the first layer's with its scale."""
        root = np.sqrt(self.scale)
        return parts | {FIRST_LAYER: root[:, None] * parts[FIRST_LAYER] * root}


def _supported_span(residuals: np.ndarray, means: np.ndarray, noise: np.ndarray, growth: np.ndarray) -> np.ndarray:
    """The means (2, k) between which the noise grows: those of the rows, as far as its deviation is that of a residual.

    Where targets have heavy tails, the largest means are many standard deviations away, and an exponential that was learned
    among the small ones promises there what no residual shows: intervals were a million times wider than all targets.
    """
    span = np.stack([means.min(axis=0), means.max(axis=0)])
    largest = (residuals**2).max(axis=0)
    for j in np.flatnonzero((growth != 0.0) & (noise > 0.0) & (largest > 0.0)):
        end = np.log(largest[j] / noise[j]) / growth[j]
        span[:, j] = np.minimum(span[:, j], end) if growth[j] > 0 else np.maximum(span[:, j], end)
    return span


def left_out_variances(
    left_out: list[tuple[np.ndarray, NoiseModel]], means: np.ndarray, first: np.ndarray, other: np.ndarray
) -> np.ndarray:
    """Variances (n, k) of the rows, each from the model without it: see :meth:`NoiseModel.left_out`."""
    found = np.empty_like(means)
    for part, model in left_out:
        found[part] = model.variances(means[part], first[part], other[part])
    return found


@dataclass
class _Output:
    """The out-of-sample residuals of one output, and the likelihood of noise, scale and growth."""

    square: np.ndarray
    mean: np.ndarray
    first: np.ndarray
    other: np.ndarray
    weights: np.ndarray  # that add up to one
    total: float  # mean squared residual
    unit: float  # scale that would explain all of it
    found: np.ndarray | None = None  # by the last fit, where the next begins: log noise, log scale, growth

    @classmethod
    def of(cls, residual: np.ndarray, mean: np.ndarray, first: np.ndarray, other: np.ndarray, weights: np.ndarray) -> _Output:
        weights = weights / weights.sum()
        total, prior = float(weights @ residual**2), float(weights @ first)
        return cls(residual**2, mean, first, other, weights, total, total / prior if prior > 0.0 else 1.0)

    def fitted(self, df: float, rows: float) -> tuple[float, tuple[float, float, float]]:
        """The smallest mean negative log-density, and (noise, scale, growth) where it is."""
        if self.total <= EXACT**2:
            return 0.0, (0.0, 0.0, 0.0)
        constant = gammaln(0.5 * df) - gammaln(0.5 * (df + 1.0)) + 0.5 * np.log(df - 2.0)

        def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
            noise, scale = self.total * _exp(at[0] + at[2] * self.mean), self.unit * np.exp(at[1])
            variance = noise + scale * self.first + self.other
            away = self.square / variance
            log_density = 0.5 * np.log(variance) + 0.5 * (df + 1.0) * np.log1p(away / (df - 2.0))
            slope = 0.5 * self.weights / variance * (1.0 - (df + 1.0) * away / (df - 2.0 + away))
            log_scale = np.log(scale) / SCALE_DEVIATION
            value = constant + self.weights @ log_density + 0.5 * (log_scale**2 + at[2] ** 2) / rows
            gradient = [slope @ noise, scale * (slope @ self.first), (slope * noise) @ self.mean]
            return float(value), np.array(gradient) + np.array([0.0, log_scale / SCALE_DEVIATION, at[2]]) / rows

        bound = (np.log(SMALLEST), np.log(LARGEST))
        bounds = [bound, bound, (-MOST_GROWTH, MOST_GROWTH)]
        starts = [[*np.log(shares), 0.0] for shares in ([0.5, 0.5], [1.0, 1e-4], [1e-3, 1.0])]
        fits = [
            minimize(loss, start, jac=True, method="L-BFGS-B", bounds=bounds)
            for start in (starts if self.found is None else [self.found])
        ]
        best = min(fits, key=lambda fit: float(fit.fun))
        self.found = best.x
        noise, scale = self.total * np.exp(best.x[0]), self.unit * np.exp(best.x[1])
        return float(best.fun), (float(noise), float(scale), float(best.x[2]))


def _exp(values: np.ndarray) -> np.ndarray:
    """The exponential, which growth over means of many standard deviations must not drive out of the floating-point range."""
    return np.asarray(np.exp(np.clip(values, -MOST_EXPONENT, MOST_EXPONENT)))
