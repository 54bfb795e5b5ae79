"""Loss and running time of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from kstonet._checks import Floats, check_choice
from kstonet.plotting.inputs import innermost, model_name
from kstonet.plotting.style import (
    AREAS,
    REFERENCE,
    Display,
    count_on_x,
    legend_above_data,
    mark_model,
    model_marks,
    next_color,
    once,
    require_matplotlib,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SECONDS = "seconds"
VALIDATION = ("validation_", "val_")  # what the histories of different models put before a measure of validation rows


class TrainingPathDisplay(Display):
    """Loss of the training and validation rows per iteration or second, optionally with the seconds of every part.

    The display reads ``history_`` of every estimator of this library, and of other models with a history of this form. To
    compare models, pass the ``axes_`` of one display to the next.

    Parameters
    ----------
    train : ndarray of shape (iterations,)
        Measure on the training rows.
    validation : ndarray of shape (iterations,), optional
        Measure on the validation rows.
    parts : dict of ndarray of shape (iterations,), optional
        Seconds of every part of an iteration.
    metric : str
        Name of the measure in ``train`` and ``validation``.
    name : str, optional
        Name of the model in the legend.

    Attributes
    ----------
    seconds : ndarray of shape (iterations,) or None
        Seconds since the start of the training, at the end of every iteration.
    train_, validation_ : Line2D
        The curves; ``validation_`` is None without validation rows.
    bars_ : dict of BarContainer
        The bars of every part; empty without the second panel.
    ax_, axes_, figure_ : Axes, ndarray of Axes, Figure
        ``axes_`` holds the panels: the path and, if drawn, the seconds.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")  # draw without a window
    >>> from kstonet import KStoNetRegressor
    >>> from kstonet.datasets import make_measurement_error
    >>> from kstonet.plotting import TrainingPathDisplay
    >>> X, y = make_measurement_error(150, random_state=0)
    >>> model = KStoNetRegressor(max_iter=5, random_state=0).fit(X[:100], y[:100], X_val=X[100:], y_val=y[100:])
    >>> display = TrainingPathDisplay.from_estimator(model, parts=True)
    >>> len(display.validation_.get_ydata()), sorted(display.bars_)
    (5, ['choice', 'first layer', 'impute', 'intervals', 'regressions'])

    From records:

    >>> display = TrainingPathDisplay.from_history([{"loss": 2.0}, {"loss": 1.0}])
    >>> display.train_.get_ydata()
    array([2., 1.])
    """

    def __init__(
        self,
        train: Floats,
        validation: Floats | None = None,
        parts: dict[str, Floats] | None = None,
        *,
        metric: str = "loss",
        name: str | None = None,
    ) -> None:
        self.train, self.validation, self.parts, self.metric, self.name = train, validation, parts or {}, metric, name
        self.seconds = np.cumsum(sum(self.parts.values())) if self.parts else None

    @classmethod
    def from_estimator(
        cls,
        model: Any,
        X: Any = None,
        y: Any = None,
        *,
        metric: str = "loss",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw the training of a fitted model.

        Parameters
        ----------
        model : fitted estimator
            A model with ``history_``, also as the last step of a pipeline or inside a search.
        X, y
            Not used; present because all displays share one signature.
        metric : str, default="loss"
            Name of a measure in the records, such as "loss" (mean squared error of standardised targets, or negative
            log-likelihood) or "score".
        name : str, optional
            Name of the model in the legend. If not given, the name of its class.
        ax : Axes or two of them, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        TrainingPathDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_estimator")
        history = getattr(innermost(model), "history_", None)
        if history is None:
            raise TypeError(f"model={type(innermost(model)).__name__} has no history_; fit it first, or use from_history.")
        return cls.from_history(history, metric=metric, name=model_name(model, name), ax=ax, **options)

    @classmethod
    def from_history(
        cls,
        history: Sequence[dict[str, Any]],
        *,
        metric: str = "loss",
        name: str | None = None,
        ax: Any = None,
        **options: Any,
    ) -> Self:
        """Draw records, one per iteration.

        Parameters
        ----------
        history : sequence of dict
            One record per iteration with the measure ``metric``. A prefix "validation_" or "val_" marks the measure on
            validation rows. Seconds are in "seconds" or, for every part, in "seconds_" and the name of the part.
        metric : str, default="loss"
            Name of the measure to draw.
        name : str, optional
            Name of the model in the legend.
        ax : Axes or two of them, optional
            Axes to draw in. If not given, a new figure is made.
        **options
            Further arguments of :meth:`plot`.

        Returns
        -------
        TrainingPathDisplay
        """
        require_matplotlib(f"{cls.__name__}.from_history")
        if not len(history):
            raise ValueError("history is empty: there is no iteration to draw.")
        if not all(metric in record for record in history):
            known = ", ".join(sorted(map(str, history[0])))
            raise ValueError(f"metric={metric!r} is not in every record of the history; the first holds {known}.")
        validation = None
        for key in (before + metric for before in VALIDATION):
            if any(key in record for record in history):
                validation = _column(history, key)
        keys = dict.fromkeys(key for record in history for key in record if key == SECONDS or key.startswith(f"{SECONDS}_"))
        parts = {_part(key): np.nan_to_num(_column(history, key)) for key in keys}
        return cls(_column(history, metric), validation, parts, metric=metric, name=name).plot(ax, **options)

    def plot(
        self,
        ax: Any = None,
        *,
        against: str = "iteration",
        parts: bool = False,
        log: bool = False,
        name: str | None = None,
        color: Any = None,
        legend: bool = True,
    ) -> Self:
        """Draw.

        Parameters
        ----------
        ax : Axes or two of them, optional
            Axes to draw in, two of them for ``parts=True``. If not given, a new figure is made.
        against : {"iteration", "seconds"}
            Quantity of the horizontal axis. Seconds are those of the iterations, without the set-up before the first and the
            work after the last.
        parts : bool
            Whether to draw a second panel with the total seconds of every part.
        log : bool
            Whether the vertical axis is logarithmic.
        name : str, optional
            Name in the legend, in place of that of the display.
        color : optional
            Colour of the model. If not given, the next one of the palette.
        legend : bool
            Whether to draw a legend.

        Returns
        -------
        TrainingPathDisplay
        """
        check_choice("against", against, ("iteration", SECONDS))
        if (parts or against == SECONDS) and self.seconds is None:
            wish = "parts=True" if parts else "against='seconds'"
            raise ValueError(f"{wish} needs seconds in the history, which has none; leave it out.")
        self.axes_ = panels = self._panels(ax, parts)
        called = (self.name if name is None else name) or "model"
        self._draw_path(panels[0], against, log, called, color)
        self.bars_: dict[str, Any] = {}
        if parts:
            self._draw_parts(panels[1], called)
        # The legends come last: the labels of either panel change the shape of both.
        limits = [None, (model_marks(panels[-1]) - 0.5, -0.5)]  # of the bars, the first model on top
        for panel, given in zip(panels, limits, strict=False):
            if legend:
                legend_above_data(panel, limits=given)
            elif given is not None:
                panel.set_ylim(*given)
        return self

    def _panels(self, ax: Any, parts: bool) -> np.ndarray:
        require_matplotlib(f"{type(self).__name__}.plot")
        if ax is None and parts:
            import matplotlib.pyplot as plt

            ax = plt.subplots(2, 1, height_ratios=(3, 1.4), layout="constrained")[1]
        given = np.empty(0, dtype=object) if ax is None else np.atleast_1d(np.asarray(ax, dtype=object)).ravel()
        if parts and len(given) != 2:
            raise ValueError(
                f"parts=True draws two panels, ax holds {len(given)}; give two axes, as in ax=figure.subplots(2, 1)."
            )
        first = self._draw_on(given[0] if len(given) else None)
        return np.array([first, *given[1:2]] if parts else [first], dtype=object)

    def _draw_path(self, ax: Axes, against: str, log: bool, called: str, color: Any) -> None:
        color = next_color(ax) if color is None else color
        x = np.arange(1, len(self.train) + 1) if self.seconds is None or against == "iteration" else self.seconds
        marker = "o" if len(self.train) == 1 else None  # a line through one point does not show
        (self.train_,) = ax.plot(x, self.train, color=color, marker=marker, label=called)
        mark_model(ax, self.train_)
        self.validation_ = None
        if self.validation is not None:
            (self.validation_,) = ax.plot(x, self.validation, color=color, marker=marker, linestyle="--")
            for label, style in (("training rows", "-"), ("validation rows", "--")):
                if once(ax, label):  # one key to the line styles for all models
                    ax.plot([], [], color=REFERENCE, linestyle=style, label=label)
        if log:
            ax.set_yscale("log")
        ax.set(xlabel="seconds of training" if against == SECONDS else "iteration", ylabel=self.metric)
        if against == "iteration":
            count_on_x(ax)

    def _draw_parts(self, ax: Axes, called: str) -> None:
        row, left = model_marks(ax), 0.0
        for part, seconds in self.parts.items():
            known = ax.get_legend_handles_labels()[1]
            place = known.index(part) if part in known else len(known)
            label = "_again" if part in known else part
            total = float(seconds.sum())
            self.bars_[part] = ax.barh(row, total, left=left, height=0.7, color=AREAS[(place + 1) % len(AREAS)], label=label)
            left += total
        mark_model(ax, self.bars_[next(iter(self.bars_))].patches[0])
        names = [text.get_text() for text in ax.get_yticklabels()] if row else []
        ax.set_yticks(range(row + 1), [*names[:row], called], fontsize="small")
        ax.set(xlabel="seconds of training")


def _part(key: str) -> str:
    return "training" if key == SECONDS else key.removeprefix(f"{SECONDS}_").replace("_", " ")


def _column(history: Sequence[dict[str, Any]], key: str) -> Floats:
    """A measure of every iteration; nan where a record misses it."""
    return np.array([float(record.get(key, np.nan)) for record in history])
