"""The penalties P of eq. (optsolver2), independent of the solvers.

All act element by element. ``alpha`` is one number, or one per output. Outputs are along the *last* axis of every array that is
passed to a penalty, so the same object serves a whole (q, k) block of weights and one coordinate (k,) of it.

Every penalty here is piecewise quadratic with at most one kink, at zero, so one solver can serve them all: away from the kink
``derivative`` and ``curvature`` give an exact Newton step, and ``prox`` has a formula for every piece.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Penalty(ABC):
    """A penalty of strength ``alpha``.

    Parameters
    ----------
    alpha : float or array of shape (k,)
        Strength of the penalty, in the scaling of 1/(2n)·SSE; an array has one value per output.
    """

    alpha: Any = 0.0

    quadratic = False  # smooth everywhere with constant curvature: the refit has a closed form

    @abstractmethod
    def value(self, w: Floats) -> Floats:
        """P(w), element by element."""

    @abstractmethod
    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Return the global minimiser of curvature/2·(w - z)² + P(w); ``curvature`` must be positive."""

    @abstractmethod
    def derivative(self, w: Floats) -> Floats:
        """P'(w) where w ≠ 0, and 0 at w = 0."""

    @abstractmethod
    def curvature(self, w: Floats) -> Floats:
        """P''(w) where w ≠ 0; negative where P is concave."""

    @property
    def kink(self) -> Any:
        """Half-width of the subdifferential at zero: [-kink, kink]."""
        return self.alpha

    def relaxation(self) -> Penalty | None:
        """Return the convex penalty whose solution is a good start, or None if this one is convex."""
        return None

    def subgradient_distance(self, w: Floats, gradient: Floats) -> Floats:
        """Distance of -gradient to ∂P(w): the violation of the first-order conditions, element by element."""
        distance: Floats = np.abs(gradient + self.derivative(w))
        return np.where(w == 0, np.maximum(distance - self.kink, 0.0), distance)


@dataclass(frozen=True, eq=False)
class NoPenalty(Penalty):
    """P = 0: least squares, maximum likelihood. ``alpha`` is ignored."""

    quadratic = True

    @property
    def kink(self) -> float:
        """Zero: there is no kink."""
        return 0.0

    def value(self, w: Floats) -> Floats:
        """Zero."""
        return np.zeros_like(w)

    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Return ``z``."""
        return np.array(z)

    def derivative(self, w: Floats) -> Floats:
        """Zero."""
        return np.zeros_like(w)

    def curvature(self, w: Floats) -> Floats:
        """Zero."""
        return np.zeros_like(w)


@dataclass(frozen=True, eq=False)
class Ridge(Penalty):
    """P(w) = α/2·w²."""

    quadratic = True

    @property
    def kink(self) -> float:
        """Zero: there is no kink."""
        return 0.0

    def value(self, w: Floats) -> Floats:
        """α/2·w²."""
        return np.asarray(0.5 * self.alpha * w**2)

    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Shrink in proportion."""
        return np.asarray(z * (curvature / (curvature + self.alpha)))

    def derivative(self, w: Floats) -> Floats:
        """α·w."""
        return np.asarray(self.alpha * w)

    def curvature(self, w: Floats) -> Floats:
        """α."""
        return np.asarray(self.alpha + np.zeros_like(w))


@dataclass(frozen=True, eq=False)
class Lasso(Penalty):
    """P(w) = α|w| (Tibshirani 1996)."""

    def value(self, w: Floats) -> Floats:
        """α|w|."""
        return np.asarray(self.alpha * np.abs(w))

    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Soft-threshold at α/curvature."""
        return _soft(z, self.alpha / curvature)

    def derivative(self, w: Floats) -> Floats:
        """α·sign(w)."""
        return np.asarray(self.alpha * np.sign(w))

    def curvature(self, w: Floats) -> Floats:
        """Zero."""
        return np.zeros_like(w)


@dataclass(frozen=True, eq=False)
class SCAD(Penalty):
    """Smoothly clipped absolute deviation (Fan & Li 2001): lasso up to α, constant from a·α on, a parabola between.

    Parameters
    ----------
    alpha : float or array of shape (k,)
        Strength of the penalty.
    a : float
        Shape parameter, greater than 2; Fan and Li use 3.7. The lasso is the limit a → ∞.
    """

    a: float = 3.7

    def __post_init__(self) -> None:
        if not self.a > 2:
            raise ValueError(f"a={self.a!r}: SCAD needs a > 2; Fan and Li's value is 3.7.")

    def relaxation(self) -> Lasso:
        """The lasso of the same strength."""
        return Lasso(self.alpha)

    def value(self, w: Floats) -> Floats:
        """Three pieces: linear, parabola, constant."""
        size, alpha, a = np.abs(w), self.alpha, self.a
        middle = alpha * size - (size - alpha) ** 2 / (2.0 * (a - 1.0))
        flat = 0.5 * alpha**2 * (a + 1.0)
        return np.asarray(np.where(size <= alpha, alpha * size, np.where(size <= a * alpha, middle, flat)))

    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Compare the stationary points of the pieces; where the problem is not convex two of them may be minima."""
        size, alpha, a, c = np.abs(z), self.alpha, self.a, curvature
        soft = _soft(z, alpha / c)
        convex = c * (a - 1.0) > 1.0
        slope = np.where(convex, c * (a - 1.0) - 1.0, 1.0)
        middle = np.sign(z) * (c * (a - 1.0) * size - a * alpha) / slope
        by_piece = np.where(size <= alpha + alpha / c, soft, np.where(size <= a * alpha, middle, z))
        # Not convex: the middle holds no minimum, and z beats the soft threshold s once its value α²(a+1)/2 is the
        # smaller one. The value at s is α|z| - α²/(2c) if s ≠ 0, which at the tie means c ≥ 1/(a+1), and c·z²/2 if s = 0.
        tie = np.where(c * (a + 1.0) >= 1.0, 0.5 * (a + 1.0 + 1.0 / c), np.sqrt((a + 1.0) / c))
        return np.where(convex, by_piece, np.where(size > alpha * tie, z, soft))

    def derivative(self, w: Floats) -> Floats:
        """α·sign(w), falling linearly to zero between α and a·α."""
        size = np.abs(w)
        return np.asarray(np.sign(w) * np.clip((self.a * self.alpha - size) / (self.a - 1.0), 0.0, self.alpha))

    def curvature(self, w: Floats) -> Floats:
        """-1/(a - 1) on the parabola."""
        size = np.abs(w)
        return np.where((size > self.alpha) & (size <= self.a * self.alpha), -1.0 / (self.a - 1.0), 0.0)


@dataclass(frozen=True, eq=False)
class MCP(Penalty):
    """Minimax concave penalty (Zhang 2010): a parabola α|w| - w²/(2γ) up to γ·α, constant from there on.

    Parameters
    ----------
    alpha : float or array of shape (k,)
        Strength of the penalty.
    gamma : float
        Shape parameter, greater than 1. The lasso is the limit γ → ∞.
    """

    gamma: float = 3.0

    def __post_init__(self) -> None:
        if not self.gamma > 1:
            raise ValueError(f"gamma={self.gamma!r}: MCP needs gamma > 1; 3 is usual.")

    def relaxation(self) -> Lasso:
        """The lasso of the same strength."""
        return Lasso(self.alpha)

    def value(self, w: Floats) -> Floats:
        """Two pieces: parabola, constant."""
        size = np.minimum(np.abs(w), self.gamma * self.alpha)
        return np.asarray(self.alpha * size - size**2 / (2.0 * self.gamma))

    def prox(self, z: Floats, curvature: Any) -> Floats:
        """Firm threshold; where the problem is not convex the parabola holds no minimum: 0 (value c·z²/2) or z (γα²/2)."""
        size, alpha, gamma, c = np.abs(z), self.alpha, self.gamma, curvature
        convex = c * gamma > 1.0
        slope = np.where(convex, c - 1.0 / gamma, 1.0)
        firm = np.where(size <= gamma * alpha, _soft(c * z, alpha) / slope, z)
        return np.where(convex, firm, np.where(size > alpha * np.sqrt(gamma / c), z, 0.0))

    def derivative(self, w: Floats) -> Floats:
        """α·sign(w), falling linearly to zero at γ·α."""
        return np.asarray(np.sign(w) * np.maximum(self.alpha - np.abs(w) / self.gamma, 0.0))

    def curvature(self, w: Floats) -> Floats:
        """-1/γ on the parabola."""
        return np.where(np.abs(w) <= self.gamma * self.alpha, -1.0 / self.gamma, 0.0)


def _soft(z: Floats, threshold: Any) -> Floats:
    # z minus its projection on [-threshold, threshold]: exact zeros inside, and no sign to multiply by.
    return np.asarray(z - np.clip(z, -threshold, threshold))


PENALTIES: dict[str, type[Penalty]] = {"lasso": Lasso, "ridge": Ridge, "scad": SCAD, "mcp": MCP, "none": NoPenalty}


def make_penalty(penalty: str | Penalty, alpha: ArrayLike | None, n_outputs: int) -> Penalty:
    """Build a penalty from its name and strength.

    Parameters
    ----------
    penalty : {"lasso", "ridge", "scad", "mcp", "none"} or Penalty
        Name of the penalty, or an object, which has its own strength.
    alpha : float, array of shape (n_outputs,) or None
        Strength of the penalty, not negative. ``"none"`` ignores it.
    n_outputs : int
        Number of outputs.

    Examples
    --------
    >>> make_penalty("mcp", 0.1, 2)
    MCP(alpha=0.1, gamma=3.0)
    """
    if isinstance(penalty, Penalty):
        if alpha is not None:
            raise ValueError(f"alpha={alpha!r} is given, but {penalty!r} has its own; pass alpha=None.")
        kind, alpha = type(penalty), penalty.alpha
    elif isinstance(penalty, str) and penalty in PENALTIES:
        kind = PENALTIES[penalty]
    else:
        raise ValueError(f"penalty={penalty!r} is unknown; choose one of {sorted(PENALTIES)}, or pass a Penalty object.")
    if kind is NoPenalty:
        return NoPenalty()
    strength = np.asarray(np.nan if alpha is None else alpha, dtype=np.float64)
    if strength.shape not in ((), (n_outputs,)) or not (np.isfinite(strength) & (strength >= 0)).all():
        raise ValueError(
            f"alpha={alpha!r} must be one non-negative finite number, or one for each of the {n_outputs} outputs; "
            'for no penalty at all use penalty="none".'
        )
    strength_or_scalar = float(strength) if strength.ndim == 0 else strength
    return replace(penalty, alpha=strength_or_scalar) if isinstance(penalty, Penalty) else kind(strength_or_scalar)
