"""Coverage of intervals in parts of the rows: where are they wrong?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kstonet._checks import Floats
from kstonet.metrics import PartialCoverage, coverage_by_group, coverage_by_quantile
from kstonet.plotting.coverage import binomial_band
from kstonet.plotting.inputs import feature_values, judged_by, model_name, read_intervals
from kstonet.plotting.style import BAND, Display, legend_above_data, model_marks, once, reference_line, require_matplotlib
from kstonet.uncertainty.distribution import probabilities

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PREDICTION = "prediction"
APART = 0.12  # between the points of two models in the same part


class PartialCoverageDisplay(Display):
    """Coverage of intervals where a feature or the prediction is small, middling or large, or within groups.

    Intervals that are right on average may cover too much in one part of the rows and too little in another. The grey boxes
    are what intervals with the nominal coverage stay inside with probability 95 % in a part of so many rows (binomial). To
    compare models, pass the ``ax_`` of one display to the next.

    Parameters
    ----------
    found : PartialCoverage
        Coverage in parts of the rows.
    coverage : float
        Nominal coverage of the intervals.
    by : str
        What the rows are parted by; the label of the horizontal axis.
    quantiles : bool
        Whether the parts are those between quantiles, in order, or groups.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    points_ : Line2D
        The coverage of every part.
    boxes_ : BarContainer or None
        The binomial bands; None if the axes already had them.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> import numpy as np
    >>> from kstonet.plotting import PartialCoverageDisplay
    >>> rng = np.random.default_rng(0)
    >>> x = rng.uniform(size=1000)
    >>> display = PartialCoverageDisplay.from_intervals(
    ...     x * rng.normal(size=1000), np.tile([-0.95, 0.95], (1000, 1)), 0.9, values=x, n_parts=3
    ... )
    >>> display.points_.get_ydata().round(1)  # one width for all rows: too wide on the left, too narrow on the right
    array([1. , 0.9, 0.8])

    For a fitted model: ``PartialCoverageDisplay.from_estimator(model, X_test, y_test, by="prediction")``.
    """

    def __init__(
        self, found: PartialCoverage, coverage: float, *, by: str = "", quantiles: bool = True, name: str | None = None
    ) -> None:
        self.found, self.coverage, self.by, self.quantiles, self.name = found, coverage, by, quantiles, name

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        by: int | str = PREDICTION,
        groups: ArrayLike | None = None,
        coverage: float = 0.9,
        n_parts: int = 5,
        target: int | None = None,
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the coverage of a fitted model's intervals in parts of the rows.

        Parameters
        ----------
        model : fitted regressor
            A model with ``predict_dist(X)`` or ``predict(X, return_std=True)``, also as the last step of a pipeline or inside a
            search.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Observed targets of these rows.
        by : int or str, default="prediction"
            Index or name of the feature whose quantiles part the rows, or "prediction".
        groups : array-like of shape (n_samples,), optional
            Groups of the rows, numbers or strings, in place of quantiles.
        coverage : float, default=0.9
            Nominal coverage of the intervals.
        n_parts : int, default=5
            Number of parts, of as many rows each.
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
        PartialCoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        predicted, truth = judged_by(model, X, y, target)
        bounds = predicted.interval(probabilities("coverage", coverage))[:, :, 0]
        label = model_name(model, name)
        if groups is not None:
            return cls(coverage_by_group(truth, bounds, groups), coverage, by="group", quantiles=False, name=label).plot(
                ax, **options
            )
        values, called = (predicted.mean, PREDICTION) if by == PREDICTION else feature_values(X, by)
        found = coverage_by_quantile(truth, bounds, values, n_parts=n_parts)
        return cls(found, coverage, by=called, name=label).plot(ax, **options)

    @classmethod
    def from_intervals(
        cls,
        y_true: ArrayLike,
        intervals: ArrayLike,
        coverage: float,
        *,
        values: ArrayLike | None = None,
        groups: ArrayLike | None = None,
        n_parts: int = 5,
        by: str = "",
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
        intervals : array-like of shape (n, 2) or (n, k, 2)
            Intervals, as ``predict_interval`` returns them.
        coverage : float
            Their nominal coverage.
        values, groups : array-like of shape (n,)
            What parts the rows, one of the two: numbers, by their quantiles, or groups.
        n_parts : int, default=5
            Number of parts by quantiles.
        by : str, optional
            Label of the horizontal axis.
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
        PartialCoverageDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_intervals")
        bounds, truth, _ = read_intervals(y_true, intervals, coverage, target)
        if (values is None) == (groups is None):
            raise ValueError("give either values, whose quantiles part the rows, or groups.")
        if groups is not None:
            found = coverage_by_group(truth, bounds[:, :, 0], groups)
        else:
            assert values is not None
            found = coverage_by_quantile(truth, bounds[:, :, 0], values, n_parts=n_parts)
        return cls(found, coverage, by=by, quantiles=groups is None, name=name).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        band: bool = True,
        ref_line: bool = True,
        legend: bool = True,
        **point_options: Any,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        name : str, optional
            Name in the legend, in place of that of the display.
        band, ref_line : bool
            Whether to draw the binomial bands and the nominal coverage.
        legend : bool
            Whether to draw a legend.
        **point_options
            Properties of the points, as for ``Axes.plot``.

        Returns
        -------
        PartialCoverageDisplay
        """
        ax = self._draw_on(ax)
        places: Floats = np.arange(len(self.found.parts), dtype=np.float64)
        self.boxes_ = None
        label = "binomial 95 % band"
        if band and once(ax, label):
            edges = [binomial_band(np.array([self.coverage]), int(count)) for count in self.found.count]
            low, high = (np.array([edge[side][0] for edge in edges]) for side in (0, 1))
            self.boxes_ = ax.bar(places, high - low, 0.6, low, color=BAND, linewidth=0, label=label, zorder=0)
        if ref_line:
            ends, level = [-0.5, len(places) - 0.5], self.coverage
            reference_line(ax, ends, [level, level], f"nominal {100 * level:g} %")
        called = (self.name if name is None else name) or "observed"
        look = {"markersize": 6, "linestyle": "none"} | point_options
        self.points_ = self._draw_model(places + APART * model_marks(ax), self.found.coverage, called, look)
        ax.set_xticks(places, [self._part(k) for k in range(len(places))])
        ax.set(xlabel=self.by, ylabel="coverage")
        if legend:
            legend_above_data(ax)
        return self

    def _part(self, k: int) -> str:
        part = self.found.parts[k]
        return f"≤ {part:.3g}" if self.quantiles else str(part)
