"""What turns the moments of the outputs into intervals and probabilities: learnt from out-of-sample predictions.

A regression learns its noise, the scale of the first layer's variance and the half-widths of its intervals; a classification
learns the temperature of its logits, the scale of their variance and, where labels are wrong, a floor of its probabilities.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from kstonet._records import storable
from kstonet.checkpoint import Run
from kstonet.gram.dense import DenseGram
from kstonet.gram.kernels import Kernel
from kstonet.iro import IROSettings, IROState
from kstonet.layers.moments import FIRST_LAYER, Moments
from kstonet.layers.ridge import RidgeLayer
from kstonet.uncertainty.conformal import ConformalFactor, Factor, SkewedFactor, StudentFactor, conformal_factor
from kstonet.uncertainty.cross_fitting import MANY_ROWS, SOME_ROWS, cross_fitted, left_out_rows, part_of_many, regression_folds
from kstonet.uncertainty.distribution import PredictiveDistribution
from kstonet.uncertainty.local_scale import LocalScale, learn_scale
from kstonet.uncertainty.logits import bootstrap_scale, out_of_sample_logits
from kstonet.uncertainty.network import NetworkUncertainty, left_out_log_odds, left_out_moments, left_out_variance
from kstonet.uncertainty.noise_model import EXACT, NoiseModel, left_out_variances
from kstonet.uncertainty.online import OnlineFactor, adapting
from kstonet.uncertainty.regions import JointFactor
from kstonet.uncertainty.ridge_scale import GROWTH, drawn_scale, label_correlation, ridge_scale
from kstonet.uncertainty.tempering import Tempering, fresh_tempering

MOST_TOO_SMALL = 2.0  # how many times residuals are made larger at most
ENOUGH_ROWS = 1000  # whose variance is compared with their squared errors: a mean over all of them


@dataclass(frozen=True)
class TrainingEnd:
    """Where a training ended: all that a calibration may ask of it."""

    states: Sequence[IROState]  # the averaged iterates
    X: np.ndarray
    inputs: Any
    outputs: np.ndarray
    weights: np.ndarray | None
    settings: IROSettings
    run: Run = field(default_factory=Run)
    growth: float | None = None  # of errors, for what was chosen fits these rows, too; None where that is not known
    restarted: Callable[[np.ndarray, np.random.Generator], np.ndarray] | None = None  # out-of-sample logits of other labels


def _leaves_out_singly(first: Any, n: int) -> bool:
    """Whether to leave rows out of the last refit one at a time costs little: of regressions on dense matrices, or few rows."""
    return isinstance(first, RidgeLayer) and (n <= MANY_ROWS or all(isinstance(one.gram, DenseGram) for one in first.groups))


def _times_larger(end: TrainingEnd, part: np.ndarray, better: np.ndarray, alike: np.ndarray) -> np.ndarray:
    """How many times larger than those of ``alike`` predictions of a part the residuals of the ``better`` ones are, (k,)."""
    outputs, weights = end.outputs[part], None if end.weights is None else end.weights[part]
    if weights is not None and not weights.any():
        return np.ones(outputs.shape[1])
    sizes = [np.average(np.abs(outputs - mean), axis=0, weights=weights) for mean in (better, alike)]
    return np.clip(sizes[0] / np.maximum(sizes[1], EXACT), 1.0, MOST_TOO_SMALL)


def _further(outputs: np.ndarray, means: np.ndarray, times: np.ndarray | float, weights: np.ndarray | None) -> np.ndarray:
    """Outputs that are so many times further from their means, (n, k).

    The median of the residuals stays: where most targets have one value, new ones have it, too.
    """
    residuals = outputs - means
    middle = np.median(residuals if weights is None else residuals[weights > 0], axis=0)
    return np.asarray(outputs + (times - 1.0) * (residuals - middle))


@storable(error="nonnegative k")
@dataclass(frozen=True)
class IntervalCalibration:
    """The noise of a regression and the half-widths of its intervals.

    Parameters
    ----------
    noise : NoiseModel
        The noise of the data and the scale of the first layer's variance.
    factor : NormalFactor, StudentFactor, ConformalFactor, SkewedFactor or OnlineFactor
        How many standard deviations an interval reaches below and above the mean.
    out_of_sample : ConformalFactor or SkewedFactor, optional
        The factor that the training rows gave, predicted out of sample.
    local : LocalScale, optional
        What multiplies the standard deviations at a row; None where they are as the noise model says.
    groups : ndarray, optional
        Groups of rows with factors of their own, from a later calibration.
    group_factors : tuple of ConformalFactor
        The factors, in the order of ``groups``.
    joint : JointFactor, optional
        The radii of joint regions of several outputs.
    joint_out_of_sample : JointFactor, optional
        Those that the training rows gave.
    group_joints : tuple of JointFactor
        The radii of groups.
    error : ndarray of shape (k,), optional
        Root mean squares of the residuals, in the units of training.
    """

    noise: NoiseModel
    factor: Factor | OnlineFactor
    out_of_sample: ConformalFactor | SkewedFactor | None = None
    local: LocalScale | None = None
    groups: np.ndarray | None = None
    group_factors: tuple[ConformalFactor, ...] = ()
    joint: JointFactor | None = None
    joint_out_of_sample: JointFactor | None = None
    group_joints: tuple[JointFactor, ...] = ()
    error: np.ndarray | None = None

    @classmethod
    def learn(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> Self:
        """From the residuals asked for: "local", "crossfit" or "training"."""
        if residuals == "training":
            fitted = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0)
            noise = NoiseModel.of_training(end.outputs - fitted, end.weights)
            return cls(noise, StudentFactor(noise.df), error=np.sqrt(np.diagonal(noise.covariance)))
        kernels, local = [part.kernel for part in uncertainty.expansion.parts], residuals == "local"
        n, last = len(end.outputs), end.states[-1]
        ridge = isinstance(last.network.first, RidgeLayer)
        singly = last.rest_after == 0 and end.growth is not None  # rows left out one at a time say it all
        if not singly and (n > MANY_ROWS or (ridge and n >= SOME_ROWS)):
            return cls._of_some(end, uncertainty, kernels, local=local)
        moments, outputs = left_out_moments(uncertainty, end.states, end.inputs), end.outputs
        if not singly:
            loop = end.inputs, outputs, end.settings, end.weights
            moments = replace(moments, mean=cross_fitted(last, *loop, regression_folds(n), end.run))
        if end.growth is not None:
            outputs = _further(outputs, moments.mean, end.growth, end.weights)
        return cls.of_residuals(outputs, moments, end.weights, (kernels, end.X) if local else None)

    @classmethod
    def _of_some(
        cls, end: TrainingEnd, uncertainty: NetworkUncertainty, kernels: Sequence[Kernel | None], *, local: bool
    ) -> Self:
        """From a part of many rows, predicted by a network that goes on without them.

        Where single rows can be left out of the last refit as well, from these, with residuals that are as many times larger
        as those of the part are when it is hidden.
        """
        n, loop = len(end.outputs), (end.inputs, end.outputs, end.settings, end.weights)
        part = rows = part_of_many(n)
        predicted = cross_fitted(end.states[-1], *loop, run=end.run, part=part)[part]
        if _leaves_out_singly(end.states[-1].network.first, n):
            rows = left_out_rows(n, part)
            moments = left_out_moments(uncertainty, end.states, end.inputs, rows)
            times = _times_larger(end, part, predicted, moments.mean[np.searchsorted(rows, part)])
            outputs = _further(end.outputs[rows], moments.mean, times, None if end.weights is None else end.weights[rows])
        else:
            moments, outputs = replace(uncertainty.moments(end.X[rows]), mean=predicted), end.outputs[rows]
        X, weights = end.X[rows], None if end.weights is None else end.weights[rows]
        return cls.of_residuals(outputs, moments, weights, (kernels, X) if local else None)

    @classmethod
    def of_residuals(
        cls,
        outputs: np.ndarray,
        moments: Moments,
        weights: np.ndarray | None,
        place: tuple[Sequence[Kernel | None], np.ndarray] | None = None,
    ) -> Self:
        """From out-of-sample moments of the training rows, and outputs that are as far from the means as those of new rows.

        With ``place``, the network's kernels and the rows themselves, the size of the noise and the skewness of the errors are
        learnt, too.
        """
        residuals = outputs - moments.mean
        error = np.sqrt(np.average(residuals**2, axis=0, weights=weights))
        variances = {source: np.diagonal(part, axis1=1, axis2=2) for source, part in moments.parts.items()}
        other = sum(part for source, part in variances.items() if source != FIRST_LAYER)
        rows = moments.mean, variances[FIRST_LAYER], np.asarray(other)
        noise = NoiseModel.of_residuals(residuals, *rows, weights)
        left_out = noise.left_out(residuals, *rows, weights)
        deviations = np.maximum(np.sqrt(left_out_variances(left_out, *rows)), EXACT)
        counted = np.ones(len(residuals), dtype=bool) if weights is None else weights > 0
        if place is None:
            factor = ConformalFactor.of(residuals[counted], deviations[counted], noise.df)
            joint = _joint(residuals, moments, left_out, deviations, noise.df, counted)
            return cls(noise, factor, factor, joint=joint, joint_out_of_sample=joint, error=error)
        kernels, X = place
        found = learn_scale(_of_features(kernels), X, moments.mean, residuals / deviations, noise.df, weights)
        deviations = deviations * np.exp(found.left_out)
        own = conformal_factor(residuals[counted], deviations[counted], found.df)
        joint = _joint(residuals, moments, left_out, deviations, found.df, counted)
        noise = replace(noise, df=found.df)
        return cls(noise, own, own, found.scale, joint=joint, joint_out_of_sample=joint, error=error)

    def scales(self, X: np.ndarray, means: np.ndarray) -> np.ndarray | None:
        """What multiplies the standard deviations (n, k) at standardised rows; None for nothing."""
        return None if self.local is None else np.exp(self.local(X, means))

    def of_rows(
        self, errors: np.ndarray, distribution: PredictiveDistribution, weight: np.ndarray | None, groups: np.ndarray | None
    ) -> IntervalCalibration:
        """With the errors (n, k) of rows that the network was not fitted on, their weights and their groups."""
        skewed = isinstance(self.factor, SkewedFactor) or (isinstance(self.factor, OnlineFactor) and self.factor.skewed)
        labels = None if groups is None else np.unique(groups)
        parts = [] if labels is None else [np.flatnonzero(groups == label) for label in labels]

        def factor(rows: Any) -> ConformalFactor:
            return ConformalFactor.of(
                errors[rows], distribution.deviations[rows], weight=None if weight is None else weight[rows]
            )

        def joint(rows: Any) -> JointFactor:
            shrinkage = None if self.joint is None else self.joint.shrinkage
            own = None if weight is None else weight[rows]
            return JointFactor.of(errors[rows], distribution.covariance[rows], weight=own, shrinkage=shrinkage)

        several, everything = errors.shape[1] > 1, slice(None)
        return replace(
            self,
            factor=SkewedFactor.of(errors, distribution.deviations) if skewed and weight is None else factor(everything),
            groups=labels,
            group_factors=tuple(map(factor, parts)),
            joint=joint(everything) if several else None,
            group_joints=tuple(map(joint, parts)) if several else (),
        )

    def of_fit(self) -> IntervalCalibration:
        """With what the training rows gave."""
        assert self.out_of_sample is not None
        own, joint = self.out_of_sample, self.joint_out_of_sample
        return replace(self, factor=own, groups=None, group_factors=(), joint=joint, group_joints=())

    def after(self, errors: np.ndarray, distribution: PredictiveDistribution, step: float | str) -> IntervalCalibration:
        """After the errors (m, k) of rows of a series, in the order of their arrival."""
        factor = adapting(self.factor, step)
        if factor is None:
            raise ValueError(
                "update needs scores to begin with, and this fit keeps none (residuals='training'); calibrate it with rows it "
                "was not fitted on, or fit with residuals='crossfit'."
            )
        return replace(
            self,
            factor=factor.seen(errors / np.maximum(distribution.deviations, 1e-300)),
            groups=None,
            group_factors=(),
            joint=None if self.joint is None else self.joint.seen(errors, distribution.covariance, step),
            group_joints=(),
        )


def _joint(
    residuals: np.ndarray,
    moments: Moments,
    left_out: list[tuple[np.ndarray, NoiseModel]],
    deviations: np.ndarray,
    df: float,
    counted: np.ndarray,
) -> JointFactor | None:
    """Radii of joint regions, from rows whose correlations come from models without them; None for one output."""
    n, k = residuals.shape
    if k == 1:
        return None
    covariance = np.empty((n, k, k))
    for part, model in left_out:
        covariance[part] = model.covariances(moments.mean[part], {source: own[part] for source, own in moments.parts.items()})
    own = np.maximum(np.sqrt(np.diagonal(covariance, axis1=1, axis2=2)), EXACT)
    covariance *= (deviations / own)[:, :, None] * (deviations / own)[:, None, :]
    return JointFactor.of(residuals[counted], covariance[counted], df)


@storable(floor="nonnegative k")
@dataclass(frozen=True)
class ProbabilityCalibration:
    """The temperature of a classifier's logits and what their variance lacks.

    Parameters
    ----------
    temperature : float
        Divides the logits.
    variance_scale : float
        Multiplies the variance of the logits.
    out_of_sample : tuple of ndarray, optional
        Out-of-sample logits of the training rows, their class codes and, if there are any, their weights.
    given : tuple of ndarray, optional
        Logits and class codes of the rows that replaced them in a later calibration.
    floor : ndarray of shape (k,), optional
        The least probability of every class, where a share of the labels is wrong.
    first_scale : float
        Multiplies the part of the variance that comes from the first layer.
    growth : float
        The power of 1/(4p(1 - p)) that the variance of the log-odds grows with where a class is certain.
    """

    temperature: float = 1.0
    variance_scale: float = 1.0
    out_of_sample: tuple[np.ndarray, ...] | None = None
    given: tuple[np.ndarray, ...] | None = None
    floor: np.ndarray | None = None
    first_scale: float = 1.0
    growth: float = 0.0

    @classmethod
    def of_fit(cls, predicted: tuple[np.ndarray, ...]) -> ProbabilityCalibration:
        """From out-of-sample logits of the training rows, their class codes and, if there are any, their weights."""
        found = fresh_tempering(*predicted)
        return cls(found.temperature, out_of_sample=predicted, floor=found.floor)

    def tempered(self, found: Tempering, given: tuple[np.ndarray, ...] | None) -> ProbabilityCalibration:
        """With another tempering, learnt from given rows or from those of the fit."""
        return replace(self, temperature=found.temperature, floor=found.floor, given=given)

    @property
    def tempering(self) -> Tempering:
        """What makes probabilities of logits."""
        return Tempering(self.temperature, self.floor)

    @classmethod
    def learn(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> ProbabilityCalibration:
        """From out-of-sample logits; "training" learns nothing."""
        if residuals == "training":
            return cls()
        logits = out_of_sample_logits(end.states[-1], end.inputs, end.outputs, end.settings, end.weights, end.run)
        predicted: tuple[np.ndarray, ...] = (logits, end.outputs)
        if end.weights is not None:
            predicted = tuple(part[end.weights > 0] for part in (logits, end.outputs, end.weights))
        found = cls.of_fit(predicted)
        if end.states[-1].network.first.left_out:
            return found._of_regressions(end, uncertainty, logits)
        fitted = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0)
        some = np.arange(0, len(fitted), max(1, len(fitted) // ENOUGH_ROWS))
        variance = uncertainty.log_odds(end.X[some], found.temperature).variance
        rows = end.states[-1], end.inputs, found.tempering, fitted, (some, variance), end.settings, end.weights
        return replace(found, variance_scale=bootstrap_scale(*rows, end.run))

    def _of_regressions(self, end: TrainingEnd, uncertainty: NetworkUncertainty, logits: np.ndarray) -> ProbabilityCalibration:
        """Where the first layer is a regression of indicators: with what its variance lacks."""
        p = self.tempering.probabilities(logits)
        thinned = left_out_variance(uncertainty, end.states[-1], end.inputs)
        first = ridge_scale(end.states[-1].network.first, thinned, p, end.outputs, end.weights)  # type: ignore[arg-type]
        found = replace(self, first_scale=first, growth=GROWTH)
        units, (n, classes) = end.states[-1].network.first.n_outputs, logits.shape
        if end.restarted is None or n > MANY_ROWS or units < classes - 1:  # a draw of labels is a fit, here an expensive one
            return found
        errors = np.eye(units), label_correlation(p, units, end.weights)
        apart, together = left_out_log_odds(uncertainty, end.states, end.inputs, thinned, self.temperature, *errors)
        parts, least = apart.parts, together.parts[FIRST_LAYER]
        variance = np.asarray(sum(parts.values()) + (first - 1.0) * parts[FIRST_LAYER])
        truth = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0) / self.temperature
        scale = drawn_scale(end.restarted, truth, first * least, variance, self.tempering, end.weights)
        return replace(found, variance_scale=scale)


def _of_features(kernels: Sequence[Kernel | None]) -> Kernel | None:
    """The first kernel that knows single features: noise need not follow the directions that the mean follows."""
    return next((kernel for kernel in kernels if kernel is None or kernel.projection is None), None)
