"""What turns the moments of the outputs into intervals and probabilities: learnt from out-of-sample predictions.

A regression learns its noise, the scale of the first layer's variance and the half-widths of its intervals; a classification
learns the temperature of its logits and the scale of their variance.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet.checkpoint import Run
from kstonet.gram.kernels import Kernel
from kstonet.iro import IROSettings, IROState
from kstonet.layers.moments import FIRST_LAYER, Moments
from kstonet.uncertainty.conformal import ConformalFactor, Factor, SkewedFactor, StudentFactor, conformal_factor
from kstonet.uncertainty.cross_fitting import MANY_ROWS, cross_fitted, part_of_many, regression_folds
from kstonet.uncertainty.local_scale import LocalScale, learn_scale
from kstonet.uncertainty.logits import bootstrap_scale, log_odds_variance, out_of_sample_logits, out_of_sample_temperature
from kstonet.uncertainty.network import NetworkUncertainty, left_out_moments
from kstonet.uncertainty.noise_model import EXACT, NoiseModel


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
    predicted: Callable[[Run], np.ndarray] | None = None  # makes out-of-sample predictions, where the training has better ones


@storable()
@dataclass(frozen=True)
class IntervalCalibration:
    """The noise of a regression and the half-widths of its intervals.

    Parameters
    ----------
    noise : NoiseModel
        The noise of the data and the scale of the first layer's variance.
    factor : NormalFactor, StudentFactor, ConformalFactor or SkewedFactor
        How many standard deviations an interval reaches below and above the mean.
    out_of_sample : ConformalFactor or SkewedFactor, optional
        The factor that the training rows gave, predicted out of sample.
    local : LocalScale, optional
        What multiplies the standard deviations at a row; None where they are as the noise model says.
    """

    noise: NoiseModel
    factor: Factor
    out_of_sample: ConformalFactor | SkewedFactor | None = None
    local: LocalScale | None = None

    @classmethod
    def learn(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> IntervalCalibration:
        """From the residuals asked for: "local", "crossfit", "loo" or "training"."""
        if residuals == "training":
            fitted = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0)
            noise = NoiseModel.of_training(end.outputs - fitted, end.weights)
            return cls(noise, StudentFactor(noise.df))
        if residuals in ("crossfit", "local") and len(end.outputs) > MANY_ROWS:
            return cls._of_part(end, uncertainty, residuals == "local")
        moments = left_out_moments(uncertainty, end.states, end.inputs)
        if residuals in ("crossfit", "local"):
            moments = replace(moments, mean=cls._predicted(end))
        kernel = uncertainty.expansion.parts[0].kernel
        return cls.of_residuals(end.outputs, moments, end.weights, (kernel, end.X) if residuals == "local" else None)

    @staticmethod
    def _predicted(end: TrainingEnd) -> np.ndarray:
        if end.predicted is not None:
            return end.predicted(end.run)
        folds = regression_folds(len(end.outputs))
        return cross_fitted(end.states[-1], end.inputs, end.outputs, end.settings, end.weights, folds, end.run)

    @classmethod
    def _of_part(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, local: bool) -> IntervalCalibration:
        """From a part of many rows, predicted by a network that goes on without them."""
        part = part_of_many(len(end.outputs))
        state, weights = end.states[-1], None if end.weights is None else end.weights[part]
        predicted = cross_fitted(state, end.inputs, end.outputs, end.settings, end.weights, run=end.run, part=part)[part]
        moments = replace(uncertainty.moments(end.X[part]), mean=predicted)
        kernel = uncertainty.expansion.parts[0].kernel
        return cls.of_residuals(end.outputs[part], moments, weights, (kernel, end.X[part]) if local else None)

    @classmethod
    def of_residuals(
        cls,
        outputs: np.ndarray,
        moments: Moments,
        weights: np.ndarray | None,
        place: tuple[Kernel | None, np.ndarray] | None = None,
    ) -> IntervalCalibration:
        """From out-of-sample moments of the training rows.

        With ``place``, the network's kernel and the rows themselves, the size of the noise and the skewness of the errors are
        learnt, too.
        """
        residuals = outputs - moments.mean
        variances = {source: np.diagonal(part, axis1=1, axis2=2) for source, part in moments.parts.items()}
        other = sum(part for source, part in variances.items() if source != FIRST_LAYER)
        rows = moments.mean, variances[FIRST_LAYER], np.asarray(other)
        noise = NoiseModel.of_residuals(residuals, *rows, weights)
        deviations = np.maximum(np.sqrt(noise.left_out_variances(residuals, *rows, weights)), EXACT)
        counted = np.ones(len(residuals), dtype=bool) if weights is None else weights > 0
        if place is None:
            factor = ConformalFactor.of(residuals[counted], deviations[counted], noise.df)
            return cls(noise, factor, factor)
        found = learn_scale(*place, moments.mean, residuals / deviations, noise.df, weights)
        deviations = deviations * np.exp(found.left_out)
        own = conformal_factor(residuals[counted], deviations[counted], found.df)
        return cls(replace(noise, df=found.df), own, own, found.scale)

    def scales(self, X: np.ndarray, means: np.ndarray) -> np.ndarray | None:
        """What multiplies the standard deviations (n, k) at standardised rows; None for nothing."""
        return None if self.local is None else np.exp(self.local(X, means))


@storable()
@dataclass(frozen=True)
class ProbabilityCalibration:
    """The temperature of a classifier's logits and the scale of their variance.

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
    """

    temperature: float = 1.0
    variance_scale: float = 1.0
    out_of_sample: tuple[np.ndarray, ...] | None = None
    given: tuple[np.ndarray, ...] | None = None

    @classmethod
    def learn(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> ProbabilityCalibration:
        """From out-of-sample logits: "crossfit" or "loo"; "training" learns nothing."""
        if residuals == "training":
            return cls()
        if residuals == "crossfit":
            logits = out_of_sample_logits(end.states[-1], end.inputs, end.outputs, end.settings, end.weights, end.run)
        else:
            logits = left_out_moments(uncertainty, end.states, end.inputs).mean
        predicted: tuple[np.ndarray, ...] = (logits, end.outputs)
        if end.weights is not None:
            predicted = tuple(part[end.weights > 0] for part in (logits, end.outputs, end.weights))
        temperature = out_of_sample_temperature(*predicted)
        fitted = uncertainty.moments(end.X)
        scale = bootstrap_scale(end.states[-1], end.inputs, fitted, temperature, end.settings, end.weights, end.run)
        return cls(temperature, scale, predicted)

    def log_odds_variance(self, moments: Moments) -> np.ndarray:
        """Variance of the tempered log-odds of every class, from the moments of the logits before temperature and scale."""
        tempered = log_odds_variance(moments.mean / self.temperature, moments.covariance)
        return self.variance_scale * tempered / self.temperature**2
