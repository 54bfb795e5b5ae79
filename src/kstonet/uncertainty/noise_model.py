"""What the recursion cannot know: the noise of the data, its tails, and the scale of the first layer's variance.

Eq. (finalvar) takes the noise from *training* residuals. Where the network nearly interpolates these say little about new
rows, and the first layer's variance has the scale of the kernel's prior whatever the data. Honest residuals (left out, or
cross-fitted) with the variances that belong to them tell both. For every output

    residual_i / sqrt(V_i) ~ Student's t of variance one,   V_i = noise + scale · first_i + other_i,

and noise, scale and the degrees of freedom, shared by the outputs, maximise that likelihood. ``first`` is the first layer's
part of the variance, ``other`` the rest of it. Errors of real data have heavier tails than the normal distribution: with it,
80 % intervals are too wide where 95 % ones are too short.

Two weak priors decide where the data do not, and count as about one row. The degrees of freedom have Gamma(2, rate 0.1)
(Juárez & Steel 2010). The scale has a lognormal about one, the recursion as it stands, with a factor of ten as its deviation:
where no training row is far from the others, any scale up to some size fits as well, and zero would promise too much in gaps.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize, minimize_scalar
from scipy.special import gammaln

from kstonet.uncertainty.moments import FIRST_LAYER

SMALLEST, LARGEST = 1e-10, 1e2  # noise over the mean squared residual, and scale over what would explain all of it
FEWEST_DF, MOST_DF = 2.5, 300.0  # a variance, and more than is needed to be normal
SCALE_DEVIATION = np.log(10.0)  # of the prior of log(scale)


@dataclass(frozen=True)
class NoiseModel:
    """Noise covariance of the outputs, the factor of the first layer's variance, and the tails.

    Parameters
    ----------
    covariance : ndarray of shape (k, k)
    scale : ndarray of shape (k,)
    df : float
        Degrees of freedom of Student's t; infinite for the normal distribution.
    """

    covariance: np.ndarray
    scale: np.ndarray
    df: float = np.inf

    @classmethod
    def of_training(cls, residuals: np.ndarray, sample_weight: np.ndarray | None = None) -> NoiseModel:
        """The paper's: the mean square of the training residuals, and the recursion as it stands."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        return cls((residuals * weights[:, None]).T @ residuals / weights.sum(), np.ones(residuals.shape[1]))

    @classmethod
    def of_honest(
        cls, residuals: np.ndarray, first: np.ndarray, other: np.ndarray, sample_weight: np.ndarray | None = None
    ) -> NoiseModel:
        """From honest residuals (n, k) and the variances (n, k) of the same rows."""
        weights = np.ones(len(residuals)) if sample_weight is None else sample_weight
        outputs = [_Output.of(*columns, weights) for columns in zip(residuals.T, first.T, other.T, strict=True)]
        rows = weights.sum() ** 2 / (weights**2).sum()  # Kish's effective number

        def loss(log_df: float) -> float:
            df = np.exp(log_df)
            return float(sum(output.fitted(df, rows)[0] for output in outputs) - (log_df - 0.1 * df) / rows)

        bounds = np.log([FEWEST_DF, MOST_DF])
        df = float(np.exp(minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 0.02}).x))
        fits = np.array([output.fitted(df, rows)[1] for output in outputs]).reshape(len(outputs), 2)
        deviation, scale = np.sqrt(fits[:, 0]), fits[:, 1]
        standard = residuals / np.sqrt(np.maximum(fits[:, 0] + scale * first + other, 1e-300))
        moment = (standard * weights[:, None]).T @ standard / weights.sum()
        size = np.sqrt(np.maximum(np.diagonal(moment), 1e-300))
        return cls(np.outer(deviation, deviation) * (moment / np.outer(size, size)), scale, df)

    def scaled(self, parts: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The covariances (n, k, k) by source, the first layer's with its scale."""
        root = np.sqrt(self.scale)
        return parts | {FIRST_LAYER: root[:, None] * parts[FIRST_LAYER] * root}


@dataclass
class _Output:
    """The honest residuals of one output, and the likelihood of noise and scale."""

    square: np.ndarray
    first: np.ndarray
    other: np.ndarray
    weights: np.ndarray  # that add up to one
    total: float  # mean squared residual
    unit: float  # scale that would explain all of it
    logs: np.ndarray | None = None  # of the last fit, where the next begins

    @classmethod
    def of(cls, residual: np.ndarray, first: np.ndarray, other: np.ndarray, weights: np.ndarray) -> _Output:
        weights = weights / weights.sum()
        total, prior = float(weights @ residual**2), float(weights @ first)
        return cls(residual**2, first, other, weights, total, total / prior if prior > 0.0 else 1.0)

    def fitted(self, df: float, rows: float) -> tuple[float, tuple[float, float]]:
        """The smallest mean negative log-density, and (noise, scale) where it is."""
        if self.total <= 1e-20:  # standardised targets are reproduced exactly
            return 0.0, (0.0, 0.0)
        constant = gammaln(0.5 * df) - gammaln(0.5 * (df + 1.0)) + 0.5 * np.log(df - 2.0)

        def loss(logs: np.ndarray) -> tuple[float, np.ndarray]:
            noise, scale = self.total * np.exp(logs[0]), self.unit * np.exp(logs[1])
            variance = noise + scale * self.first + self.other
            away = self.square / variance
            log_density = 0.5 * np.log(variance) + 0.5 * (df + 1.0) * np.log1p(away / (df - 2.0))
            slope = 0.5 * self.weights / variance * (1.0 - (df + 1.0) * away / (df - 2.0 + away))
            log_scale = np.log(scale) / SCALE_DEVIATION
            value = constant + self.weights @ log_density + 0.5 * log_scale**2 / rows
            return float(value), np.array(
                [noise * slope.sum(), scale * (slope @ self.first) + log_scale / SCALE_DEVIATION / rows]
            )

        bound = (np.log(SMALLEST), np.log(LARGEST))
        starts = np.log([[0.5, 0.5], [1.0, 1e-4], [1e-3, 1.0]]) if self.logs is None else [self.logs]
        fits = [minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[bound, bound]) for start in starts]
        best = min(fits, key=lambda fit: float(fit.fun))
        self.logs = best.x
        return float(best.fun), (float(self.total * np.exp(best.x[0])), float(self.unit * np.exp(best.x[1])))
