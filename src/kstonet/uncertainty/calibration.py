"""What turns the moments of the outputs into intervals and probabilities: learnt from out-of-sample predictions.

A regression learns its noise, the scale of the first layer's variance and the half-widths of its intervals; a classification
learns the temperature of its logits and the scale of their variance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet._records import storable
from kstonet.iro import IROSettings, IROState
from kstonet.layers.moments import FIRST_LAYER, Moments
from kstonet.uncertainty.conformal import ConformalFactor, NormalFactor, StudentFactor
from kstonet.uncertainty.cross_fitting import cross_fitted, regression_folds
from kstonet.uncertainty.logits import Restart, bootstrap_scale, out_of_sample_logits, out_of_sample_temperature
from kstonet.uncertainty.network import NetworkUncertainty, left_out_moments
from kstonet.uncertainty.noise_model import EXACT, NoiseModel

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


@storable()
@dataclass(frozen=True)
class IntervalCalibration:
    """The noise of a regression and the half-widths of its intervals.

    Parameters
    ----------
    noise : NoiseModel
        The noise of the data and the scale of the first layer's variance.
    factor : NormalFactor, StudentFactor or ConformalFactor
        Half-width of an interval in standard deviations.
    out_of_sample : ConformalFactor, optional
        The factor that the training rows gave, predicted out of sample.
    """

    noise: NoiseModel
    factor: NormalFactor | StudentFactor | ConformalFactor
    out_of_sample: ConformalFactor | None = None

    @classmethod
    def learn(cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str) -> IntervalCalibration:
        """From the residuals asked for: "crossfit", "loo" or "training"."""
        if residuals == "training":
            fitted = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0)
            noise = NoiseModel.of_training(end.outputs - fitted, end.weights)
            return cls(noise, StudentFactor(noise.df))
        moments = left_out_moments(uncertainty, end.states, end.inputs)
        if residuals == "crossfit":
            folds = regression_folds(len(end.outputs))
            predicted = cross_fitted(end.states[-1], end.inputs, end.outputs, end.settings, end.weights, folds)
            moments = replace(moments, mean=predicted)
        return cls.of_residuals(end.outputs, moments, end.weights)

    @classmethod
    def of_residuals(cls, outputs: np.ndarray, moments: Moments, weights: np.ndarray | None) -> IntervalCalibration:
        """From out-of-sample moments of the training rows."""
        residuals = outputs - moments.mean
        variances = {source: np.diagonal(part, axis1=1, axis2=2) for source, part in moments.parts.items()}
        other = sum(part for source, part in variances.items() if source != FIRST_LAYER)
        rows = moments.mean, variances[FIRST_LAYER], np.asarray(other)
        noise = NoiseModel.of_residuals(residuals, *rows, weights)
        deviations = np.maximum(np.sqrt(noise.variances(*rows)), EXACT)
        counted = np.ones(len(residuals), dtype=bool) if weights is None else weights > 0
        factor = ConformalFactor.of(residuals[counted], deviations[counted], noise.df)
        return cls(noise, factor, factor)


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
    """

    temperature: float = 1.0
    variance_scale: float = 1.0
    out_of_sample: tuple[np.ndarray, ...] | None = None

    @classmethod
    def learn(
        cls, end: TrainingEnd, uncertainty: NetworkUncertainty, residuals: str, restart: Restart | None = None
    ) -> ProbabilityCalibration:
        """From out-of-sample logits: "crossfit" or "loo"; "training" learns nothing."""
        if residuals == "training":
            return cls()
        if residuals == "crossfit":
            logits = out_of_sample_logits(end.states[-1], end.inputs, end.outputs, end.settings, end.weights)
        else:
            logits = left_out_moments(uncertainty, end.states, end.inputs).mean
        predicted: tuple[np.ndarray, ...] = (logits, end.outputs)
        if end.weights is not None:
            predicted = tuple(part[end.weights > 0] for part in (logits, end.outputs, end.weights))
        temperature = out_of_sample_temperature(*predicted)
        truth = np.mean([state.network.forward(end.inputs)[-1] for state in end.states], axis=0) / temperature
        some = np.arange(0, len(truth), max(1, len(truth) // ENOUGH_ROWS))
        variance = uncertainty.log_odds(end.X[some], temperature).variance
        rows = end.states[-1], end.inputs, truth, (some, variance), end.settings, end.weights
        return cls(temperature, bootstrap_scale(*rows, restart), predicted)
