"""Helpers of all displays: import of matplotlib, colours that are distinct for colour-blind readers, legends."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito (2008): distinct for all common kinds of colour blindness, and in grey.
MODELS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
BLUE, VERMILLION = MODELS[:2]
# Tol's light scheme, for areas that lie beside each other.
AREAS = ("#BBBBBB", "#77AADD", "#EE8866", "#EEDD88", "#44BB99", "#FFAABB", "#99DDFF")
REFERENCE, BAND = "#444444", "#E3E3E3"

OURS = "kstonet-model-"  # marks the main artist of a model, so that the next model in the same axes gets the next colour
FONT_SIZES = (None, "small", "x-small")  # of the legend; None is the user's own
LOOK: dict[str, Any] = {
    "loc": "upper left", "borderaxespad": 0.3, "columnspacing": 1.2,
    "edgecolor": "none", "facecolor": "inherit", "framealpha": 0.85,
}  # fmt: skip
ROOM = 0.97  # share of the width of the axes that a legend may take
TALLEST = 0.3  # share of the axes a legend may take before its letters are made smaller


def require_matplotlib(caller: str) -> None:
    """Raise an error with the command that installs matplotlib, before anything is computed."""
    try:
        import matplotlib  # noqa: F401
    except ImportError as error:
        raise ImportError(f"{caller} needs matplotlib, which is not installed: pip install kstonet[plot]") from error


class Display:
    """Base of the displays: where they are drawn."""

    ax_: Axes
    figure_: Any

    def _draw_on(self, ax: Axes | None) -> Axes:
        """The given axes, or those of a new figure. Only the latter touch pyplot, whose current figure then is the new one."""
        require_matplotlib(f"{type(self).__name__}.plot")
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots(layout="constrained")[1]
        self.ax_, self.figure_ = ax, ax.figure
        return ax

    def _draw_model(self, x: Any, y: Any, called: str, look: dict[str, Any]) -> Any:
        """The main line of a model, in the next colour; ``look`` may say another."""
        ax = self.ax_
        (line,) = ax.plot(x, y, **({"color": next_color(ax), "marker": "o", "label": called} | look))
        mark_model(ax, line)
        return line


def reference_line(ax: Axes, x: Sequence[float], y: Sequence[float], label: str) -> None:
    """What a model is held against, dotted; once for all models."""
    if once(ax, label):
        ax.plot(x, y, color=REFERENCE, linestyle=":", linewidth=1.2, label=label)


def model_marks(ax: Axes) -> int:
    """How many models the axes show."""
    return sum(_is_model(artist) for artist in ax.get_children())


def mark_model(ax: Axes, artist: Any) -> None:
    """Count one more model; ``artist`` is its main one."""
    artist.set_gid(f"{OURS}{model_marks(ax)}")


def next_color(ax: Axes) -> str:
    """The colour of the next model in these axes."""
    return MODELS[model_marks(ax) % len(MODELS)]


def once(ax: Axes, label: str) -> bool:
    """Whether nothing in the axes has this label yet: reference lines are drawn once for all models."""
    return label not in ax.get_legend_handles_labels()[1]


def count_on_x(ax: Axes) -> None:
    """Ticks at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 5, 10], integer=True, min_n_ticks=1))


def lighter(color: Any, towards_white: float) -> tuple[float, float, float]:
    """The colour mixed with white."""
    from matplotlib.colors import to_rgb

    red, green, blue = (value + (1.0 - value) * towards_white for value in to_rgb(color))
    return red, green, blue


def shades(color: Any, n: int) -> list[tuple[float, float, float]]:
    """``n`` shades of a colour, the lightest first."""
    return [lighter(color, t) for t in (np.linspace(0.75, 0.3, n) if n > 1 else [0.65])]


def legend_above_data(
    ax: Axes,
    bottom: float | None = None,
    limits: tuple[float, float] | None = None,
    handles: Sequence[Any] | None = None,
) -> None:
    """Put the legend inside the axes and raise their upper limit until no data lie behind it.

    A legend outside the axes could overlap titles and neighbours, and one in the corner that matplotlib chooses may hide data.

    Parameters
    ----------
    ax : Axes
        Axes to draw in. If not given, a new figure is made.
    bottom : float, optional
        Lower limit of the vertical axis, if not that of the data.
    limits : (float, float), optional
        Both limits of the data, for an axis that does not follow them by itself.
    handles : sequence of artists, optional
        What the legend shows, in this order; if not given, the models, then all else that has a label.
    """
    _lay_out(ax)
    if handles is None:
        handles = sorted(ax.get_legend_handles_labels()[0], key=_is_model, reverse=True)
    height = _fitting_legend(ax, handles)
    if limits is None:
        ax.autoscale(axis="y")
        ax.autoscale_view(scalex=False)
        low, high = ax.get_ylim()
        limits = (low if bottom is None else bottom, high)
    scale = ax.yaxis.get_transform()  # on a logarithmic axis the room is a factor
    low, high = (float(value) for value in scale.transform(np.asarray(limits)))
    top = low + (high - low) / (1.0 - min(height, 0.75))
    ax.set_ylim(limits[0], float(scale.inverted().transform(np.array([top]))[0]), auto=True)


def unit_square(ax: Axes, legend: bool) -> None:
    """Axes of probabilities, with a little room for markers at 0 and 1."""
    ticks = np.linspace(0.0, 1.0, 6)
    limits = (-0.02, 1.02)
    ax.set(xlim=limits, ylim=limits, xticks=ticks, yticks=ticks)
    if legend:
        legend_above_data(ax, limits=limits)


def _is_model(artist: Any) -> bool:
    return str(getattr(artist, "get_gid", str)()).startswith(OURS)  # containers have none


def _lay_out(ax: Axes) -> None:
    """Let a constrained figure find its final shape, which decides how much of the axes a legend takes."""
    root: Any = ax.figure.figure  # of a subfigure: the figure
    engine = root.get_layout_engine()
    if engine is not None:
        engine.execute(root)


def _fitting_legend(ax: Axes, handles: Sequence[Any]) -> float:
    """Make the legend in as many columns as fit, smaller if it is tall; return the share of the axes' height it takes."""
    shown = [handle for handle in handles if not str(handle.get_label()).startswith("_")]
    if not shown:
        return 0.0
    share, n = 0.0, len(shown)
    full = sorted({-(-n // rows) for rows in range(1, n + 1)}, reverse=True)  # columns that are no more than their rows need
    for size in FONT_SIZES:
        for columns in full:
            legend = ax.legend(handles=shown, ncols=columns, fontsize=size, **LOOK)
            extent = legend.get_window_extent()
            if extent.width <= ROOM * ax.bbox.width:
                break
        share = float(extent.height / ax.bbox.height) + 0.02
        if share <= TALLEST and extent.width <= ROOM * ax.bbox.width:
            break
    return share
