"""Reliability of predicted class probabilities."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import beta

from kstonet._checks import Floats
from kstonet.metrics import ReliabilityCurve, reliability_curve
from kstonet.plotting.inputs import model_name
from kstonet.plotting.style import Display, reference_line, require_matplotlib, unit_square

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class ReliabilityDisplay(Display):
    """Observed frequency against predicted probability, bin by bin.

    Below the diagonal the model is overconfident. Every point has the 95 % confidence interval of its frequency (Clopper and
    Pearson); a long bar indicates a bin with few predictions. The legend shows the expected calibration error, the mean
    distance from the diagonal weighted by the predictions in the bins. To compare models, pass the ``ax_`` of one display to
    the next.

    Parameters
    ----------
    curve : ReliabilityCurve
        The result of :func:`kstonet.metrics.reliability_curve`.
    n_samples : int
        Number of predictions behind the curve.
    label : optional
        The class whose probability is shown. None stands for the most probable class of every row.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    line_ : Line2D
        The curve.
    bars_ : LineCollection
        The confidence intervals of the frequencies.
    error : float
        Expected calibration error of the bins.
    ax_, figure_ : Axes, Figure
        Where the display was drawn.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> from sklearn.datasets import load_breast_cancer
    >>> from kstonet import KStoNetClassifier
    >>> from kstonet.plotting import ReliabilityDisplay
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = KStoNetClassifier(max_iter=5, n_average=2, random_state=0).fit(X[:200], y[:200])
    >>> display = ReliabilityDisplay.from_estimator(model, X[200:], y[200:], label=1, n_bins=5)
    >>> len(display.line_.get_xdata()) <= 5, 0 <= display.error <= 1
    (True, True)

    From the probabilities of any model:

    >>> display = ReliabilityDisplay.from_predictions([0, 1, 1, 1], [0.2, 0.6, 0.9, 0.9], label=1, n_bins=2)
    >>> display.line_.get_ydata()
    array([0., 1.])
    """

    def __init__(self, curve: ReliabilityCurve, n_samples: int, *, label: Any = None, name: str | None = None) -> None:
        self.curve, self.n_samples, self.label, self.name = curve, n_samples, label, name
        self.error = float(curve.weight @ np.abs(curve.observed - curve.predicted))

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any,
        y: Any,
        *,
        label: Any = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the reliability of a fitted model.

        Parameters
        ----------
        model : fitted classifier
            A model with ``predict_proba``.
        X : array-like of shape (n_samples, n_features)
            Rows to predict. Use rows that the model was not trained on.
        y : array-like of shape (n_samples,)
            Observed targets of these rows.
        label : one of the classes, optional
            The class whose probability is shown. If not given, it is the most probable class of every row.
        n_bins : int, default=10
            Number of bins.
        strategy : {"uniform", "quantile"}
            Whether bins have equal widths or equal numbers of rows.
        name : str, optional
            Name of the model in the legend. If not given, the name of its class.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        if not hasattr(model, "predict_proba"):
            raise TypeError(
                f"model={type(model).__name__} has no predict_proba; use a classifier that has, or IntervalDisplay and "
                "CoverageDisplay for a regressor."
            )
        called = model_name(model, name)
        given: dict[str, Any] = {"labels": model.classes_, "label": label, "n_bins": n_bins, "strategy": strategy}
        return cls.from_predictions(y, model.predict_proba(X), name=called, ax=ax, **given, **options)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        proba: ArrayLike,
        *,
        label: Any = None,
        labels: ArrayLike | None = None,
        n_bins: int = 10,
        strategy: str = "uniform",
        name: str | None = None,
        ax: Axes | None = None,
        **options: Any,
    ) -> Self:
        """Draw the reliability of predicted probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            Class labels.
        proba : array-like of shape (n, classes), or (n,)
            Probabilities as ``predict_proba`` returns them. For two classes, an array of shape (n,) holds those of the second
            label.
        label : one of the labels, optional
            The class whose probability is shown. If not given, it is the most probable class of every row.
        labels : array-like of shape (classes,), optional
            Labels of the columns of ``proba``, as in ``model.classes_``. If not given, the sorted labels of ``y_true``.
        n_bins : int, default=10
            Number of bins.
        strategy : {"uniform", "quantile"}
            Whether bins have equal widths or equal numbers of rows.
        name : str, optional
            Name of the model in the legend.
        ax : Axes, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        ReliabilityDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_predictions")
        curve = reliability_curve(y_true, proba, label=label, labels=labels, n_bins=n_bins, strategy=strategy)
        return cls(curve, len(np.asarray(y_true)), label=label, name=name).plot(ax, **options)

    def plot(
        self,
        ax: Axes | None = None,
        *,
        name: str | None = None,
        bars: bool = True,
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
        bars, ref_line : bool
            Whether to draw the confidence intervals and the diagonal.
        legend : bool
            Whether to draw a legend.
        **line_options
            Properties of the curve, as for ``Axes.plot``.

        Returns
        -------
        ReliabilityDisplay
        """
        ax = self._draw_on(ax)
        if ref_line:
            reference_line(ax, [0, 1], [0, 1], "ideal")
        called = f"{(self.name if name is None else name) or 'model'} (ECE {self.error:.3f})"
        look = {"markersize": 5, "linewidth": 1.5} | line_options
        self.line_ = self._draw_model(self.curve.predicted, self.curve.observed, called, look)
        self.bars_ = None
        if bars:
            low, high = share_interval(self.curve.observed, self.curve.weight * self.n_samples)
            self.bars_ = ax.vlines(self.curve.predicted, low, high, color=self.line_.get_color(), linewidth=1.0, alpha=0.7)
        of = "top class" if self.label is None else f"class {self.label}"
        ax.set(xlabel=f"predicted probability ({of})", ylabel=f"observed share ({of})")
        unit_square(ax, legend)
        return self


def share_interval(share: Floats, count: Floats) -> tuple[Floats, Floats]:
    """The 95 % confidence interval of Clopper and Pearson for shares of so many trials."""
    hits = share * count
    with np.errstate(invalid="ignore"):  # no success, or nothing else: the bound is exact
        low = np.where(hits < 0.5, 0.0, beta.ppf(0.025, hits, count - hits + 1.0))
        high = np.where(count - hits < 0.5, 1.0, beta.ppf(0.975, hits + 1.0, count - hits))
    return low, high
