"""Observed against nominal coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from kstonet._checks import Floats
from kstonet.metrics import coverage
from kstonet.metrics.gaussian import LEVELS
from kstonet.plotting.inputs import model_name, predicted_as, predicted_by, read_intervals
from kstonet.plotting.style import (
    BAND,
    REFERENCE,
    Display,
    mark_model,
    next_color,
    once,
    require_matplotlib,
    unit_square,
)
from kstonet.uncertainty.distribution import probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID = np.linspace(0.0, 1.0, 201)


class CoverageDisplay(Display):
    """Share of observations inside their intervals against the share that was promised.

    Below the diagonal the model is overconfident, above it too cautious. The grey band holds, at every level, 95 % of the
    shares that right intervals would show for so many independent observations (binomial); the levels of one curve move
    together, so a whole curve leaves it more often. Give the ``ax_`` of one display to the next to compare models.

    Parameters
    ----------
    nominal, observed : ndarray of shape (levels,)
    n_samples : int
        Observations behind the shares.
    name : str, optional
        Of the model, for the legend.

    Attributes
    ----------
    line_ : Line2D
    band_ : FillBetweenPolyCollection or None
        None where the axes had the same band already.
    ax_, figure_ : Axes, Figure

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> import numpy as np
    >>> from kstonet.plotting import CoverageDisplay
    >>> y = np.random.default_rng(0).normal(size=200)
    >>> good = CoverageDisplay.from_predictions(y, mean=0.0, std=1.0, name="right")
    >>> bad = CoverageDisplay.from_predictions(y, mean=0.0, std=0.5, name="too narrow", ax=good.ax_)
    >>> bool(good.observed[-1] > 0.9), bool(bad.observed[-1] < 0.8)
    (True, True)

    For a fitted model: ``CoverageDisplay.from_estimator(model, X_test, y_test)``.
    """

    def __init__(self, nominal: Floats, observed: Floats, n_samples: int, *, name: str | None = None) -> None:
        self.nominal, self.observed, self.n_samples, self.name = nominal, observed, n_samples, name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        levels: ArrayLike | None = None,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the coverage of a fitted model's intervals, conformal calibration included.

        Parameters
        ----------
        model : fitted regressor
            With ``predict_dist(X)`` or ``predict(X, return_std=True)``; also inside a pipeline or a search.
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        levels : array-like, optional
            Nominal coverages; 0.05, 0.10, ..., 0.95 if not given.
        target : int, optional
            Which of several targets.
        name : str, optional
            If not given, the name of the class.
        ax : Axes, optional
            Where to draw; if not given, in a new figure.
        **options
            Of :meth:`plot`.

        Returns
        -------
        CoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        nominal = _levels(levels)
        predicted = predicted_by(model, X, target)
        truth = predicted.observed("y", y)
        return cls._of(truth, predicted.interval(nominal), nominal, model_name(model, name)).plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        mean: ArrayLike,
        std: ArrayLike,
        *,
        levels: ArrayLike | None = None,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the coverage of the central intervals of Gaussian predictions.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, k)
        mean, std : array-like of the shape of y_true, or float
        levels : array-like, optional
            Nominal coverages; 0.05, 0.10, ..., 0.95 if not given.
        target : int, optional
            Which of k targets.
        name : str, optional
        ax : Axes, optional
        **options
            Of :meth:`plot`.

        Returns
        -------
        CoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        nominal = _levels(levels)
        predicted = predicted_as(y_true, mean, std, target)
        truth = predicted.observed("y_true", y_true)
        return cls._of(truth, predicted.interval(nominal), nominal, name).plot(ax, **options)

    @classmethod
    def from_intervals(
        cls,
        y_true: ArrayLike,
        intervals: ArrayLike,
        levels: ArrayLike,
        *,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the coverage of intervals as given.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, k)
        intervals : array-like of shape (n, 2, levels) or (n, k, 2, levels)
            As ``predict_interval`` returns them.
        levels : array-like of shape (levels,)
            What they promise.
        target : int, optional
            Which of k targets.
        name : str, optional
        ax : Axes, optional
        **options
            Of :meth:`plot`.

        Returns
        -------
        CoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_intervals")
        bounds, truth, _ = read_intervals(y_true, intervals, levels, target, "levels")
        return cls._of(truth, bounds, _levels(levels), name).plot(ax, **options)

    @classmethod
    def _of(cls, truth: Floats, bounds: Floats, nominal: Floats, name: str | None) -> Self:
        order = np.argsort(nominal, kind="stable")
        shares = np.array([coverage(truth, bounds[:, :, k]) for k in order])
        return cls(nominal[order], shares, len(truth), name=name)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        band: bool = True,
        ref_line: bool = True,
        legend: bool = True,
        **line_options: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Where to draw; if not given, in a new figure.
        name : str, optional
            For the legend, in place of the display's own.
        band, ref_line : bool
            Whether to draw the binomial band and the diagonal.
        legend : bool
        **line_options
            Of the curve, as for ``Axes.plot``.

        Returns
        -------
        CoverageDisplay
        """
        ax = self._draw_on(ax)
        self.band_ = None
        label = f"binomial 95 % band (n = {self.n_samples})"
        if band and once(ax, label):
            low, high = binomial_band(GRID, self.n_samples)
            self.band_ = ax.fill_between(GRID, low, high, color=BAND, linewidth=0, label=label, zorder=0)
        if ref_line and once(ax, "ideal"):
            ax.plot([0, 1], [0, 1], color=REFERENCE, linestyle=":", linewidth=1.2, label="ideal")
        look: dict[str, Any] = {"color": next_color(ax), "marker": "o", "markersize": 4, "linewidth": 1.5}
        look["label"] = (self.name if name is None else name) or "observed"
        (self.line_,) = ax.plot(self.nominal, self.observed, **(look | line_options))
        mark_model(ax, self.line_)
        ax.set(xlabel="nominal coverage", ylabel="observed coverage")
        unit_square(ax, legend)
        return self


def binomial_band(p: Floats, n: int) -> tuple[Floats, Floats]:
    """Bounds of the share of successes that n independent trials stay inside with at least 95 % (2.5 % in each tail)."""
    return np.asarray(binom.ppf(0.025, n, p) / n).clip(0.0), np.asarray(binom.ppf(0.975, n, p) / n)


def _levels(levels: ArrayLike | None) -> Floats:
    return LEVELS.copy() if levels is None else probabilities("levels", levels)
