"""What an automatic choice says of the first layer: its kernels, and the C and epsilon that suit them.

The judge of the kernels is a ridge regression, the first layer is made of support vector regressions. With squared errors the
dual coefficients are the training residuals over the ridge; the SVRs come nearest to that with a tube as wide as these
residuals are on average, and with a bound C of the size of the coefficients. A fixed C is what makes a network worse than its
kernel: coefficients of root mean square 145 do not fit under a bound of 10.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from kstonet.gram import Kernel
from kstonet.settings import FIXED
from kstonet.tuning.stationary import FAMILIES

NEARLY_AS_GOOD = 1.3  # error of a second kernel over that of the first, up to which the two together are better than the first
C_NOISY, C_INTERPOLATING = 1.0, 5.0
SMALLEST_TUBE = 1e-4
SMALLEST_C = 1e-3
UNITS_IN_PAIRS = 40  # from which on units take kernels two at a time: shares are of a twentieth then


@dataclass(frozen=True)
class Choice:
    """What was chosen, and why.

    Parameters
    ----------
    kernels : tuple of Kernel
        Those that are best together; or the best, and the best of another family.
    ridges : tuple of float
        Ridges of the regressions with these kernels.
    strengths : tuple of float
        Root mean squares of the dual coefficients of these regressions.
    noises : tuple of float
        Their root mean squared leave-one-out errors.
    signal : bool
        Whether anything is better than the mean of the targets.
    table : list of dict
        One per candidate: "kernel", "gamma", "relevance", "ridge", "score" (squared leave-one-out error) and "rows".
    reason : str
    shares : tuple of float
        How the units of a first layer are divided between kernels that are best together; empty for the best alone.
    growth : float, optional
        How many times larger errors of new rows are than left-out errors, for the choice fits its rows; None where that is not
        known.
    """

    kernels: tuple[Kernel, ...]
    ridges: tuple[float, ...]
    strengths: tuple[float, ...]
    noises: tuple[float, ...]
    signal: bool
    table: list[dict[str, Any]] = field(repr=False)
    reason: str = ""
    shares: tuple[float, ...] = ()
    growth: float | None = None

    @property
    def kernel(self) -> Kernel:
        """The best kernel."""
        return self.kernels[0]

    @property
    def together(self) -> int:
        """How many of the kernels share the first layer: those with a share, or the second where it is nearly as good."""
        return len(self.shares) or sum(noise <= NEARLY_AS_GOOD * self.noises[0] for noise in self.noises)

    @property
    def parts(self) -> tuple[float, ...]:
        """What each of the kernels that share the first layer has of it."""
        return self.shares or (1.0 / self.together,) * self.together

    @property
    def residuals(self) -> tuple[float, ...]:
        """Root mean squared training residuals of the ridge regressions, which are ridge times coefficients."""
        return tuple(ridge * strength for ridge, strength in zip(self.ridges, self.strengths, strict=True))

    @property
    def epsilon(self) -> tuple[float, ...]:
        """Half-width of the tubes: the training residual.

        Absolute errors with a tube of that size are the nearest to squared ones; where the regression nearly interpolates, the
        tube is narrow.
        """
        return tuple(max(residual, SMALLEST_TUBE) for residual in self.residuals)

    @property
    def C(self) -> tuple[float, ...]:
        """Bounds of the dual coefficients of the SVRs: their root mean square where the errors are noise.

        Up to five times where the regression nearly interpolates: a coefficient at its bound is then a value missed.
        """
        shares = (min(1.0, residual / noise) for residual, noise in zip(self.residuals, self.noises, strict=True))
        return tuple(
            (C_INTERPOLATING + (C_NOISY - C_INTERPOLATING) * share) * max(strength, SMALLEST_C)
            for strength, share in zip(self.strengths, shares, strict=True)
        )

    def settings(self, loss: str, units: int, kernels: int | None = None) -> dict[str, Any]:
        """``kernel``, ``C`` and ``epsilon`` of a first layer; where it has several kernels, units take them by their shares.

        Parameters
        ----------
        loss : {"squared", "epsilon_insensitive"}
            With a squared loss C is one over the ridge.
        units : int
            Number of units.
        kernels : int, optional
            Number of kernels that share the layer, by default :attr:`together`. One kernel is given by its name, with ``gamma``
            and ``length_scale``.
        """
        squared = loss == "squared"
        C = tuple(1.0 / ridge for ridge in self.ridges) if squared else self.C
        epsilon = (FIXED["epsilon"],) * len(self.kernels) if squared else self.epsilon
        kernels = min(units, self.together if kernels is None else kernels)
        if kernels > 1:
            shares = self.shares[:kernels] or (1.0,) * kernels
            if units < UNITS_IN_PAIRS:
                turns = _turns(shares, units)
            else:  # one that rises with the target and one that falls: together they are a straight line
                turns = [turn for turn in _turns(shares, units // 2) for _ in range(2)] + [0] * (units % 2)
            each = {"kernel": self.kernels, "C": C, "epsilon": epsilon}
            return {name: [values[turn] for turn in turns] for name, values in each.items()}
        kernel = self.kernels[0]
        one = {"C": C[0], "epsilon": epsilon[0]}
        for family in FAMILIES.values():
            if kernel.length_scale is not None and family.make(kernel.length_scale) == kernel:
                scales = kernel.length_scale
                return one | {"kernel": family.name, "gamma": kernel.gamma, "length_scale": scales}  # type: ignore[attr-defined]
        return one | {"kernel": kernel}


def _turns(shares: tuple[float, ...], units: int) -> list[int]:
    """Which kernel every unit takes: the one that is furthest behind its share, so that each of them is spread over the layer.

    Examples
    --------
    >>> _turns((1.0, 1.0), 5), _turns((0.75, 0.25), 4)
    ([0, 1, 0, 1, 0], [0, 0, 1, 0])
    """
    taken = [0] * len(shares)
    turns = []
    for unit in range(1, units + 1):
        behind = [unit * share / sum(shares) - own for share, own in zip(shares, taken, strict=True)]
        turns.append(behind.index(max(behind)))
        taken[turns[-1]] += 1
    return turns
