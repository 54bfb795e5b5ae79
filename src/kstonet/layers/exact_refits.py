"""What first layers share whose refit is the exact solution of a regression with Gaussian noise."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

NOISE_SHARE = 0.1  # of the mean squared residual: Gaussian noise has no dead zone, a fraction of the residual will do
NOISE_RATIO = 10.0  # noise of this layer over that of the layers above: the residual is to move this one, not them


class ExactRefits:
    """A part of such a layer, which has ``refit``."""

    def temperature(self) -> float:
        """The model's own noise."""
        return 1.0

    def refit_versions(
        self,
        versions: Sequence[Any],
        inputs: Any,
        outputs: Sequence[np.ndarray],
        sample_weights: Sequence[np.ndarray | None],
    ) -> list[Any]:
        """One after the other."""
        each = zip(versions, outputs, sample_weights, strict=True)
        return [version.refit(inputs, values, weights) for version, values, weights in each]

    def exact(
        self, versions: Sequence[Any], inputs: Any, outputs: Sequence[np.ndarray], sample_weight: np.ndarray | None
    ) -> list[Any]:
        """As they are."""
        return list(versions)
