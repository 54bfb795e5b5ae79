"""Errors against the widths of the intervals."""

from __future__ import annotations

from math import pi, sqrt
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from kstonet._checks import Floats, check_choice, whole_number
from kstonet.plotting.inputs import Predicted, judged_as, judged_by, model_name
from kstonet.plotting.style import (
    REFERENCE,
    Display,
    legend_above_data,
    mark_model,
    model_marks,
    next_color,
    once,
    require_matplotlib,
)
from kstonet.uncertainty.distribution import probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

FEWEST = 5  # points a bin should have before there is another


class WidthErrorDisplay(Display):
    """Absolute error against the half-width of the interval, or against the standard deviation.

    If the widths are informative, errors grow with them. Large points are means over bins with equally many rows, with 95 %
    confidence intervals. The solid line is their expectation for Gaussian errors; errors above the dashed line lie outside
    their intervals. To compare models, pass the ``ax_`` of one display to the next.

    Parameters
    ----------
    width, error : ndarray of shape (n,)
        Half-widths of the intervals (or standard deviations), and absolute errors.
    coverage : float or None
        Nominal coverage of the intervals. None means that ``width`` holds standard deviations.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    points_, means_ : Line2D
        The points of the rows, and the means of the bins.
    bars_ : LineCollection
        The confidence intervals of the means.
    slope : float
        Slope of the line of expected errors.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> import numpy as np
    >>> from kstonet.plotting import WidthErrorDisplay
    >>> rng = np.random.default_rng(0)
    >>> std = rng.uniform(1, 3, size=5000)
    >>> display = WidthErrorDisplay.from_predictions(std * rng.normal(size=5000), mean=0.0, std=std, against="std", n_bins=4)
    >>> (display.means_.get_ydata() / display.means_.get_xdata()).round(1)  # 0.8 is expected
    array([0.8, 0.8, 0.8, 0.8])

    For a fitted model: ``WidthErrorDisplay.from_estimator(model, X_test, y_test)``.
    """

    def __init__(self, width: Floats, error: Floats, coverage: float | None, *, name: str | None = None) -> None:
        self.width, self.error, self.coverage, self.name = width, error, coverage, name
        # E|e| = sqrt(2/π)·σ for a Gaussian e, and σ is the half-width over the normal quantile.
        deviations = 1.0 if coverage is None else float(norm.ppf(0.5 + 0.5 * coverage))
        self.slope = sqrt(2.0 / pi) / deviations

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        against: str = "half-width",
        coverage: float = 0.95,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the errors of a fitted model.

        Parameters
        ----------
        model : fitted regressor
            A model with ``predict_dist(X)`` or ``predict(X, return_std=True)``, also as the last step of a pipeline or inside a
            search.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Observed targets of these rows.
        against : {"half-width", "std"}
            Quantity of the horizontal axis: the half-width of the interval, or the standard deviation.
        coverage : float, default=0.95
            Nominal coverage of the intervals.
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
        WidthErrorDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        predicted, truth = judged_by(model, X, y, target)
        return cls._of(truth, predicted, against, coverage, model_name(model, name)).plot(ax, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        mean: ArrayLike,
        std: ArrayLike,
        *,
        against: str = "half-width",
        coverage: float = 0.95,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the errors of Gaussian predictions.

        Parameters
        ----------
        y_true : array-like of shape (n,) or (n, k)
            Observed values.
        mean, std : array-like of the shape of y_true, or float
            Mean and standard deviation of every prediction.
        against : {"half-width", "std"}
            Quantity of the horizontal axis: the half-width of the interval, or the standard deviation.
        coverage : float, default=0.95
            Nominal coverage of the intervals.
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
        WidthErrorDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        predicted, truth = judged_as(y_true, mean, std, target)
        return cls._of(truth, predicted, against, coverage, name).plot(ax, **options)

    @classmethod
    def _of(cls, truth: Floats, predicted: Predicted, against: str, coverage: Any, name: str | None) -> Self:
        check_choice("against", against, ("half-width", "std"))
        error = np.abs(truth - predicted.mean)
        if against == "std":
            return cls(predicted.std, error, None, name=name)
        levels = probabilities("coverage", coverage)
        if len(levels) != 1:
            raise ValueError(f"coverage={coverage!r} must be one number; draw other coverages in axes of their own.")
        bounds = predicted.interval(levels)[:, :, 0]
        width = 0.5 * (bounds[:, 1] - bounds[:, 0])
        if not np.isfinite(width).all():
            raise ValueError(
                f"coverage={coverage!r} gives intervals without bounds: the model was calibrated on too few rows for it. Lower "
                "the coverage, calibrate on more rows, or draw against='std'."
            )
        return cls(width, error, float(levels[0]), name=name)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        n_bins: int = 10,
        name: str | None = None,
        color: Any = None,
        ref_line: bool = True,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        n_bins : int, default=10
            Number of bins with equally many rows. There are fewer bins where one would have less than five rows.
        name : str, optional
            Name in the legend, in place of that of the display.
        color : optional
            Colour of the model. If not given, the next one of the palette.
        ref_line : bool
            Whether to draw the line of expected errors and the edge of the intervals.
        legend : bool
            Whether to draw a legend.

        Returns
        -------
        WidthErrorDisplay
        """
        n_bins = whole_number("n_bins", n_bins)
        ax = self._draw_on(ax)
        color = next_color(ax) if color is None else color
        called = self.name if name is None else name
        prefix = f"{called}, " if called and (model_marks(ax) or self.name) else ""
        size = float(np.clip(60.0 / np.sqrt(len(self.width)), 2.0, 5.0))
        look: dict[str, Any] = {"color": color, "linestyle": "none", "marker": "o"}
        (self.points_,) = ax.plot(self.width, self.error, markersize=size, markeredgewidth=0, alpha=0.35, **look)
        centre, mean, reach = binned_means(self.width, self.error, n_bins)
        self.bars_ = ax.vlines(centre, mean - reach, mean + reach, color=color, linewidth=1.5, zorder=3)
        (self.means_,) = ax.plot(
            centre, mean, markersize=7, markeredgecolor="white", zorder=4, label=f"{prefix}mean of a bin", **look
        )
        mark_model(ax, self.means_)
        if ref_line:
            self._draw_references(ax)
        what = (
            "predicted standard deviation" if self.coverage is None else f"half-width of the {100 * self.coverage:g} % interval"
        )
        ax.set(xlabel=what, ylabel="absolute error")
        if legend:
            legend_above_data(ax, bottom=0.0)
        else:
            ax.set_ylim(bottom=0.0)
        return self

    def _draw_references(self, ax: Axes) -> None:
        lines = [(self.slope, "expected (Gaussian)", "-")]
        if self.coverage is not None:
            lines.append((1.0, f"edge of the {100 * self.coverage:g} % interval", "--"))
        for slope, label, style in lines:
            if once(ax, label):
                middle = float(self.width.mean())  # through the origin, but without drawing the axes out to it
                ax.axline(
                    (middle, slope * middle),
                    slope=slope,
                    color=REFERENCE,
                    linestyle=style,
                    linewidth=1.2,
                    label=label,
                    zorder=2,
                )


def binned_means(width: Floats, error: Floats, n_bins: int) -> tuple[Floats, Floats, Floats]:
    """Mean width, mean error and half its 95 % confidence interval, for bins of equally many rows sorted by width."""
    order = np.argsort(width, kind="stable")
    if width[order[0]] == width[order[-1]]:
        n_bins = 1  # nothing to sort by
    bins = np.array_split(order, max(1, min(n_bins, len(order) // FEWEST)))
    spread = [error[rows].std(ddof=1) / sqrt(len(rows)) if len(rows) > 1 else 0.0 for rows in bins]
    centre, mean = ([values[rows].mean() for rows in bins] for values in (width, error))
    return np.array(centre), np.array(mean), float(norm.ppf(0.975)) * np.array(spread)
