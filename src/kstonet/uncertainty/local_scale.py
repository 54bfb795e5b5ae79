"""Noise that depends on the features: how much larger or smaller the errors are at a row than the noise model says.

The noise model of :mod:`kstonet.uncertainty.noise_model` standardises the out-of-sample residuals of an output,
z = residual/deviation; where it is right everywhere, z has variance one at every x. Here its scale is a function of x,

    z_i/exp(η_i) ~ Student's t of variance one,   η(x) = constant + f(x) + g(mean(x)),

with f in the space of the network's own kernel and g in that of a Gaussian kernel of the predicted mean, both on at most a few
hundred landmarks. The penalised likelihood is maximised by Fisher's scoring. The information of log-scale is 2·df/(df + 3)
whatever the scale, so that every step is a ridge regression with the same weights: one eigendecomposition serves all steps and
all ridges, and values with a row left out follow from the leverages. (Least squares on log|z|, the usual short cut, has two and
a half times the variance at normal errors.)

The ridge is chosen by the log-density of the left-out values, and in doubt for the constant: the largest ridge within one
standard error of the best, of those that are better than the constant by more than one standard error in log-density and in the
score of 90 % intervals. (Log-density alone is deceived by rows that occur twice: their residuals are next to nothing.) The
scores of the conformal factor are made with the left-out values, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln

from kstonet._records import storable
from kstonet.gram.expansion import ExpansionPart
from kstonet.gram.halves import shared_product
from kstonet.gram.kernels import RBF, Kernel
from kstonet.uncertainty.conformal import JUDGED_AT
from kstonet.uncertainty.noise_model import FEWEST_DF, MOST_DF

FEWEST_ROWS = 40  # fewer say nothing about where errors are large
LANDMARKS, CENTRES = 400, 30  # of the features and of the predicted mean
SHARPNESS = 2.0  # of the kernel of the mean, in its variances
RIDGES = np.geomspace(1e3, 0.03, 12)  # in units of the information of one row; k(x, x) is one
OWN = 0.1  # correlation below zero of means with their residuals: at most 0.07 on twelve real tables, 0.2 to 1 without signal
STEPS, CLOSE = 30, 1e-3  # of Fisher's scoring, and the change of η that ends it
LARGEST = 4.0  # η is at most this, either way: a factor of 55
NEGLIGIBLE = 1e-10  # an eigenvalue over the largest one
FEW_COLUMNS = 128  # of a product that one thread makes at a time


@storable(centres="float k c", sharpness="float k", slopes="float k c", intercept="float k", bounds="float 2 k")
@dataclass(frozen=True)
class LocalScale:
    """The logarithm η of what multiplies the standard deviations at a row.

    Parameters
    ----------
    part : ExpansionPart
        f of every output: a kernel, its landmarks and the coefficients.
    centres, slopes : ndarray of shape (k, c)
        g of every output: Σ slope·exp(-sharpness (mean - centre)²).
    sharpness : ndarray of shape (k,)
    intercept : ndarray of shape (k,)
    bounds : ndarray of shape (2, k)
        The smallest and the largest η of the training rows, and of new ones.
    """

    part: ExpansionPart
    centres: np.ndarray
    sharpness: np.ndarray
    slopes: np.ndarray
    intercept: np.ndarray
    bounds: np.ndarray

    def __call__(self, X: np.ndarray, means: np.ndarray) -> np.ndarray:
        """η (n, k) at standardised rows, from the means (n, k) of the outputs there."""
        eta = self.part.features(X) @ self.part.coef[0].T + self.intercept
        for j, (centres, sharpness, slopes) in enumerate(zip(self.centres, self.sharpness, self.slopes, strict=True)):
            eta[:, j] += _of_mean(means[:, j], centres, sharpness) @ slopes
        return np.asarray(np.clip(eta, *self.bounds))


@dataclass(frozen=True)
class LearntScale:
    """A local scale, or None where one constant is as good; η of the training rows, each left out; the degrees of freedom."""

    scale: LocalScale | None
    left_out: np.ndarray
    df: float


def learn_scale(
    kernel: Kernel | None, X: np.ndarray, means: np.ndarray, standard: np.ndarray, df: float, weights: np.ndarray | None
) -> LearntScale:
    """Learn the local scale of every output from standardised out-of-sample residuals.

    Parameters
    ----------
    kernel : Kernel or None
        The network's. None, for one that is linear in the features, and kernels whose k(x, x) depends on x stand for a Gaussian
        kernel.
    X : ndarray of shape (n, p)
        Standardised training rows, or their kernel values.
    means, standard : ndarray of shape (n, k)
        Out-of-sample means of the outputs, and residuals over standard deviations.
    df : float
        Degrees of freedom of Student's t that goes with the standardised residuals.
    weights : ndarray of shape (n,), optional
        Sample weights; rows of weight zero take no part.

    Returns
    -------
    LearntScale

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 1))
    >>> residuals = np.exp(X) * rng.normal(size=(1000, 1))
    >>> found = learn_scale(RBF(gamma=1.0), X, np.zeros((1000, 1)), residuals, 50.0, None)
    >>> at = np.array([[-0.5], [0.5]])
    >>> bool(np.abs(found.scale(at, np.zeros((2, 1))) - at).max() < 0.15)
    True
    >>> learn_scale(RBF(gamma=1.0), X, np.zeros((1000, 1)), rng.normal(size=(1000, 1)), 50.0, None).scale is None
    True
    """
    n, k = standard.shape
    nothing = LearntScale(None, np.zeros((n, k)), df)
    counted = np.arange(n) if weights is None else np.flatnonzero(weights > 0)
    if len(counted) < FEWEST_ROWS:
        return nothing
    own = np.ones(len(counted)) if weights is None else weights[counted] / weights[counted].mean()
    landmarks = np.sort(np.random.default_rng(0).permutation(counted)[:LANDMARKS])
    if kernel is None or not _bounded(kernel, X[landmarks]):
        kernel = RBF(gamma=1.0 / X.shape[1])
    basis = kernel.basis(X, landmarks)
    root = _inverse_root(kernel.features(X[landmarks], basis))
    features = shared_product(root.T, kernel.features(X[counted], basis).T).T  # by the rows of X
    coef, fits = np.zeros((1, k, len(landmarks))), []
    centres, slopes, sharpness = np.zeros((k, CENTRES)), np.zeros((k, CENTRES)), np.ones(k)
    intercept, bounds, left_out = np.zeros(k), np.zeros((2, k)), np.zeros((n, k))
    for j in range(k):
        mean = means[counted, j]
        sharpness[j] = SHARPNESS / max(float(np.var(mean)), 1e-300)
        centres[j] = np.quantile(mean, (np.arange(CENTRES) + 0.5) / CENTRES)
        lift = _inverse_root(_of_mean(centres[j], centres[j], sharpness[j]))
        if _knows_its_residual(mean, standard[counted, j], own):
            lift = lift[:, :0]
        smoother = _Smoother.of(np.hstack([features, _of_mean(mean, centres[j], sharpness[j]) @ lift]), own)
        fit = _chosen(smoother, standard[counted, j], df)
        fits.append(fit)
        if fit is None:
            continue
        coef[0, j], slopes[j] = root @ fit.coef[: root.shape[1]], lift @ fit.coef[root.shape[1] :]
        intercept[j], bounds[:, j], left_out[counted, j] = fit.intercept, [fit.eta.min(), fit.eta.max()], fit.left_out
    if not any(fits):
        return nothing
    part = ExpansionPart(kernel, basis, landmarks, coef, np.arange(k))
    scale = LocalScale(part, centres, sharpness, slopes, intercept, bounds)
    return LearntScale(scale, left_out, _best_df(standard[counted], left_out[counted], own[:, None]))


def _bounded(kernel: Kernel, X: np.ndarray) -> bool:
    """Whether k(x, x) is the same everywhere. Functions of other kernels grow with x, and so would η outside the data."""
    if kernel.precomputed:
        return True
    diagonal = np.asarray(kernel.diagonal(X))
    return bool(np.ptp(diagonal) <= 1e-9 * np.abs(diagonal).max())


def _knows_its_residual(mean: np.ndarray, residual: np.ndarray, weights: np.ndarray) -> bool:
    """Whether the out-of-sample means of rows differ by what their own residuals are.

    Where hardly anything can be predicted, the mean of all rows but one is higher the lower the target of that one is. Errors
    would seem to follow the mean very closely, and not at new rows: 95 % intervals of pure noise covered a third of them.
    """
    mean, residual = (values - np.average(values, weights=weights) for values in (mean, residual))
    sizes = np.average(mean**2, weights=weights) * np.average(residual**2, weights=weights)
    return bool(np.average(mean * residual, weights=weights) < -OWN * np.sqrt(sizes))


def _of_mean(mean: np.ndarray, centres: np.ndarray, sharpness: float) -> np.ndarray:
    return np.asarray(np.exp(-sharpness * (mean[:, None] - centres) ** 2))


def _inverse_root(K: np.ndarray) -> np.ndarray:
    """R with RRᵀ = K⁻¹ on the span of K, scaled to a mean diagonal of one: K's features have the norm of K's functions."""
    values, vectors = np.linalg.eigh(K)
    kept = values > NEGLIGIBLE * max(values[-1], 1e-300)
    size = np.sqrt(max(float(np.mean(np.diagonal(K))), 1e-300))
    return np.asarray(vectors[:, kept] / np.sqrt(values[kept]) / size)


@dataclass(frozen=True)
class _Fit:
    """η of the training rows for one ridge, their left-out values, and the log-densities of these."""

    eta: np.ndarray
    left_out: np.ndarray
    coef: np.ndarray
    intercept: float
    df: float
    scores: np.ndarray


@dataclass(frozen=True)
class _Smoother:
    """Ridge regressions on fixed features for all ridges: the eigenvectors of the weighted, centred features."""

    vectors: np.ndarray  # (n, q), orthonormal
    sizes: np.ndarray  # (q,)
    back: np.ndarray  # (features, q), from coordinates to coefficients
    centre: np.ndarray
    weights: np.ndarray  # of mean one

    @classmethod
    def of(cls, features: np.ndarray, weights: np.ndarray) -> _Smoother:
        centre = np.average(features, axis=0, weights=weights)
        weighted = (features - centre) * np.sqrt(weights)[:, None]
        values, back = np.linalg.eigh(shared_product(weighted.T, weighted, FEW_COLUMNS))
        kept = values > NEGLIGIBLE * max(values[-1], 1e-300)
        sizes = np.sqrt(values[kept])
        return cls(shared_product((back[:, kept] / sizes).T, weighted.T).T, sizes, back[:, kept], centre, weights)

    def fitted(self, z: np.ndarray, ridge: float, df: float, eta: np.ndarray) -> _Fit:
        """Fisher's scoring from ``eta``."""
        kept, root = self.sizes**2 / (self.sizes**2 + ridge), np.sqrt(self.weights)
        for _ in range(STEPS):
            wanted = eta + _pull(z, eta, df)
            mean = float(np.average(wanted, weights=self.weights))
            along = self.vectors.T @ (root * (wanted - mean))
            step = mean + self.vectors @ (kept * along) / root - eta
            longest = float(np.abs(step).max())
            eta = np.clip(eta + step * min(1.0, 1.0 / max(longest, 1e-300)), -LARGEST, LARGEST)
            if longest < CLOSE:
                break
        leverage = self.weights / self.weights.sum() + self.vectors**2 @ kept
        left_out = np.clip(eta - leverage / np.maximum(1.0 - leverage, 1e-3) * _pull(z, eta, df), -LARGEST, LARGEST)
        coef = self.back @ (kept * along / self.sizes)
        return _Fit(eta, left_out, coef, mean - float(self.centre @ coef), df, _log_density(z, left_out, df))


def _chosen(smoother: _Smoother, z: np.ndarray, df: float) -> _Fit | None:
    """The fit of the ridge that is chosen; None for the constant."""
    weights = smoother.weights
    if not np.average(z**2, weights=weights) > 0.0:  # residuals that are none
        return None
    effective = weights.sum() ** 2 / (weights**2).sum()
    constant, width = _log_density(z, np.zeros_like(z), df), _interval_loss(z, np.zeros_like(z), weights)

    def ahead(first: np.ndarray, second: np.ndarray) -> bool:
        """Whether one row of log-densities is better than another by more than a standard error."""
        gain = np.average(first - second, weights=weights)
        return bool(gain > np.sqrt(np.average((first - second - gain) ** 2, weights=weights) / effective))

    fits: list[_Fit] = []
    for ridge, eta in _from_last(fits, np.zeros_like(z)):
        first = smoother.fitted(z, ridge, df, eta)
        df = _best_df(z, first.left_out, weights)
        fits.append(smoother.fitted(z, ridge, df, first.eta))
        best = max(fits, key=lambda fit: float(np.average(fit.scores, weights=weights)))
        if best is not fits[-1] and ahead(best.scores, fits[-1].scores):
            break
    better = [
        fit
        for fit in fits
        if ahead(fit.scores, constant) and ahead(width, _interval_loss(z, fit.left_out, weights))  # a loss: smaller is better
    ]
    if not better:
        return None
    best = max(better, key=lambda fit: float(np.average(fit.scores, weights=weights)))
    return next(fit for fit in better if fit is best or not ahead(best.scores, fit.scores))


def _interval_loss(z: np.ndarray, eta: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Winkler's score of conformal intervals ±q·exp(η) of every row."""
    size = np.exp(eta)
    ratio = np.abs(z) / size
    order = np.argsort(ratio)
    reached = np.cumsum(weights[order])
    q = ratio[order[np.searchsorted(reached, JUDGED_AT * reached[-1])]]
    return np.asarray(2.0 * q * size + 2.0 / (1.0 - JUDGED_AT) * np.maximum(np.abs(z) - q * size, 0.0))


def _from_last(fits: list[_Fit], zero: np.ndarray) -> Iterator[tuple[float, np.ndarray]]:
    """The ridges from the largest on, each with the η of the one before."""
    for ridge in RIDGES:
        yield float(ridge), fits[-1].eta if fits else zero


def _pull(z: np.ndarray, eta: np.ndarray, df: float) -> np.ndarray:
    """The derivative of the log-density in η, over its information 2·df/(df + 3)."""
    square = z**2 * np.exp(-2.0 * eta)
    return np.asarray(((df + 1.0) * square / (df - 2.0 + square) - 1.0) * (df + 3.0) / (2.0 * df))


def _log_density(z: np.ndarray, eta: np.ndarray, df: float) -> np.ndarray:
    """Of Student's t of variance exp(2η), without its constant π."""
    constant = gammaln(0.5 * (df + 1.0)) - gammaln(0.5 * df) - 0.5 * np.log(df - 2.0)
    return np.asarray(constant - eta - 0.5 * (df + 1.0) * np.log1p(z**2 * np.exp(-2.0 * eta) / (df - 2.0)))


def _best_df(z: np.ndarray, eta: np.ndarray, weights: np.ndarray) -> float:
    """The likeliest degrees of freedom, with the prior of the noise model."""

    def loss(log_df: float) -> float:
        df = float(np.exp(log_df))
        return float(-(weights * _log_density(z, eta, df)).sum() - (log_df - 0.1 * df))

    found = minimize_scalar(loss, bounds=np.log([FEWEST_DF, MOST_DF]), method="bounded", options={"xatol": 0.02})
    return float(np.exp(found.x))
