"""The layer protocol: a conditional distribution π(output | input), and the questions the algorithms put to it.

Hidden values are arrays of shape (n, units), one row per observation. The inputs of a layer are the *raw* hidden values of
the layer below; the layer applies the activation itself, as in eq. (Kstoneteq).
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np


class Layer(Protocol):
    """One layer of a K-StoNet or StoNet."""

    def mean(self, inputs: Any) -> np.ndarray:
        """The noise-free forward value, eq. (KDNNeq)."""
        ...

    def log_density(self, inputs: Any, outputs: np.ndarray) -> np.ndarray:
        """Log π(output | input) of every observation, shape (n,)."""
        ...

    def score_output(self, inputs: Any, outputs: np.ndarray) -> np.ndarray:
        """∂ log π / ∂ outputs: the first gradient term of eq. (imputationeq)."""
        ...

    def score_input(self, inputs: np.ndarray, outputs: np.ndarray) -> np.ndarray:
        """∂ log π / ∂ inputs: the second gradient term of eq. (imputationeq)."""
        ...

    def curvature_output(self) -> np.ndarray:
        """Inverse variance of every output: the stiffness of the first term, shape (units,)."""
        ...

    def curvature_input(self, inputs: np.ndarray) -> np.ndarray:
        """A bound of the largest eigenvalue of -∂² log π / ∂ inputs², shape (n,)."""
        ...

    def refit(self, inputs: Any, outputs: np.ndarray, sample_weight: np.ndarray | None = None) -> Layer:
        """Solve the convex problem of this layer, eqs. (optsolver1), (optsolver2)."""
        ...

    def at(self, rows: slice) -> Layer:
        """The layer as seen by some of the observations it was trained on."""
        ...

    def certificate(self) -> dict[str, float]:
        """How good the last refit was, for the history; asked of the first layer only."""
        ...
