"""Prediction intervals with the observations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kstonet._checks import Floats, check_choice, whole_number
from kstonet.plotting.inputs import (
    Predicted,
    feature_values,
    judged_as,
    judged_by,
    read_intervals,
    row_values,
    spread,
    target_name,
)
from kstonet.plotting.style import BLUE, VERMILLION, Display, count_on_x, legend_above_data, require_matplotlib, shades
from kstonet.uncertainty.distribution import probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POINTS = 20  # the paper's number of test points
CROWD = 60  # bars that can be told apart
BASE = "#56B4E9"  # of the intervals


class IntervalDisplay(Display):
    """Prediction intervals at some test points, with the observations: the figure of the paper's Section 5.2.

    The horizontal axis counts the points or shows one feature. Use ``from_estimator``, ``from_predictions`` (mean and standard
    deviation) or ``from_intervals`` (bounds).

    Parameters
    ----------
    y_true, mean : ndarray of shape (n,)
        Observed values, and predictions to draw with the intervals.
    intervals : ndarray of shape (n, 2, levels)
        Lower and upper bounds; they may be infinite.
    coverage : ndarray of shape (levels,)
        Nominal coverages of the intervals, the largest first.
    x : ndarray of shape (n,), optional
        Values of a feature for the horizontal axis.
    x_name, y_name : str, optional
        Labels of the axes.
    x_alone : bool
        Whether the predictions depend on ``x`` only. If True, they are drawn as a curve and the intervals as a band.

    Attributes
    ----------
    rows_ : ndarray
        Indices of the rows that are drawn, from left to right.
    intervals_ : list
        One artist (bars, lines or a band) per coverage, the widest first.
    mean_, covered_, missed_ : Line2D
        Predictions, and observations inside and outside the widest interval.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.datasets import make_measurement_error
    >>> from kstonet.plotting import IntervalDisplay
    >>> X, y = make_measurement_error(150, random_state=0)
    >>> model = KStoNetRegressor(tuning="none", max_iter=5, n_average=2, random_state=0).fit(X[:100], y[:100])
    >>> display = IntervalDisplay.from_estimator(model, X[100:], y[100:], coverage=(0.5, 0.95), sort="prediction")
    >>> len(display.rows_), len(display.intervals_)
    (20, 2)

    From the predictions of any model:

    >>> display = IntervalDisplay.from_predictions([1.0, 2.0, 9.0], mean=[1.1, 1.8, 3.0], std=0.5)
    >>> display.missed_.get_xydata().tolist()
    [[3.0, 9.0]]
    >>> display.figure_.savefig("intervals.png")  # doctest: +SKIP
    """

    def __init__(
        self,
        y_true: Floats,
        mean: Floats,
        intervals: Floats,
        coverage: Floats,
        *,
        x: Floats | None = None,
        x_name: str | None = None,
        y_name: str | None = None,
        x_alone: bool = True,
    ) -> None:
        self.y_true, self.mean, self.intervals, self.coverage = y_true, mean, intervals, coverage
        self.x, self.x_name, self.y_name, self.x_alone = x, x_name, y_name, x_alone

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        coverage: Any = 0.95,
        target: int | None = None,
        feature: int | str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the intervals of a fitted model.

        Parameters
        ----------
        model : fitted regressor
            A model with ``predict_dist(X)`` or ``predict(X, return_std=True)``, also as the last step of a pipeline or inside a
            search.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Observed targets of these rows.
        coverage : float or sequence of float, default=0.95
            Nominal coverage. Several coverages are drawn in shades of one colour.
        target : int, optional
            Index of the target to draw; needed if there are several.
        feature : int or str, optional
            Column of X on the horizontal axis, by index or name. If not given, the axis counts the points.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        IntervalDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        x, x_name = (None, None) if feature is None else feature_values(X, feature)
        predicted, truth = judged_by(model, X, y, target)
        display = cls._of(truth, predicted, coverage, x, x_name)
        display.y_name, display.x_alone = target_name(y, predicted.column), np.shape(X)[1] == 1
        return display.plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        mean: ArrayLike,
        std: ArrayLike,
        *,
        coverage: Any = 0.95,
        target: int | None = None,
        x: ArrayLike | None = None,
        x_name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the central intervals of Gaussian predictions.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, k)
            Observed values.
        mean, std : array-like of the shape of y_true, or float
            Mean and standard deviation of every prediction.
        coverage : float or sequence of float, default=0.95
            Nominal coverage. Several coverages are drawn in shades of one colour.
        target : int, optional
            Index of the target to draw; needed if there are several.
        x, x_name : array-like of shape (n,) and str, optional
            Values for the horizontal axis, and their name.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        IntervalDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        predicted, truth = judged_as(y_true, mean, std, target)
        return cls._of(truth, predicted, coverage, x, x_name).plot(ax, **options)

    @classmethod
    def from_intervals(
        cls,
        y_true: ArrayLike,
        intervals: ArrayLike,
        *,
        coverage: Any = 0.95,
        mean: ArrayLike | None = None,
        target: int | None = None,
        x: ArrayLike | None = None,
        x_name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw given intervals.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, k)
            Observed values.
        intervals : array-like of shape (n, 2) or (n, k, 2), with one more axis (levels,) for several coverages
            Intervals, as ``predict_interval`` returns them.
        coverage : float or sequence of float, default=0.95
            Nominal coverage of the intervals.
        mean : array-like of the shape of y_true, optional
            Predictions. If not given, the midpoints of the narrowest intervals.
        target : int, optional
            Index of the target to draw; needed if there are several.
        x, x_name : array-like of shape (n,) and str, optional
            Values for the horizontal axis, and their name.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        IntervalDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_intervals")
        bounds, truth, column = read_intervals(y_true, intervals, coverage, target)
        levels, bounds = _widest_first(probabilities("coverage", coverage), bounds)
        if mean is None:
            narrowest = np.where(np.isfinite(bounds[:, :, -1]).all(axis=1, keepdims=True), bounds[:, :, -1], np.nan)
            centre = np.asarray(narrowest.mean(axis=1))  # intervals without bounds have no middle
        else:
            centre = spread("mean", mean, y_true).reshape(len(truth), -1)[:, column]
        values = None if x is None else row_values("x", x, len(truth))
        return cls(truth, centre, bounds, levels, x=values, x_name=x_name).plot(ax, **options)

    @classmethod
    def _of(cls, truth: Floats, predicted: Predicted, coverage: Any, x: ArrayLike | None, x_name: str | None) -> Self:
        levels = probabilities("coverage", coverage)
        levels, bounds = _widest_first(levels, predicted.interval(levels))
        values = None if x is None else row_values("x", x, len(truth))
        return cls(truth, predicted.mean, bounds, levels, x=values, x_name=x_name)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_points: int | None = None,
        sort: str | None = None,
        style: str = "auto",
        color: Any = BASE,
        covered_color: Any = BLUE,
        missed_color: Any = VERMILLION,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        n_points : int, optional
            Number of rows to draw, spread evenly over the data. If not given, it is 20, or 60 over a feature; a band uses all
            rows.
        sort : {"prediction", "width", None}
            Order of the points, if the horizontal axis counts them. None keeps the order of the rows.
        style : {"auto", "bars", "band"}
            ``"bars"`` draws one interval per point and ``"band"`` a band through them. ``"auto"`` draws a band if X has one
            feature, and bars otherwise, because predictions over one of several features are not a curve.
        color, covered_color, missed_color : colours
            Colours of the intervals, and of the observations inside and outside the widest interval.
        legend : bool
            Whether to draw a legend.

        Returns
        -------
        IntervalDisplay
        """
        check_choice("sort", sort, ("prediction", "width", None))
        check_choice("style", style, ("auto", "bars", "band"))
        if self.x is not None and sort is not None:
            raise ValueError(f"sort={sort!r} needs a horizontal axis that counts the points; leave it out with a feature.")
        band = style == "band" or (style == "auto" and self.x is not None and self.x_alone)
        self.rows_ = rows = self._rows(n_points, sort, band)
        ax = self._draw_on(ax)
        x = np.arange(1.0, len(rows) + 1.0) if self.x is None else self.x[rows]
        limits = self._draw_intervals(ax, x, shades(color, len(self.coverage)), band)
        self._draw_points(ax, x, covered_color, missed_color, band)
        ax.set(xlabel=self._x_label(sort), ylabel=self.y_name or "response")
        if self.x is None:
            count_on_x(ax)
            ax.set_xlim(0.3, len(rows) + 0.7)
        if legend:
            legend_above_data(ax, limits=limits, handles=[*self.intervals_, self.mean_, self.covered_, self.missed_])
        elif limits is not None:
            ax.set_ylim(*limits)
        return self

    def _rows(self, n_points: int | None, sort: str | None, band: bool) -> np.ndarray:
        n = len(self.y_true)
        usual = POINTS if self.x is None else n if band else CROWD
        wanted = usual if n_points is None else whole_number("n_points", n_points)
        rows = np.unique(np.linspace(0, n - 1, min(wanted, n)).round().astype(int))
        if self.x is not None:
            return rows[np.argsort(self.x[rows], kind="stable")]
        if sort is None:
            return rows
        key = self.mean if sort == "prediction" else self.intervals[:, 1, 0] - self.intervals[:, 0, 0]
        return rows[np.argsort(key[rows], kind="stable")]

    def _draw_intervals(self, ax: Axes, x: Floats, colors: list[Any], band: bool) -> tuple[float, float] | None:
        """Draw the bounds; return the limits of the vertical axis if some bounds leave it."""
        bounds, limits = self.intervals[self.rows_], None
        unbounded = ~np.isfinite(bounds).all(axis=(0, 1))
        if unbounded.any():  # they run through the whole axes, and further than any limit with a legend
            shown = np.concatenate([bounds[np.isfinite(bounds)], self.y_true[self.rows_], self.mean[self.rows_]])
            low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
            size = (high - low) or 1.0
            limits = (low - 0.1 * size, high + 0.1 * size)
            bounds = bounds.clip(low - 10 * size, high + 10 * size)
        self.intervals_: list[Any] = []
        for k, (level, color) in enumerate(zip(self.coverage, colors, strict=True)):
            label = f"{100 * level:g} % interval" + (" (unbounded)" if unbounded[k] else "")
            low_k, high_k = bounds[:, 0, k], bounds[:, 1, k]
            artist: Any
            if band:
                artist = ax.fill_between(x, low_k, high_k, color=color, linewidth=0, label=label)
            elif self.x is None and len(x) > CROWD:
                artist = ax.stairs(high_k, np.append(x, x[-1] + 1.0) - 0.5, baseline=low_k, fill=True, color=color, label=label)
            elif self.x is None:
                artist = ax.bar(x, high_k - low_k, bottom=low_k, width=0.55, color=color, label=label)
                for patch in artist.patches:
                    patch.sticky_edges.y[:] = []  # or the lowest bar would stand on the frame
            else:
                artist = ax.vlines(x, low_k, high_k, color=color, linewidth=2.0 + k, label=label)
            self.intervals_.append(artist)
        return limits

    def _draw_points(self, ax: Axes, x: Floats, covered_color: Any, missed_color: Any, band: bool) -> None:
        y, widest = self.y_true[self.rows_], self.intervals[self.rows_, :, 0]
        inside = (widest[:, 0] <= y) & (y <= widest[:, 1])
        size = float(np.clip(11.0 * np.sqrt(POINTS / len(y)), 2.5, 10.0))
        shape: dict[str, Any] = {
            "linestyle": "none",
            "marker": "*" if size > 5 else "o",
            "markersize": size,
            "markeredgewidth": 0,
        }
        look: dict[str, Any] = (
            {"linewidth": 1.2} if band and self.x_alone else {"linestyle": "none", "marker": "o", "markersize": 0.4 * size}
        )
        (self.mean_,) = ax.plot(x, self.mean[self.rows_], color="black", label="prediction", **look)
        sides = []
        for side, here, color in (("inside", inside, covered_color), ("outside", ~inside, missed_color)):
            label = f"observed, {side} ({int(here.sum())})" if here.any() else f"_{side}"  # nothing to explain
            sides.append(ax.plot(x[here], y[here], color=color, label=label, **shape)[0])
        self.covered_, self.missed_ = sides

    def _x_label(self, sort: str | None) -> str:
        if self.x is not None:
            return self.x_name or "x"
        n, drawn = len(self.y_true), len(self.rows_)
        text = "test point" if drawn == n else f"test point ({drawn} of {n})"
        return text if sort is None else f"{text}, by {sort}"


def _widest_first(levels: Floats, bounds: Floats) -> tuple[Floats, Floats]:
    order = np.argsort(-levels, kind="stable")
    return levels[order], bounds[:, :, order]
