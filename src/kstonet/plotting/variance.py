"""Sources of the predictive variance."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from kstonet._checks import Floats, check_not_negative, check_numbers, whole_number
from kstonet.plotting.inputs import TOTAL, predicted_by, row_values
from kstonet.plotting.style import AREAS, Display, count_on_x, legend_above_data, require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class VarianceSourcesDisplay(Display):
    """Predictive variance by source, stacked over test points sorted by their total.

    The sources of this library's networks are the noise of the data, the first layer, the regression layers, and the
    disagreement between the averaged iterations. The legend shows the share of every source in the total of all points.

    Parameters
    ----------
    sources : dict of ndarray of shape (n,)
        Variances of every source, in the order from the bottom to the top.

    Attributes
    ----------
    rows_ : ndarray
        Indices of the rows that are drawn, from left to right.
    areas_ : dict of StepPatch
        The areas of the sources.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.datasets import make_measurement_error
    >>> from kstonet.plotting import VarianceSourcesDisplay
    >>> X, y = make_measurement_error(150, random_state=0)
    >>> model = KStoNetRegressor(tuning="none", max_iter=5, n_average=2, random_state=0).fit(X[:100], y[:100])
    >>> display = VarianceSourcesDisplay.from_estimator(model, X[100:], shares=True)
    >>> list(display.areas_)
    ['noise', 'first layer', 'regression layers', 'between iterations']

    From given variances:

    >>> display = VarianceSourcesDisplay.from_sources({"noise": [1.0, 1.0], "model": [3.0, 0.5]})
    >>> display.rows_  # the second row has the smaller total
    array([1, 0])
    """

    def __init__(self, sources: dict[str, Floats]) -> None:
        self.sources = sources

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, y: Any = None, *, target: int | None = None, ax: Axes | None = None, **options: Any
    ) -> Self:
        """Draw the sources of a fitted model's variance.

        Parameters
        ----------
        model : fitted regressor
            A model with ``predict_dist(X)``, also as the last step of a pipeline or inside a search.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y
            Not used; present because all displays share one signature.
        target : int, optional
            Index of the target to draw; needed if there are several.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        VarianceSourcesDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        sources = predicted_by(model, X, target).variance_by_source
        if list(sources) == [TOTAL]:
            raise TypeError(f"model={type(model).__name__} has no predict_dist(X): the sources of its variance are unknown.")
        return cls(sources).plot(ax, **options)

    @classmethod
    def from_sources(cls, sources: Mapping[str, ArrayLike], *, ax: Axes | None = None, **options: Any) -> Self:
        """Draw given variances.

        Parameters
        ----------
        sources : mapping of str to array-like of shape (n,)
            Variances of every source, such as ``model.predict_dist(X).variance_by_source``.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        VarianceSourcesDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_sources")
        if not sources:
            raise ValueError("sources is empty; give at least one array of variances.")
        n = np.size(check_numbers("sources", next(iter(sources.values()))))
        read = {source: row_values(f"sources[{source!r}]", values, n) for source, values in sources.items()}
        for source, values in read.items():
            check_not_negative(f"sources[{source!r}]", values, "a variance cannot be negative")
        if n == 0:
            raise ValueError("sources holds no rows; there is nothing to draw.")
        return cls(read).plot(ax, **options)

    def plot(self, ax: Axes | None = None, *, shares: bool = False, n_points: int | None = None, legend: bool = True) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        shares : bool
            Whether to draw shares of the total instead of variances.
        n_points : int, optional
            Number of rows to draw, spread evenly over the sorted totals. If not given, all rows are drawn.
        legend : bool
            Whether to draw a legend.

        Returns
        -------
        VarianceSourcesDisplay
        """
        total = np.asarray(sum(self.sources.values()))
        order = np.argsort(total, kind="stable")
        drawn = len(order) if n_points is None else min(whole_number("n_points", n_points), len(order))
        self.rows_ = order[np.unique(np.linspace(0, len(order) - 1, drawn).round().astype(int))]
        ax = self._draw_on(ax)
        edges = np.arange(len(self.rows_) + 1) + 0.5
        divisor = np.where(total > 0, total, 1.0)[self.rows_] if shares else np.ones(len(self.rows_))
        everything = float(total.sum()) or 1.0
        below = np.zeros(len(self.rows_))
        self.areas_: dict[str, Any] = {}
        for k, (source, values) in enumerate(self.sources.items()):
            above = below + values[self.rows_] / divisor
            share = 100 * float(values.sum()) / everything
            label = f"{source} ({'<1' if 0 < share < 0.5 else f'{share:.0f}'} %)"
            # Steps, because the points are not connected, and because a single point can be drawn, too.
            self.areas_[source] = ax.stairs(above, edges, baseline=below, fill=True, color=AREAS[k % len(AREAS)], label=label)
            below = above
        ax.set_xlim(edges[0], edges[-1])
        count_on_x(ax)
        ax.set(xlabel="test points, sorted by total variance", ylabel="share of the variance" if shares else "variance")
        if shares:
            ax.set_yticks(np.linspace(0.0, 1.0, 6))
        limits = (0.0, 1.0 if shares else 1.05 * (float(below.max()) or 1.0))
        if legend:
            legend_above_data(ax, limits=limits)
        else:
            ax.set_ylim(*limits)
        return self
