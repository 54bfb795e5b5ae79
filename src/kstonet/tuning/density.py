"""Width and ridge for many rows, judged where rows are as dense as they are.

Kernels are chosen on 1,600 rows. Where there are more, neighbours are nearer, and show structure that a kernel of the chosen
width, or a ridge of the chosen size, smooths away. Some neighbourhoods of rows have the density of all rows at the
price of few, and the leave-one-out errors of ridge regressions within them say which way to go.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from kstonet.gram import Kernel
from kstonet.gram.halves import upper_blocks
from kstonet.threads import in_threads
from kstonet.tuning.choice import Choice
from kstonet.tuning.relevance_gradient import SINGLE_FROM
from kstonet.tuning.screening_ridge import RidgeFit, ridge_fit
from kstonet.tuning.spread import spread_order

NEIGHBOURHOODS, ROWS = 6, 800
WIDTH, RIDGE = 0.6, 1.0 / 3.0  # factors of a step
GAIN = 0.003  # share of the error that a step has to gain
MOST_STEPS = 6


@dataclass(frozen=True)
class Neighbourhood:
    """The rows nearest to one of them."""

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray | None


@dataclass(frozen=True)
class Judged:
    """A kernel with a ridge, and its regressions in all neighbourhoods."""

    kernel: Kernel
    ridge: float
    fits: tuple[RidgeFit, ...]

    @property
    def score(self) -> float:
        """Mean squared leave-one-out error."""
        return float(np.mean([fit.score for fit in self.fits])) if self.fits else np.inf


def at_density(
    choice: Choice,
    X: np.ndarray,
    Y: np.ndarray,
    weights: np.ndarray | None,
    *,
    widths: bool = True,
    n_jobs: int | None = None,
) -> Choice:
    """The choice with widths and ridges that suit the density of the rows.

    Parameters
    ----------
    choice : Choice
        From fewer rows.
    X, Y, weights : ndarray
        All rows, standardised, of positive weight.
    widths : bool, default=True
        Whether widths may change, or ridges alone.
    n_jobs : int, optional
        Number of threads; the result does not depend on it.

    Returns
    -------
    Choice
    """
    if not choice.signal:
        return choice
    places = neighbourhoods(choice.kernel, X, Y, weights)

    def judged(steps: Sequence[tuple[Kernel, float]]) -> list[Judged]:
        def fit(of: tuple[tuple[Kernel, float], Neighbourhood]) -> RidgeFit | None:
            (kernel, ridge), place = of
            K = upper_half(kernel, place.X)
            return ridge_fit(K, place.Y, ridge, place.weights, overwrite=True, single_from=SINGLE_FROM)

        found = in_threads(fit, list(product(steps, places)), n_jobs)
        each = [found[begin : begin + len(places)] for begin in range(0, len(found), len(places))]
        return [
            Judged(*step, () if None in fits else tuple(fits))  # type: ignore[arg-type]
            for step, fits in zip(steps, each, strict=True)
        ]

    starts = judged(list(zip(choice.kernels, choice.ridges, strict=True)))
    climbed = [_climb(start, judged, widths) for start in starts]
    ends = [end for end in climbed if np.isfinite(end.score)]
    several = len(choice.shares) > 1
    if not ends or (several and len(ends) < len(climbed)):
        return choice
    if not several:  # shares belong to the kernels in their order
        ends.sort(key=lambda end: end.score)
    size = sum(len(place.X) for place in places)
    rows = [{"kernel": type(end.kernel).__name__, "ridge": end.ridge, "score": end.score, "rows": size} for end in ends]
    best = min(ends, key=lambda end: end.score)
    scales = "" if not widths else f" {type(best.kernel).__name__} with its width and"
    return replace(
        choice,
        kernels=tuple(end.kernel for end in ends),
        ridges=tuple(end.ridge for end in ends),
        strengths=tuple(float(np.sqrt(np.mean([fit.strength**2 for fit in end.fits]))) for end in ends),
        noises=tuple(float(np.sqrt(end.score)) for end in ends),
        table=[*choice.table, *rows],
        reason=f"{choice.reason}; at the density of all rows,{scales} ridge {best.ridge:.3g}",
    )


def neighbourhoods(kernel: Kernel, X: np.ndarray, Y: np.ndarray, weights: np.ndarray | None) -> Sequence[Neighbourhood]:
    """Rows around some with different targets: those with the largest kernel values."""
    centres = spread_order(Y)[:NEIGHBOURHOODS]
    found = []
    for values in np.asarray(kernel(X, X[centres])).T:
        near = np.argsort(-values, kind="stable")[:ROWS]
        found.append(Neighbourhood(X[near], Y[near], None if weights is None else weights[near]))
    return found


def upper_half(kernel: Kernel, X: np.ndarray) -> np.ndarray:
    """The upper half of a kernel matrix, for half of its price; what is below is of no use."""
    K = np.zeros((len(X), len(X)))
    for rows, columns in upper_blocks(len(X)):
        K[rows, columns] = kernel(X[rows], X[columns])
    return K


def _climb(start: Judged, judged: Callable[[Sequence[tuple[Kernel, float]]], list[Judged]], widths: bool) -> Judged:
    """The best within reach: steps in width and ridge while they gain. None leads back to where the last one came from."""

    def at(place: tuple[int, int]) -> tuple[Kernel, float]:
        narrower, smaller = place
        kernel, scales = start.kernel, start.kernel.length_scale
        if narrower and scales is not None:
            kernel = replace(kernel, length_scale=tuple(WIDTH**narrower * scale for scale in scales))
        return kernel, start.ridge * RIDGE**smaller

    best, here, before = start, (0, 0), (0, 0)
    for _ in range(MOST_STEPS):
        around = [(here[0], here[1] + 1), (here[0], here[1] - 1)]
        if widths and start.kernel.length_scale is not None:
            around += [(here[0] + 1, here[1]), (here[0] - 1, here[1])]
        around = [place for place in around if place != before]
        tried = judged([at(place) for place in around])
        nearest = min(range(len(tried)), key=lambda k: tried[k].score)
        if not tried[nearest].score < (1.0 - GAIN) * best.score:
            return best
        best, here, before = tried[nearest], around[nearest], here
    return best
