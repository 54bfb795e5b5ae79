"""Observed against nominal coverage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from kstonet._checks import Floats
from kstonet.metrics import coverage
from kstonet.metrics.gaussian import LEVELS
from kstonet.plotting.inputs import judged_as, judged_by, model_name, read_intervals
from kstonet.plotting.style import BAND, Display, once, reference_line, require_matplotlib, unit_square
from kstonet.uncertainty.distribution import probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GRID = np.linspace(0.0, 1.0, 201)


class CoverageDisplay(Display):
    """Observed against nominal coverage of prediction intervals.

    Below the diagonal the model is overconfident, above it underconfident. At every level, intervals with the nominal coverage
    stay inside the grey band with probability 95 % for independent observations (binomial). The levels of a curve are
    correlated, and a whole curve leaves the band more often than that. To compare models, pass the ``ax_`` of one display to
    the next.

    Parameters
    ----------
    nominal, observed : ndarray of shape (levels,)
        Nominal coverages, and the observed ones.
    n_samples : int
        Number of observations behind the shares.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    band_ : FillBetweenPolyCollection or None
        The binomial band; None if the axes already had the same band.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

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
            A model with ``predict_dist(X)`` or ``predict(X, return_std=True)``, also as the last step of a pipeline or inside a
            search.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Observed targets of these rows.
        levels : array-like, optional
            Nominal coverages. If not given, they are 0.05, 0.10, ..., 0.95.
        target : int, optional
            Index of the target to draw; needed if there are several.
        name : str, optional
            Name of the model in the legend. If not given, the name of its class.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        nominal = _levels(levels)
        predicted, truth = judged_by(model, X, y, target)
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
            Observed values.
        mean, std : array-like of the shape of y_true, or float
            Mean and standard deviation of every prediction.
        levels : array-like, optional
            Nominal coverages. If not given, they are 0.05, 0.10, ..., 0.95.
        target : int, optional
            Index of the target to draw; needed if there are several.
        name : str, optional
            Name of the model in the legend.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        CoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        nominal = _levels(levels)
        predicted, truth = judged_as(y_true, mean, std, target)
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
            Observed values.
        intervals : array-like of shape (n, 2, levels) or (n, k, 2, levels)
            Intervals, as ``predict_interval`` returns them.
        levels : array-like of shape (levels,)
            Nominal coverages of the intervals.
        target : int, optional
            Index of the target to draw; needed if there are several.
        name : str, optional
            Name of the model in the legend.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

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
            Axes to draw in. If not given, a new figure is made.
        name : str, optional
            Name in the legend, in place of that of the display.
        band, ref_line : bool
            Whether to draw the binomial band and the diagonal.
        legend : bool
            Whether to draw a legend.
        **line_options
            Properties of the curve, as for ``Axes.plot``.

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
        if ref_line:
            reference_line(ax, [0, 1], [0, 1], "ideal")
        called = (self.name if name is None else name) or "observed"
        look = {"markersize": 4, "linewidth": 1.5} | line_options
        self.line_ = self._draw_model(self.nominal, self.observed, called, look)
        ax.set(xlabel="nominal coverage", ylabel="observed coverage")
        unit_square(ax, legend)
        return self


def binomial_band(p: Floats, n: int) -> tuple[Floats, Floats]:
    """Bounds of the share of successes that n independent trials stay inside with at least 95 % (2.5 % in each tail)."""
    return np.asarray(binom.ppf(0.025, n, p) / n).clip(0.0), np.asarray(binom.ppf(0.975, n, p) / n)


def _levels(levels: ArrayLike | None) -> Floats:
    return LEVELS.copy() if levels is None else probabilities("levels", levels)
