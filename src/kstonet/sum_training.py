"""What trainings on sums over the rows share, on a cluster and on a stream: the settings of an iteration, and intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kstonet.imputation.chain import ChainSettings
from kstonet.iro import IROSettings, scheduled
from kstonet.layers.base import UpperLayer
from kstonet.layers.exact_refits import NOISE_RATIO, NOISE_SHARE
from kstonet.row_sums import FirstLayer, Group
from kstonet.sum_layers import Iterate, first_uncertainty, head_uncertainty
from kstonet.targets import NumericTargets
from kstonet.trained import TrainedNetwork
from kstonet.uncertainty.calibration import IntervalCalibration
from kstonet.uncertainty.network import NetworkUncertainty


@dataclass(frozen=True)
class Imputation:
    """What an iteration draws latent values with: the layers with its noise and penalty, and its chain."""

    first: FirstLayer
    head: UpperLayer
    chain: ChainSettings
    step_size: Any
    noise: float

    @classmethod
    def of(cls, now: Iterate, loop: IROSettings, iteration: int, residual: float, n: int) -> Imputation:
        """For an iteration of the loop after ``now``, with a typical residual, of n rows."""
        alpha, noise = scheduled(loop.alpha, iteration), scheduled(loop.noise_variance, iteration)
        if noise == "auto":
            noise = NOISE_SHARE * residual**2
        noise = float(noise[0] if isinstance(noise, tuple) else noise)
        head = now.head.with_penalty(None if alpha == "auto" else float(alpha), residual, n).with_noise(noise)
        first = replace(now.first, variance=NOISE_RATIO * noise)
        chain = replace(loop.chain, temperature=1.0 if loop.temperature == "auto" else float(loop.temperature))
        return cls(first, head, chain, scheduled(loop.step_size, iteration), noise)


@dataclass(frozen=True)
class Judged:
    """Rows, their outputs, predictions that have not seen these, and weights."""

    X: np.ndarray
    outputs: np.ndarray
    predicted: np.ndarray
    weights: np.ndarray | None


def with_intervals(
    model: TrainedNetwork, groups: Sequence[Group], iterates: Sequence[Iterate], n: int, rows: Judged, residuals: str
) -> TrainedNetwork:
    """A regression of n rows with its uncertainty, and a calibration on rows that were predicted out of sample."""
    uppers = tuple((head_uncertainty(now.head, now.above, n),) for now in iterates)
    found = NetworkUncertainty(model.expansion, first_uncertainty(groups, model.expansion), uppers)
    moments = replace(found.moments(rows.X), mean=rows.predicted)
    place = ([group.kernel for group in groups], rows.X) if residuals == "local" else None
    calibration = IntervalCalibration.of_residuals(rows.outputs, moments, rows.weights, place)
    targets = model.targets
    if isinstance(targets, NumericTargets) and calibration.error is not None:
        targets = targets.with_error(calibration.error)
    return replace(model, residuals=residuals, uncertainty=found, calibration=calibration, targets=targets)
