"""Settings of short trainings, axes to draw on, and what is read from them."""

import numpy as np
import pytest

from kstonet.plotting import (
    CoverageDisplay,
    IntervalDisplay,
    PartialCoverageDisplay,
    VarianceSourcesDisplay,
    WidthErrorDisplay,
)

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib.figure import Figure  # noqa: E402

FAST = {"max_iter": 6, "n_average": 3, "n_imputation_steps": 5, "random_state": 0}
PREDICTIVE = [IntervalDisplay, CoverageDisplay, WidthErrorDisplay, PartialCoverageDisplay, VarianceSourcesDisplay]


def axes():
    return Figure().subplots()


def bars(container):
    """Lower and upper ends of bars, (n, 2)."""
    return np.array([[patch.get_y(), patch.get_y() + patch.get_height()] for patch in container.patches])


def labels(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]
